#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs one consumer with an installed package. Usage: consume.sh <way> <prefix> <scratch directory> [nvcc]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
way=$1 prefix=$2 scratch=$3 nvcc=${4:-}
rm -rf "$scratch" "$scratch.copy"
mkdir -p "$scratch"
libdir=$(dirname "$(find "$prefix" -name libcudaq-realtime.so)")
version=$(sed -n 's/^#define CUDAQ_REALTIME_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' \
  "$prefix/include/cudaq/realtime/version.h" | paste -sd.)
shared=$libdir/libcudaq-realtime.so.${version%%.*}

gpu_project() { # target, more options
  CUDACXX=$nvcc cmake -S "$here/gpu_consumer" -B "$scratch" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" \
    "-DCONSUMER=$1" "-DWANTED_VERSION=$version" "${@:2}"
}

cmake_project() { # target, more options
  local target=$1
  shift
  cmake -S "$here/consumer" -B "$scratch" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" "-DCONSUMER=$target" \
    "-DWANTED_VERSION=$version" "$@"
}

pkg_config_build() { # compiler, options of the language, source, program, package
  if ! command -v pkg-config >/dev/null; then
    echo "skipped: pkg-config is not installed"
    exit 77
  fi
  export PKG_CONFIG_PATH=$libdir/pkgconfig
  local package=${5:-cudaq-realtime}
  pkg-config --exists --print-errors "$package >= $version"
  local flags
  # pkg-config quotes blanks as a shell does.
  eval "flags=($(pkg-config --cflags --libs "$package"))"
  # shellcheck disable=SC2086
  "$1" $2 -Wall -Wextra -Wpedantic -Werror "$3" -o "$scratch/$4" "${flags[@]}" "-Wl,-rpath,$libdir"
}

if [[ $way == Gpu* ]] && { [ -z "$nvcc" ] || [ ! -f "$libdir/libcudaq-realtime-dispatch.a" ]; }; then
  echo "skipped: this build has no device kernels, because nvcc was not found"
  exit 77
fi

case $way in
  CmakeC | CmakeCxx)
    cmake_project "$way"
    cmake --build "$scratch"
    "$scratch/consumer"
    ;;
  CmakeComponents) # a package without decoders and nvcc: a copy without the files of these targets
    mkdir "$scratch.copy"
    cp -rs "$prefix/." "$scratch.copy"
    find "$scratch.copy" -regextype posix-extended \
      -regex '.*(-qec-.*|-dispatch|-graphs)-targets(-[a-z]*)?\.cmake' -delete
    optional="realtime-shm-client;qec-client;qec-server;qec-decoding;qec-realtime-gpu;realtime-graphs;realtime-dispatch"
    optional+=";graphs;nothing"
    if prefix=$scratch.copy cmake_project Components "-DREQUIRED=qec-decoding;dispatch" \
      "-DOPTIONAL=$optional" \
      >"$scratch.log" 2>&1; then
      echo "find_package found components that this package does not have"
      exit 1
    fi
    cat "$scratch.log"
    all=$(tr -s ' \n' ' ' <"$scratch.log")
    for text in 'realtime-shm-client -> found <-' \
      'qec-client -> No cudaq::qec-client: this package was built without decoders (CUDAQ_REALTIME_BUILD_QEC).' \
      'qec-server -> No cudaq::qec-server: this package was built without decoders (CUDAQ_REALTIME_BUILD_QEC).' \
      'qec-decoding -> No cudaq::qec-decoding: this package was built without decoders (CUDAQ_REALTIME_BUILD_QEC).' \
      'qec-realtime-gpu -> No cudaq::qec-realtime-gpu: this package was built without decoders' \
      'realtime-graphs -> No cudaq::realtime-graphs: this package was built without nvcc. <-' \
      'realtime-dispatch -> No cudaq::realtime-dispatch: this package was built without nvcc. <-' \
      'graphs -> No cudaq::graphs: this package has no component of this name; did you mean realtime-graphs?' \
      'nothing -> No cudaq::nothing: this package has no component of this name (its components: realtime, ' \
      'without decoders (CUDAQ_REALTIME_BUILD_QEC). No cudaq::dispatch: this package has no component'; do
      grep -F -e "$text" <<<"$all" >/dev/null || { echo "not said: $text" && exit 1; }
    done
    ;;
  CmakeExistingNames) # its targets and its variable; of those that are not here, CMake says why
    cmake_project ExistingNames "-DLINKED=cudaq-realtime;cudaq-realtime-host-dispatch"
    cmake --build "$scratch"
    "$scratch/consumer"
    if cmake_project ExistingNames "-DLINKED=cudaq-realtime-dispatch;cudaq-realtime-udp-transport" \
      >"$scratch.log" 2>&1; then
      echo "CMake linked targets that this package does not have"
      exit 1
    fi
    cat "$scratch.log"
    all=$(tr -s ' \n' ' ' <"$scratch.log")
    for text in 'No cudaq::cudaq-realtime-dispatch here: ' \
      'cudaq::cudaq-realtime-udp-transport but the target was not'; do
      grep -F -e "$text" <<<"$all" >/dev/null || { echo "not said: $text" && exit 1; }
    done
    ;;
  CmakeWantsOtherVersion)
    if cmake_project CmakeC -DWANTED_VERSION=99.0 >"$scratch.log" 2>&1; then
      echo "find_package accepted this version for a consumer that needs version 99.0"
      exit 1
    fi
    grep -A8 'version' "$scratch.log"
    ;;
  CmakeWithoutCuda) # a program of the host path is built and runs; what needs CUDA says so
    # shellcheck source=unittests/headers/hide_header.sh
    . "$here/../headers/hide_header.sh"
    hide_header cuda_runtime_api.h "$scratch" cc -x c
    without_cuda() {
      env -u CUDA_HOME -u CUDA_PATH -u CUDAToolkit_ROOT "CFLAGS=${hiding[*]}" cmake -S "$here/consumer" \
        -B "$scratch/$1" -G Ninja "-DCMAKE_PREFIX_PATH=$prefix" "-DCONSUMER=$1" -DPRETEND_NO_CUDA=ON
    }
    without_cuda CmakeC
    cmake --build "$scratch/CmakeC"
    "$scratch/CmakeC/consumer"
    if without_cuda GraphsC >"$scratch.log" 2>&1; then
      echo "find_package found the graph scheduler without the CUDA headers"
      exit 1
    fi
    cat "$scratch.log"
    tr -s ' \n' ' ' <"$scratch.log" |
      grep 'realtime-graphs: it needs the headers of the CUDA toolkit.*Neither a GPU nor a driver is needed' >/dev/null
    ;;
  PkgConfigC)
    pkg_config_build cc -std=c11 "$here/consumer/consumer.c" consumer
    "$scratch/consumer"
    ;;
  MigrationHostTable)
    pkg_config_build cc "-std=c11 -pthread" "$here/consumer/host_table.c" consumer
    "$scratch/consumer"
    ;;
  MigrationUpstreamLoop)
    pkg_config_build cc "-std=c11 -pthread -DCUDAQ_REALTIME_UPSTREAM_INTERFACE" "$here/consumer/host_table.c" consumer
    "$scratch/consumer"
    ;;
  PkgConfigCxx)
    pkg_config_build c++ -std=c++17 "$here/consumer/consumer.cpp" consumer
    "$scratch/consumer"
    ;;
  PkgConfigEach) # each .pc file alone leads to its shared library, which the program finds by the rpath that it gives
    pkg_config_build cc -std=c11 "$here/consumer/consumer.c" consumer
    for file in "$libdir"/pkgconfig/*.pc; do
      name=$(basename "$file" .pc)
      [ ! -e "$libdir/lib$name.a" ] || continue
      eval "flags=($(pkg-config --cflags --libs --print-errors "$name") $(pkg-config --variable=rpath "$name"))"
      # shellcheck disable=SC2154
      c++ -x c++ - -o "$scratch/$name" -Wl,--no-as-needed "${flags[@]}" <<<'int main() {}'
      env -u LD_LIBRARY_PATH "$scratch/$name"
      env -u LD_LIBRARY_PATH ldd "$scratch/$name" | grep "lib$name\.so.* => $libdir/"
    done
    ;;
  DlopenOnly)
    # A host that loads the library by name uses neither its headers nor its link options.
    cc -std=c11 -Wall -Wextra -Werror "$here/consumer/dlopen_only.c" -o "$scratch/consumer" -ldl
    "$scratch/consumer" "$shared" "$version"
    ;;
  HiddenCuda)
    pkg_config_build cc -std=c11 "$here/consumer/consumer.c" consumer
    # The process has no visible device. The program itself checks that the driver was not loaded.
    env -u LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES="" "$scratch/consumer" --no-driver-loaded
    ;;
  Program)
    program=$prefix/bin/cudaq-realtime
    if [ ! -x "$program" ]; then
      echo "skipped: this build has no program (CUDAQ_REALTIME_BUILD_TOOLS)"
      exit 77
    fi
    env -u LD_LIBRARY_PATH "$program" --help >/dev/null
    env -u LD_LIBRARY_PATH "$program" info
    ;;
  GpuArchive)
    gpu_project Archive
    cmake --build "$scratch" -j 1
    "$scratch/consumer"
    "$scratch/through_library"
    ;;
  GpuArchivePkgConfig) # as docs/building.md says; it is not run, as GpuArchive runs it
    ln -sfn "$libdir" "$scratch.lib" # nvcc cannot link libraries in a folder with a blank in its name
    export PKG_CONFIG_PATH=$scratch.lib/pkgconfig
    # shellcheck disable=SC2046
    "$nvcc" -std=c++17 -arch=sm_90 -rdc=true "$here"/gpu_consumer/archive_{handler.cu,main.cpp} -o "$scratch/consumer" \
      $(pkg-config --cflags --libs cudaq-realtime-dispatch) \
      $(pkg-config --variable=rpath cudaq-realtime | sed 's/^/-Xlinker=/; s/-Wl,//')
    env -u LD_LIBRARY_PATH ldd "$scratch/consumer" | grep "libcudaq-realtime\.so.* => $scratch.lib/"
    # shellcheck disable=SC2046
    if "$nvcc" -std=c++17 -arch=sm_90 -c "$here/gpu_consumer/archive_handler.cu" -o "$scratch/handler.o" \
      $(pkg-config --cflags cudaq-realtime-dispatch) 2>"$scratch.log"; then
      echo "handlers that are not relocatable device code were accepted: their program would hang"
      exit 1
    fi
    grep -m1 'must be device-linked with it' "$scratch.log"
    ;;
  GpuGraphsCmakeC)
    cmake_project GraphsC
    cmake --build "$scratch"
    "$scratch/consumer"
    ;;
  Decoders) # the examples of docs/decoder_plugin.md, with the plug-ins too
    examples=$prefix/share/doc/cudaq-realtime/docs/examples
    cmake_project Decoders "-DEXAMPLES=$examples"
    cmake --build "$scratch"
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror -D_POSIX_C_SOURCE=200809L -I "$prefix/include" -shared -fPIC \
      "$examples/decoder_plugin/single_fault.c" -o "$scratch/single_fault.so" -lm
    c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -I "$prefix/include" -shared -fPIC \
      "$examples/decoder_plugin/least_weight.cpp" -o "$scratch/least_weight.so"
    decoders=(auto lookup "$scratch/single_fault.so" "$scratch/least_weight.so")
    read -ra python <<<"$(python3-config --includes --embed --ldflags 2>/dev/null | tr '\n' ' ')"
    if [ "${#python[@]}" -gt 0 ]; then
      cc -std=c11 -Wall -Wextra -Werror -D_GNU_SOURCE -I "$prefix/include" -shared -fPIC \
        "$examples/decoder_plugin/python_decoder.c" -o "$scratch/python_decoder.so" "${python[@]}"
      decoders+=("$scratch/python_decoder.so:file=$examples/decoder_plugin/two_errors.py")
    else
      echo "not built without Python's headers: python_decoder.c"
    fi
    for decoder in "${decoders[@]}"; do
      "$scratch/decoder_batch" "$decoder"
      "$scratch/decoder_pipeline" "$decoder"
    done
    ;;
  Examples | GpuExamples) # as their Makefile says; without a GPU those for it are only built
    if [ "$way" = GpuExamples ] && [ -z "${CUDAQ_TEST_WHOLE:-}" ]; then
      echo "skipped: they take a minute to build; scripts/test.sh --all does it"
      exit 77
    fi
    cp -r "$prefix/share/doc/cudaq-realtime/docs/examples/." "$scratch"
    declare -A targets=([Examples]="test" [GpuExamples]="gpu")
    ln -sfn "$libdir" "$scratch.lib" # nvcc cannot link libraries in a folder with a blank in its name
    PKG_CONFIG_PATH=$scratch.lib/pkgconfig make -C "$scratch" "${targets[$way]}" ${nvcc:+"NVCC=$nvcc"}
    ;;
  GpuServices)
    cmake_project Services
    cmake --build "$scratch"
    "$scratch/consumer"
    ;;
  GpuResident)
    gpu_project Resident "-DEXAMPLES=$(cd "$here/../../docs/examples" && pwd)"
    cmake --build "$scratch"
    "$scratch/consumer" # 77 without a GPU: skipped
    ;;
  GpuGraphsPkgConfigC)
    pkg_config_build cc -std=c11 "$here/consumer/graphs.c" consumer cudaq-realtime-graphs
    "$scratch/consumer"
    ;;
  GpuTemplate)
    gpu_project Template
    cmake --build "$scratch"
    "$scratch/consumer"
    ;;
  GpuArchiveNotSeparable)
    gpu_project ArchiveNotSeparable
    if cmake --build "$scratch" >"$scratch.log" 2>&1; then
      echo "the build accepted handlers for the archive that are not relocatable device code: their program would hang"
      exit 1
    fi
    grep -m1 'must be device-linked with it: set the' "$scratch.log"
    ;;
  GpuOtherArchitecture)
    gpu_project Archive "-DCMAKE_CUDA_ARCHITECTURES=75-virtual" >"$scratch.log" 2>&1
    tr -s ' \n' ' ' <"$scratch.log" |
      grep 'holds no code for architecture 75 of CMAKE_CUDA_ARCHITECTURES, only for' >/dev/null
    echo "found the warning about an architecture without code in the archive"
    ;;
  GpuLanguageLater) # configures and generates: a target that cannot be linked would end it
    gpu_project LanguageLater >"$scratch.log" 2>&1 || { cat "$scratch.log" && exit 1; }
    if grep -F 'No cudaq::cudaq-realtime-dispatch here' "$scratch.log"; then
      exit 1
    fi
    ;;
  GpuNoLanguage)
    if gpu_project NoLanguage >"$scratch.log" 2>&1; then
      echo "find_package provided the archive to a project without the language CUDA"
      exit 1
    fi
    cat "$scratch.log"
    grep -q 'the next find_package must fail' "$scratch.log"
    tr -s ' \n' ' ' <"$scratch.log" | grep 'No cudaq::realtime-dispatch: .*enable_language(CUDA)' >/dev/null
    ;;
  *)
    echo "consume.sh: unknown way $way"
    exit 2
    ;;
esac

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing: scripts/bootstrap.sh demo|test [variant...]
# If no package is missing, it changes nothing and fetches no package list.
set -euo pipefail
[ $# -gt 0 ] || set -- test
purpose=$1
shift
variants=" $* "

# need|probe|Debian package|purpose. The need is `must`, or `may`: the build works without the package, and tests that
# need it are skipped and print the reason.
table() {
  cat <<'T'
must|cmd:g++|g++|the compiler
must|cmd:cmake|cmake|the build (3.25 or newer)
must|cmd:ninja|ninja-build|the build
must|file:/usr/include/CLI/CLI.hpp|libcli11-dev|the command line of the program
must|file:/usr/include/nlohmann/json.hpp|nlohmann-json3-dev|the JSON output of the program
must|file:/usr/include/fmt/format.h|libfmt-dev|the text output of the program
may|file:/usr/include/vulkan/vulkan_core.h|libvulkan-dev|rings with requests in device memory
may|file:/usr/include/yaml-cpp/parser.h|libyaml-cpp-dev|the configuration of `serve` and `route`
may|cmd:dtrace|systemtap-sdt-dev|static probes in the decoding server
may|file:/usr/include/ucp/api/ucp.h|libucx-dev|the provider ucx and `route`: many decoding servers
may|file:/usr/include/infiniband/verbs.h|libibverbs-dev|the provider cpu_roce, for RDMA adapters
may|cmd:ccache|ccache|keeping all objects for later builds, also of other clones
may|pip|python3-pip|fetching once PyMatching's sources, and without a CUDA toolkit its headers
T
  if [ "$purpose" = test ]; then
    cat <<'T'
must|file:/usr/src/googletest/googletest/src/gtest-all.cc|googletest|the test framework, compiled with each variant
must|cmd:python3|python3|the checks of layout, symbols, layers and style
may|cmd:clang++|clang|header tests with a second compiler, and the fuzzers
may|libfuzzer|libclang-rt-dev|the fuzzers: the runtime libraries of clang's sanitizers and of libFuzzer
may|cmd:clang-format|clang-format|the format check
may|cmd:ld.lld|lld|linking test programs quickly
may|cmd:pkg-config|pkg-config|the consumer tests through pkg-config
may|cmd:dpkg-shlibdeps|dpkg-dev|the test of the Debian packages
may|cmd:file|file|the test of the Debian packages
may|cmd:rpmbuild|rpm|the test of the RPM packages
may|cmd:lintian|lintian|what Debian's check of packages finds in them
may|cmd:mkdocs|mkdocs|the site of the documents
may|cmd:doxygen|doxygen|the interface in the site
may|venv|python3-venv|the tests of the Python package
may|python-headers|python3-dev|the same: headers of Python
may|cmd:abidiff|abigail-tools|the comparison with the released ABI
may|cmd:spin|spin|the model of the slot protocol
may|file:/usr/share/vulkan/icd.d|mesa-vulkan-drivers|a Vulkan device without a GPU, for a client of the provider shm
may|cmd:shellcheck|shellcheck|the check of the shell scripts
may|cmd:qemu-system-x86_64|qemu-system-x86|the tests of RoCE in a guest with the kernel's soft-RoCE
may|cmd:busybox|busybox-static|the same: the programs of the guest
may|cmd:cpio|cpio|the same: the file system of the guest
may|sbin:rdma|iproute2|the same: its network
may|file:/etc/libibverbs.d/rxe.driver|ibverbs-providers|the same: its adapter
may|cmd:codespell|codespell|the spelling check
may|cmd:groff|groff|the check of the man pages
may|cmd:zsh|zsh|the completion in zsh
may|cmd:fish|fish|the completion in fish
may|cmd:chromium|chromium|the look at HTML reports in a browser, and the diagrams of the site
T
    [ -z "${CUDAQ_TEST_WHOLE:-}" ] || cat <<'T'
may|cmd:mmdebstrap|mmdebstrap|the root of Debian in which the image's packages are tried
may|cmd:buildah|buildah|the test that builds the container image, where neither podman nor docker works
T
    case $variants in
      *" aarch64 "*)
        cat <<'T'
must|cmd:aarch64-linux-gnu-g++|g++-aarch64-linux-gnu|the aarch64 variant
must|cmd:qemu-aarch64|qemu-user|running the aarch64 variant
T
        ;;
    esac
  fi
}

present() {
  case $1 in
    cmd:*) command -v "${1#cmd:}" >/dev/null ;;
    file:*) [ -e "${1#file:}" ] ;;
    sbin:*) PATH=$PATH:/usr/sbin:/sbin command -v "${1#sbin:}" >/dev/null ;;
    libfuzzer) [ -e "$(clang++ -print-file-name="libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null)" ] ;;
    venv) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
    python-headers)
      python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null
      ;;
    pip) python3 -m pip --version >/dev/null 2>&1 ;;
  esac
}

# Prints the lines of the table whose probe fails. $1: only the lines with this need.
missing() {
  table | while IFS='|' read -r need probe package purpose_text; do
    if [ "${1:-$need}" = "$need" ] && ! present "$probe"; then
      echo "$need|$probe|$package|$purpose_text"
    fi
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif [ -t 0 ]; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

lacking=$(missing)
if [ -n "$lacking" ]; then
  mapfile -t packages < <(cut -d'|' -f3 <<<"$lacking")
  echo "bootstrap: not installed: ${packages[*]}"
  if ! command -v apt-get >/dev/null; then
    echo "bootstrap: no apt-get here; install the equivalents of these Debian packages by hand"
  elif [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "bootstrap: neither root nor sudo; ask for: apt-get install ${packages[*]}"
  else
    echo "bootstrap: installing them with apt-get"
    as_root apt-get update -qq || echo "bootstrap: the package lists could not be refreshed; trying with the old ones"
    if ! as_root apt-get install -y -qq --no-install-recommends "${packages[@]}"; then
      # One package that is not available must not prevent the installation of the others.
      for package in "${packages[@]}"; do
        as_root apt-get install -y -qq --no-install-recommends "$package" || true
      done
    fi
  fi
  while IFS='|' read -r _ _ package purpose_text; do
    [ -z "$package" ] || echo "bootstrap: going on without $package ($purpose_text)"
  done <<<"$(missing may)"
  still=$(missing must)
  if [ -n "$still" ]; then
    while IFS='|' read -r _ _ package purpose_text; do
      echo "bootstrap: $package is needed for: $purpose_text" >&2
    done <<<"$still"
    echo "bootstrap: install the packages named above and run this again" >&2
    exit 1
  fi
fi

# The kernel of the guest, for the tests of RoCE. It is not installed.
if [ "$purpose" = test ] && command -v qemu-system-x86_64 >/dev/null && command -v apt-get >/dev/null; then
  "$(dirname "$0")/soft_roce_kernel.sh" ||
    echo "bootstrap: going on without a kernel with soft-RoCE (tests of RoCE in a guest)"
fi

# The libraries of others for arm64, which only the rooms of whole runs need. They are not installed.
if [ -n "${CUDAQ_TEST_WHOLE:-}" ] && [[ $variants == *" aarch64 "* ]] && command -v apt-get >/dev/null; then
  "$(dirname "$0")/arm64_libraries.sh" ||
    echo "bootstrap: going on without libraries for arm64 (the programs of the variant aarch64)"
fi

# The CUDA toolkit is no Debian package. Every build needs its headers, which are fetched if there is no toolkit. Only
# kernels and some tests need its compiler.
for dir in "${CUDAToolkit_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local /usr; do
  if [ -n "$dir" ] && [ -e "$dir/include/cuda_runtime_api.h" ]; then
    exit 0
  fi
done
echo "bootstrap: no CUDA toolkit here: its headers are fetched from PyPI, and GPU kernels are left out of the build"
if ! cmake -P "$(dirname "$0")/../cmake/FetchCudaHeaders.cmake"; then
  cat >&2 <<'T'
bootstrap: every build needs the headers of the CUDA toolkit (cuda_runtime_api.h), but neither a GPU nor a driver.
bootstrap: Install CUDA toolkit 12.6 or newer, and set CUDA_HOME if it is not in /usr/local/cuda; or see that pip works.
T
  exit 1
fi

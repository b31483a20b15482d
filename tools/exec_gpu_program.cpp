// SPDX-License-Identifier: Apache-2.0
// How `cudaq-realtime` runs a command that needs device kernels. They are in another program of the same folder,
// cudaq-realtime-gpu: a build for the CPU does not have to compile them. That program has the same commands and
// options, and replaces this process.
#include "tools/demo/demo.h"
#ifdef CUDAQ_TOOL_HAS_QEC
#include "tools/pipeline/pipeline_gpu.h"
#endif

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

/// The arguments of this process, in the form that execv needs. The pointers point into `text`.
std::vector<char *> own_arguments(std::string &text) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  std::vector<char *> arguments;
  for (std::size_t i = 0; i < text.size(); i += std::char_traits<char>::length(&text[i]) + 1)
    arguments.push_back(&text[i]);
  arguments.push_back(nullptr);
  return arguments;
}

/// Replaces this process by cudaq-realtime-gpu, with the same arguments. If that program cannot be started, throws
/// std::runtime_error; its text begins with `what`, the part that needs that program.
[[noreturn]] void exec_gpu_program(const char *what) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cudaq-realtime-gpu";
  std::string text;
  const std::vector<char *> arguments = own_arguments(text);
  ::execv(program.c_str(), arguments.data());
  if (errno != ENOENT)
    throw std::runtime_error(
        fmt::format("{}: cannot start {}: {}", what, program.string(), std::generic_category().message(errno)));
#ifdef CUDAQ_TOOL_HAS_DEVICE_PROGRAM
  throw std::runtime_error(fmt::format(
      "{}: a GPU needs {}, which is not built: cmake --build <build folder> --target cudaq-realtime-tool-gpu", what,
      program.string()));
#else
  throw std::runtime_error(fmt::format(
      "{}: this build has no device kernels for a GPU, because no nvcc (CUDA 12.6 or newer) was found when it was "
      "configured; build it on a machine with nvcc",
      what));
#endif
}

} // namespace

int run_demo_on_gpu(const demo_options &, const output &) { exec_gpu_program("--device gpu"); }

#ifdef CUDAQ_TOOL_HAS_QEC
std::unique_ptr<gpu_stage> make_gpu_stage(const pipeline_options &, const pipeline_shots &, int, std::size_t) {
  exec_gpu_program("--device gpu");
}
#endif

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// Where the programs and libraries of a build folder are, also after the folder was moved.
#pragma once

#include <filesystem>
#include <string>

namespace cudaq::realtime::test {

/// `path` from the folder of the running program. An absolute path stays as it is.
inline std::string beside_program(const char *path) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / path).lexically_normal().string();
}

} // namespace cudaq::realtime::test

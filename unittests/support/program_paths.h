// SPDX-License-Identifier: Apache-2.0
// Files that a test needs: data of the source tree, programs and libraries of the build. cudaq_test_paths (in
// cmake/CudaqTesting.cmake) defines a macro for each, with its path from the folder of the test program. So the build
// folder may be moved, and the objects do not depend on the folder of the clone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>

namespace cudaq::realtime::test {

/// `path` from the folder of the running program. An absolute path stays as it is.
inline std::string beside_program(const char *path) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / path).lexically_normal().string();
}

/// A string literal as a template argument.
template <std::size_t Size>
struct literal {
  char text[Size];
  consteval literal(const char (&from)[Size]) { std::copy_n(from, Size, text); }
};

/// What the macros of cudaq_test_paths stand for. The string lives as long as the program.
template <literal Path>
const char *test_path() {
  static const std::string path = beside_program(Path.text);
  return path.c_str();
}

} // namespace cudaq::realtime::test

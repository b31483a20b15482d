// SPDX-License-Identifier: Apache-2.0
// Makes single CUDA calls of the dispatch archive fail, on a GPU. The linker's option --wrap leads the calls of the
// whole program to wrapped_cuda.cpp, those of the archive too; CMakeLists.txt names the calls.
#pragma once

#include <cstdint>

namespace cudaq::realtime::test {

/// While it lives, call `n` of this thread fails, counted from 1; 0: none. A call that makes or does something does
/// nothing if it fails. A call that frees something frees it, and returns an error.
class failing_cuda_call {
public:
  explicit failing_cuda_call(std::uint64_t n);
  ~failing_cuda_call();
  failing_cuda_call(const failing_cuda_call &) = delete;
  failing_cuda_call &operator=(const failing_cuda_call &) = delete;
  /// The name of the call that has failed; nullptr: none.
  const char *failed() const;
};

/// Streams, events, graphs and blocks of memory that the program's calls have made and not freed.
long cuda_objects();

} // namespace cudaq::realtime::test

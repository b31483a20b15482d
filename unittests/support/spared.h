// SPDX-License-Identifier: Apache-2.0
// Code of a test that injected faults do not concern: they are for the library's calls.
#pragma once

namespace cudaq::realtime::test {

/// No fault is injected into the calling thread while an object of this class lives there.
class spared {
public:
  spared() { ++depth_; }
  ~spared() { --depth_; }
  spared(const spared &) = delete;
  spared &operator=(const spared &) = delete;
  static bool now() { return depth_ != 0; }

private:
  static inline thread_local int depth_ = 0;
};

} // namespace cudaq::realtime::test

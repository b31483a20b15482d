// SPDX-License-Identifier: Apache-2.0
// Makes single calls of a program fail: operator new, the creation of threads, their placement, mmap, munmap, mbind,
// and the calls of a fake CUDA runtime. fault_points.cpp replaces the system's functions; link it into the program.
//
//   arm(3);                          the third call from now on fails
//   status = cudaq_..._start(d);
//   fired = disarm();                0: the function makes fewer than 3 such calls
//
// Calls of all threads count, except those of exempt threads: a test's own threads, and those that play a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cudaq::realtime::test::faults {

/// From now on the calls number first .. first + count - 1 fail. The numbers begin with 1. `of`: only calls of this
/// name count, so a number does not depend on how often a loop that waits for a device makes others.
void arm(std::uint64_t first, std::uint64_t count = 1, const char *of = nullptr);
/// How often each call was made since arm.
std::map<std::string, std::uint64_t> made();
/// No call fails any more. Returns how many have failed since arm.
std::uint64_t disarm();
/// The call that has failed last.
const char *last();
/// Counts a call. True: it must fail. `what` is a literal; a fake runtime calls this with the name of its function.
bool hits(const char *what) noexcept;

/// While it lives, the calls of this thread do not count.
class exempt_scope {
public:
  exempt_scope() noexcept;
  ~exempt_scope();
  exempt_scope(const exempt_scope &) = delete;
  exempt_scope &operator=(const exempt_scope &) = delete;

private:
  bool before_;
};

/// How often this call has failed in this process. Names of several calls begin alike: "cuda" counts all of CUDA.
std::uint64_t injected(const std::string &prefix);

/// What the program holds now; blocks of memory are those of operator new.
struct holdings {
  long blocks = 0, mappings = 0, threads = 0;
  bool operator==(const holdings &) const = default;
};
/// Threads of exempt threads do not count.
holdings held();

} // namespace cudaq::realtime::test::faults

// SPDX-License-Identifier: Apache-2.0
// The job table of a dispatcher as calls from other threads use it, at any time: a late completion, statistics. Such a
// call may come while the dispatcher is wired to another shared ring, and the table of the old ring may be freed then.
//
//   reading thread                              thread that starts the dispatcher
//   users + 1; not closed: the table is valid
//                                               closed = 1; waits until there is no user
//   use
//   users - 1
//                                               no table; closed = 0; the old table may be freed
//
// The table of a ring that is not shared stays as long as its dispatcher. Then readers do not count themselves.
#pragma once

#include "lib/base/runner.h"
#include "lib/shared_ring/job_table.h"

namespace cudaq::realtime::detail {

class used_jobs {
public:
  /// For one call. Empty if there is no table, or if it is about to be released.
  class use {
  public:
    explicit use(const used_jobs &of) : of_(of), counted_(of.stays_.load() == 0) {
      if (!counted_ || (of_.users_.add(1) & kClosed) == 0)
        jobs_ = of_.jobs_.load();
    }
    ~use() {
      if (counted_)
        of_.users_.add(~std::uint64_t{0});
    }
    use(const use &) = delete;
    use &operator=(const use &) = delete;
    explicit operator bool() const { return jobs_ != nullptr; }
    job_table &operator*() const { return *jobs_; }
    job_table *operator->() const { return jobs_; }

  private:
    const used_jobs &of_;
    const bool counted_;
    job_table *jobs_ = nullptr;
  };

  /// Before the first use, or after release. stays: the table is not freed while this object is used; then all later
  /// tables stay, too.
  void set(job_table *jobs, bool stays) {
    jobs_.store(jobs);
    stays_.store(stays);
  }
  /// No call uses the table any more. Waits for the calls that do; none of them waits for a handler.
  void release() {
    users_.raise_bits(kClosed);
    wait_until(steady_clock::time_point::max(), [this] { return users_.load() == kClosed; });
    jobs_.store(nullptr);
    users_.clear_bits(kClosed);
  }

private:
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  shared_word<job_table *> jobs_;
  shared_word<std::uint32_t> stays_;
  mutable shared_word<std::uint64_t> users_; ///< number of uses; kClosed: no new ones
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// How long the requests of a decoder took, and in which stage. A request with a queue, with the moments that end its
// stages; the first one begins at `arrived`:
//
//   thread               what it does                                          moment
//   that submits         calls decoding_server::submit                         arrived
//                        has the lock of the queue, for which others may wait  accepted
//                        has put the request into the queue                    queued
//   that has the decoder finds the request first in the queue                  taken
//                        has decoded                                           decoded
//                        has given the answer to the transport                 answered
//
// A read of the counter is most of what a moment costs. So `accepted` is `arrived` if the lock is free, and `queued`,
// too, if the request has at most 4096 bytes: their copy takes less than a wake-up, which is in `taken`. Without a
// queue accepted, queued and taken are `arrived`.
#pragma once

#include "lib/base/ticks.h"
#include "lib/base/time_histogram.h"
#include "lib/qec/server/record/request_moments.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <sys/mman.h>

namespace cudaq::qec::realtime {

/// A stage is named by the moment that ends it; `whole` is from arrived to answered.
enum class request_stage : std::uint8_t { accepted, queued, taken, decoded, answered, whole };
inline constexpr std::array<std::string_view, 6> kRequestStages{"accepted", "queued",   "taken",
                                                                "decoded",  "answered", "whole"};

/// Threads: record by one thread at a time, or by several that say so; read by any thread. 55 KB, of which the pages
/// that have counts are in memory.
class stage_times {
public:
  using histogram = cudaq::realtime::detail::time_histogram;

  /// Throws std::bad_alloc.
  explicit stage_times(const cudaq::realtime::detail::tick_clock &clock) : clock_(clock), stages_(fresh_pages()) {}

  [[nodiscard]] std::uint64_t now() const noexcept { return clock_.about_now(); }
  [[nodiscard]] const cudaq::realtime::detail::tick_clock &clock() const noexcept { return clock_; }
  void record(const request_moments &m, std::uint64_t answered, bool many_writers) noexcept {
    const auto add = [&](request_stage stage, std::uint64_t begin, std::uint64_t end) {
      of(stage).record(clock_.ns_between(begin, end), many_writers);
    };
    add(request_stage::accepted, m.arrived, m.accepted);
    add(request_stage::queued, m.accepted, m.queued);
    add(request_stage::taken, m.queued, m.taken);
    add(request_stage::decoded, m.taken, m.decoded);
    add(request_stage::answered, m.decoded, answered);
    add(request_stage::whole, m.arrived, answered);
  }
  [[nodiscard]] histogram::snapshot read(request_stage stage) const noexcept {
    histogram::snapshot all;
    all.add(of(stage));
    return all;
  }

private:
  static constexpr std::size_t kBytes = kRequestStages.size() * sizeof(histogram);
  struct unmapped {
    void operator()(histogram *stages) const noexcept { munmap(stages, kBytes); }
  };
  /// Zeros. Not by new or calloc, which write each page: a server may have thousands of decoders that few requests use.
  static histogram *fresh_pages() {
    void *const pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
      throw std::bad_alloc();
    return static_cast<histogram *>(pages);
  }
  [[nodiscard]] histogram &of(request_stage stage) const noexcept {
    return stages_.get()[static_cast<std::size_t>(stage)];
  }

  const cudaq::realtime::detail::tick_clock clock_;
  const std::unique_ptr<histogram, unmapped> stages_;
};

} // namespace cudaq::qec::realtime

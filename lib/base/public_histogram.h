// SPDX-License-Identifier: Apache-2.0
// A time_histogram as the struct of the public interface.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "lib/base/time_histogram.h"

namespace cudaq::realtime::detail {

static_assert(time_histogram::kBuckets == CUDAQ_HANDLER_TIME_BUCKETS);
static_assert(time_histogram::buckets::lower_of(1151) == CUDAQ_HANDLER_TIME_BUCKET_NS(1151));
static_assert(time_histogram::buckets::lower_of(300) == CUDAQ_HANDLER_TIME_BUCKET_NS(300));
static_assert(time_histogram::buckets::lower_of(64) == CUDAQ_HANDLER_TIME_BUCKET_NS(64));
static_assert(time_histogram::buckets::lower_of(63) == CUDAQ_HANDLER_TIME_BUCKET_NS(63));

/// Writes all members but struct_size and reserved.
inline void write_histogram(const time_histogram::snapshot &all, cudaq_handler_times_t &out) noexcept {
  out.count = all.count;
  out.sum_ns = all.sum_ns;
  out.max_ns = all.max_ns;
  out.p50_ns = all.percentile(50);
  out.p99_ns = all.percentile(99);
  out.p999_ns = all.percentile(99.9);
  std::ranges::copy(all.counts, out.buckets);
}

} // namespace cudaq::realtime::detail

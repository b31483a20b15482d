// SPDX-License-Identifier: Apache-2.0
// Marks a time range of a thread for profilers (NVTX). Does nothing in a build without CUDAQ_REALTIME_NVTX.
#pragma once

#if defined(CUDAQ_REALTIME_HAS_NVTX)
#include <nvtx3/nvToolsExt.h>
#endif

namespace cudaq::realtime::detail {

class trace_range {
public:
#if defined(CUDAQ_REALTIME_HAS_NVTX)
  explicit trace_range(const char *name) { nvtxRangePushA(name); }
  ~trace_range() { nvtxRangePop(); }
#else
  explicit trace_range(const char *) {}
#endif
  trace_range(const trace_range &) = delete;
  trace_range &operator=(const trace_range &) = delete;
};

} // namespace cudaq::realtime::detail

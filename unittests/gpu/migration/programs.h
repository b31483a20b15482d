// SPDX-License-Identifier: Apache-2.0
// The device code of the programs in this folder. This header is plain C++.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <cstdint>
#include <cuda_runtime_api.h>

namespace cudaq::realtime::migration {

/// What a program of the existing system may use as context of its graph: it reads the first field only. The memory has
/// the size of a GraphIOContext.
struct buffer_context {
  void *buffer;
};

/// For launches from the device: adds 1 to the first payload word in its slot, then to *runs. Raises no flag.
cudaError_t make_silent_graph(const buffer_context *context_dev, std::uint64_t *runs_dev, cudaStream_t stream,
                              cudaGraphExec_t *out);
/// For a host worker: *mailbox is the address of a slot. Writes twice the first payload word to *output, then 1 to
/// *ready.
cudaError_t make_mailbox_graph(void *const *mailbox_dev, std::uint32_t *output_dev, int *ready_dev, cudaStream_t stream,
                               cudaGraphExec_t *out);
/// For a host worker: *mailbox is the address of a GraphIOContext. Answers twice the first payload word and publishes.
cudaError_t make_context_graph(void *const *mailbox_dev, cudaStream_t stream, cudaGraphExec_t *out);

/// For a handler that triggers it: waits until *gate_dev is not 0, at most about a second, then adds 1 to *runs.
/// `upload`: else the scheduler cannot launch it.
cudaError_t make_triggered_graph(const int *gate_dev, std::uint64_t *runs_dev, bool upload, cudaStream_t stream,
                                 cudaGraphExec_t *out);

/// Fills a table in device memory, on the device: one entry with a graph, or one device function that answers the first
/// payload word plus 1. `triggers`: it also triggers the graph of the scheduler.
cudaError_t init_graph_table(cudaq_function_entry_t *entries_dev, std::uint32_t function_id, cudaGraphExec_t graph,
                             cudaStream_t stream);
cudaError_t init_device_table(cudaq_function_entry_t *entries_dev, std::uint32_t function_id, cudaStream_t stream,
                              bool triggers = false);

/// Calls a function through DeviceCallMode, and GraphLaunchMode with a null graph. *result_dev becomes 42.
cudaError_t use_mode_tags(int *result_dev, cudaStream_t stream);

} // namespace cudaq::realtime::migration

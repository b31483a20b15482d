/* SPDX-License-Identifier: Apache-2.0 */
// Pipeline workers whose GPU stage stays on the GPU: each has a block of a kernel that runs from start to stop, and
// takes requests from a mailbox without a launch. In libcudaq-qec-realtime-gpu.so (target cudaq::qec-realtime-gpu).
//
//   resident_workers workers(config, resident_launch(my_stage{...}, 256));      // resident_kernel.cuh, nvcc
//   pipeline.set_gpu_stage([&](int id) { return workers.resources(id, function_id, context); });
//   pipeline.set_cpu_stage(...);                                   // gets the block's output
//
// When to use them, what they cost, and what goes on between the threads: docs/pipeline.md.
#ifndef CUDAQ_QEC_REALTIME_RESIDENT_WORKERS_H
#define CUDAQ_QEC_REALTIME_RESIDENT_WORKERS_H

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace cudaq::qec::realtime::gpu {

struct resident_mailboxes;

struct resident_config {
  int num_workers = 8;           ///< 1 to 64: blocks
  std::size_t payload_bytes = 0; ///< of the longest request; longer ones are answered LAUNCH_FAILED
  std::size_t output_bytes = 0;  ///< that the stage writes for a request; at least 1
  int device_id = 0;
  /// Of the mailboxes: CUDAQ_MEMORY_AUTO, _DEVICE_RX or _MAPPED.
  cudaq_memory_kind_t memory_kind = CUDAQ_MEMORY_AUTO;
  /// How long start waits until all blocks run, and stop until all have ended; not 0. A start without room waits for
  /// both.
  std::uint64_t timeout_ns = 5000000000u;
};

/// Launches `blocks` blocks on the stream. 0 blocks: loads the kernel on the current device and launches nothing; a
/// kernel that is loaded at its first launch would wait for those that run. It is called so once, on a thread of its
/// own, and `boxes` has only the number of workers then. If the constructor throws because this takes too long, it may
/// still run, and is destroyed, on that thread: a launcher owns what it uses. resident_launch (resident_kernel.cuh)
/// makes one from a stage.
using resident_launcher =
    std::function<cudaError_t(const resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream)>;

/// The blocks and their mailboxes, for one pipeline. The blocks run from the pipeline's start until its stop; each
/// occupies a multiprocessor, or a part of one, even without requests. While they run, a CUDA call that waits for the
/// device (cudaFree, cudaFreeHost, cudaDeviceSynchronize) does not return. Not movable.
class CUDAQ_QEC_REALTIME_API resident_workers {
public:
  /// Loads the kernel, and allocates. Does not change the caller's current device. Throws std::invalid_argument that
  /// names the wrong field, std::runtime_error with the reason if the machine or the launcher refuses, or if the kernel
  /// is not loaded within a minute, because others run without end on the device: make this before they start.
  resident_workers(const resident_config &config, resident_launcher launch);
  /// Stop the pipeline first. Otherwise, and if a stage does not return, tells the blocks to end, waits timeout_ns, and
  /// keeps the memory that the pipeline or the blocks still use. After a start that found no room it keeps the memory,
  /// too: other kernels run on the device, and freeing it would wait for them.
  ~resident_workers();
  resident_workers(const resident_workers &) = delete;
  resident_workers &operator=(const resident_workers &) = delete;

  /// What worker `id` needs, for gpu_stage_factory. start throws std::runtime_error with the reason if the device has
  /// no room for all blocks beside the kernels that run on it, std::logic_error if two workers or two running pipelines
  /// have the same id. A request that its block does not take is answered LAUNCH_FAILED. A fault of a block is answered
  /// DEVICE_FAULT, and LAUNCH_FAILED from then on. A stage that does not return holds up stop until timeout_ns; then
  /// stop reports it. Throws std::out_of_range.
  experimental::gpu_worker_resources resources(int id, std::uint32_t function_id, void *user_context) const;
  /// The kind of mailboxes that was made, and why.
  [[nodiscard]] cudaq_ringbuffer_info_t mailbox_info() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace cudaq::qec::realtime::gpu

#endif

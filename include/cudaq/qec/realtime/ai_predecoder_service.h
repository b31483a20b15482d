/* SPDX-License-Identifier: Apache-2.0 */
// A model whose outputs go to the CPU through a queue in mapped memory. See docs/pipeline.md.
#ifndef CUDAQ_QEC_REALTIME_AI_PREDECODER_SERVICE_H
#define CUDAQ_QEC_REALTIME_AI_PREDECODER_SERVICE_H

#include "cudaq/qec/realtime/ai_decoder_service.h"
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"

/// For polling loops: tells the CPU that this thread waits.
#define QEC_CPU_RELAX() CUDAQ_REALTIME_CPU_RELAX()

namespace cudaq::qec::realtime::experimental {

/// A finished inference. Pointers are host addresses, valid until release_job.
struct predecoder_job {
  int slot_idx = -1;                    ///< entry of the queue
  void *ring_buffer_ptr = nullptr;      ///< the request's frame that the mailbox named
  const void *inference_data = nullptr; ///< the first output
  int origin_slot = -1;                 ///< slot of the ring, if set_ring was called
  /// Of the request. The model got at most get_input_size() bytes of it, and zeros after a shorter payload.
  std::size_t payload_size = 0;
  /// Times in nanoseconds of CLOCK_MONOTONIC. poll_next_job sets the third, and the others to 0: they are for the
  /// program, which knows when its request was submitted and dispatched.
  std::uint64_t submit_ts_ns = 0, dispatch_ts_ns = 0, poll_ts_ns = 0;
};

using pre_decoder_job = predecoder_job; ///< a name in the existing system

/// Entries are used in a circle. An entry is idle (0), ready (1, set by the graph), processing (2, set by the poller
/// that claims it), and idle again after release_job. A graph that finds its entry not idle waits. So no inference is
/// lost or overwritten.
class CUDAQ_QEC_REALTIME_API ai_predecoder_service : public ai_decoder_service {
public:
  /// queue_depth: number of entries, at least 1. Throws std::invalid_argument.
  ai_predecoder_service(std::unique_ptr<inference_engine> engine, std::shared_ptr<service_device> device,
                        void **device_mailbox_slot, int queue_depth = 16);
  /// The same with the engine of a model file, as for ai_decoder_service.
  ai_predecoder_service(const std::string &model_path, void **device_mailbox_slot, int queue_depth = 16,
                        const std::string &engine_save_path = "");
  /// No graph of this service may run.
  ~ai_predecoder_service() override;

  /// Sets the ring, so that ring_buffer_ptr becomes a host address and origin_slot is known. `stride`: bytes from
  /// slot to slot of the ring.
  void set_ring(const realtime_pipeline::ring_buffer_bases &bases, std::size_t stride);

  /// Claims the oldest ready job. Any number of threads may call this; each job goes to one of them. False: no job is
  /// ready.
  bool poll_next_job(predecoder_job &out_job);
  /// Frees the entry. Called once, by the thread that claimed it; otherwise throws std::logic_error.
  void release_job(int slot_idx);

  int get_queue_depth() const { return queue_.depth; }
  /// Device addresses of the queue, for kernels of the program that only read it: the number of the entry that the next
  /// graph fills, and the entries' ready flags (0, 1, 2).
  const int *get_device_queue_idx() const { return tail_; }
  const volatile int *get_device_ready_flags() const { return queue_.ready; }
  /// Number of entries that are not idle. If it equals the depth, the next launched graph waits.
  int pending() const;
  /// From now on a graph that waits for an entry gives up, and refused() counts its request.
  void stop();
  int refused() const;

private:
  volatile int *ready() const { return static_cast<volatile int *>(flags_.host); }

  service_device::shared_memory flags_, frames_, sizes_, outputs_, control_;
  int *tail_ = nullptr;               ///< in device memory
  volatile std::uint64_t polled_ = 0; ///< jobs handed out
  realtime_pipeline::ring_buffer_bases ring_{};
  std::size_t ring_stride_ = 0;
};

} // namespace cudaq::qec::realtime::experimental

namespace cudaq::qec {
using AIPreDecoderService = realtime::experimental::ai_predecoder_service;
using PreDecoderJob = realtime::experimental::predecoder_job;
using realtime::experimental::pre_decoder_job;
} // namespace cudaq::qec

#endif

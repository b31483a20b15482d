/* SPDX-License-Identifier: Apache-2.0 */
// A model whose outputs go to the CPU through a queue in mapped memory. docs/pipeline.md.
#ifndef CUDAQ_QEC_REALTIME_AI_PREDECODER_SERVICE_H
#define CUDAQ_QEC_REALTIME_AI_PREDECODER_SERVICE_H

#include "cudaq/qec/realtime/ai_decoder_service.h"

/// For loops that poll: the CPU's hint that this thread waits.
#if defined(__x86_64__) || defined(__i386__)
#define QEC_CPU_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define QEC_CPU_RELAX() __asm__ __volatile__("yield")
#else
#define QEC_CPU_RELAX() ((void)0)
#endif

namespace cudaq::qec::realtime::experimental {

/// An inference that is ready. Its pointers are the host's, and valid until release_job.
struct predecoder_job {
  int slot_idx = -1;                    ///< entry of the queue
  void *ring_buffer_ptr = nullptr;      ///< the request's frame, as the mailbox named it
  const void *inference_data = nullptr; ///< the first output
  int origin_slot = -1;                 ///< of the ring, if set_ring has said where it is
  std::size_t payload_size =
      0; ///< of the request; the model has seen get_input_size() bytes at most, and zeros behind less
};

/// Entries go round: idle (0), ready (1, by the graph), processing (2, by the poller that has claimed it), idle again by
/// release_job. A graph that finds its entry taken waits, so no inference is lost and none overwritten.
class CUDAQ_QEC_REALTIME_API ai_predecoder_service : public ai_decoder_service {
public:
  /// queue_depth: entries, at least 1. Throws std::invalid_argument.
  ai_predecoder_service(std::unique_ptr<inference_engine> engine, std::shared_ptr<service_device> device,
                        void **device_mailbox_slot, int queue_depth = 16);
  /// No graph may run.
  ~ai_predecoder_service() override;

  /// Where frames lie, as the mailbox names them: for ring_buffer_ptr on the host, and origin_slot.
  void set_ring(const realtime_pipeline::ring_buffer_bases &bases, std::size_t stride);

  /// Claims the oldest ready job; any number of threads, each job goes to one. False: none is ready.
  bool poll_next_job(predecoder_job &out_job);
  /// The entry is free. By whoever has claimed it, once; std::logic_error else.
  void release_job(int slot_idx);

  int get_queue_depth() const { return queue_.depth; }
  /// Entries that are ready or processed; the next launch would wait if it is the depth.
  int pending() const;
  /// From now on a graph that waits for an entry gives up, and its request is counted in refused().
  void stop();
  int refused() const;

private:
  volatile int *ready() const { return static_cast<volatile int *>(flags_.host); }

  service_device::shared_memory flags_, frames_, sizes_, outputs_, control_;
  int *tail_ = nullptr;               ///< the device's
  volatile std::uint64_t polled_ = 0; ///< jobs handed out
  realtime_pipeline::ring_buffer_bases ring_{};
  std::size_t ring_stride_ = 0;
};

} // namespace cudaq::qec::realtime::experimental

namespace cudaq::qec {
using AIPreDecoderService = realtime::experimental::ai_predecoder_service;
using PreDecoderJob = realtime::experimental::predecoder_job;
} // namespace cudaq::qec

#endif

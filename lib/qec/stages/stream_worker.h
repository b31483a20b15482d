// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "cudaq/qec/realtime/pipeline.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace cudaq::qec::realtime {

/// What a request of a stream wants.
enum class stream_command : std::uint32_t {
  rounds = 0, ///< the next bits before the tail; without bits it only reads
  tail = 1,   ///< all bits of the tail
  reset = 2   ///< a new stream; without bits
};

/// The beginning of a request; the bits follow, bit k in bit k % 8 of byte k / 8. Little-endian.
struct stream_request {
  std::uint32_t command;
  std::uint32_t num_bits;
};
static_assert(sizeof(stream_request) == 8);

/// The beginning of an answer; the observables of the committed rounds follow, observable k in bit k % 8 of byte k / 8.
struct stream_answer {
  std::uint64_t committed_rounds, pushed_rounds;
};
static_assert(sizeof(stream_answer) == 16);

/// One stream as a worker of a pipeline: each request brings rounds, each answer has what is final. The CPU stage does
/// the work; the stage before it does nothing. Requests of a stream must keep their order, so it needs a function id of
/// its own, and one worker serves it: a pipeline of n streams has n workers and n function ids.
///
/// The status of an answer is a decode_status. After ok it has a stream_answer and the observables, after any other
/// nothing: not_supported for an unknown command or bits where there are none, buffer_too_small for fewer bytes than
/// the bits need or an answer that does not fit into the slot (then nothing was taken), else that of stream_decoder.
class stream_worker {
public:
  /// With workers of its own the decoder goes on while the pipeline answers: an answer has what is final at that
  /// moment, and the failure of a window is the status of a later one. While the queue of the decoder is full it waits,
  /// and the ring fills up.
  explicit stream_worker(std::unique_ptr<stream_decoder> with) : stream_(std::move(with)) {}
  stream_worker(const stream_worker &) = delete;
  stream_worker &operator=(const stream_worker &) = delete;

  /// For gpu_stage_factory; this object is the user_context and must outlive the run.
  experimental::gpu_worker_resources resources(std::uint32_t function_id) {
    experimental::gpu_worker_resources r;
    r.function_id = function_id;
    r.user_context = this;
    r.host_stage_fn = [](void *, experimental::host_stage_call *) { return 0; };
    r.gpu_output = this; // notified mode: the CPU stage reads the request itself
    r.gpu_output_size = 1;
    return r;
  }
  /// For set_cpu_stage.
  static std::size_t serve(const experimental::cpu_stage_context &c) noexcept {
    static_cast<stream_worker *>(c.user_context)
        ->answer({static_cast<const std::uint8_t *>(c.payload), c.payload_size}, c.response_buffer,
                 c.max_response_size);
    return experimental::FRAMED_RESPONSE;
  }

  /// Serves a request. Writes the result, at most `max_size` bytes, and a response header directly before it. The
  /// result may overwrite the request. Returns the bytes of the result.
  std::size_t answer(std::span<const std::uint8_t> request, void *result, std::size_t max_size) noexcept;

  [[nodiscard]] std::size_t answer_bytes() const noexcept {
    return sizeof(stream_answer) + static_cast<std::size_t>((stream_->num_observables() + 7) / 8);
  }
  [[nodiscard]] const stream_decoder &stream() const noexcept { return *stream_; }

private:
  decode_status execute(std::span<const std::uint8_t> request) noexcept;

  const std::unique_ptr<stream_decoder> stream_;
};

} // namespace cudaq::qec::realtime

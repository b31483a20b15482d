// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/stages/decode_stage.h"
#include "lib/qec/stages/input_schema.h"

#include "cudaq/qec/realtime/pipeline.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// One worker of a decoding pipeline without a GPU: a predecoder as the host stage, a matcher as the CPU stage.
/// Requests have one bit per detector, or the form of `input`. Responses are a DecodeResponse with its observable
/// words.
class decoding_worker {
public:
  /// Throws std::invalid_argument if `input` or the decoder has another number of detectors than the predecoder.
  decoding_worker(std::unique_ptr<predecoder> first, std::unique_ptr<decoder> second,
                  std::optional<input_mapping> input = std::nullopt)
      : predecoder_(std::move(first)), stage_(std::move(second)), input_(std::move(input)),
        packed_(predecoder_->layout().input_bytes()), output_((predecoder_->layout().bytes() + 7) / 8) {
    if (input_ && input_->config().num_detectors() != predecoder_->layout().num_detectors)
      throw std::invalid_argument("decoding_worker: input and predecoder have different numbers of detectors");
    if (stage_.layout().num_detectors != predecoder_->layout().num_detectors)
      throw std::invalid_argument("decoding_worker: decoder and predecoder have different numbers of detectors");
  }
  decoding_worker(const decoding_worker &) = delete;
  decoding_worker &operator=(const decoding_worker &) = delete;

  /// For gpu_stage_factory; this object is the user_context and must outlive the run.
  experimental::gpu_worker_resources resources(std::uint32_t function_id) {
    experimental::gpu_worker_resources r;
    r.function_id = function_id;
    r.user_context = this;
    r.host_stage_fn = &predecode;
    r.host_stage_data = this;
    r.gpu_output = output_.data();
    r.gpu_output_size = predecoder_->layout().bytes();
    return r;
  }
  /// For set_cpu_stage. The status of the answer is that of the decode.
  static std::size_t match(const experimental::cpu_stage_context &c) noexcept {
    static_cast<decoding_worker *>(c.user_context)->stage_.answer(c.gpu_output, c.response_buffer, c.max_response_size);
    return experimental::FRAMED_RESPONSE;
  }

  /// The same without a pipeline. `shot` is a request's payload; `response` has stage().response_bytes() bytes.
  /// Returns the number of bytes written. `details`, `probabilities`: as residual_matcher::match. A predecoder knows
  /// the probabilities of the model only: not_supported, and no bytes.
  std::size_t decode(std::span<const std::uint8_t> shot, std::span<std::uint8_t> response, decode_status &status,
                     decode_details *details = nullptr, shot_probabilities probabilities = {}) noexcept {
    std::size_t size = 0;
    if (!probabilities.empty() && !is_passthrough(*predecoder_)) {
      status = decode_status::not_supported;
      return size;
    }
    predecode(shot);
    status = stage_.run(output_.data(), response.data(), response.size(), size, details, probabilities);
    return size;
  }
  [[nodiscard]] const predecoder &engine() const noexcept { return *predecoder_; }
  [[nodiscard]] const decode_stage &stage() const noexcept { return stage_; }
  /// The predecoder's last output.
  [[nodiscard]] std::span<const std::uint64_t> predecoded() const noexcept { return output_; }

private:
  static int predecode(void *self, experimental::host_stage_call *call) noexcept {
    static_cast<decoding_worker *>(self)->predecode(
        {static_cast<const std::uint8_t *>(call->payload), call->payload_size});
    return 0;
  }
  // A bad shot is an answer of the decoder and not a failure of the engine: its status is in the output.
  void predecode(std::span<const std::uint8_t> payload) noexcept {
    if (!input_) {
      static_cast<void>(predecoder_->run(payload, output_));
      return;
    }
    const decode_status status = input_->read(payload, packed_);
    if (status == decode_status::ok) {
      static_cast<void>(predecoder_->run(packed_, output_));
      return;
    }
    const predecoder_header refused{static_cast<std::int32_t>(status), 0, 0, 0};
    std::memcpy(output_.data(), &refused, sizeof(refused));
  }

  std::unique_ptr<predecoder> predecoder_;
  decode_stage stage_;
  std::optional<input_mapping> input_;
  std::vector<std::uint8_t> packed_; ///< the shot in bits, if requests have another form
  std::vector<std::uint64_t> output_;
};

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stages/decode_stage.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <bit>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {

decode_stage::decode_stage(std::unique_ptr<decoder> with)
    : decoder_(std::move(with)), layout_{static_cast<std::uint32_t>(decoder_->num_detectors()),
                                         static_cast<std::uint32_t>(decoder_->num_observables())},
      events_(layout_.num_detectors), words_(layout_.frame_words()) {}

decode_status decode_stage::match(const std::uint8_t *predecoded, std::vector<std::uint64_t> &words) noexcept {
  predecoder_header header;
  std::memcpy(&header, predecoded, sizeof(header));
  if (header.status != 0)
    return static_cast<decode_status>(header.status);
  if (header.num_events > layout_.num_detectors)
    return decode_status::duplicate_detector_index;
  const std::uint8_t *const events = predecoded + layout_.events_offset();
  for (std::size_t i = 0; i < header.num_events; ++i) {
    std::uint32_t event;
    std::memcpy(&event, events + i * sizeof(event), sizeof(event));
    events_[i] = event;
  }
  const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t *>(words.data()), words.size() * sizeof(words[0]));
  const decode_status status = decoder_->decode(std::span(events_).first(header.num_events), bytes);
  if (status != decode_status::ok)
    return status;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint64_t frame;
    std::memcpy(&frame, predecoded + layout_.frame_offset() + i * sizeof(frame), sizeof(frame));
    words[i] ^= frame;
  }
  return status;
}

decode_status decode_stage::run(const void *predecoded, void *response, std::size_t max_size,
                                std::size_t &size) noexcept {
  size = 0;
  if (max_size < response_bytes())
    return decode_status::buffer_too_small;
  for (std::uint64_t &word : words_) // the decoder writes whole bytes, not whole words
    word = 0;
  const decode_status status = match(static_cast<const std::uint8_t *>(predecoded), words_);
  DecodeResponse head{0, status == decode_status::ok};
  auto *const out = static_cast<std::uint8_t *>(response);
  size = sizeof(head);
  if (status == decode_status::ok) {
    for (std::size_t i = 0; i < words_.size(); ++i)
      head.total_corrections += std::popcount(words_[i]);
    std::memcpy(out + size, words_.data(), words_.size() * sizeof(words_[0]));
    size = response_bytes();
  }
  std::memcpy(out, &head, sizeof(head));
  return status;
}

std::size_t decode_stage::answer(const void *predecoded, void *response, std::size_t max_size) noexcept {
  cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, 0, 0};
  std::size_t size = 0;
  header.status = static_cast<std::int32_t>(run(predecoded, response, max_size, size));
  header.result_len = static_cast<std::uint32_t>(size);
  std::memcpy(static_cast<std::uint8_t *>(response) - sizeof(header), &header, sizeof(header));
  return size;
}

} // namespace cudaq::qec::realtime

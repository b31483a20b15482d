// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stages/decode_stage.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <bit>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {

decode_stage::decode_stage(std::unique_ptr<decoder> with)
    : matcher_(std::move(with)), words_(matcher_.layout().frame_words()) {}

decode_status decode_stage::run(const void *predecoded, void *response, std::size_t max_size, std::size_t &size,
                                decode_details *details, shot_probabilities probabilities) noexcept {
  size = 0;
  if (max_size < response_bytes())
    return decode_status::buffer_too_small;
  const decode_status status = matcher_.match(predecoded, words_, details, probabilities);
  const bool has_solution =
      status == decode_status::ok || (status == decode_status::deadline && matcher_.inner().has_solution());
  DecodeResponse head{0, has_solution};
  auto *const out = static_cast<std::uint8_t *>(response);
  size = sizeof(head);
  if (has_solution) {
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
  const decode_status status = run(predecoded, response, max_size, size);
  const bool is_late = status == decode_status::ok && inner().is_late(); // an answer after its deadline says so
  header.status = static_cast<std::int32_t>(is_late ? decode_status::deadline : status);
  header.result_len = static_cast<std::uint32_t>(size);
  std::memcpy(static_cast<std::uint8_t *>(response) - sizeof(header), &header, sizeof(header));
  return size;
}

} // namespace cudaq::qec::realtime

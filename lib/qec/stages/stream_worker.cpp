// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stages/stream_worker.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <cstring>

namespace cudaq::qec::realtime {

decode_status stream_worker::execute(std::span<const std::uint8_t> request) noexcept {
  stream_request head{};
  if (request.size() < sizeof head)
    return decode_status::buffer_too_small;
  std::memcpy(&head, request.data(), sizeof head);
  const std::span<const std::uint8_t> bits = request.subspan(sizeof head);
  switch (static_cast<stream_command>(head.command)) {
  case stream_command::rounds:
    if (head.num_bits == 0)
      return decode_status::ok;
    for (;;) {
      // Read before push: the workers may make all rounds final after it, and then nothing more would come.
      const std::uint64_t committed = stream_->committed_rounds();
      if (const decode_status status = stream_->push(bits, head.num_bits); status != decode_status::busy)
        return status;
      static_cast<void>(stream_->wait_committed(committed + 1, std::chrono::steady_clock::time_point::max()));
    }
  case stream_command::tail:
    return stream_->finish(bits, head.num_bits);
  case stream_command::reset:
    if (head.num_bits != 0)
      break;
    stream_->reset();
    return decode_status::ok;
  }
  return decode_status::not_supported;
}

std::size_t stream_worker::answer(std::span<const std::uint8_t> request, void *result, std::size_t max_size) noexcept {
  auto *const out = static_cast<std::uint8_t *>(result);
  cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, 0, 0};
  decode_status status = max_size < answer_bytes() ? decode_status::buffer_too_small : execute(request);
  if (status == decode_status::ok) {
    const stream_progress now = stream_->poll({out + sizeof(stream_answer), answer_bytes() - sizeof(stream_answer)});
    const stream_answer numbers{now.committed_rounds, now.pushed_rounds};
    std::memcpy(out, &numbers, sizeof numbers);
    status = now.status;
  }
  header.status = static_cast<std::int32_t>(status);
  header.result_len = status == decode_status::ok ? static_cast<std::uint32_t>(answer_bytes()) : 0;
  std::memcpy(out - sizeof(header), &header, sizeof(header));
  return header.result_len;
}

} // namespace cudaq::qec::realtime

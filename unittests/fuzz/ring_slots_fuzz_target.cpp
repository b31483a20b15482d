// SPDX-License-Identifier: Apache-2.0
// The requester's side of a ring whose other side is hostile: each step writes bytes of the input into the slots and
// flags, or calls a slot helper. No helper reads or writes outside the slot; a response that is accepted lies in it.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "unittests/fuzz/fuzz_input.h"

#include <memory>

namespace {

using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;

/// A ring in memory without margins: the address sanitizer finds each byte outside.
struct exact_ring {
  exact_ring(std::uint32_t num_slots, std::size_t slot_stride, bool is_in_place)
      : slots(num_slots), stride(slot_stride), in_place(is_in_place), rx_flags(new std::uint64_t[slots]()),
        tx_flags(new std::uint64_t[slots]()), rx(new std::uint64_t[slots * stride / 8]()),
        tx(new std::uint64_t[slots * stride / 8]()) {
    ring.rx_flags_host = rx_flags.get();
    ring.tx_flags_host = tx_flags.get();
    ring.rx_data_host = reinterpret_cast<std::uint8_t *>(rx.get());
    ring.tx_data_host = in_place ? nullptr : reinterpret_cast<std::uint8_t *>(tx.get());
    ring.rx_stride_sz = ring.tx_stride_sz = stride;
  }
  std::uint8_t *tx_slot(std::uint32_t i) const {
    return reinterpret_cast<std::uint8_t *>(in_place ? rx.get() : tx.get()) + i * stride;
  }
  std::uint8_t *rx_slot(std::uint32_t i) const { return reinterpret_cast<std::uint8_t *>(rx.get()) + i * stride; }

  std::uint32_t slots;
  std::size_t stride;
  bool in_place;
  std::unique_ptr<std::uint64_t[]> rx_flags, tx_flags, rx, tx;
  cudaq_ringbuffer_t ring{};
};

void check_response(const exact_ring &of, std::uint32_t slot) {
  cudaq_rpc_response_t header{};
  const void *result = nullptr;
  const cudaq_status_t status = cudaq_host_ringbuffer_read_rpc_response(&of.ring, slot, &header, &result);
  cudaq_rpc_response_t written;
  std::memcpy(&written, of.tx_slot(slot), sizeof(written));
  const bool fits = written.result_len <= of.stride - CUDAQ_RPC_HEADER_SIZE;
  require((status == CUDAQ_OK) == (written.magic == CUDAQ_RPC_MAGIC_RESPONSE && fits),
          "a response is accepted if it has its magic and fits, and only then");
  if (status != CUDAQ_OK)
    return require(std::strstr(cudaq_last_error_message(), "holds no response") != nullptr, "a refusal has a reason");
  require(std::memcmp(&header, &written, sizeof(header)) == 0, "the header is the slot's");
  require(result == of.tx_slot(slot) + CUDAQ_RPC_HEADER_SIZE, "the result is after the header");
  unsigned sum = 0;
  for (std::uint32_t k = 0; k < header.result_len; ++k)
    sum += static_cast<const std::uint8_t *>(result)[k];
  require(sum <= 255u * of.stride, "the result can be read");
}

void check_request(const exact_ring &of, std::uint32_t slot, fuzz_input &input) {
  const auto length = input.take<std::uint32_t>();
  const auto id = input.take<std::uint32_t>();
  const bool fits = length <= of.stride - CUDAQ_RPC_HEADER_SIZE;
  const std::unique_ptr<std::uint8_t[]> payload(new std::uint8_t[fits ? length : 0]());
  const cudaq_status_t status =
      cudaq_host_ringbuffer_write_rpc_request(&of.ring, slot, id, payload.get(), length, ~id, id);
  require((status == CUDAQ_OK) == fits, "a request is written if it fits, and only then");
  if (status != CUDAQ_OK)
    return;
  cudaq_rpc_header_t header;
  std::memcpy(&header, of.rx_slot(slot), sizeof(header));
  require(header.magic == CUDAQ_RPC_MAGIC_REQUEST && header.arg_len == length && header.function_id == id &&
              header.request_id == ~id && header.ptp_timestamp == id,
          "the header is the request's");
}

void check_flag(const exact_ring &of, std::uint32_t slot) {
  const std::uint64_t flag = of.tx_flags[slot];
  int error = -1;
  const cudaq_tx_status_t status = cudaq_host_ringbuffer_poll_tx_flag(&of.ring, slot, &error);
  const bool is_error = flag >> CUDAQ_TX_FLAG_ERROR_SHIFT == CUDAQ_TX_FLAG_ERROR_TAG && flag != CUDAQ_TX_FLAG_IN_FLIGHT;
  require(status == (flag == 0                         ? CUDAQ_TX_EMPTY
                     : flag == CUDAQ_TX_FLAG_IN_FLIGHT ? CUDAQ_TX_IN_FLIGHT
                     : is_error                        ? CUDAQ_TX_ERROR
                                                       : CUDAQ_TX_READY),
          "each flag has its meaning");
  require(error == (is_error ? static_cast<int>(flag & 0xFFFFFFFFu) : 0), "only an error sentinel has an error");
  const int available = cudaq_host_ringbuffer_slot_available(&of.ring, slot);
  require(available == (of.rx_flags[slot] == 0 && flag == 0), "a slot is free if both flags are 0");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  const auto shape = input.take<std::uint8_t>();
  const exact_ring of(1 + shape % 3u, 24 + 8 * (shape >> 3), (shape & 4) != 0);
  while (!input.empty()) {
    const auto step = input.take<std::uint8_t>();
    const std::uint32_t slot = (step >> 4) % of.slots;
    switch (step % 8) {
    case 0: { // the hostile side answers: any bytes
      const auto frame = input.bytes(of.stride);
      std::copy(frame.begin(), frame.end(), of.tx_slot(slot));
      break;
    }
    case 1: { // the same with the right magic
      const std::uint32_t words[2] = {CUDAQ_RPC_MAGIC_RESPONSE, input.take<std::uint32_t>()};
      const std::uint32_t result_len = input.take<std::uint32_t>();
      std::memcpy(of.tx_slot(slot), words, sizeof(words));
      std::memcpy(of.tx_slot(slot) + sizeof(words), &result_len, sizeof(result_len));
      break;
    }
    case 2:
      of.tx_flags[slot] = input.take<std::uint64_t>();
      break;
    case 3:
      check_request(of, slot, input);
      break;
    case 4:
      check_flag(of, slot);
      break;
    case 5:
      cudaq_host_ringbuffer_signal_slot(&of.ring, slot);
      require(of.rx_flags[slot] == reinterpret_cast<std::uint64_t>(of.rx_slot(slot)), "a signal is the slot's address");
      break;
    case 6:
      cudaq_host_ringbuffer_clear_slot(&of.ring, slot);
      require(of.tx_flags[slot] == 0, "a collected slot has no answer");
      break;
    default:
      check_response(of, slot);
    }
  }
  return 0;
}

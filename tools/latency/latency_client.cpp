// SPDX-License-Identifier: Apache-2.0
#include "tools/latency/latency_client.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/common/api_objects.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

void send(const cudaq_ringbuffer_t &ring, std::uint32_t slot, std::uint32_t function_id, const payload_words &payload,
          std::size_t words, std::uint64_t n) {
  const cudaq_status_t status = cudaq_host_ringbuffer_write_rpc_request(
      &ring, slot, function_id, payload.data(), static_cast<std::uint32_t>(words * sizeof payload[0]),
      static_cast<std::uint32_t>(n), n);
  if (status != CUDAQ_OK) [[unlikely]]
    require_ok(status, "cudaq_host_ringbuffer_write_rpc_request");
  cudaq_host_ringbuffer_signal_slot(&ring, slot);
}

/// Copies the result. Returns false if the slot holds no good answer to request n.
bool receive(const cudaq_ringbuffer_t &ring, std::uint32_t slot, std::size_t words, std::uint64_t n,
             payload_words &reply) {
  cudaq_rpc_response_t header;
  const void *result = nullptr;
  if (cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result) != CUDAQ_OK)
    return false;
  if (header.status != CUDAQ_RPC_OK || header.result_len != words * sizeof reply[0] ||
      header.request_id != static_cast<std::uint32_t>(n) || header.ptp_timestamp != n)
    return false;
  std::memcpy(reply.data(), result, words * sizeof reply[0]);
  return true;
}

bool answered(const cudaq_ringbuffer_t &ring, std::uint32_t slot) {
  const cudaq_tx_status_t status = cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr);
  return status != CUDAQ_TX_EMPTY && status != CUDAQ_TX_IN_FLIGHT;
}

} // namespace

tick_scale::tick_scale() {
  const std::uint64_t ns0 = now_ns(), ticks0 = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::uint64_t ns1 = now_ns(), ticks1 = ticks();
  ns_per_tick_ = static_cast<double>(ns1 - ns0) / static_cast<double>(ticks1 - ticks0);
  std::vector<std::uint64_t> gaps(1001);
  for (std::uint64_t &gap : gaps) {
    const std::uint64_t before = ticks();
    gap = ticks() - before;
  }
  std::ranges::nth_element(gaps, gaps.begin() + 500);
  overhead_ns_ = ns(gaps[500]);
}

std::int32_t transform_handler(cudaq_host_call_t *call, void *) noexcept {
  payload_words words;
  const std::uint32_t bytes = std::min<std::uint32_t>({call->payload_len, call->max_result_len, sizeof words});
  std::memcpy(words.data(), call->payload, bytes);
  for (std::size_t i = 0; i < bytes / sizeof words[0]; ++i)
    words[i] = transform(words[i]);
  std::memcpy(call->result, words.data(), bytes);
  call->result_len = bytes;
  return CUDAQ_RPC_OK;
}

loop_result exchange_closed_loop(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t function_id,
                                 const loop_config &config, const tick_scale &scale) {
  loop_result result;
  poll_deadline deadline("closed loop: no answer", config.timeout_ns, config.share_core);
  std::uint32_t slot = 0;
  lap_timer laps(result.laps, scale);
  const std::uint64_t begin = now_ns();
  for (std::uint64_t n = 0; n < config.exchanges; ++n) {
    const payload_words payload = make_payload(config.seed, n);
    payload_words reply{};
    deadline.restart();
    // Before the clock is read: a control system knows that its next slot is free before its data arrive.
    while (cudaq_host_ringbuffer_slot_available(&ring, slot) == 0)
      deadline.check();
    const std::uint64_t t0 = ticks();
    send(ring, slot, function_id, payload, config.words, n);
    while (!answered(ring, slot))
      deadline.check();
    const bool good = receive(ring, slot, config.words, n, reply);
    const std::uint64_t t1 = ticks();
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    result.per_exchange.record(static_cast<std::uint64_t>(scale.ns(t1 - t0) + 0.5));
    laps.exchanged(n + 1, t1);
    result.wrong += good && reply_is_right(payload, reply, config.words) ? 0 : 1;
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

loop_result exchange_pipelined(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t function_id,
                               const loop_config &config, const tick_scale &scale) {
  loop_result result;
  poll_deadline deadline("pipelined: no answer", config.timeout_ns, config.share_core);
  std::vector<std::uint64_t> sent_ticks(slots);
  std::uint64_t sent = 0, collected = 0;
  std::uint32_t send_slot = 0, collect_slot = 0;
  lap_timer laps(result.laps, scale);
  const std::uint64_t begin = now_ns();
  while (collected < config.exchanges) {
    bool moved = false;
    if (sent < config.exchanges && sent - collected < slots &&
        cudaq_host_ringbuffer_slot_available(&ring, send_slot) != 0) {
      if (sent % kSampleEvery == 0)
        sent_ticks[send_slot] = ticks();
      send(ring, send_slot, function_id, make_payload(config.seed, sent), config.words, sent);
      ++sent;
      send_slot = send_slot + 1 == slots ? 0 : send_slot + 1;
      moved = true;
    }
    if (collected < sent && answered(ring, collect_slot)) {
      payload_words reply{};
      const bool good = receive(ring, collect_slot, config.words, collected, reply);
      if (collected % kSampleEvery == 0)
        result.per_exchange.record(static_cast<std::uint64_t>(scale.ns(ticks() - sent_ticks[collect_slot]) + 0.5));
      cudaq_host_ringbuffer_clear_slot(&ring, collect_slot);
      result.wrong += good && reply_is_right(make_payload(config.seed, collected), reply, config.words) ? 0 : 1;
      ++collected;
      if (collected % kLap == 0)
        laps.exchanged(collected, ticks());
      collect_slot = collect_slot + 1 == slots ? 0 : collect_slot + 1;
      moved = true;
    }
    if (moved)
      deadline.restart();
    else
      deadline.check();
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

} // namespace cudaq::realtime::tools

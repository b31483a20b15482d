// SPDX-License-Identifier: Apache-2.0
#include "tools/latency/latency_floor.h"

#include "tools/common/machine.h"
#include "tools/common/report.h"
#include "tools/ring/raw_ring.h"

#include <cstring>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kPollsPerStopCheck = 256;

std::uint64_t load_acquire(std::uint64_t &word) noexcept {
  return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire);
}
void store_release(std::uint64_t &word, std::uint64_t value) noexcept {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

/// Polls until `word` is not `old`, and stores the new value in `value`. Returns false if `stop` was set.
bool wait_for_change(std::uint64_t &word, std::uint64_t old, std::uint64_t &value, const std::atomic<bool> &stop,
                     bool share_core) noexcept {
  for (std::uint32_t polls = 1;; ++polls) {
    value = load_acquire(word);
    if (value != old)
      return true;
    if (share_core)
      std::this_thread::yield();
    if (polls % kPollsPerStopCheck == 0 && stop.load(std::memory_order_relaxed))
      return false;
  }
}

/// `Words` is a constant, so the compiler unrolls the loop: a floor has no loop counters.
template <std::size_t Words>
void serve_two_flags(exchange_lines &lines, const std::atomic<bool> &stop, bool share_core) {
  std::uint64_t seen = load_acquire(lines.reply_flag);
  for (std::uint64_t value = 0; wait_for_change(lines.request_flag, seen, value, stop, share_core); seen = value) {
    for (std::size_t i = 0; i < Words; ++i)
      lines.reply[i] = transform(lines.request[i]);
    store_release(lines.reply_flag, value);
  }
}

template <std::size_t Words>
void serve_bare_ring(const raw_ring &ring, const std::atomic<bool> &stop, bool share_core) {
  std::uint64_t flag = 0;
  for (std::uint32_t slot = 0; wait_for_change(ring.rx_flags[slot], 0, flag, stop, share_core);
       slot = slot + 1 == ring.slots ? 0 : slot + 1) {
    const std::uint8_t *rx = ring.rx_data + slot * ring.rx_stride;
    std::uint8_t *tx = ring.tx_data + slot * ring.tx_stride;
    cudaq_rpc_header_t request;
    std::memcpy(&request, rx, sizeof request);
    payload_words payload;
    std::memcpy(payload.data(), rx + sizeof request, Words * sizeof payload[0]);
    for (std::size_t i = 0; i < Words; ++i)
      payload[i] = transform(payload[i]);
    const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, CUDAQ_RPC_OK,
                                        static_cast<std::uint32_t>(Words * sizeof payload[0]), request.request_id,
                                        request.ptp_timestamp};
    std::memcpy(tx, &response, sizeof response);
    std::memcpy(tx + sizeof response, payload.data(), Words * sizeof payload[0]);
    store_release(ring.tx_flags[slot], reinterpret_cast<std::uint64_t>(tx));
    store_release(ring.rx_flags[slot], 0);
  }
}

template <std::size_t Words>
loop_result run_two_flags(exchange_lines &lines, const exchange_config &config, const tick_scale &scale) {
  loop_result result;
  poll_deadline deadline("two-flag exchange: no reply", config.timeout_ns, config.share_core);
  std::uint64_t value = load_acquire(lines.reply_flag);
  lap_timer laps(result.laps, scale);
  const std::uint64_t begin = now_ns();
  for (std::uint64_t n = 0; n < config.exchanges; ++n) {
    const payload_words payload = make_payload(config.seed, n);
    payload_words reply;
    ++value;
    deadline.restart();
    const std::uint64_t t0 = ticks();
    for (std::size_t i = 0; i < Words; ++i)
      lines.request[i] = payload[i];
    store_release(lines.request_flag, value);
    while (load_acquire(lines.reply_flag) != value)
      deadline.check();
    for (std::size_t i = 0; i < Words; ++i)
      reply[i] = lines.reply[i];
    const std::uint64_t t1 = ticks();
    result.per_exchange.record(scale.whole_ns(t1 - t0));
    laps.exchanged(n + 1, t1);
    result.wrong += reply_is_right(payload, reply, Words) ? 0 : 1;
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

} // namespace

template <typename Loop>
server_thread::server_thread(int core, Loop loop)
    : thread_([this, core, loop] {
        error_ = pin_this_thread(core);
        ready_.store(true, std::memory_order_release);
        if (error_.empty())
          loop(stop_);
      }) {
  while (!ready_.load(std::memory_order_acquire))
    std::this_thread::yield();
  if (!error_.empty()) {
    thread_.join();
    throw usage_error("--cores: cannot pin the server to " + error_);
  }
}

server_thread::~server_thread() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.join();
}

std::unique_ptr<server_thread> server_thread::two_flags(exchange_lines &lines, std::size_t words, int core,
                                                        bool share_core) {
  return std::unique_ptr<server_thread>(
      new server_thread(core, [&lines, words, share_core](const std::atomic<bool> &stop) {
        words == 0 ? serve_two_flags<0>(lines, stop, share_core) : serve_two_flags<kMaxWords>(lines, stop, share_core);
      }));
}

std::unique_ptr<server_thread> server_thread::bare_ring(const cudaq_ringbuffer_t &ring, std::uint32_t slots,
                                                        std::size_t words, int core, bool share_core) {
  const raw_ring raw = raw_ring::for_host(ring, slots);
  return std::unique_ptr<server_thread>(
      new server_thread(core, [raw, words, share_core](const std::atomic<bool> &stop) {
        words == 0 ? serve_bare_ring<0>(raw, stop, share_core) : serve_bare_ring<kMaxWords>(raw, stop, share_core);
      }));
}

loop_result exchange_two_flags(exchange_lines &lines, const exchange_config &config, const tick_scale &scale) {
  return config.payload_bytes == 0 ? run_two_flags<0>(lines, config, scale)
                                   : run_two_flags<kMaxWords>(lines, config, scale);
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/device/bench_client.h"

#include "tools/common/machine.h"
#include "tools/common/report.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kFlagsPerLine = 16; ///< flags of a pair of cache lines; prefetchers load both together

std::uint32_t next_slot(std::uint32_t slot, std::uint32_t slots) { return slot + 1 == slots ? 0 : slot + 1; }

void count(loop_result &result, std::uint64_t n, const exchange_config &c, std::uint64_t ns) {
  if (n >= c.warm_up)
    result.per_exchange.record(ns);
}

/// Thrown by check() to end a thread after another thread has failed.
struct partner_failed {};

/// Threads that start their work at the same time. The first exception of a thread ends all of them; join() throws it
/// again.
class measured_threads {
public:
  explicit measured_threads(unsigned threads) : waiting_(threads) {}
  ~measured_threads() { end(); }
  measured_threads(const measured_threads &) = delete;
  measured_threads &operator=(const measured_threads &) = delete;

  template <typename Body>
  void launch(int core, Body body) {
    threads_.emplace_back([this, core, body] {
      try {
        if (const std::string why = pin_this_thread(core); !why.empty())
          throw usage_error("--cores: cannot pin a client thread to " + why);
        waiting_.fetch_sub(1);
        while (waiting_.load() != 0) {
          check();
          std::this_thread::yield();
        }
        body();
      } catch (const partner_failed &) {
        failed_.store(true);
      } catch (...) {
        if (!failed_.exchange(true))
          error_ = std::current_exception();
      }
    });
  }
  /// The threads call it while they wait. Throws partner_failed after another thread has failed.
  void check() const {
    if (failed_.load(std::memory_order_relaxed))
      throw partner_failed();
  }
  void join() {
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
    if (error_)
      std::rethrow_exception(error_);
  }

private:
  void end() {
    if (threads_.empty())
      return;
    failed_.store(true);
    for (std::thread &t : threads_)
      t.join();
  }

  std::atomic<unsigned> waiting_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

/// One thread of exchange_any_order, and the slots that it owns: [first, last).
class any_order_client {
public:
  any_order_client(const ring_port &port, std::uint32_t first, std::uint32_t last, const exchange_config &config,
                   const tick_scale &scale)
      : port_(port), first_(first), config_(config), scale_(scale), payload_(config_), outstanding_(last - first),
        deadline_("any order: no answer", config.timeout_ns, config.share_core) {}

  void run(measured_threads &all) {
    const std::uint64_t total = config_.warm_up + config_.exchanges;
    begin_ns = now_ns();
    while (collected_ < total) {
      bool moved = false;
      for (std::uint32_t i = 0; i < outstanding_.size(); ++i)
        moved = turn(i, total) || moved;
      if (moved) {
        deadline_.restart();
      } else {
        deadline_.check();
        all.check();
      }
    }
    end_ns = now_ns();
  }

  loop_result result;
  std::uint64_t begin_ns = 0, end_ns = 0; ///< of the measured part

private:
  static constexpr std::uint64_t kFree = UINT64_MAX;
  struct record {
    std::uint64_t n = kFree;
    std::uint64_t sent_ticks = 0;
  };

  bool turn(std::uint32_t i, std::uint64_t total) {
    record &r = outstanding_[i];
    const std::uint32_t slot = first_ + i;
    if (r.n == kFree) {
      if (sent_ == total || !port_.take(slot))
        return false;
      r.n = sent_++;
      payload_.make(r.n);
      payload_.write(port_, slot, r.n);
      if (r.n % kTimedEvery == 0)
        r.sent_ticks = ticks();
      port_.signal(slot);
      return true;
    }
    if (!port_.is_answered(slot))
      return false;
    if (r.n % kTimedEvery == 0)
      count(result, r.n, config_, scale_.whole_ns(ticks() - r.sent_ticks));
    payload_.make(r.n);
    result.wrong += payload_.read(port_, slot, r.n) && payload_.is_right() ? 0 : 1;
    r.n = kFree;
    port_.give_back(slot);
    if (++collected_ == config_.warm_up)
      begin_ns = now_ns();
    return true;
  }

  const ring_port port_;
  std::uint32_t first_;
  exchange_config config_;
  const tick_scale &scale_;
  checked_payload payload_;
  std::vector<record> outstanding_;
  poll_deadline deadline_;
  std::uint64_t sent_ = 0, collected_ = 0;
};

} // namespace

loop_result exchange_counting_flags(const cudaq_ringbuffer_t &ring, std::uint32_t slots, const exchange_config &config,
                                    const tick_scale &scale) {
  const ring_port port(ring);
  loop_result result;
  poll_deadline deadline("closed loop, counting flags: no answer", config.timeout_ns, config.share_core);
  checked_payload payload(config);
  const bool has_frames = config.payload_bytes != 0;
  std::uint32_t slot = 0;
  std::uint64_t count_of_lap = 1;
  const auto word = [](volatile std::uint64_t &flag) { // a floor uses no helpers of the library
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t &>(flag));
  };
  std::uint64_t begin = now_ns();
  for (std::uint64_t n = 0; n < config.warm_up + config.exchanges; ++n) {
    if (n == config.warm_up)
      begin = now_ns();
    payload.make(n);
    if (has_frames)
      payload.write(port, slot, n);
    deadline.restart();
    const std::uint64_t t0 = ticks();
    word(ring.rx_flags_host[slot]).store(count_of_lap, std::memory_order_release);
    while (word(ring.tx_flags_host[slot]).load(std::memory_order_acquire) != count_of_lap)
      deadline.check();
    const std::uint64_t t1 = ticks();
    count(result, n, config, scale.whole_ns(t1 - t0));
    if (has_frames)
      result.wrong += payload.read(port, slot, n) && payload.is_right() ? 0 : 1;
    slot = next_slot(slot, slots);
    count_of_lap += slot == 0 ? 1 : 0;
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

loop_result exchange_full_ring(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                               const tick_scale &scale, const std::vector<int> &cores) {
  loop_result result;
  const std::uint64_t total = config.warm_up + config.exchanges;
  std::vector<std::atomic<std::uint64_t>> sent_ticks(slots);
  // The collector may read a slot's tx flag only after the request is sent: before that, the flag could be the answer
  // of the previous lap.
  std::atomic<std::uint64_t> sent{0}, collected{0};
  std::uint64_t begin = 0;
  measured_threads both(2);
  both.launch(cores.size() > 1 ? cores[0] : -1, [&] {
    poll_deadline deadline("full ring: no free slot", config.timeout_ns, config.share_core);
    checked_payload payload(config);
    std::uint32_t slot = 0;
    for (std::uint64_t n = 0; n < total;) {
      deadline.restart();
      const auto collected_before = [&] {
        return !port.is_on_tx_alone() || n < collected.load(std::memory_order_acquire) + slots;
      };
      const auto max_count = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.batch, total - n));
      std::uint32_t count = 0;
      while (!collected_before() || (count = port.take(slot, max_count)) == 0) {
        deadline.check();
        both.check();
      }
      const std::uint32_t first = slot;
      for (std::uint32_t k = 0; k < count; ++k, ++n, slot = next_slot(slot, slots)) {
        payload.make(n);
        payload.write(port, slot, n);
        if (n % kTimedEvery == 0)
          sent_ticks[slot].store(ticks(), std::memory_order_relaxed);
      }
      port.signal(first, count);
      sent.store(n, std::memory_order_release);
    }
  });
  both.launch(cores.size() > 1 ? cores[1] : -1, [&] {
    poll_deadline deadline("full ring: no answer", config.timeout_ns, config.share_core);
    checked_payload payload(config);
    std::uint32_t slot = 0;
    begin = now_ns();
    for (std::uint64_t n = 0; n < total; ++n, slot = next_slot(slot, slots)) {
      deadline.restart();
      while (sent.load(std::memory_order_acquire) <= n || !port.is_answered(slot)) {
        deadline.check();
        both.check();
      }
      if (n % kTimedEvery == 0)
        count(result, n, config, scale.whole_ns(ticks() - sent_ticks[slot].load(std::memory_order_relaxed)));
      payload.make(n);
      result.wrong += payload.read(port, slot, n) && payload.is_right() ? 0 : 1;
      port.give_back(slot);
      collected.store(n + 1, std::memory_order_release);
      if (n + 1 == config.warm_up)
        begin = now_ns();
    }
    result.wall_ns = now_ns() - begin;
  });
  both.join();
  result.exchanges = config.exchanges;
  return result;
}

unsigned usable_threads(std::uint32_t slots, unsigned wanted) {
  return std::clamp((slots + kFlagsPerLine - 1) / kFlagsPerLine, 1u, std::max(1u, wanted));
}

loop_result exchange_any_order(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                               const tick_scale &scale, unsigned threads, const std::vector<int> &cores) {
  threads = usable_threads(slots, threads);
  exchange_config share = config;
  share.exchanges = std::max<std::uint64_t>(1, config.exchanges / threads);
  share.warm_up = config.warm_up / threads;
  const std::uint32_t lines = (slots + kFlagsPerLine - 1) / kFlagsPerLine;
  std::vector<std::unique_ptr<any_order_client>> clients;
  for (unsigned t = 0; t < threads; ++t) {
    share.seed = config.seed + t;
    clients.push_back(std::make_unique<any_order_client>(port, lines * t / threads * kFlagsPerLine,
                                                         std::min(slots, lines * (t + 1) / threads * kFlagsPerLine),
                                                         share, scale));
  }
  measured_threads all(threads);
  for (unsigned t = 0; t < threads; ++t)
    all.launch(t < cores.size() ? cores[t] : -1, [&all, &client = *clients[t]] { client.run(all); });
  all.join();
  loop_result result;
  std::uint64_t begin = UINT64_MAX, end = 0;
  for (const std::unique_ptr<any_order_client> &client : clients) {
    result.merge(client->result);
    begin = std::min(begin, client->begin_ns);
    end = std::max(end, client->end_ns);
  }
  result.exchanges = share.exchanges * threads;
  result.wall_ns = end - begin;
  return result;
}

} // namespace cudaq::realtime::tools

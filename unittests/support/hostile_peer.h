// SPDX-License-Identifier: Apache-2.0
// A ring peer that breaks the protocol: threads that overwrite flags, headers and payloads of live slots while a
// dispatcher serves them; a ring between inaccessible pages; and handlers that check what they get.
#pragma once

#include "unittests/support/host_fixture.h"
#include "unittests/support/sanitized.h"

#include "cudaq/realtime/detail/base/flag_word.h"
#include "cudaq/realtime/detail/base/slot_memory.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <sys/mman.h>

namespace cudaq::realtime::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kRaceDetector = true;
#else
inline constexpr bool kRaceDetector = false;
#endif

/// How long a peer attacks: CUDAQ_HOSTILE_SECONDS, or a time that a continuous build can spend on each test.
inline std::chrono::milliseconds hostile_time() {
  if (const char *seconds = std::getenv("CUDAQ_HOSTILE_SECONDS"))
    return std::chrono::milliseconds(static_cast<long>(std::atof(seconds) * 1000));
  return std::chrono::milliseconds(300);
}

/// `bytes` bytes at the end of a page. The pages before and after are not accessible.
class guarded_memory {
public:
  explicit guarded_memory(std::size_t bytes) : all_((bytes + kPage - 1) / kPage * kPage + 2 * kPage) {
    void *const at = mmap(nullptr, all_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::uint8_t *>(at);
    EXPECT_EQ(mprotect(base_ + kPage, all_ - 2 * kPage, PROT_READ | PROT_WRITE), 0);
    data = base_ + all_ - kPage - bytes;
  }
  ~guarded_memory() { munmap(base_, all_); }
  guarded_memory(const guarded_memory &) = delete;
  guarded_memory &operator=(const guarded_memory &) = delete;

  std::uint8_t *data = nullptr;

private:
  static constexpr std::size_t kPage = 65536; ///< a multiple of every page size
  std::size_t all_;
  std::uint8_t *base_ = nullptr;
};

/// The last slot ends where the guard page begins: the stride is the slot size, a multiple of 8.
class guarded_ring {
public:
  explicit guarded_ring(const ring_shape &of)
      : shape(of), rx_flags_(8 * of.num_slots), tx_flags_(8 * of.num_slots),
        rx_(std::size_t{of.num_slots} * of.slot_size) {
    ring.rx_flags = ring.rx_flags_host = reinterpret_cast<volatile std::uint64_t *>(rx_flags_.data);
    ring.tx_flags = ring.tx_flags_host = reinterpret_cast<volatile std::uint64_t *>(tx_flags_.data);
    ring.rx_data = ring.rx_data_host = ring.tx_data = ring.tx_data_host = rx_.data;
    ring.rx_stride_sz = ring.tx_stride_sz = of.slot_size;
    if (!of.in_place) {
      tx_ = std::make_unique<guarded_memory>(std::size_t{of.num_slots} * of.slot_size);
      ring.tx_data = ring.tx_data_host = tx_->data;
    }
  }

  const ring_shape shape;
  cudaq_ringbuffer_t ring{};

private:
  guarded_memory rx_flags_, tx_flags_, rx_;
  std::unique_ptr<guarded_memory> tx_;
};

/// Accesses of tests to words that a hostile peer writes at the same time.
inline std::uint64_t peer_word(const void *at) {
  return detail::load_frame<std::uint64_t>(static_cast<const std::uint8_t *>(at));
}
inline void set_peer_word(void *at, std::uint64_t value) {
  detail::store_frame(static_cast<std::uint8_t *>(at), value);
}

/// What a handler has found. One object for all handlers of a test.
struct handler_watch {
  std::atomic<std::uint64_t> calls{0}, violations{0};
  void expect(bool holds) {
    if (!holds)
      ++violations;
  }
  /// Reads a payload of `size` bytes as a decoder does, and writes `size` bytes of results, in whole words.
  static void use(const void *payload, std::uint32_t size, void *result) {
    std::uint64_t sum = size;
    for (std::uint32_t at = 0; at + 8 <= size; at += 8)
      sum = sum * 31 + peer_word(static_cast<const std::uint8_t *>(payload) + at);
    for (std::uint32_t at = 0; at + 8 <= size; at += 8)
      set_peer_word(static_cast<std::uint8_t *>(result) + at, sum + at);
  }
};

struct hostile_plan {
  std::vector<std::uint32_t> functions; ///< ids that the dispatcher serves
  bool payloads = true;                 ///< overwrites payloads
  bool answers = true;                  ///< overwrites answers
  std::uint32_t threads = 1;
};

/// Attacks a ring from construction to stop(). It follows no rule: slots in any state, any value. Often enough it
/// writes a whole request and clears a tx flag, so that the dispatcher has work.
class hostile_peer {
public:
  hostile_peer(const cudaq_ringbuffer_t &ring, const ring_shape &shape, hostile_plan plan)
      : ring_(ring), shape_(shape), plan_(std::move(plan)) {
    for (std::uint32_t t = 0; t < plan_.threads; ++t)
      threads_.emplace_back([this, t] { attack(t + 1); });
  }
  ~hostile_peer() { stop(); }
  hostile_peer(const hostile_peer &) = delete;
  hostile_peer &operator=(const hostile_peer &) = delete;

  /// Attacks for hostile_time(), and then until `enough` holds or a deadline has passed.
  template <class Enough>
  void attack_until(Enough &&enough) const {
    std::this_thread::sleep_for(hostile_time());
    EXPECT_TRUE(eventually(enough));
  }
  void stop() {
    ends_.store(true);
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
  }
  std::uint64_t writes() const { return writes_.load(); }

private:
  void attack(std::uint32_t seed) {
    std::mt19937_64 random(seed);
    std::uint64_t written = 0;
    for (std::uint32_t slot = 0; !ends_.load(); ++written) {
      slot =
          random() % 4 == 0 ? static_cast<std::uint32_t>(random() % shape_.num_slots) : (slot + 1) % shape_.num_slots;
      act(slot, random);
      if (written % 16 == 0)
        std::this_thread::yield(); // tests share few cores
    }
    writes_ += written;
  }
  std::uint32_t any_length(std::mt19937_64 &random) const {
    static constexpr std::uint32_t kOdd[] = {0xFFFFFFFFu, 0x80000000u, 0x7FFFFFFFu, 0xFFFFFFE8u, 0xFFFFFFF0u};
    const std::uint32_t max_size = shape_.slot_size - CUDAQ_RPC_HEADER_SIZE;
    switch (random() % 8) {
    case 0:
      return kOdd[random() % 5];
    case 1:
      return max_size + static_cast<std::uint32_t>(random() % 64);
    default:
      return static_cast<std::uint32_t>(random() % (max_size + 1));
    }
  }
  void write_request(std::uint8_t *slot, std::mt19937_64 &random) const {
    const std::uint64_t id =
        random() % 8 == 0 ? random() & 0xFFFFFFFFu : plan_.functions[random() % plan_.functions.size()];
    set_peer_word(slot, (random() % 16 == 0 ? random() & 0xFFFFFFFFu : CUDAQ_RPC_MAGIC_REQUEST) | id << 32);
    set_peer_word(slot + 8, any_length(random) | random() << 32);
    set_peer_word(slot + 16, random());
  }
  void act(std::uint32_t i, std::mt19937_64 &random) const {
    std::uint8_t *const rx = ring_.rx_data_host + i * ring_.rx_stride_sz;
    std::uint8_t *const tx = ring_.tx_data_host + i * ring_.tx_stride_sz;
    const std::uint64_t odd = 8 * (random() % (shape_.slot_size / 8));
    switch (random() % 16) {
    case 0:
      set_peer_word(rx + 8, any_length(random) | random() << 32);
      break;
    case 1:
      set_peer_word(rx + 8 * (random() % 3), random());
      break;
    case 2:
      if (plan_.payloads || odd < CUDAQ_RPC_HEADER_SIZE)
        set_peer_word(rx + odd, random());
      break;
    case 3: // an answer's header, with any length
      if (plan_.answers) {
        set_peer_word(tx, CUDAQ_RPC_MAGIC_RESPONSE | random() << 32);
        set_peer_word(tx + 8, any_length(random));
      }
      break;
    case 4:
      if (plan_.answers && (plan_.payloads || odd < CUDAQ_RPC_HEADER_SIZE))
        set_peer_word(tx + odd, random());
      break;
    case 5:
      detail::store_release(ring_.rx_flags_host[i], random());
      break;
    case 6:
      detail::store_release(ring_.rx_flags_host[i], std::uint64_t{0});
      break;
    case 7: {
      const std::uint64_t values[] = {random(), CUDAQ_TX_FLAG_IN_FLIGHT,
                                      CUDAQ_TX_FLAG_ERROR_TAG << CUDAQ_TX_FLAG_ERROR_SHIFT | 700};
      detail::store_release(ring_.tx_flags_host[i], values[random() % 3]);
      break;
    }
    case 8:
    case 9:
    case 10:
      detail::store_release(ring_.tx_flags_host[i], std::uint64_t{0});
      break;
    default:
      write_request(rx, random);
      detail::store_release(ring_.tx_flags_host[i], std::uint64_t{0});
      detail::store_release(ring_.rx_flags_host[i], reinterpret_cast<std::uint64_t>(rx));
    }
  }

  const cudaq_ringbuffer_t ring_;
  const ring_shape shape_;
  const hostile_plan plan_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> writes_{0};
  std::vector<std::thread> threads_;
};

/// Makes a ring new, while no dispatcher and no peer uses it.
inline void reinitialise(const cudaq_ringbuffer_t &ring, const ring_shape &shape) {
  for (std::uint32_t i = 0; i < shape.num_slots; ++i) {
    detail::store_release(ring.rx_flags_host[i], std::uint64_t{0});
    detail::store_release(ring.tx_flags_host[i], std::uint64_t{0});
  }
}

/// A good requester: sends `count` requests from slot 0 on, one after another, each with at most 16 bytes, and expects
/// their answers: status 0 and as many bytes.
inline void expect_good_answers(const cudaq_ringbuffer_t &ring, const ring_shape &shape,
                                const std::vector<std::uint32_t> &functions, std::uint32_t count = 64,
                                std::uint32_t payload_bytes = 16) {
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint32_t slot = n % shape.num_slots;
    const std::uint64_t payload[2] = {n, ~std::uint64_t{n}};
    ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring, slot) == 1; })) << "slot " << slot;
    CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring, slot, functions[n % functions.size()], payload,
                                                            payload_bytes, n + 7, n));
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
    ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) == CUDAQ_TX_READY; }))
        << "no answer in slot " << slot;
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result));
    EXPECT_EQ(header.status, 0);
    EXPECT_EQ(header.request_id, n + 7);
    EXPECT_EQ(header.ptp_timestamp, n);
    EXPECT_EQ(header.result_len, payload_bytes);
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
  }
}

/// Expects that every request that was received is answered or dropped, and that handlers got at least a tenth.
inline void expect_accounts(const cudaq_dispatcher_stats_t &s, const handler_watch &watch, std::uint64_t writes) {
  EXPECT_EQ(s.in_flight, 0u);
  EXPECT_EQ(s.received, s.responded + s.dropped_bad_magic + s.dropped_unknown_function + s.dropped_flag_value);
  EXPECT_EQ(watch.violations, 0u) << "handlers got what was not judged";
  EXPECT_GE(watch.calls * 10, s.received);
  EXPECT_GT(s.received, 0u);
  std::printf("%llu hostile writes, %llu requests, %llu calls of handlers, %llu dropped\n",
              static_cast<unsigned long long>(writes), static_cast<unsigned long long>(s.received),
              static_cast<unsigned long long>(watch.calls.load()),
              static_cast<unsigned long long>(s.received - s.responded));
}

} // namespace cudaq::realtime::test

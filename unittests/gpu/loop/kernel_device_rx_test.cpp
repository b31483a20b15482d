// SPDX-License-Identifier: Apache-2.0
// Rings whose requests lie in device memory, with every kernel that serves alone, through the producer's handle. With
// CUDAQ_TEST_REQUESTS=device all other tests of the kernels use such rings, too, through the stateless slot helpers.
//
// CUDAQ_SOAK_MESSAGES: number of messages of the soak.
#include "unittests/gpu/support/checked_device_functions.h"
#include "unittests/gpu/support/gpu_dispatcher.h"
#include "unittests/support/checked_payload.h"

#include <algorithm>

namespace cudaq::realtime::test {
namespace {

cudaq_ringbuffer_info_t info_of(const cudaq_ringbuffer_memory_t *memory) {
  cudaq_ringbuffer_info_t info{};
  info.struct_size = sizeof(info);
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_get_info(memory, &info));
  return info;
}
cudaq_ringbuffer_info_t info_of(const host_ring &ring) { return info_of(ring.memory()); }

class producer_handle {
public:
  explicit producer_handle(const host_ring &ring) {
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_open(ring.memory(), &get));
  }
  ~producer_handle() { CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(get)); }
  producer_handle(const producer_handle &) = delete;
  producer_handle &operator=(const producer_handle &) = delete;

  bool send(std::uint32_t function_id, const std::vector<std::uint8_t> &payload, std::uint32_t id,
            std::uint32_t &slot) const {
    const cudaq_status_t status =
        cudaq_ringbuffer_producer_send(get, function_id, payload.data(), static_cast<std::uint32_t>(payload.size()), id,
                                       gpu_client::timestamp_of(id), 20000000000u, &slot);
    EXPECT_EQ(status, CUDAQ_OK) << cudaq_last_error_message();
    return status == CUDAQ_OK;
  }

  cudaq_ringbuffer_producer_t *get = nullptr;
};

class DeviceRx : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {
protected:
  struct session {
    explicit session(const kernel_kind &kind, const ring_shape &shape)
        : ring(shape, CUDAQ_MEMORY_DEVICE_RX), dispatcher(manager.get, setup_of(kind, ring)),
          client(ring.ring, shape.num_slots), producer(ring) {}
    answer call(const std::vector<std::uint8_t> &payload, std::uint32_t id) const {
      std::uint32_t slot = 0;
      return producer.send(id_of(handler::reverse), payload, id, slot) ? client.collect(slot) : answer{};
    }
    manager_handle manager;
    host_ring ring;
    gpu_dispatcher dispatcher;
    mutable gpu_client client;
    producer_handle producer;
  };
};

TEST_P(DeviceRx, AnswersEverySizeAroundALinesBorderInEveryRing) {
  for (const std::uint32_t num_slots : {1u, 2u, 3u, 64u, 1024u}) {
    SCOPED_TRACE(num_slots);
    session s(GetParam(), {num_slots, 576, false});
    ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
    for (std::uint32_t n = 0; n < std::max(80u, num_slots + 10); ++n) {
      static constexpr std::uint32_t kSizes[] = {0,   1,   7,   8,   39,  40,  41,  63,  64,  65,
                                                 103, 104, 105, 127, 128, 129, 167, 168, 169, 552};
      const std::vector<std::uint8_t> payload = some_bytes(kSizes[n % std::size(kSizes)], n);
      ASSERT_NO_FATAL_FAILURE(expect_reversed(s.call(payload, n), payload, n));
    }
  }
}

TEST_P(DeviceRx, AnswersLargeSlots) {
  for (const std::uint32_t slot_size : {4096u, 16512u, 65536u}) {
    session s(GetParam(), {2, slot_size, false});
    ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
    for (const std::uint32_t size : {0u, 4000u, slot_size - 25, slot_size - 24, 1u}) {
      const std::vector<std::uint8_t> payload = some_bytes(size, size);
      ASSERT_NO_FATAL_FAILURE(expect_reversed(s.call(payload, size), payload, size));
    }
  }
}

// An aborted frame and an unknown function free their slots, though no answer comes.
TEST_P(DeviceRx, DroppedRequestsFreeTheirSlots) {
  session s(GetParam(), {2, 128, false});
  ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
  for (std::uint32_t n = 0; n < 60; ++n) {
    std::uint32_t slot = 0, count = 0;
    if (n % 3 == 0) {
      ASSERT_TRUE(s.producer.send(kUnknownId, {1, 2, 3}, n, slot));
    } else if (n % 3 == 1) {
      ASSERT_TRUE(eventually([&] {
        CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_claim(s.producer.get, 1, &slot, &count));
        return count == 1;
      }));
      CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_abort(s.producer.get, slot));
    } else {
      const std::vector<std::uint8_t> payload = some_bytes(50, n);
      ASSERT_NO_FATAL_FAILURE(expect_reversed(s.call(payload, n), payload, n));
    }
  }
  EXPECT_TRUE(eventually([&] {
    const cudaq_dispatcher_stats_t stats = s.dispatcher.stats();
    return stats.dropped_unknown_function == 20 && stats.dropped_bad_magic == 20 && stats.responded == 20;
  }));
}

TEST_P(DeviceRx, StrictFlagValuesPass) {
  session s(GetParam(), {4, 128, false});
  s.dispatcher.options.strict_flag_values = 1;
  ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
  for (std::uint32_t n = 0; n < 20; ++n)
    ASSERT_NO_FATAL_FAILURE(expect_reversed(s.call(some_bytes(9, n), n), some_bytes(9, n), n));
  EXPECT_EQ(s.dispatcher.stats().unexpected_flag_values, 0u);
}

/// Claims `most` slots, writes each in place, and commits all at once. Returns the first slot, or 0 after a failure.
std::uint32_t commit_batch(const producer_handle &producer, std::uint32_t slots, std::uint32_t max_count,
                           std::uint32_t first_id, std::uint32_t bytes) {
  std::uint32_t first = 0, count = 0, total = 0, slot = 0;
  EXPECT_TRUE(eventually([&] { // a claim ends at the first slot that is not free yet
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_claim(producer.get, max_count - total, &slot, &count));
    first = total == 0 ? slot : first;
    return (total += count) == max_count;
  }));
  for (std::uint32_t k = 0; k < total; ++k) {
    void *payload = nullptr;
    std::size_t room = 0;
    const std::uint32_t at = (first + k) % slots, id = first_id + k;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_payload(producer.get, at, &payload, &room));
    const std::vector<std::uint8_t> content = some_bytes(bytes, id);
    std::memcpy(payload, content.data(), content.size());
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_write_header(producer.get, at, id_of(handler::reverse), bytes, id,
                                                           gpu_client::timestamp_of(id)));
  }
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_commit(producer.get, first, total));
  return first;
}

// Batches over the end of the ring; the flags of a batch are seen in their order.
TEST_P(DeviceRx, BatchesWrittenInPlaceAreServedInOrder) {
  constexpr std::uint32_t kSlots = 16;
  session s(GetParam(), {kSlots, 256, false});
  ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
  std::uint32_t id = 0;
  for (std::uint32_t round = 0; round < 200; ++round) {
    const std::uint32_t count = 1 + round * 7 % kSlots, bytes = round * 13 % 233;
    const std::uint32_t first = commit_batch(s.producer, kSlots, count, id, bytes);
    for (std::uint32_t k = 0; k < count; ++k, ++id)
      ASSERT_NO_FATAL_FAILURE(expect_reversed(s.client.collect((first + k) % kSlots), some_bytes(bytes, id), id));
  }
  EXPECT_EQ(s.dispatcher.stats().cursor_jumps, 0u);
}

TEST_P(DeviceRx, AHandleIsOpenedAgainAndGoesOnAfterARestart) {
  host_ring ring({3, 128, false}, CUDAQ_MEMORY_DEVICE_RX);
  const manager_handle manager;
  gpu_dispatcher dispatcher(manager.get, setup_of(GetParam(), ring));
  gpu_client client(ring.ring, 3);
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  for (std::uint32_t n = 0; n < 6; ++n) // two laps without a handle
    ASSERT_NO_FATAL_FAILURE(expect_serves(client, n, 30));
  const auto send = [&](const producer_handle &producer, std::uint32_t id) {
    std::uint32_t slot = 0;
    EXPECT_TRUE(producer.send(id_of(handler::reverse), some_bytes(30, id), id, slot));
    return slot;
  };
  for (std::uint32_t n = 0; n < 10; ++n) { // a handle of its own for each request, which is outstanding at close
    std::uint32_t slot = 0;
    {
      const producer_handle producer(ring);
      slot = send(producer, n);
      EXPECT_EQ(slot, n % 3);
    }
    const producer_handle next(ring);
    ASSERT_NO_FATAL_FAILURE(expect_reversed(client.collect(slot), some_bytes(30, n), n));
  }
  const producer_handle producer(ring);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(dispatcher.get));
  const std::uint32_t slot = send(producer, 77);
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  ASSERT_NO_FATAL_FAILURE(expect_reversed(client.collect(slot), some_bytes(30, 77), 77));
}

// The promise cannot hold here: the kernel keeps system scope, and posts its laps.
TEST_P(DeviceRx, PeersOnTheSameDeviceChangeNothing) {
  for (const std::uint32_t slots : {1u, 4u}) {
    session s(GetParam(), {slots, 256, false});
    s.dispatcher.options.ring_peers = CUDAQ_RING_PEERS_SAME_DEVICE;
    ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
    for (std::uint32_t n = 0; n < 5 * slots; ++n) // the handle's free test needs a lap for each
      ASSERT_NO_FATAL_FAILURE(expect_reversed(s.call(some_bytes(40, n), n), some_bytes(40, n), n)) << slots;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceRx, ::testing::ValuesIn(each_kind()), name_of_kind);

class DeviceRxMemory : public gpu_test {};

TEST_F(DeviceRxMemory, ReportsItsSourceAndItsOrdering) {
  const host_ring ring({4, 64, false}, CUDAQ_MEMORY_DEVICE_RX);
  const cudaq_ringbuffer_info_t info = info_of(ring);
  EXPECT_EQ(info.memory_kind, CUDAQ_MEMORY_DEVICE_RX);
  EXPECT_NE(info.mapping_source, CUDAQ_MAPPING_NONE);
  EXPECT_GE(info.writes_ordering, 100u);
  std::printf("[          ] %s, ordering %u\n", info.reason, info.writes_ordering);
  cudaPointerAttributes a{};
  CUDA_ASSERT_OK(cudaPointerGetAttributes(&a, ring.ring.rx_data));
  EXPECT_EQ(a.type, cudaMemoryTypeDevice);
}

TEST_F(DeviceRxMemory, AutoTakesItOrSaysWhyNot) {
  const host_ring ring({4, 64, false}, CUDAQ_MEMORY_AUTO);
  const cudaq_ringbuffer_info_t info = info_of(ring);
  std::printf("[          ] kind %u: %s\n", info.memory_kind, info.reason);
  if (info.memory_kind == CUDAQ_MEMORY_MAPPED)
    EXPECT_NE(std::string(info.reason).find("because"), std::string::npos);
  else
    EXPECT_EQ(info.memory_kind, CUDAQ_MEMORY_DEVICE_RX);
  const host_ring in_place({4, 64, true}, CUDAQ_MEMORY_AUTO);
  EXPECT_EQ(info_of(in_place).memory_kind, CUDAQ_MEMORY_MAPPED);
  EXPECT_NE(std::string(info_of(in_place).reason).find("in place"), std::string::npos);
}

TEST_F(DeviceRxMemory, MemoryForANicIsMadeAndServes) {
  cudaq_ringbuffer_options_t o;
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_options_init(&o, sizeof(o)));
  o.memory_kind = CUDAQ_MEMORY_DEVICE_RX;
  o.nic_registration = 1;
  o.device_id = test_device();
  o.num_slots = 4, o.slot_size = 256;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_create(&o, &memory, &ring));
  const std::uint32_t source = info_of(memory).mapping_source;
  const host_ring other({4, 256, false}, CUDAQ_MEMORY_DEVICE_RX);
  if (info_of(other).mapping_source == CUDAQ_MAPPING_VULKAN) {
    EXPECT_EQ(source, CUDAQ_MAPPING_VULKAN_IMPORT);
  }
  EXPECT_TRUE(source == CUDAQ_MAPPING_VULKAN_IMPORT || source == CUDAQ_MAPPING_GDRCOPY) << source;
  {
    const manager_handle manager;
    gpu_dispatcher dispatcher(manager.get, {kFifo32, {4, 256, false}, ring, {}});
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    gpu_client client(ring, 4);
    for (std::uint32_t n = 0; n < 10; ++n)
      expect_serves(client, n);
  }
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
}

TEST_F(DeviceRxMemory, TheHostPathIsRefused) {
  const host_ring ring({4, 64, false}, CUDAQ_MEMORY_DEVICE_RX);
  const manager_handle manager;
  cudaq_dispatcher_t *dispatcher = nullptr;
  const cudaq_dispatcher_config_t config = host_config({4, 64, false});
  CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager.get, &config, &dispatcher));
  EXPECT_EQ(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring.ring), CUDAQ_ERR_UNSUPPORTED);
  EXPECT_NE(std::string(cudaq_last_error_message()).find("device memory"), std::string::npos);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(dispatcher));
}

// Such a kernel would post no laps, and the producer would wait without limit. The launch function returns nothing.
TEST_F(DeviceRxMemory, ALaunchThatSharesTheRingIsRefused) {
  const host_ring ring({4, 64, false}, CUDAQ_MEMORY_DEVICE_RX);
  const cudaq_ringbuffer_t &r = ring.ring;
  int occupancy = 0;
  CUDA_ASSERT_OK(cudaq_dispatch_kernel_query_occupancy(&occupancy, 32)); // this call loads the kernels
  const device_array<cudaq_function_entry_t> table(checked_device_functions::table(kFifo32, 0, 1));
  const side_stream stream;
  CUDA_EXPECT_OK(cudaq_dispatch_kernel_set_shared_ring_mode(1));
  cudaq_launch_dispatch_kernel_regular(r.rx_flags, r.tx_flags, r.rx_data, r.tx_data, r.rx_stride_sz, r.tx_stride_sz,
                                       table.get, 1, mapped_word<int>(), mapped_word<std::uint64_t>(), 4, 1, 32,
                                       stream.get);
  CUDA_EXPECT_OK(cudaq_dispatch_kernel_set_shared_ring_mode(0));
  CUDA_EXPECT_OK(stream.wait()); // no kernel runs, though its shutdown flag is 0
}

// More than a process could load the driver's Vulkan part anew: about 45 times.
TEST_F(DeviceRxMemory, ManyRingsComeAndGo) {
  for (int n = 0; n < 100; ++n)
    const host_ring ring({64, 4096, false}, CUDAQ_MEMORY_DEVICE_RX);
}

/// Two threads send on one handle, one collects. Every frame carries a checksum. The requests of a thread are answered
/// in the order in which it has sent them.
void soak_two_threads_on_one_handle(std::uint32_t slots, std::uint64_t messages) {
  constexpr std::uint32_t kThreads = 2;
  const manager_handle manager;
  const host_ring ring({slots, 128, false}, CUDAQ_MEMORY_DEVICE_RX);
  gpu_dispatcher dispatcher(manager.get, setup_of(kFifo32, ring));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  const producer_handle producer(ring);
  std::atomic<bool> failed{false};
  std::vector<std::thread> senders;
  for (std::uint32_t t = 0; t < kThreads; ++t)
    senders.emplace_back([&, t] {
      std::uint8_t payload[104];
      for (std::uint64_t n = t; n < messages && !failed; n += kThreads) {
        const auto id = static_cast<std::uint32_t>(n);
        const std::uint32_t bytes = 8 + id % 17; // short: the handler must not be the limit
        fill_frame(payload, bytes, id, kRequestSalt);
        if (cudaq_ringbuffer_producer_send(producer.get, id_of(handler::reverse), payload, bytes, id, n, 20000000000u,
                                           nullptr) != CUDAQ_OK)
          failed = true;
      }
    });
  std::uint64_t collected = 0, corrupt = 0, out_of_order = 0, sum = 0, next[kThreads] = {0, 1};
  auto last = std::chrono::steady_clock::now();
  for (std::uint32_t slot = 0; collected < messages && !failed;) {
    if (cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, slot, nullptr) != CUDAQ_TX_READY) {
      failed = std::chrono::steady_clock::now() - last > kDeadline;
      if (slots < kThreads * 2)
        std::this_thread::yield(); // the senders wait for each other, too
      continue;
    }
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, slot, &header, &result));
    const auto *bytes = static_cast<const std::uint8_t *>(result);
    std::uint8_t request[104];
    std::reverse_copy(bytes, bytes + header.result_len, request);
    std::uint32_t sequence = 0;
    corrupt += header.status != 0 || header.result_len != 8 + header.request_id % 17 ||
               !intact_frame(request, header.result_len, kRequestSalt, sequence) || sequence != header.request_id ||
               static_cast<std::uint32_t>(header.ptp_timestamp) != header.request_id;
    std::uint64_t &expected = next[header.ptp_timestamp % kThreads];
    out_of_order += header.ptp_timestamp != expected;
    expected = header.ptp_timestamp + kThreads;
    sum += header.ptp_timestamp;
    cudaq_host_ringbuffer_clear_slot(&ring.ring, slot);
    ++collected;
    slot = (slot + 1) % slots;
    if (collected % 64 == 0)
      last = std::chrono::steady_clock::now();
  }
  for (std::thread &s : senders)
    s.join();
  EXPECT_FALSE(failed);
  EXPECT_EQ(collected, messages);
  EXPECT_EQ(corrupt, 0u);
  EXPECT_EQ(out_of_order, 0u);
  EXPECT_EQ(sum, messages * (messages - 1) / 2) << "a message was lost or doubled";
  EXPECT_EQ(dispatcher.stats().cursor_jumps, 0u);
}

/// Of CUDAQ_SOAK_MESSAGES, or `messages`.
std::uint64_t soak_messages(std::uint64_t messages) {
  const char *chosen = std::getenv("CUDAQ_SOAK_MESSAGES");
  const std::uint64_t number = chosen == nullptr ? messages : std::strtoull(chosen, nullptr, 10);
  ::testing::Test::RecordProperty("messages", std::to_string(number));
  return number;
}

TEST_F(DeviceRxMemory, SoakTwoThreadsOnOneHandleLoseNothing) {
  soak_two_threads_on_one_handle(64, soak_messages(200000));
}
// Each message waits for the answer to the one before it, or before that.
TEST_F(DeviceRxMemory, SoakTwoThreadsOnOneSlotLoseNothing) {
  soak_two_threads_on_one_handle(1, soak_messages(2000000) / 50);
}
TEST_F(DeviceRxMemory, SoakTwoThreadsOnTwoSlotsLoseNothing) {
  soak_two_threads_on_one_handle(2, soak_messages(2000000) / 50);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The producer's handle through the C API; a host dispatcher serves. Rings with requests in device memory:
// unittests/gpu/loop/kernel_device_rx_test.cpp.
#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "unittests/support/api_fixture.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kReverse = fnv1a_hash("reverse");

class ProducerHandle : public ::testing::Test {
protected:
  explicit ProducerHandle(const ring_shape &shape = {4, 256, false}) : ring_(shape) {
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_open(ring_.memory(), &producer_));
  }
  ~ProducerHandle() override {
    if (producer_ != nullptr) {
      CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(producer_));
    }
  }
  std::uint32_t claim_one() {
    std::uint32_t slot = 99, count = 0;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_claim(producer_, 1, &slot, &count));
    EXPECT_EQ(count, 1u);
    return slot;
  }
  std::uint32_t send(const std::vector<std::uint8_t> &payload, std::uint32_t id) {
    std::uint32_t slot = 99;
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_send(
        producer_, kReverse, payload.data(), static_cast<std::uint32_t>(payload.size()), id, 5, 20000000000u, &slot));
    return slot;
  }
  std::unique_ptr<host_dispatcher_handle> serve() {
    auto dispatcher = std::make_unique<host_dispatcher_handle>(
        manager_.get, ring_, std::vector{host_entry("reverse", reverse_handler)}, host_config(ring_.shape()));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher->get));
    return dispatcher;
  }

  manager_handle manager_;
  host_ring ring_;
  cudaq_ringbuffer_producer_t *producer_ = nullptr;
};

TEST_F(ProducerHandle, SendsEverySizeAroundALinesBorder) {
  const auto dispatcher = serve();
  ring_client client(ring_);
  for (std::uint32_t bytes : {0u, 1u, 7u, 8u, 39u, 40u, 41u, 63u, 64u, 65u, 103u, 104u, 105u, 127u, 128u, 231u, 232u}) {
    std::vector<std::uint8_t> payload(bytes);
    for (std::uint32_t i = 0; i < bytes; ++i)
      payload[i] = static_cast<std::uint8_t>(i * 31 + bytes);
    const answer got = client.collect(send(payload, bytes));
    EXPECT_EQ(got.header.request_id, bytes);
    EXPECT_EQ(got.header.ptp_timestamp, 5u);
    EXPECT_EQ(got.result, std::vector<std::uint8_t>(payload.rbegin(), payload.rend())) << bytes << " bytes";
  }
}

TEST_F(ProducerHandle, APayloadWrittenInPlaceIsServed) {
  const auto dispatcher = serve();
  const std::uint32_t slot = claim_one();
  void *payload = nullptr;
  std::size_t bytes = 0;
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_payload(producer_, slot, &payload, &bytes));
  EXPECT_EQ(bytes, 256u - CUDAQ_RPC_HEADER_SIZE);
  std::memcpy(payload, "abc", 3);
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_write_header(producer_, slot, kReverse, 3, 11, 0));
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_commit(producer_, slot, 1));
  EXPECT_EQ(ring_client(ring_).collect(slot).result, (std::vector<std::uint8_t>{'c', 'b', 'a'}));
}

TEST_F(ProducerHandle, AnAbortedSlotIsDroppedAndCounted) {
  const auto dispatcher = serve();
  ring_client client(ring_);
  for (int lap = 0; lap < 3; ++lap)
    for (std::uint32_t i = 0; i < 4; i += 2) {
      CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_abort(producer_, claim_one()));
      EXPECT_EQ(client.collect(send({1, 2}, i)).header.request_id, i);
    }
  EXPECT_TRUE(eventually([&] { return dispatcher->stats().dropped_bad_magic == 6; }));
  EXPECT_EQ(dispatcher->stats().responded, 6u);
}

TEST_F(ProducerHandle, ABatchIsClaimedAndCommittedTogether) {
  std::uint32_t slot = 99, count = 0;
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_claim(producer_, 100, &slot, &count));
  EXPECT_EQ(slot, 0u);
  ASSERT_EQ(count, 4u);
  for (std::uint32_t i = 0; i < count; ++i)
    CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_write(producer_, i, kReverse, &i, sizeof(i), i, 0));
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_commit(producer_, slot, count));
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_claim(producer_, 100, &slot, &count));
  EXPECT_EQ(count, 0u) << "the ring is full";
  EXPECT_EQ(cudaq_ringbuffer_producer_send(producer_, kReverse, nullptr, 0, 1, 0, 1000, nullptr), CUDAQ_ERR_TIMEOUT);
  EXPECT_TRUE(error_names({"slot 0", "1000 ns"}));
  const auto dispatcher = serve();
  ring_client client(ring_);
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(client.collect(i).header.request_id, i);
}

// Known failure 44.
TEST_F(ProducerHandle, AHugeTimeoutWaitsForAFreeSlot) {
  const auto dispatcher = serve();
  ring_client client(ring_);
  for (const std::uint64_t timeout :
       {std::uint64_t{1} << 62, std::uint64_t{INT64_MAX}, std::uint64_t{INT64_MAX} + 1, UINT64_MAX}) {
    std::vector<std::uint32_t> slots;
    for (std::uint32_t i = 0; i < 4; ++i)
      slots.push_back(send({1}, i));
    cudaq_status_t status = CUDAQ_ERR_INTERNAL;
    std::uint32_t last = 99;
    std::thread sender(
        [&] { status = cudaq_ringbuffer_producer_send(producer_, kReverse, nullptr, 0, 4, 0, timeout, &last); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // the ring is full
    for (std::uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(client.collect(slots[i]).header.request_id, i);
    sender.join();
    ASSERT_EQ(status, CUDAQ_OK) << timeout;
    EXPECT_EQ(client.collect(last).header.request_id, 4u);
  }
}

TEST_F(ProducerHandle, OneHandlePerRingAndItsRingStays) {
  cudaq_ringbuffer_producer_t *second = nullptr;
  EXPECT_EQ(cudaq_ringbuffer_producer_open(ring_.memory(), &second), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"cudaq_ringbuffer_producer_open", "is open"}));
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(cudaq_ringbuffer_destroy(ring_.memory()), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"handle is open"}));
  const std::uint32_t slot = claim_one();
  EXPECT_EQ(cudaq_ringbuffer_producer_close(producer_), CUDAQ_ERR_STATE);
  EXPECT_TRUE(error_names({"a slot is claimed"}));
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_abort(producer_, slot));
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_close(producer_));
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_open(ring_.memory(), &producer_));
  EXPECT_EQ(claim_one(), slot + 1) << "the next handle goes on where the last one ended";
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_abort(producer_, slot + 1));
}

TEST_F(ProducerHandle, WrongArgumentsAreNamed) {
  const auto refused = [](cudaq_status_t status, const char *words) {
    EXPECT_EQ(status, CUDAQ_ERR_INVALID_ARG) << words;
    EXPECT_TRUE(error_names({words}));
  };
  std::uint32_t slot = 0, count = 0;
  void *payload = nullptr;
  std::size_t bytes = 0;
  cudaq_ringbuffer_producer_t *out = nullptr;
  refused(cudaq_ringbuffer_producer_open(nullptr, &out), "memory is NULL");
  refused(cudaq_ringbuffer_producer_open(ring_.memory(), nullptr), "out_producer is NULL");
  refused(cudaq_ringbuffer_producer_close(nullptr), "producer is NULL");
  refused(cudaq_ringbuffer_producer_claim(nullptr, 1, &slot, &count), "producer is NULL");
  refused(cudaq_ringbuffer_producer_claim(producer_, 1, nullptr, &count), "out_slot is NULL");
  refused(cudaq_ringbuffer_producer_claim(producer_, 1, &slot, nullptr), "out_count is NULL");
  refused(cudaq_ringbuffer_producer_write(nullptr, 0, 1, nullptr, 0, 0, 0), "producer is NULL");
  refused(cudaq_ringbuffer_producer_payload(nullptr, 0, &payload, &bytes), "producer is NULL");
  refused(cudaq_ringbuffer_producer_write_header(nullptr, 0, 1, 0, 0, 0), "producer is NULL");
  refused(cudaq_ringbuffer_producer_commit(nullptr, 0, 1), "producer is NULL");
  refused(cudaq_ringbuffer_producer_abort(nullptr, 0), "producer is NULL");
  refused(cudaq_ringbuffer_producer_send(nullptr, 1, nullptr, 0, 0, 0, 0, nullptr), "producer is NULL");
  refused(cudaq_ringbuffer_producer_write(producer_, 0, 1, nullptr, 0, 0, 0), "slot 0 is not claimed");
  refused(cudaq_ringbuffer_producer_commit(producer_, 7, 1), "slot 7 is not claimed");
  refused(cudaq_ringbuffer_producer_commit(producer_, 0, 0), "count is 0");
  refused(cudaq_ringbuffer_producer_commit(producer_, 0, 5), "count is 5");
  refused(cudaq_ringbuffer_producer_abort(producer_, 0xFFFFFFFF), "slot 4294967295 is not claimed");
  slot = claim_one();
  refused(cudaq_ringbuffer_producer_commit(producer_, slot, 2), "slot 1 is not claimed");
  refused(cudaq_ringbuffer_producer_write(producer_, slot, 1, nullptr, 8, 0, 0), "payload is NULL");
  refused(cudaq_ringbuffer_producer_write(producer_, slot, 1, &bytes, 233, 0, 0), "payload_len is 233");
  refused(cudaq_ringbuffer_producer_write_header(producer_, slot, 1, 0xFFFFFFFF, 0, 0), "payload_len is 4294967295");
  refused(cudaq_ringbuffer_producer_send(producer_, 1, &bytes, 233, 0, 0, 0, nullptr), "payload_len is 233");
  refused(cudaq_ringbuffer_producer_payload(producer_, slot, nullptr, &bytes), "out_payload is NULL");
  refused(cudaq_ringbuffer_producer_payload(producer_, slot, &payload, nullptr), "out_bytes is NULL");
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_abort(producer_, slot));
}

// As a client of another process: it has the addresses only.
TEST(ProducerHandleOfARing, SendsWithoutTheMemoryObject) {
  manager_handle manager;
  const host_ring ring({4, 256, false});
  host_dispatcher_handle dispatcher(manager.get, ring, std::vector{host_entry("reverse", reverse_handler)},
                                    host_config(ring.shape()));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
  cudaq_ringbuffer_producer_t *producer = nullptr;
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_open_ring(&ring.ring, 4, CUDAQ_MEMORY_HOST, &producer));
  ring_client client(ring);
  for (std::uint32_t n = 0; n < 10; ++n) {
    std::uint32_t slot = 99;
    CUDAQ_ASSERT_OK(cudaq_ringbuffer_producer_send(producer, kReverse, "abc", 3, n, 0, 20000000000u, &slot));
    EXPECT_EQ(slot, n % 4);
    EXPECT_EQ(client.collect(slot).result, (std::vector<std::uint8_t>{'c', 'b', 'a'}));
  }
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_producer_close(producer));
}

TEST(ProducerHandleOfARing, WrongArgumentsAreNamed) {
  const host_ring ring({4, 256, false}), in_place({4, 256, true});
  cudaq_ringbuffer_producer_t *out = nullptr;
  const auto refused = [&](const cudaq_ringbuffer_t &r, std::uint32_t slots, std::uint32_t kind, const char *words,
                           cudaq_status_t status = CUDAQ_ERR_INVALID_ARG) {
    EXPECT_EQ(cudaq_ringbuffer_producer_open_ring(&r, slots, kind, &out), status) << words;
    EXPECT_TRUE(error_names({words}));
    EXPECT_EQ(out, nullptr);
  };
  EXPECT_EQ(cudaq_ringbuffer_producer_open_ring(nullptr, 4, 0, &out), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"ring is NULL"}));
  EXPECT_EQ(cudaq_ringbuffer_producer_open_ring(&ring.ring, 4, 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"out_producer is NULL"}));
  refused(ring.ring, 4, CUDAQ_MEMORY_DEVICE, "memory_kind is 2", CUDAQ_ERR_UNSUPPORTED);
  refused(ring.ring, 4, CUDAQ_MEMORY_AUTO, "memory_kind is 4");
  refused(ring.ring, 0, CUDAQ_MEMORY_HOST, "num_slots is 0");
  refused(in_place.ring, 4, CUDAQ_MEMORY_DEVICE_RX, "in place");
  cudaq_ringbuffer_t wrong = ring.ring;
  wrong.rx_data_host += 8;
  refused(wrong, 4, CUDAQ_MEMORY_DEVICE_RX, "rx_data_host");
  wrong = ring.ring;
  wrong.rx_stride_sz = 16;
  refused(wrong, 4, CUDAQ_MEMORY_HOST, "rx_stride_sz is 16");
  wrong.rx_flags_host = nullptr;
  refused(wrong, 4, CUDAQ_MEMORY_HOST, "rx_flags_host");
}

TEST(RingInfo, ReportsKindSourceAndReason) {
  const host_ring ring({4, 100, false});
  cudaq_ringbuffer_info_t info{};
  info.struct_size = sizeof(info);
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_get_info(ring.memory(), &info));
  EXPECT_EQ(info.memory_kind, CUDAQ_MEMORY_HOST);
  EXPECT_EQ(info.mapping_source, CUDAQ_MAPPING_NONE);
  EXPECT_EQ(info.num_slots, 4u);
  EXPECT_EQ(info.stride, 128u);
  EXPECT_STREQ(info.reason, "as asked for");
  EXPECT_EQ(cudaq_ringbuffer_get_info(nullptr, &info), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_ringbuffer_get_info(ring.memory(), nullptr), CUDAQ_ERR_INVALID_ARG);
  std::memset(&info, 'x', sizeof(info));
  info.struct_size = offsetof(cudaq_ringbuffer_info_t, reason) + 4;
  CUDAQ_ASSERT_OK(cudaq_ringbuffer_get_info(ring.memory(), &info));
  EXPECT_STREQ(info.reason, "as ");
  EXPECT_EQ(info.reason[4], 'x') << "beyond the caller's struct";
}

} // namespace
} // namespace cudaq::realtime::test

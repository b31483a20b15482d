// SPDX-License-Identifier: Apache-2.0
// Good requests to every dispatch kernel, in every kind of memory and ring shape.
#include "unittests/gpu/support/gpu_dispatcher.h"

#include <tuple>

namespace cudaq::realtime::test {
namespace {

using launch_and_memory = std::tuple<kernel_kind, cudaq_memory_kind_t>;

class KernelRoundTrip : public gpu_test, public ::testing::WithParamInterface<launch_and_memory> {
protected:
  const kernel_kind &kind() const { return std::get<0>(GetParam()); }
  cudaq_memory_kind_t memory() const { return std::get<1>(GetParam()); }

  /// A ring, a dispatcher and a client, ready to serve.
  struct session {
    session(const kernel_kind &kind, cudaq_memory_kind_t memory, const ring_shape &shape)
        : ring(shape, memory), dispatcher(manager.get, setup_of(kind, ring)), client(ring.ring, shape.num_slots) {}
    manager_handle manager;
    host_ring ring;
    gpu_dispatcher dispatcher;
    gpu_client client;
  };

  /// Sends payloads of these sizes, one after another, and checks each answer.
  static void check_sizes(session &s, const std::vector<std::uint32_t> &sizes) {
    std::uint32_t id = 7;
    for (const std::uint32_t size : sizes) {
      const std::vector<std::uint8_t> payload = some_bytes(size, id);
      ASSERT_NO_FATAL_FAILURE(expect_reversed(s.client.call(id_of(handler::reverse), payload, id), payload, id));
      ++id;
    }
    EXPECT_TRUE(eventually([&] { return s.dispatcher.stats().responded == sizes.size(); }));
    EXPECT_EQ(s.dispatcher.processed(), sizes.size());
  }
};

// The ring shapes: one slot, a wrap after three slots, many slots; in place and apart. The request sizes lie around the
// sizes at which the copy changes its method.
// Known failure 26.
TEST_P(KernelRoundTrip, AnswersEverySizeInEveryRingShape) {
  for (const std::uint32_t num_slots : {1u, 3u, 1024u})
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(std::to_string(num_slots) + (in_place ? " slots, in place" : " slots, apart"));
      session s(kind(), memory(), {num_slots, 576, in_place});
      ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
      std::vector<std::uint32_t> sizes{0,  1,  3,  7,   8,   15,  16,  17,  39,  40, 41,
                                       63, 64, 65, 104, 232, 487, 488, 489, 551, 552};
      while (sizes.size() < num_slots + 10) // more than one lap of the ring
        sizes.push_back(static_cast<std::uint32_t>(sizes.size()) * 7919u % 553);
      ASSERT_NO_FATAL_FAILURE(check_sizes(s, sizes));
    }
}

// A kernel stages frames of up to 16 KB in shared memory. Slots of 32 KB are larger than that.
TEST_P(KernelRoundTrip, AnswersLargeSlots) {
  for (const std::uint32_t slot_size : {16384u, 16512u, 32768u})
    for (const bool in_place : {false, true}) {
      if (in_place && slot_size > 16512)
        continue; // see RefusesOrServesSlotsLargerThanItsStageInPlace
      SCOPED_TRACE(std::to_string(slot_size) + (in_place ? " bytes, in place" : " bytes, apart"));
      session s(kind(), memory(), {2, slot_size, in_place});
      ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
      ASSERT_NO_FATAL_FAILURE(check_sizes(s, {0, 41, 4096, slot_size - 25, 4095, slot_size - 24, 1}));
    }
}

// Input and output of a handler must not overlap, but slots that are longer than the stage are used without a copy. So
// either start refuses such a ring in place, or it works.
TEST_P(KernelRoundTrip, RefusesOrServesSlotsLargerThanItsStageInPlace) {
  session s(kind(), memory(), {2, 32768, true});
  const call_result started = s.dispatcher.start();
  if (started.status != CUDAQ_OK) {
    EXPECT_NE(started.status, CUDAQ_ERR_TIMEOUT) << started.text;
    EXPECT_NE(started.text, "");
    return;
  }
  check_sizes(s, {0, 41, 4096, 16488, 16489, 32743, 32744, 1});
}

// The slots are full before the kernel reads them for the first time, and again in each lap.
TEST_P(KernelRoundTrip, ServesFullRings) {
  for (const std::uint32_t num_slots : {3u, 32u, 100u}) {
    session s(kind(), memory(), {num_slots, 320, false});
    std::uint32_t id = 0;
    const auto fill = [&] {
      for (std::uint32_t i = 0; i < num_slots; ++i, ++id)
        s.client.send(id_of(handler::reverse), some_bytes(id * 37 % 297, id), id);
    };
    fill();
    ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
    for (std::uint32_t lap = 0; lap < 4; ++lap) {
      for (std::uint32_t i = 0; i < num_slots; ++i) {
        const std::uint32_t sent = lap * num_slots + i;
        ASSERT_NO_FATAL_FAILURE(expect_reversed(s.client.collect(i), some_bytes(sent * 37 % 297, sent), sent));
      }
      if (lap != 3)
        fill();
    }
    EXPECT_EQ(s.dispatcher.stats().cursor_jumps, 0u);
  }
}

TEST_P(KernelRoundTrip, PassesOnTheHandlersStatus) {
  session s(kind(), memory(), {3, 64, false});
  ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
  std::uint32_t id = 1;
  for (const std::int32_t status : {0, 1, 17, 2147483647, -1, -17, -999}) {
    const answer got = s.client.call(id_of(handler::own_status), bytes_of(status), ++id);
    EXPECT_EQ(got.header.status, status);
    EXPECT_EQ(got.header.result_len, 0u);
    EXPECT_EQ(got.header.request_id, id);
    EXPECT_EQ(got.header.ptp_timestamp, gpu_client::timestamp_of(id));
  }
  EXPECT_TRUE(eventually([&] { return s.dispatcher.stats().handler_errors == 6; }));
}

// What a handler may rely on: which threads run it, the room for its result, and no overlap of input and output.
TEST_P(KernelRoundTrip, KeepsItsPromisesToHandlers) {
  for (const bool in_place : {false, true}) {
    session s(kind(), memory(), {3, 512, in_place});
    ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
    for (const std::uint32_t size : {0u, 16u, 200u, 488u}) {
      const auto seen = value_of<handler_view>(s.client.call(id_of(handler::describe), some_bytes(size, 1)).result);
      EXPECT_EQ(seen.arg_len, size);
      EXPECT_EQ(seen.max_result_len, 488u);
      EXPECT_EQ(seen.overlap, 0u) << "in place: " << in_place;
      EXPECT_EQ(seen.threads, kind().cooperative() ? kind().blocks * kind().threads : 1);
    }
  }
}

// All threads of a cooperative handler may wait for each other. Other kernels run a handler in one thread.
TEST_P(KernelRoundTrip, HandlersMaySynchroniseTheirThreads) {
  session s(kind(), memory(), {3, 1024, false});
  ASSERT_NO_FATAL_FAILURE(s.dispatcher.expect_start());
  for (std::uint32_t id = 0; id < 50; ++id) {
    std::vector<std::uint8_t> payload = some_bytes(id * 97 % 1001, id);
    const answer got = s.client.call(id_of(handler::flip), payload, id);
    for (std::uint8_t &byte : payload)
      byte = static_cast<std::uint8_t>(~byte);
    ASSERT_NO_FATAL_FAILURE(expect_reversed(got, payload, id));
  }
}

INSTANTIATE_TEST_SUITE_P(Flavours, KernelRoundTrip,
                         ::testing::Combine(::testing::ValuesIn(every_launch()),
                                            ::testing::Values(CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE)),
                         [](const auto &tested) {
                           return std::string(std::get<0>(tested.param).name) +
                                  (std::get<1>(tested.param) == CUDAQ_MEMORY_MAPPED ? "_Mapped" : "_Device");
                         });

} // namespace
} // namespace cudaq::realtime::test

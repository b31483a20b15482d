// SPDX-License-Identifier: Apache-2.0
// The status that a handler returns: which numbers are its own, and how the others are answered.
#include "unittests/support/api_fixture.h"

#include <climits>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kV1 = 76, kV2 = 77;
constexpr std::int32_t kHandlers[] = {0, 1, 700, INT_MAX, -1, -999};
constexpr std::int32_t kLibrarys[] = {-1000, -1004, -1005, -1009, -1010, -1011, -5000, INT_MIN + 1};

struct flavour {
  const char *name;
  std::uint32_t pool;
  bool in_place;
};

std::int32_t status_in(const void *payload) {
  std::int32_t status = 0;
  std::memcpy(&status, payload, sizeof(status));
  return status;
}

/// Writes a frame with the status of the payload, and 8 bytes of result.
void v1_status(const void *rx_slot, void *tx_slot, std::size_t) {
  const std::int32_t status = status_in(static_cast<const std::uint8_t *>(rx_slot) + CUDAQ_RPC_HEADER_SIZE);
  const cudaq_rpc_response_t frame{CUDAQ_RPC_MAGIC_RESPONSE, status, 8, 0, 0};
  std::memcpy(tx_slot, &frame, sizeof(frame));
}

class HandlerStatus : public ::testing::TestWithParam<flavour> {
protected:
  static std::vector<cudaq_function_entry_t> table() {
    cudaq_function_entry_t entry = host_entry("", v1_status);
    entry.function_id = kV1;
    return {entry};
  }
  static std::vector<std::uint8_t> payload_of(std::int32_t status) {
    std::vector<std::uint8_t> bytes(8);
    std::memcpy(bytes.data(), &status, sizeof(status));
    return bytes;
  }
  void SetUp() override { b.options.handler_pool_size = GetParam().pool; }
  void expect_statuses(std::uint32_t function) {
    for (const std::int32_t status : kHandlers) {
      const answer got = b.client.call(function, payload_of(status));
      EXPECT_EQ(got.header.status, status);
      EXPECT_EQ(got.result.size(), 8u);
    }
    for (const std::int32_t status : kLibrarys) {
      const answer got = b.client.call(function, payload_of(status));
      EXPECT_EQ(got.header.status, CUDAQ_RPC_ERR_NO_RESPONSE) << "the handler returned " << status;
      EXPECT_EQ(got.result.size(), 0u);
    }
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(b.get()));
    const cudaq_dispatcher_stats_t stats = b.dispatcher->stats();
    EXPECT_EQ(stats.handler_errors, std::size(kHandlers) - 1);
    for (int e = 0; e < CUDAQ_RPC_ERROR_COUNT; ++e)
      EXPECT_EQ(stats.protocol_errors[e],
                e == CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_NO_RESPONSE) ? std::size(kLibrarys) : 0u);
  }
  bench b{{8, 64, GetParam().in_place}, table()};
};

// Without v2 handlers no request has a record.
// Known failure 56.
TEST_P(HandlerStatus, OfTheLibrarysRangeIsNoAnswerOfAV1Handler) {
  b.start();
  expect_statuses(kV1);
}

TEST_P(HandlerStatus, OfTheLibrarysRangeIsNoAnswerOfAV2Handler) {
  b.on(kV2, [](cudaq_host_call_t &call) {
    const std::int32_t status = status_in(call.payload);
    call.result_len = 8;
    return status;
  });
  b.start();
  expect_statuses(kV2);
}

// A completion stands for work that can end as the library's own: the device is lost, for example.
TEST_P(HandlerStatus, OfACompletionMayBeTheLibrarysAndThenHasNoResult) {
  std::atomic<bool> there{false};
  cudaq_host_call_t kept{};
  b.on(kV2, [&](cudaq_host_call_t &call) {
    kept = call;
    there = true;
    return CUDAQ_HOST_CALL_DEFERRED;
  });
  b.start();
  for (const std::int32_t status : std::initializer_list<std::int32_t>{-999, CUDAQ_RPC_ERR_DEVICE_FAULT}) {
    there = false;
    const std::uint32_t slot = b.client.send(kV2, {}, 1);
    ASSERT_TRUE(eventually([&] { return there.load(); }));
    CUDAQ_EXPECT_OK(cudaq_host_complete_deferred(b.get(), &kept.job, status, 8));
    const answer got = b.client.collect(slot);
    EXPECT_EQ(got.header.status, status);
    EXPECT_EQ(got.result.size(), status == -999 ? 8u : 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, HandlerStatus,
                         ::testing::Values(flavour{"Inline", 0, false}, flavour{"InlineInPlace", 0, true},
                                           flavour{"Pool", 1, false}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

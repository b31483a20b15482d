// SPDX-License-Identifier: Apache-2.0
// Wrong requests for each kernel. A wrong request is answered once with its own status, or dropped without an answer;
// both are counted.
#include "unittests/gpu/support/gpu_dispatcher.h"

#include <algorithm>
#include <array>
#include <functional>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kSlotSize = 256, kMax = kSlotSize - CUDAQ_RPC_HEADER_SIZE;

class KernelErrors : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {
protected:
  void prepare() override {
    ring_ = std::make_unique<host_ring>(ring_shape{4, kSlotSize, false}, CUDAQ_MEMORY_MAPPED);
    setup_ = setup_of(GetParam(), *ring_);
    client_ = std::make_unique<gpu_client>(ring_->ring, 4);
  }
  void start(const std::function<void(cudaq_dispatcher_options_t &)> &change = {}) {
    dispatcher_ = std::make_unique<gpu_dispatcher>(manager_.get, setup_);
    if (change)
      change(dispatcher_->options);
    ASSERT_NO_FATAL_FAILURE(dispatcher_->expect_start());
  }

  /// Expects an answer with `status`, the request's own id and timestamp, and no result. The next good request is
  /// served.
  void expect_answered(const cudaq_rpc_header_t &header, const std::vector<std::uint8_t> &payload,
                       std::int32_t status) {
    const answer got = client_->collect(client_->put(header, payload));
    ASSERT_EQ(got.tx, CUDAQ_TX_READY);
    EXPECT_EQ(got.header.status, status) << cudaq_rpc_status_string(got.header.status);
    EXPECT_EQ(got.header.request_id, header.request_id);
    EXPECT_EQ(got.header.ptp_timestamp, header.ptp_timestamp);
    EXPECT_EQ(got.header.result_len, 0u);
    expect_counted(&cudaq_dispatcher_stats_t::protocol_errors, CUDAQ_RPC_ERROR_INDEX(status));
    ASSERT_NO_FATAL_FAILURE(expect_serves(*client_, 4711));
  }
  /// Expects that the slot is cleared without an answer. The next good request is served.
  void expect_dropped(const cudaq_rpc_header_t &header, std::uint64_t flag,
                      std::uint64_t cudaq_dispatcher_stats_t::*counter) {
    const std::uint64_t before = dispatcher_->stats().*counter;
    const std::uint32_t slot = client_->put(header, some_bytes(16, 1), flag);
    EXPECT_TRUE(eventually([&] { return client_->slots->rx_flag(slot) == 0; })) << "the request was not dropped";
    ASSERT_NO_FATAL_FAILURE(expect_serves(*client_, 4711));
    EXPECT_EQ(client_->slots->tx_flag(slot), 0u) << "a dropped request was answered";
    EXPECT_TRUE(eventually([&] { return dispatcher_->stats().*counter == before + 1; }));
  }
  void expect_counted(std::uint64_t (cudaq_dispatcher_stats_t::*counters)[CUDAQ_RPC_ERROR_COUNT], std::int32_t index) {
    ++errors_[static_cast<std::size_t>(index)];
    EXPECT_TRUE(eventually([&] {
      const cudaq_dispatcher_stats_t now = dispatcher_->stats();
      return std::equal(errors_.begin(), errors_.end(), now.*counters);
    })) << dispatcher_->dump();
  }
  static cudaq_rpc_header_t header_of(handler h, std::uint32_t payload_bytes, std::uint32_t request_id = 99) {
    return gpu_client::header(id_of(h), payload_bytes, request_id);
  }

  manager_handle manager_;
  std::unique_ptr<host_ring> ring_;
  gpu_setup setup_;
  std::unique_ptr<gpu_dispatcher> dispatcher_;
  std::unique_ptr<gpu_client> client_;
  std::array<std::uint64_t, CUDAQ_RPC_ERROR_COUNT> errors_{};
};

// Known failure 7.
TEST_P(KernelErrors, DropsUnknownFunctionsAndCountsThem) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (std::uint32_t n = 0; n < 5; ++n)
    expect_dropped(gpu_client::header(kUnknownId + n, 16, n), 0, &cudaq_dispatcher_stats_t::dropped_unknown_function);
  EXPECT_TRUE(eventually([&] { return dispatcher_->processed() == 10; })); // dropped or answered
}

TEST_P(KernelErrors, AnswersUnknownFunctionsIfTheOptionIsSet) {
  ASSERT_NO_FATAL_FAILURE(start([](auto &options) { options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER; }));
  expect_answered(gpu_client::header(kUnknownId, 16, 5), some_bytes(16, 5), CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  expect_answered(gpu_client::header(0, 0, 6), {}, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

TEST_P(KernelErrors, AnswersOrRefusesEntriesOfAnotherMode) {
  if (GetParam().unified()) { // start refuses such an entry
    setup_.entries = all_handlers(kFifo32);
    dispatcher_ = std::make_unique<gpu_dispatcher>(manager_.get, setup_);
    const call_result started = dispatcher_->start();
    EXPECT_EQ(started.status, CUDAQ_ERR_INVALID_ARG);
    EXPECT_NE(started.text.find("dispatch_mode"), std::string::npos) << started.text;
    return;
  }
  ASSERT_NO_FATAL_FAILURE(start());
  expect_answered(gpu_client::header(kHostOnlyId, 8, 7), some_bytes(8, 7), CUDAQ_RPC_ERR_MODE_NOT_SERVED);
}

TEST_P(KernelErrors, DropsFramesWithoutMagicAndCountsThem) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const std::uint32_t magic : {0u, 0x43555153u, 0x52515543u, 0xffffffffu}) {
    cudaq_rpc_header_t header = header_of(handler::reverse, 16);
    header.magic = magic;
    expect_dropped(header, 0, &cudaq_dispatcher_stats_t::dropped_bad_magic);
  }
}

// Known failure 8.
TEST_P(KernelErrors, AnswersLengthsBeyondTheSlot) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const std::uint32_t claimed : {kMax + 1, kSlotSize, 4096u, 0x7fffffffu, 0x80000000u, 0xffffffe8u, 0xffffffffu}) {
    cudaq_rpc_header_t header = header_of(handler::reverse, 0, claimed);
    header.arg_len = claimed;
    expect_answered(header, some_bytes(16, 2), CUDAQ_RPC_ERR_BAD_ARG_LEN);
  }
}

TEST_P(KernelErrors, AnswersResultsBeyondTheSlot) {
  ASSERT_NO_FATAL_FAILURE(start());
  expect_answered(header_of(handler::claims_too_much, 4), some_bytes(4, 1), CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
}

TEST_P(KernelErrors, PassesOnTheHandlersOwnErrors) {
  ASSERT_NO_FATAL_FAILURE(start());
  for (const std::int32_t status : {3, -3}) {
    const answer got = client_->call(id_of(handler::own_status), bytes_of(status), 12);
    EXPECT_EQ(got.header.status, status);
    EXPECT_EQ(got.header.request_id, 12u);
  }
  EXPECT_TRUE(eventually([&] { return dispatcher_->stats().handler_errors == 2; }));
}

// The value of an rx flag is never used as an address.
TEST_P(KernelErrors, ServesAnyFlagValueAndCountsTheUnexpected) {
  ASSERT_NO_FATAL_FAILURE(start());
  std::uint64_t unexpected = 0;
  for (const std::uint64_t flag : {std::uint64_t{1}, std::uint64_t{0xdead0000}, ~std::uint64_t{0}}) {
    const std::vector<std::uint8_t> payload = some_bytes(20, 3);
    const std::uint32_t slot =
        client_->put(gpu_client::header(id_of(handler::reverse), payload.size(), 8), payload, flag);
    ASSERT_NO_FATAL_FAILURE(expect_reversed(client_->collect(slot), payload, 8));
    ++unexpected;
    EXPECT_TRUE(eventually([&] { return dispatcher_->stats().unexpected_flag_values == unexpected; }));
  }
  // Two values are expected: the address of the slot as the device sees it, and as the host sees it.
  const std::uint32_t slot = client_->next_slot();
  const auto own = reinterpret_cast<std::uint64_t>(ring_->ring.rx_data + slot * ring_->ring.rx_stride_sz);
  client_->collect(client_->put(header_of(handler::reverse, 4), some_bytes(4, 1), own));
  ASSERT_NO_FATAL_FAILURE(expect_serves(*client_, 1));
  EXPECT_EQ(dispatcher_->stats().unexpected_flag_values, unexpected);
  EXPECT_EQ(dispatcher_->stats().dropped_flag_value, 0u);
}

TEST_P(KernelErrors, DropsUnexpectedFlagValuesIfStrict) {
  ASSERT_NO_FATAL_FAILURE(start([](auto &options) { options.strict_flag_values = 1; }));
  for (const std::uint64_t flag : {std::uint64_t{1}, ~std::uint64_t{0}})
    expect_dropped(header_of(handler::reverse, 16), flag, &cudaq_dispatcher_stats_t::dropped_flag_value);
}

// The schema is checked only if the options request it.
TEST_P(KernelErrors, AnswersSizesThatContradictTheSchemaIfTheOptionIsSet) {
  setup_.entries = all_handlers(GetParam());
  cudaq_handler_schema_t &args = setup_.entries[static_cast<std::size_t>(handler::reverse)].schema;
  args.num_args = 1;
  args.args[0] = make_type_desc(TYPE_ARRAY_UINT8, 16); // the size that expect_serves sends
  cudaq_handler_schema_t &results = setup_.entries[static_cast<std::size_t>(handler::flip)].schema;
  results.num_results = 1;
  results.results[0] = make_type_desc(TYPE_INT64, 1);
  for (const bool check : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(start([&](auto &options) { options.check_schema = check; }));
    errors_ = {};
    if (check) {
      expect_answered(header_of(handler::reverse, 15), some_bytes(15, 1), CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
      expect_answered(header_of(handler::reverse, 17), some_bytes(17, 1), CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
      expect_answered(header_of(handler::flip, 9), some_bytes(9, 1), CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
    } else {
      expect_serves(*client_, 5, 15);
    }
    EXPECT_EQ(client_->call(id_of(handler::flip), some_bytes(8, 1)).header.status, 0);
    dispatcher_.reset();
    client_->set_next_slot(0); // a new dispatcher starts at slot 0
  }
}

// Many requests at the same time, some of them wrong. Each is answered in its own slot.
TEST_P(KernelErrors, MixesErrorsAndGoodRequests) {
  const auto put = [&](std::uint32_t n) { // every second request claims to be longer than a slot
    const cudaq_rpc_header_t header = header_of(handler::reverse, n % 2 == 0 ? 16 : kMax + 1, n);
    client_->put(header, some_bytes(16, n));
  };
  for (std::uint32_t n = 0; n < 4; ++n) // they are in the ring before the kernel reads it
    put(n);
  ASSERT_NO_FATAL_FAILURE(start());
  for (std::uint32_t n = 0; n < 400; ++n) {
    const answer got = client_->collect(n % 4);
    EXPECT_EQ(got.header.request_id, n);
    EXPECT_EQ(got.header.status, n % 2 == 0 ? CUDAQ_RPC_OK : CUDAQ_RPC_ERR_BAD_ARG_LEN);
    EXPECT_EQ(got.header.result_len, n % 2 == 0 ? 16u : 0u);
    put(n + 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, KernelErrors, ::testing::ValuesIn(each_kind()), name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

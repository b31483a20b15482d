// SPDX-License-Identifier: Apache-2.0
// Row 7: a wrong request gets exactly one answer with the right status, id and timestamp. In two cases it gets no
// answer. A counter names the kind of error. Tested inline, with a pool, on a shared ring, in place or not.
#include "unittests/support/api_fixture.h"

#include <stdexcept>

namespace cudaq::realtime::test {
namespace {

enum : std::uint32_t {
  kGood = 1,
  kGraph,
  kStatus,
  kNegative,
  kTooLong,
  kSilent,
  kThrow,
  kThrowInt,
  kThrowOther,
  kHalf,
  kStale,
  kTooShort,
  kGood2 = 100,
  kStatus2,
  kNegative2,
  kTooLong2,
  kThrow2,
  kArgs,
  kResults
};

void respond(void *tx_slot, std::int32_t status, std::uint32_t length) {
  // Wrong id and timestamp on purpose: the dispatcher must write the request's own.
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, status, length, 0xBAD, 0xBAD};
  std::memcpy(tx_slot, &response, sizeof(response));
}

std::vector<cudaq_function_entry_t> table() {
  const auto entry = [](std::uint32_t id, cudaq_host_rpc_fn_t fn) {
    cudaq_function_entry_t e{};
    e.function_id = id;
    e.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    e.handler.host_fn = fn;
    return e;
  };
  std::vector<cudaq_function_entry_t> all{
      entry(kGood, [](const void *, void *tx, std::size_t) { respond(tx, 0, 8); }),
      entry(kStatus, [](const void *, void *tx, std::size_t) { respond(tx, 42, 4); }),
      entry(kNegative, [](const void *, void *tx, std::size_t) { respond(tx, -999, 0); }),
      entry(kTooLong,
            [](const void *, void *tx, std::size_t size) { respond(tx, 0, static_cast<std::uint32_t>(size - 23)); }),
      entry(kSilent, [](const void *, void *, std::size_t) {}),
      entry(kThrow,
            [](const void *, void *tx, std::size_t) {
              respond(tx, 0, 0);
              throw std::runtime_error("odd");
            }),
      entry(kThrowInt, [](const void *, void *, std::size_t) { throw 5; }),
      entry(kThrowOther,
            [](const void *, void *, std::size_t) {
              struct not_an_exception {};
              throw not_an_exception{};
            }),
      entry(kHalf, [](const void *, void *tx, std::size_t) { std::memset(tx, 0x55, 3); })};
  cudaq_function_entry_t graph{};
  graph.function_id = kGraph;
  graph.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  graph.routing_key = 5;
  all.push_back(graph);
  cudaq_function_entry_t checked = all[0];
  checked.function_id = kArgs;
  checked.schema.num_args = 2;
  checked.schema.args[0] = make_type_desc(TYPE_INT32, 1);
  checked.schema.args[1] = make_type_desc(TYPE_BIT_PACKED, 9);
  all.push_back(checked);
  checked.function_id = kResults;
  checked.schema = {};
  checked.schema.num_results = 1;
  checked.schema.results[0] = make_type_desc(TYPE_UINT8, 1); // wrong: the handler returns 8 bytes
  all.push_back(checked);
  return all;
}

struct flavour {
  const char *name;
  std::uint32_t pool;
  bool shared, in_place, skip_markers;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class ErrorAnswers : public ::testing::TestWithParam<flavour> {
protected:
  static cudaq_dispatcher_config_t config() {
    cudaq_dispatcher_config_t c = host_config(shape());
    c.shared_ring_mode = GetParam().shared;
    c.skip_tx_markers = GetParam().skip_markers;
    return c;
  }
  static ring_shape shape() { return {4, 128, GetParam().in_place}; }

  ErrorAnswers() : b(shape(), table(), config()) {
    b.options.handler_pool_size = GetParam().pool;
    b.options.check_schema = 1;
    b.options.default_owner = GetParam().shared; // on a shared ring only the default owner answers unknown ids
    b.on(kGood2, [](cudaq_host_call_t &call) { return call.result_len = 8, 0; });
    b.on(kStatus2, [](cudaq_host_call_t &call) { return call.result_len = 4, 42; });
    b.on(kNegative2, [](cudaq_host_call_t &) { return -1; });
    b.on(kTooLong2, [](cudaq_host_call_t &call) { return call.result_len = call.max_result_len + 1, 0; });
    b.on(kThrow2, [](cudaq_host_call_t &) -> std::int32_t { throw std::runtime_error("odd"); });
  }

  /// Sends a frame with these header fields and expects one answer. Then checks that a good request is served.
  void expect_answer(std::uint32_t id, std::uint32_t arg_len, std::int32_t status, std::uint32_t result_len = 0) {
    SCOPED_TRACE("function " + std::to_string(id) + ", arg_len " + std::to_string(arg_len));
    const cudaq_dispatcher_stats_t before = b.dispatcher->stats();
    const std::uint32_t request = ++sent_, slot = put(id, arg_len, request);
    const answer got = b.client.collect(slot);
    EXPECT_EQ(got.tx, CUDAQ_TX_READY);
    EXPECT_EQ(got.header.magic, CUDAQ_RPC_MAGIC_RESPONSE);
    EXPECT_EQ(got.header.status, status) << cudaq_rpc_status_string(got.header.status);
    EXPECT_EQ(got.header.result_len, result_len);
    EXPECT_EQ(got.header.request_id, request);
    EXPECT_EQ(got.header.ptp_timestamp, 0xFEDCBA9876543210ull + request);
    EXPECT_TRUE(eventually([&] { return b.dispatcher->stats().in_flight == 0; }));
    const cudaq_dispatcher_stats_t after = b.dispatcher->stats();
    EXPECT_EQ(after.responded, before.responded + 1);
    EXPECT_EQ(after.received, before.received + 1);
    std::uint64_t all = 0;
    for (int e = 0; e < CUDAQ_RPC_ERROR_COUNT; ++e)
      all += after.protocol_errors[e] - before.protocol_errors[e];
    EXPECT_EQ(all, status <= -1000 ? 1u : 0u);
    if (status <= -1000) {
      EXPECT_EQ(after.protocol_errors[CUDAQ_RPC_ERROR_INDEX(status)],
                before.protocol_errors[CUDAQ_RPC_ERROR_INDEX(status)] + 1);
    }
    EXPECT_EQ(after.handler_errors, before.handler_errors + (status != 0 && status > -1000));
    expect_slot_stays_quiet(slot);
  }

  /// Expects that the slot becomes free without an answer, and that the counter `which` grows by one.
  void expect_silence(std::uint32_t id, std::uint32_t magic, std::uint64_t cudaq_dispatcher_stats_t::*which) {
    const cudaq_dispatcher_stats_t before = b.dispatcher->stats();
    const std::uint32_t slot = put(id, 8, ++sent_, magic);
    EXPECT_TRUE(eventually([&] { return load_acquire(b.ring.ring.rx_flags_host[slot]) == 0; })) << "never cleared";
    EXPECT_TRUE(eventually([&] { return b.dispatcher->stats().received == before.received + 1; }));
    const cudaq_dispatcher_stats_t after = b.dispatcher->stats();
    EXPECT_EQ(after.*which, before.*which + 1);
    EXPECT_EQ(after.responded, before.responded);
    EXPECT_EQ(after.dispatched, before.dispatched);
    expect_slot_stays_quiet(slot);
  }

  void expect_slot_stays_quiet(std::uint32_t slot) {
    EXPECT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&b.ring.ring, slot) == 1; }));
    const std::uint32_t good = put(kGood, 0, ++sent_);
    EXPECT_EQ(b.client.collect(good).header.status, 0);
    EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&b.ring.ring, slot), 1) << "the slot was answered twice";
  }

  std::uint32_t put(std::uint32_t id, std::uint32_t arg_len, std::uint32_t request,
                    std::uint32_t magic = CUDAQ_RPC_MAGIC_REQUEST) {
    const std::uint32_t slot = b.client.next_slot();
    EXPECT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&b.ring.ring, slot) == 1; }));
    const cudaq_rpc_header_t header{magic, id, arg_len, request, 0xFEDCBA9876543210ull + request};
    std::memset(b.ring.rx_slot(slot), 5, 128);
    std::memcpy(b.ring.rx_slot(slot), &header, sizeof(header));
    cudaq_host_ringbuffer_signal_slot(&b.ring.ring, slot);
    b.client.set_next_slot((slot + 1) % 4);
    return slot;
  }

  bench b;
  std::uint32_t sent_ = 0;
};

// Known failure 7.
TEST_P(ErrorAnswers, WrongMagicIsSilent) {
  b.start();
  expect_silence(kGood, CUDAQ_RPC_MAGIC_RESPONSE, &cudaq_dispatcher_stats_t::dropped_bad_magic);
  expect_silence(kGood, 0, &cudaq_dispatcher_stats_t::dropped_bad_magic);
  expect_silence(12345, 0x52515543u, &cudaq_dispatcher_stats_t::dropped_bad_magic);
}

TEST_P(ErrorAnswers, UnknownFunctionIsSilentByDefault) {
  b.start();
  for (const std::uint32_t id : {0u, 12345u, 0xFFFFFFFFu})
    expect_silence(id, CUDAQ_RPC_MAGIC_REQUEST, &cudaq_dispatcher_stats_t::dropped_unknown_function);
}

TEST_P(ErrorAnswers, UnknownFunctionIsAnsweredIfTheOptionIsSet) {
  b.options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  b.start();
  for (const std::uint32_t id : {0u, 12345u, 0xFFFFFFFFu})
    expect_answer(id, 8, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  expect_answer(12345, 0xFFFFFFFFu, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

TEST_P(ErrorAnswers, OversizedArgLenIsAnswered) {
  b.start();
  expect_answer(kGood, 104, 0, 8);
  for (const std::uint32_t id : {kGood, kGood2, kGraph})
    for (const std::uint32_t length : {105u, 128u, 0x7FFFFFFFu, 0xFFFFFFE8u, 0xFFFFFFFFu})
      expect_answer(id, length, CUDAQ_RPC_ERR_BAD_ARG_LEN);
}

TEST_P(ErrorAnswers, WrongModeAndMissingRoutingKeyAreAnswered) {
  b.start();
  b.ring.rx_slot(0)[24] = 5;
  expect_answer(kGraph, 0, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION); // no route has key 0
  expect_answer(kGraph, 8, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION); // nor key 0x0505050505050505
  const std::uint32_t slot = b.client.next_slot();
  const std::uint64_t key = 5;
  std::vector<std::uint8_t> payload(8);
  std::memcpy(payload.data(), &key, 8);
  EXPECT_EQ(b.client.call(kGraph, payload, 9).header.status, CUDAQ_RPC_ERR_MODE_NOT_SERVED);
  expect_slot_stays_quiet(slot);
}

TEST_P(ErrorAnswers, HandlersOwnStatusPassesUnchanged) {
  b.start();
  expect_answer(kStatus, 8, 42, 4);
  expect_answer(kNegative, 8, -999);
  expect_answer(kStatus2, 8, 42, 4);
  expect_answer(kNegative2, 8, -1);
  expect_answer(kGood2, 8, 0, 8);
}

TEST_P(ErrorAnswers, TooLongResultIsReplaced) {
  b.start();
  expect_answer(kTooLong, 8, CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
  expect_answer(kTooLong2, 8, CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
}

TEST_P(ErrorAnswers, HandlerWithoutAResponseIsAnswered) {
  b.start();
  expect_answer(kSilent, 8, CUDAQ_RPC_ERR_NO_RESPONSE);
  expect_answer(kHalf, 8, CUDAQ_RPC_ERR_NO_RESPONSE);
  for (int lap = 0; lap < 5; ++lap) { // an answer of the previous lap must not be taken for a new one
    expect_answer(kGood, 8, 0, 8);
    expect_answer(kSilent, 8, CUDAQ_RPC_ERR_NO_RESPONSE);
  }
}

// Known failures 7, 17.
TEST_P(ErrorAnswers, ThrowingHandlerIsAnswered) {
  b.start();
  expect_answer(kThrow, 8, CUDAQ_RPC_ERR_HANDLER_THREW);
  for (int lap = 0; lap < 5; ++lap)
    for (const std::uint32_t id : {kThrowInt, kThrowOther})
      expect_answer(id, 8, CUDAQ_RPC_ERR_HANDLER_THREW);
  expect_answer(kThrow2, 8, CUDAQ_RPC_ERR_HANDLER_THREW);
}

// Known failures 7, 39.
TEST_P(ErrorAnswers, SchemaMismatchIsAnsweredIfTheOptionIsSet) {
  b.start();
  expect_answer(kArgs, 6, 0, 8);
  expect_answer(kArgs, 5, CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
  expect_answer(kArgs, 7, CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
  expect_answer(kArgs, 0, CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
  expect_answer(kResults, 8, CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  b.options.check_schema = 0;
  b.start();
  expect_answer(kArgs, 5, 0, 8);
  expect_answer(kResults, 8, 0, 8);
}

TEST_P(ErrorAnswers, ForeignFlagValueIsServedAndCountedOrDroppedUnderTheStrictOption) {
  b.start();
  const auto put_with_flag = [&](std::uint64_t flag) {
    const std::uint32_t slot = b.client.next_slot();
    EXPECT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&b.ring.ring, slot) == 1; }));
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&b.ring.ring, slot, kGood, nullptr, 0, 1, 1));
    store_release(b.ring.ring.rx_flags_host[slot], flag);
    b.client.set_next_slot((slot + 1) % 4);
    return slot;
  };
  EXPECT_EQ(b.client.collect(put_with_flag(1)).header.status, 0);
  EXPECT_EQ(b.client.collect(put_with_flag(~0ull)).header.status, 0);
  EXPECT_EQ(b.dispatcher->stats().unexpected_flag_values, 2u);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
  b.options.strict_flag_values = 1;
  b.start();
  const std::uint32_t slot = put_with_flag(0xDEAD000000000000ull);
  EXPECT_TRUE(eventually([&] { return b.dispatcher->stats().dropped_flag_value == 1; }));
  EXPECT_EQ(b.dispatcher->stats().unexpected_flag_values, 3u);
  expect_slot_stays_quiet(slot);
  // The flag is wrong, so the frame in the slot is not checked.
  const std::uint32_t bad = b.client.next_slot();
  EXPECT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&b.ring.ring, bad) == 1; }));
  std::memset(b.ring.rx_slot(bad), 0, 24);
  store_release(b.ring.ring.rx_flags_host[bad], std::uint64_t{1});
  b.client.set_next_slot((bad + 1) % 4);
  EXPECT_TRUE(eventually([&] { return b.dispatcher->stats().received == 5; })) << b.dispatcher->stats().received;
  EXPECT_EQ(b.dispatcher->stats().dropped_flag_value, 2u);
  EXPECT_EQ(b.dispatcher->stats().unexpected_flag_values, 4u);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, ErrorAnswers,
    ::testing::Values(flavour{"Inline", 0, false, false, false}, flavour{"InlineInPlace", 0, false, true, false},
                      flavour{"Pool", 2, false, false, false}, flavour{"PoolInPlaceNoMarkers", 2, false, true, true},
                      flavour{"Shared", 0, true, false, false}, flavour{"SharedPoolInPlace", 2, true, true, false}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

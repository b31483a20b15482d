// SPDX-License-Identifier: Apache-2.0
// The verdict on a request, and one turn with a fake server.
#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "lib/ring/turn.h"
#include "unittests/support/host_fixture.h"
#include "unittests/support/ring_fixture.h"

namespace cudaq::realtime::test {
namespace {

using namespace detail;

cudaq_function_entry_t entry(std::uint32_t id, std::uint8_t mode) {
  cudaq_function_entry_t e{};
  e.function_id = id;
  e.dispatch_mode = mode;
  return e;
}

class Judge : public ::testing::Test {
protected:
  Judge() {
    entries = {entry(1, CUDAQ_DISPATCH_HOST_CALL), entry(2, CUDAQ_DISPATCH_GRAPH_LAUNCH),
               entry(3, CUDAQ_DISPATCH_DEVICE_CALL), entry(4, CUDAQ_DISPATCH_HOST_CALL)};
    entries[1].routing_key = 9;
    rebuild();
    rules.served_modes = 1u << CUDAQ_DISPATCH_HOST_CALL;
  }
  void rebuild() {
    EXPECT_EQ(index.build(entries.data(), static_cast<std::uint32_t>(entries.size())).what,
              function_index::problem::none);
  }
  judgement of(const request &r, std::uint64_t flag = 0) {
    const slot_ring &ring = slots.view;
    return judge_slot(ring, 1, flag != 0 ? flag : reinterpret_cast<std::uint64_t>(ring.rx_slot(1)), r, index.view(),
                      rules);
  }
  static request frame(std::uint32_t id, std::uint32_t arg_len, std::uint32_t magic = CUDAQ_RPC_MAGIC_REQUEST) {
    return {magic, id, arg_len, 5, 6};
  }
  std::int32_t checked(const cudaq_handler_schema_t &schema, std::uint32_t arg_len) {
    entries[3].schema = schema;
    rebuild();
    rules.check_schema = true;
    return of(frame(4, arg_len)).status;
  }

  guarded_slots slots{2, 64, 64, false};
  std::vector<cudaq_function_entry_t> entries;
  function_index index;
  judge_rules rules;
};

TEST_F(Judge, ServesWhatIsServable) {
  for (const std::uint32_t length : {0u, 1u, 40u}) {
    const judgement j = of(frame(1, length));
    EXPECT_EQ(j.what, verdict::serve);
    EXPECT_EQ(j.status, 0);
    EXPECT_EQ(index.view().routes[j.route].function_id, 1u);
  }
}

TEST_F(Judge, EachVerdictHasItsReason) {
  EXPECT_EQ(of(frame(1, 0, CUDAQ_RPC_MAGIC_RESPONSE)).what, verdict::drop_magic);
  EXPECT_EQ(of(frame(1, 0, 0)).what, verdict::drop_magic);
  EXPECT_EQ(of(frame(7, 0)).what, verdict::drop_unknown);
  EXPECT_EQ(of(frame(1, 41)).status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  EXPECT_EQ(of(frame(1, 0xFFFFFFFFu)).status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  EXPECT_EQ(of(frame(3, 0)).status, CUDAQ_RPC_ERR_MODE_NOT_SERVED);
  EXPECT_EQ(of(frame(2, 0)).status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION) << "the function is known, the key is not";
  EXPECT_EQ(of(frame(2, 0)).what, verdict::answer);
  rules.answer_unknown = true;
  EXPECT_EQ(of(frame(7, 0)).what, verdict::answer);
  EXPECT_EQ(of(frame(7, 0)).status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

TEST_F(Judge, TestsFieldsInTheOrderInWhichTheyBecomeTrustworthy) {
  rules.strict_flag_values = true;
  EXPECT_EQ(of(frame(7, 0xFFFFFFFF, 0), 8).what, verdict::drop_flag_value);
  EXPECT_EQ(of(frame(7, 0xFFFFFFFF, 0)).what, verdict::drop_magic);
  EXPECT_EQ(of(frame(7, 0xFFFFFFFF)).what, verdict::drop_unknown)
      << "an unknown id is dropped before its length is checked";
  EXPECT_EQ(of(frame(2, 0xFFFFFFFF)).status, CUDAQ_RPC_ERR_BAD_ARG_LEN)
      << "the length is checked before the key is read from the payload";
  EXPECT_EQ(of(frame(3, 0xFFFFFFFF)).status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  rules.strict_flag_values = false;
  EXPECT_EQ(of(frame(1, 0), 8).what, verdict::serve);
}

// Known failure 39.
TEST_F(Judge, ZeroedSchemaPassesEveryLength) {
  for (const std::uint32_t length : {0u, 1u, 40u})
    EXPECT_EQ(checked({}, length), 0);
}

TEST_F(Judge, FixedArgumentsMustFillTheLengthExactly) {
  cudaq_handler_schema_t s{};
  s.num_args = 3;
  s.args[0] = make_type_desc(TYPE_INT32, 1);
  s.args[1] = make_type_desc(TYPE_FLOAT64, 1);
  s.args[2] = make_type_desc(TYPE_BIT_PACKED, 10);
  for (std::uint32_t length = 0; length <= 40; ++length)
    EXPECT_EQ(checked(s, length), length == 14 ? 0 : CUDAQ_RPC_ERR_SCHEMA_MISMATCH) << length;
  rules.check_schema = false;
  EXPECT_EQ(of(frame(4, 3)).status, 0) << "schemas are checked only if the rules request it";
}

// The schema of qec_decode: a variable number of packed detection events, then their count.
TEST_F(Judge, VariableArgumentLeavesALowerBound) {
  cudaq_handler_schema_t s{};
  s.num_args = 2;
  s.args[0] = {TYPE_BIT_PACKED, {}, 0, 0};
  s.args[1] = make_type_desc(TYPE_UINT32, 1);
  for (std::uint32_t length = 0; length <= 40; ++length)
    EXPECT_EQ(checked(s, length), length >= 4 ? 0 : CUDAQ_RPC_ERR_SCHEMA_MISMATCH) << length;
}

TEST_F(Judge, FourBitReadoutsPassWithHalfAsManyBytes) {
  cudaq_handler_schema_t s{};
  s.num_args = 1;
  s.args[0] = {TYPE_ARRAY_UINT8, {}, 9, 17}; // 17 readouts, two per byte
  EXPECT_EQ(checked(s, 9), 0);
  EXPECT_EQ(checked(s, 17), CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
}

TEST_F(Judge, SizesThatNoSlotCanHoldNeverMatch) {
  cudaq_handler_schema_t s{};
  s.num_args = 2;
  s.args[0] = s.args[1] = {TYPE_ARRAY_UINT8, {}, 0x80000000u, 0x80000000u};
  EXPECT_EQ(checked(s, 0), CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
  s.args[1].size_bytes = 0x80000004u;
  EXPECT_EQ(checked(s, 4), CUDAQ_RPC_ERR_SCHEMA_MISMATCH);
}

/// A server that logs each call of a turn.
struct fake_server {
  bool no_job(std::uint32_t) const { return !job; }
  bool may_take(std::uint32_t) const { return !busy; }
  void note_taken(std::uint32_t, const request &r, bool expected) {
    log += "t" + std::to_string(r.request_id) + (expected ? "" : "!");
  }
  void note_dropped(verdict) { log += "d"; }
  void note_refused() { log += "r"; }
  void note_answered(std::int32_t status) { log += "a" + std::to_string(status); }
  handler_result serve(std::uint32_t i, const request &, std::uint32_t) {
    log += "s";
    if (!defer)
      std::memset(ring->tx_slot(i) + CUDAQ_RPC_HEADER_SIZE, 0x77, 16);
    return {!defer, 0, 16};
  }
  const slot_ring *ring = nullptr;
  bool job = false, busy = false, defer = false;
  std::string log;
};

struct turn_flavour {
  const char *name;
  std::uint32_t slots;
  bool in_place;
};
void PrintTo(const turn_flavour &f, std::ostream *out) { *out << f.name; }

class Turn : public ::testing::TestWithParam<turn_flavour> {
protected:
  Turn() : slots(GetParam().slots, 40, 64, GetParam().in_place), ring(slots.view) {
    const std::vector<cudaq_function_entry_t> entries{entry(1, CUDAQ_DISPATCH_HOST_CALL)};
    index.build(entries.data(), 1);
    rules.served_modes = 1u << CUDAQ_DISPATCH_HOST_CALL;
    server.ring = &ring;
  }
  void put(std::uint32_t i, const request &r) {
    write_header(ring.rx_slot(i), r);
    ring.signal(i);
  }
  turn_result turn(std::uint32_t i) { return take_turn(ring, i, index.view(), rules, server); }

  guarded_slots slots;
  slot_ring ring;
  function_index index;
  judge_rules rules;
  fake_server server;
};

TEST_P(Turn, AnswersOverSeveralLaps) {
  std::uint32_t i = 0;
  for (std::uint32_t id = 0; id < 10; ++id, i = ring.next(i)) {
    server.log.clear();
    EXPECT_EQ(turn(i), turn_result::idle);
    put(i, {CUDAQ_RPC_MAGIC_REQUEST, 1, 16, id, 100 + id});
    EXPECT_EQ(turn(i), turn_result::answered);
    EXPECT_EQ(server.log, "t" + std::to_string(id) + "sa0");
    const response got = read_header<response>(ring.tx_slot(i));
    EXPECT_EQ(got.magic, CUDAQ_RPC_MAGIC_RESPONSE);
    EXPECT_EQ(got.request_id, id);
    EXPECT_EQ(got.ptp_timestamp, 100 + id);
    EXPECT_EQ(got.result_len, 16u);
    EXPECT_EQ(ring.tx_slot(i)[24], 0x77);
    EXPECT_EQ(ring.ready(i), 0u);
    EXPECT_NE(ring.answer(i), 0u);
    ring.collect(i);
  }
  EXPECT_TRUE(slots.guards_whole());
}

TEST_P(Turn, WaitsAndTouchesNothing) {
  put(0, {CUDAQ_RPC_MAGIC_REQUEST, 1, 0, 7, 8});
  const std::uint64_t flag = ring.ready(0);
  server.busy = true;
  EXPECT_EQ(turn(0), turn_result::waiting);
  server.busy = false;
  server.job = true;
  EXPECT_EQ(turn(0), turn_result::waiting);
  EXPECT_EQ(server.log, "");
  EXPECT_EQ(ring.ready(0), flag);
  EXPECT_EQ(read_header<request>(ring.rx_slot(0)).request_id, 7u);
  server.job = false;
  EXPECT_EQ(turn(0), turn_result::answered);
}

TEST_P(Turn, DropsAndRefusesWithoutAHandler) {
  put(0, {0, 1, 0, 7, 8});
  EXPECT_EQ(turn(0), turn_result::dropped);
  EXPECT_TRUE(ring.free_for_producer(0));
  put(0, {CUDAQ_RPC_MAGIC_REQUEST, 1, 17, 9, 8});
  EXPECT_EQ(turn(0), turn_result::answered);
  EXPECT_EQ(server.log, "t7dt9ra-1000");
  EXPECT_EQ(read_header<response>(ring.tx_slot(0)).result_len, 0u);
}

TEST_P(Turn, LeavesADeferredSlotAlone) {
  put(0, {CUDAQ_RPC_MAGIC_REQUEST, 1, 0, 7, 8});
  const std::uint64_t flag = ring.ready(0);
  server.defer = true;
  EXPECT_EQ(turn(0), turn_result::taken);
  EXPECT_EQ(ring.ready(0), flag);
  EXPECT_TRUE(ring.collected(0));
  EXPECT_EQ(server.log, "t7s");
}

TEST_P(Turn, CountsAForeignFlagValue) {
  put(0, {CUDAQ_RPC_MAGIC_REQUEST, 1, 0, 7, 8});
  store_release(ring.rx_flags[0], std::uint64_t{1});
  EXPECT_EQ(turn(0), turn_result::answered);
  EXPECT_EQ(server.log, "t7!sa0");
}

INSTANTIATE_TEST_SUITE_P(Flavours, Turn,
                         ::testing::Values(turn_flavour{"OneSlot", 1, false}, turn_flavour{"OneSlotInPlace", 1, true},
                                           turn_flavour{"Wrap", 3, false}, turn_flavour{"WrapInPlace", 4, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Several host dispatchers on one ring, under load.
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  ring_shape shape;
  std::vector<std::uint32_t> pools; ///< pool size of each dispatcher
  std::uint32_t ordering = CUDAQ_ORDERING_FIFO;
  std::uint32_t wait = CUDAQ_WAIT_SPIN_YIELD;
  bool skip_markers = false;
  bool answer_unknown = true;
  bool random_slots = false;
  std::uint32_t functions_each = 2;
};

/// CUDAQ_SOAK_MESSAGES, or a number that a continuous build can run. With few slots each message costs a thread switch.
std::uint32_t messages(const flavour &f) {
  const bool costly = f.shape.num_slots < 8 || f.wait == CUDAQ_WAIT_SPIN;
  return static_cast<std::uint32_t>(number_from("CUDAQ_SOAK_MESSAGES", load_size(costly ? 4000 : 100000)));
}

class SharedRing : public ::testing::TestWithParam<flavour> {};

// Known failure 14.
TEST_P(SharedRing, AnswersInterleavedRequestsOnceAndInOrderPerFunction) {
  const flavour &f = GetParam();
  host_ring ring(f.shape);
  manager_handle manager;
  std::vector<std::unique_ptr<checked_function>> functions;
  std::vector<std::unique_ptr<host_dispatcher_handle>> members;
  traffic_plan plan;
  for (std::size_t d = 0; d < f.pools.size(); ++d) {
    cudaq_dispatcher_config_t config = host_config(f.shape);
    config.shared_ring_mode = 1;
    config.skip_tx_markers = f.skip_markers;
    members.push_back(
        std::make_unique<host_dispatcher_handle>(manager.get, ring, std::vector<cudaq_function_entry_t>{}, config));
    cudaq_dispatcher_options_t options = default_options();
    options.handler_pool_size = f.pools[d];
    options.ordering = f.ordering;
    options.wait_policy = f.wait;
    options.default_owner = d == 0;
    options.unknown_function = f.answer_unknown ? CUDAQ_UNKNOWN_FUNCTION_ANSWER : CUDAQ_UNKNOWN_FUNCTION_DROP;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(members[d]->get, &options));
    for (std::uint32_t k = 0; k < f.functions_each; ++k) {
      functions.push_back(std::make_unique<checked_function>(static_cast<std::uint32_t>(100 * d + k + 1), messages(f)));
      serve_checked(*members[d], *functions.back());
      plan.functions.push_back(functions.back().get());
    }
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(members[d]->get));
  }
  plan.messages = messages(f);
  plan.unknown_of_100 = 10;
  plan.unknown_answered = f.answer_unknown;
  plan.random_slots = f.random_slots;
  traffic load(ring, plan);
  load.run();
  const bool fifo = f.ordering == CUDAQ_ORDERING_FIFO;
  load.expect_clean(fifo && !f.random_slots, fifo);
  std::uint64_t dispatched = 0, disposed = 0, responded = 0;
  for (const auto &m : members) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(m->get));
    const cudaq_dispatcher_stats_t s = m->stats();
    EXPECT_EQ(s.in_flight, 0u);
    dispatched += s.dispatched;
    responded += s.responded;
    disposed += s.dropped_unknown_function + s.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_NO_SUCH_FUNCTION)];
  }
  EXPECT_EQ(dispatched + disposed, plan.messages);
  EXPECT_EQ(responded, load.collected());
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, SharedRing,
    ::testing::Values(
        flavour{"TwoInline", {8, 256, false}, {0, 0}}, flavour{"ThreeInlineInPlace", {64, 128, true}, {0, 0, 0}},
        flavour{"InlineAndPool", {16, 256, false}, {0, 2}},
        flavour{
            "InlineAndPoolInPlaceNoMarkers", {16, 128, true}, {2, 0}, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, true},
        flavour{"ThreePoolsAnyOrder", {64, 256, false}, {1, 2, 2}, CUDAQ_ORDERING_ANY},
        flavour{
            "TwoInlineDropUnknown", {8, 256, true}, {0, 0}, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, false, false},
        flavour{"PoolDropUnknown", {2, 256, false}, {2, 1}, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, false, false},
        flavour{"OneSlot", {1, 64, true}, {0, 1}},
        flavour{"Block", {64, 64, false}, {0, 1}, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_BLOCK, true},
        flavour{"RandomSlots", {64, 128, false}, {0, 0}, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, false, true, true},
        flavour{"RandomSlotsPoolInPlace",
                {64, 128, true},
                {2, 0},
                CUDAQ_ORDERING_FIFO,
                CUDAQ_WAIT_SPIN_YIELD,
                false,
                false,
                true}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

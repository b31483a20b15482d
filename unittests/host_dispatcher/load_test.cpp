// SPDX-License-Identifier: Apache-2.0
// One dispatcher under load. CUDAQ_SOAK_MESSAGES=10000000 makes a soak test of it.
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t pool = 0;
  std::uint32_t ordering = CUDAQ_ORDERING_FIFO;
  std::uint32_t wait = CUDAQ_WAIT_SPIN_YIELD;
  bool skip_markers = false;
  bool random_slots = false;
  std::uint32_t functions = 3;
  bool v1 = false; ///< handlers cannot defer: only the ring's flags track a request
};

/// CUDAQ_SOAK_MESSAGES, or a number that a continuous build can run. With few slots each message costs a thread switch.
std::uint32_t messages(const flavour &f) {
  const bool costly = f.shape.num_slots < 8 || f.wait == CUDAQ_WAIT_SPIN;
  return static_cast<std::uint32_t>(number_from("CUDAQ_SOAK_MESSAGES", load_size(costly ? 4000 : 50000)));
}

class HostDispatcherLoad : public ::testing::TestWithParam<flavour> {};

// Known failures 2, 36.
TEST_P(HostDispatcherLoad, LosesDoublesTearsAndReordersNothing) {
  const flavour &f = GetParam();
  host_ring ring(f.shape);
  manager_handle manager;
  cudaq_dispatcher_config_t config = host_config(f.shape);
  config.skip_tx_markers = f.skip_markers;
  std::vector<cudaq_function_entry_t> entries(f.v1 ? f.functions : 0);
  for (std::uint32_t k = 0; k < entries.size(); ++k) {
    entries[k] = host_entry("", checked_function::serve_v1);
    entries[k].function_id = k + 1;
  }
  host_dispatcher_handle dispatcher(manager.get, ring, entries, config);
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = f.pool;
  options.ordering = f.ordering;
  options.wait_policy = f.wait;
  options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher.get, &options));
  std::vector<std::unique_ptr<checked_function>> functions;
  traffic_plan plan;
  for (std::uint32_t k = 0; k < f.functions; ++k) {
    functions.push_back(std::make_unique<checked_function>(k + 1, messages(f)));
    if (f.v1)
      checked_function::v1_by_id[k + 1] = functions.back().get();
    else
      serve_checked(dispatcher, *functions.back());
    plan.functions.push_back(functions.back().get());
  }
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
  plan.messages = messages(f);
  plan.unknown_of_100 = 2;
  plan.random_slots = f.random_slots;
  traffic load(ring, plan);
  load.run();
  CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher.get));
  const bool fifo = f.ordering == CUDAQ_ORDERING_FIFO;
  load.expect_clean(fifo && !f.random_slots, fifo);
  const cudaq_dispatcher_stats_t stats = dispatcher.stats();
  EXPECT_EQ(stats.received, plan.messages);
  EXPECT_EQ(stats.responded, plan.messages);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.tx_busy_waits, 0u) << "a request was served in a slot whose old answer was not collected";
  // Slots filled in ring order cause no cursor jump. Random slots may cause none either: the loop serves in ring order
  // if the ring is full each time it looks.
  EXPECT_TRUE(f.random_slots || stats.cursor_jumps == 0) << stats.cursor_jumps;
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, HostDispatcherLoad,
    ::testing::Values(
        flavour{"OneSlotSpin", {1, 64, false}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN},
        flavour{"OneSlotInPlaceBlock", {1, 256, true}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_BLOCK},
        flavour{"TwoSlots", {2, 256, false}}, flavour{"EightSlotsInPlace", {8, 512, true}},
        flavour{"ManySlots", {64, 1024, false}},
        flavour{"ManySlotsBlock", {64, 1024, true}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_BLOCK},
        flavour{"PoolOneSlot", {1, 64, false}, 2},
        flavour{"PoolOneSlotInPlaceAny", {1, 64, true}, 2, CUDAQ_ORDERING_ANY},
        flavour{"PoolTwoSlotsNoMarkers", {2, 64, true}, 2, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, true},
        flavour{"Pool", {8, 256, false}, 2}, flavour{"PoolInPlace", {8, 256, true}, 3},
        flavour{"PoolNoMarkersAny", {64, 256, false}, 3, CUDAQ_ORDERING_ANY, CUDAQ_WAIT_SPIN_YIELD, true},
        flavour{"PoolBlock", {64, 256, true}, 2, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_BLOCK},
        flavour{"PoolManyFunctionsFewThreads",
                {64, 256, false},
                2,
                CUDAQ_ORDERING_FIFO,
                CUDAQ_WAIT_SPIN_YIELD,
                true,
                false,
                40},
        flavour{"Plain", {8, 256, false}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, false, false, 3, true},
        flavour{"PlainInPlace", {64, 256, true}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN, false, false, 3, true},
        flavour{"PlainRandomSlots", {8, 256, true}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_BLOCK, true, true, 3, true},
        flavour{"RandomSlots", {8, 256, false}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, false, true},
        flavour{"RandomSlotsInPlaceSpin", {64, 256, true}, 0, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN, false, true},
        flavour{"RandomSlotsPool", {8, 256, false}, 2, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, false, true},
        flavour{
            "RandomSlotsPoolNoMarkers", {64, 256, true}, 2, CUDAQ_ORDERING_FIFO, CUDAQ_WAIT_SPIN_YIELD, true, true}),
    [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

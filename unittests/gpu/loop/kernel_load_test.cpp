// SPDX-License-Identifier: Apache-2.0
// Kernels under load, with the same traffic as the host dispatcher. CUDAQ_SOAK_MESSAGES=10000000 makes a soak test of
// it.
#include "unittests/gpu/support/checked_device_functions.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  kernel_kind kind;
  ring_shape shape;
  std::uint32_t messages;
  std::uint32_t functions = 3;
  bool random_slots = false;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class KernelLoad : public gpu_test, public ::testing::WithParamInterface<flavour> {};

// Known failures 2, 36.
TEST_P(KernelLoad, LosesDoublesTearsAndReordersNothing) {
  const flavour &f = GetParam();
  const std::uint32_t messages = messages_or(f.messages);
  manager_handle manager;
  const host_ring ring(f.shape, CUDAQ_MEMORY_MAPPED);
  checked_device_functions functions(f.functions, messages);
  gpu_setup setup = setup_of(f.kind, ring);
  setup.entries = checked_device_functions::table(f.kind, 0, f.functions);
  gpu_dispatcher dispatcher(manager.get, setup);
  dispatcher.options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  traffic_plan plan;
  for (std::uint32_t k = 0; k < f.functions; ++k)
    plan.functions.push_back(functions.function(k));
  plan.messages = messages;
  plan.unknown_of_100 = 2;
  plan.random_slots = f.random_slots;
  traffic load(ring, plan);
  load.run();
  CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher.get));
  functions.collect();
  load.expect_clean(f.kind.fifo() && !f.random_slots, f.kind.fifo());
  const cudaq_dispatcher_stats_t stats = dispatcher.stats();
  EXPECT_EQ(stats.received, messages);
  EXPECT_EQ(stats.responded, messages);
  EXPECT_EQ(stats.in_flight, 0u);
  EXPECT_EQ(stats.unexpected_flag_values, 0u);
  EXPECT_EQ(dispatcher.processed(), messages);
  // Slots filled in ring order cause no cursor jump. Random slots may cause none either: the loop serves in ring order
  // if the ring is full each time it looks.
  EXPECT_TRUE(f.random_slots || stats.cursor_jumps == 0) << stats.cursor_jumps;
}

INSTANTIATE_TEST_SUITE_P(Flavours, KernelLoad,
                         ::testing::Values(flavour{"OneSlot", kFifo32, {1, 64, false}, 20000},
                                           flavour{"OneSlotInPlace", kFifo32, {1, 256, true}, 20000},
                                           flavour{"ThreeSlots", kFifo32, {3, 256, false}, 20000},
                                           flavour{"ManySlots", kFifo32, {64, 128, false}, 50000},
                                           flavour{"ManySlotsInPlace", kFifo128, {100, 512, true}, 30000},
                                           flavour{"LongFrames", kFifo256, {32, 4096, false}, 10000},
                                           flavour{"FramesBeyondTheStage", kFifo256, {4, 32768, false}, 100},
                                           flavour{
                                               "ManyFunctions", kFifo32, {256, 128, false}, 30000, kCheckedFunctions},
                                           flavour{"RandomSlots", kFifo32, {16, 128, false}, 20000, 3, true},
                                           flavour{"Any", kAny4x64, {1024, 64, false}, 50000},
                                           flavour{"AnyInPlace", kAny4x64, {100, 64, true}, 50000},
                                           flavour{"AnyFewSlots", kAny4x64, {3, 256, false}, 20000},
                                           flavour{"AnyLongFrames", kAny4x64, {256, 1024, false}, 20000},
                                           flavour{"AnyRandomSlots", kAny4x64, {64, 128, true}, 20000, 3, true},
                                           flavour{"Cooperative", kCooperative1x128, {64, 256, false}, 20000},
                                           flavour{"CooperativeOneSlot", kCooperative1x128, {1, 128, true}, 10000},
                                           flavour{"CooperativeGrid", kCooperative4x64, {64, 512, false}, 20000},
                                           flavour{"CooperativeGridInPlace", kCooperative4x64, {3, 1024, true}, 10000},
                                           flavour{"Unified", kUnified, {64, 256, false}, 50000},
                                           flavour{"UnifiedInPlace", kUnified, {5, 256, true}, 20000}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Several dispatchers of all kinds on one GPU: they do not affect each other.
#include "unittests/gpu/support/checked_device_functions.h"

namespace cudaq::realtime::test {
namespace {

// Set before the driver reads it. With the default of 8 hardware queues, a kernel waits for another one that does not
// end as soon as enough streams exist.
[[maybe_unused]] const int kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);

class SideBySide : public gpu_test {};

struct neighbour {
  kernel_kind kind;
  ring_shape shape;
};

/// Each dispatcher has two functions of its own. Its traffic also contains requests for a function of the next
/// dispatcher, which its own table does not hold.
void run_together(const std::vector<neighbour> &neighbours, std::uint32_t messages) {
  constexpr std::uint32_t kEach = 2;
  manager_handle manager;
  checked_device_functions functions(static_cast<std::uint32_t>(neighbours.size()) * kEach, messages);
  std::vector<std::unique_ptr<host_ring>> rings;
  std::vector<std::unique_ptr<gpu_dispatcher>> dispatchers;
  std::vector<std::unique_ptr<traffic>> loads;
  for (std::uint32_t n = 0; n < neighbours.size(); ++n) {
    rings.push_back(std::make_unique<host_ring>(neighbours[n].shape, CUDAQ_MEMORY_MAPPED));
    gpu_setup setup = setup_of(neighbours[n].kind, *rings[n]);
    setup.entries = checked_device_functions::table(neighbours[n].kind, n * kEach, kEach);
    dispatchers.push_back(std::make_unique<gpu_dispatcher>(manager.get, setup));
    dispatchers[n]->options.unknown_function =
        n % 2 == 0 ? CUDAQ_UNKNOWN_FUNCTION_ANSWER : CUDAQ_UNKNOWN_FUNCTION_DROP; // the options also differ
    traffic_plan plan;
    plan.functions = {functions.function(n * kEach), functions.function(n * kEach + 1)};
    plan.messages = messages;
    plan.unknown_of_100 = 2;
    plan.unknown_answered = n % 2 == 0;
    plan.unknown_id = (n + 1) % static_cast<std::uint32_t>(neighbours.size()) * kEach + 1;
    plan.seed = n + 1; // different request ids on each ring
    loads.push_back(std::make_unique<traffic>(*rings[n], plan));
  }
  for (const auto &dispatcher : dispatchers)
    ASSERT_NO_FATAL_FAILURE(dispatcher->expect_start());
  for (const auto &load : loads)
    load->run_in_background();
  for (const auto &load : loads)
    load->wait();
  for (const auto &dispatcher : dispatchers)
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatcher->get));
  functions.collect();
  for (std::size_t n = 0; n < neighbours.size(); ++n) {
    SCOPED_TRACE(neighbours[n].kind.name + std::string(" ") + std::to_string(n));
    loads[n]->expect_clean(neighbours[n].kind.fifo(), neighbours[n].kind.fifo());
    EXPECT_EQ(dispatchers[n]->processed(), messages);
    EXPECT_EQ(dispatchers[n]->stats().received, messages);
  }
  dispatchers.clear();
}

// Known failure 11.
TEST_F(SideBySide, TwoRegularTwoCooperativeAndAUnifiedDispatcherDoNotMix) {
  run_together({{kFifo32, {64, 128, false}},
                {kAny4x64, {128, 64, false}},
                {kCooperative1x128, {64, 256, true}},
                {kCooperative4x64, {16, 512, false}},
                {kUnified, {64, 128, true}}},
               messages_or(10000));
}

// Two dispatchers of the same kind would share module-wide state, if there were any.
TEST_F(SideBySide, TwinsDoNotMix) {
  for (const kernel_kind &kind : each_kind()) {
    SCOPED_TRACE(kind.name);
    ASSERT_NO_FATAL_FAILURE(run_together({{kind, {3, 128, false}}, {kind, {64, 256, false}}}, messages_or(5000)));
  }
}

// One dispatcher stops and starts again while the others serve.
// Known failures 11, 12.
TEST_F(SideBySide, StoppingOneLeavesTheOthersAlone) {
  manager_handle manager;
  std::vector<std::unique_ptr<host_ring>> rings;
  std::vector<std::unique_ptr<gpu_dispatcher>> dispatchers;
  std::vector<std::unique_ptr<gpu_client>> clients;
  for (const kernel_kind &kind : each_kind()) {
    rings.push_back(std::make_unique<host_ring>(ring_shape{4, 128, false}, CUDAQ_MEMORY_MAPPED));
    dispatchers.push_back(std::make_unique<gpu_dispatcher>(manager.get, setup_of(kind, *rings.back())));
    clients.push_back(std::make_unique<gpu_client>(rings.back()->ring, 4));
  }
  for (const auto &dispatcher : dispatchers)
    ASSERT_NO_FATAL_FAILURE(dispatcher->expect_start());
  for (std::size_t victim = 0; victim < dispatchers.size(); ++victim) {
    CUDAQ_EXPECT_OK_WITHIN(kOneSecond, cudaq_dispatcher_stop(dispatchers[victim]->get));
    for (std::size_t n = 0; n < dispatchers.size(); ++n)
      if (n != victim) {
        ASSERT_NO_FATAL_FAILURE(expect_serves(*clients[n], static_cast<std::uint32_t>(victim)));
      }
    const call_result again = dispatchers[victim]->start(std::chrono::seconds(2));
    ASSERT_EQ(again.status, CUDAQ_OK) << again.text;
    ASSERT_NO_FATAL_FAILURE(expect_serves(*clients[victim], 77));
  }
  dispatchers.clear();
}

} // namespace
} // namespace cudaq::realtime::test

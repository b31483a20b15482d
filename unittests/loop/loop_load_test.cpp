// SPDX-License-Identifier: Apache-2.0
// Each loop under load, alone or with others on one ring: host dispatchers without and with a pool, and the loop of the
// device kernels, which CPU threads run here. All get the same traffic. CUDAQ_SOAK_MESSAGES=10000000 makes a soak test
// of it. The kernels on a GPU: unittests/gpu/loop/kernel_load_test.cpp.
#include "unittests/loop/cpu_kernel.h"

namespace cudaq::realtime::test {
namespace {

enum how : std::uint32_t {
  kAny = 1,   ///< no order is promised
  kBlock = 2, ///< dispatchers sleep
  kSpin = 4,
  kNoMarkers = 8,
  kRandomSlots = 16, ///< the producer fills slots in any order
  kDropUnknown = 32, ///< unknown functions are not answered
  kPlain = 64,       ///< handlers of the first form, which cannot defer: only the ring's flags track a request
  kKernelOwns = 128, ///< the kernel is the default owner
  kComesRound = 256, ///< the sequence numbers of the kernel's inbox come round
  kManyFunctions = 512
};

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t how = 0;
  std::vector<std::uint32_t> pools = {0}; ///< a host dispatcher each, with this size of its pool
  std::uint32_t kernels = 0;              ///< loops of kernels
  std::uint32_t groups = 1;               ///< of a kernel that is alone; several serve in any order

  bool has(std::uint32_t one) const { return (how & one) != 0; }
  bool alone() const { return pools.size() + kernels == 1; }
  std::uint32_t functions() const { return has(kManyFunctions) ? 40 : alone() ? 3 : 2; }
};

/// CUDAQ_SOAK_MESSAGES, or a number that a continuous build can run. With few slots each message costs a thread switch.
std::uint32_t messages(const flavour &f) {
  const bool costly = f.shape.num_slots < 8 || f.has(kSpin);
  if (f.kernels == 0)
    return static_cast<std::uint32_t>(number_from("CUDAQ_SOAK_MESSAGES", load_size(costly      ? 4000
                                                                                   : f.alone() ? 50000
                                                                                               : 100000)));
  if (f.alone())
    return load_size(costly ? 5000 : 30000);
  const std::uint32_t whole = f.shape.num_slots == 1 ? 20000 : 100000;
  return load_size(whole_or_sample(whole, f.shape.num_slots <= 4 ? 10000 : whole));
}

struct totals {
  std::uint64_t dispatched = 0, refused = 0, dropped = 0, responded = 0;
};

/// One loop, with functions of its own.
struct served_loop {
  virtual ~served_loop() = default;
  virtual void start() = 0;
  virtual totals stop() = 0;
};

class host_loop final : public served_loop {
public:
  host_loop(const flavour &f, const manager_handle &manager, const host_ring &ring, std::uint32_t pool, bool owner,
            const std::vector<checked_function *> &functions)
      : f_(f), dispatcher_(manager.get, ring, entries(f, functions), config(f)) {
    cudaq_dispatcher_options_t options = default_options();
    options.handler_pool_size = pool;
    options.ordering = f.has(kAny) ? CUDAQ_ORDERING_ANY : CUDAQ_ORDERING_FIFO;
    options.wait_policy = f.has(kBlock) ? CUDAQ_WAIT_BLOCK : f.has(kSpin) ? CUDAQ_WAIT_SPIN : CUDAQ_WAIT_SPIN_YIELD;
    options.default_owner = !f.alone() && owner;
    options.unknown_function = f.has(kDropUnknown) ? CUDAQ_UNKNOWN_FUNCTION_DROP : CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(dispatcher_.get, &options));
    for (checked_function *const function : functions)
      if (!f.has(kPlain))
        serve_checked(dispatcher_, *function);
  }
  void start() override { CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher_.get)); }
  totals stop() override {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(dispatcher_.get));
    const cudaq_dispatcher_stats_t s = dispatcher_.stats();
    EXPECT_EQ(s.in_flight, 0u);
    EXPECT_EQ(dispatcher_.processed, s.responded + s.dropped_unknown_function);
    if (f_.alone()) {
      EXPECT_EQ(s.received, s.responded);
      EXPECT_EQ(s.tx_busy_waits, 0u) << "a request was served in a slot whose old answer was not collected";
      // Slots filled in ring order cause no cursor jump. Random slots may cause none either: the loop serves in ring
      // order if the ring is full each time it looks.
      EXPECT_TRUE(f_.has(kRandomSlots) || s.cursor_jumps == 0) << s.cursor_jumps;
    }
    return {s.dispatched, s.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_NO_SUCH_FUNCTION)],
            s.dropped_unknown_function, s.responded};
  }

private:
  static std::vector<cudaq_function_entry_t> entries(const flavour &f,
                                                     const std::vector<checked_function *> &functions) {
    std::vector<cudaq_function_entry_t> all;
    for (const checked_function *const function : functions)
      if (f.has(kPlain)) {
        all.push_back(host_entry("", checked_function::serve_v1));
        all.back().function_id = function->id;
      }
    return all;
  }
  static cudaq_dispatcher_config_t config(const flavour &f) {
    cudaq_dispatcher_config_t c = host_config(f.shape);
    c.skip_tx_markers = f.has(kNoMarkers);
    c.shared_ring_mode = !f.alone();
    return c;
  }
  const flavour &f_;
  host_dispatcher_handle dispatcher_;
};

totals totals_of(const std::vector<loop_report> &reports) {
  totals all;
  for (const loop_report &r : reports) {
    all.dispatched += r.dispatched, all.responded += r.responded, all.dropped += r.dropped_unknown_function;
    all.refused += r.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_NO_SUCH_FUNCTION)];
  }
  return all;
}

/// The only loop of its ring.
class kernel_alone final : public served_loop {
public:
  kernel_alone(const flavour &f, const host_ring &ring) : any_(f.groups > 1), host_(ring, f.groups, 1, f.functions()) {}
  void start() override { any_ ? host_.start<true>() : host_.start<false>(); }
  totals stop() override {
    store_release(host_.library_word, std::uint32_t{1});
    host_.join();
    const totals all = totals_of(host_.reports);
    EXPECT_EQ(host_.processed, all.responded);
    return all;
  }

private:
  const bool any_;
  loop_host host_;
};

class kernel_of_a_shared_ring final : public served_loop {
public:
  kernel_of_a_shared_ring(const flavour &f, const manager_handle &manager, const host_ring &ring, std::uint32_t first)
      : owner_(f.has(kKernelOwns)), kernel_(manager, ring, first, owner_, f.functions()) {
    if (f.has(kComesRound))
      kernel_.first_sequence = ring_inbox::kLast - 3;
  }
  void start() override {
    const expected<> result = kernel_.start();
    ASSERT_TRUE(result.ok()) << result.text();
  }
  totals stop() override {
    kernel_.stop();
    EXPECT_EQ(kernel_.report().refused != 0, owner_);
    EXPECT_EQ(kernel_.member.counts().dropped(), 0u);
    EXPECT_GT(kernel_.responded(), 0u);
    return totals_of({kernel_.report()});
  }

private:
  const bool owner_;
  cpu_kernel kernel_;
};

void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class LoopLoad : public ::testing::TestWithParam<flavour> {};

// Known failures 2, 14, 36.
TEST_P(LoopLoad, LosesDoublesTearsAndReordersNothing) {
  const flavour &f = GetParam();
  const host_ring ring(f.shape);
  const manager_handle manager;
  std::vector<std::unique_ptr<checked_function>> functions;
  traffic_plan plan;
  plan.messages = messages(f);
  plan.unknown_of_100 = f.alone() ? 2 : 10;
  plan.unknown_answered = !f.has(kDropUnknown);
  plan.random_slots = f.has(kRandomSlots);
  const auto next_functions = [&] {
    std::vector<checked_function *> added;
    for (std::uint32_t k = 0; k < f.functions(); ++k) {
      functions.push_back(
          std::make_unique<checked_function>(static_cast<std::uint32_t>(functions.size() + 1), plan.messages));
      added.push_back(functions.back().get());
      checked_function::v1_by_id[added.back()->id] = added.back();
      plan.functions.push_back(added.back());
    }
    return added;
  };
  std::vector<std::unique_ptr<served_loop>> loops;
  for (const std::uint32_t pool : f.pools)
    loops.push_back(
        std::make_unique<host_loop>(f, manager, ring, pool, loops.empty() && !f.has(kKernelOwns), next_functions()));
  for (std::uint32_t n = 0; n < f.kernels; ++n) {
    const std::uint32_t first = next_functions().front()->id;
    if (f.alone())
      loops.push_back(std::make_unique<kernel_alone>(f, ring));
    else
      loops.push_back(std::make_unique<kernel_of_a_shared_ring>(f, manager, ring, first));
  }
  for (const auto &loop : loops)
    ASSERT_NO_FATAL_FAILURE(loop->start());
  traffic load(ring, plan);
  load.run();
  totals all;
  for (const auto &loop : loops) {
    const totals t = loop->stop();
    all.dispatched += t.dispatched, all.refused += t.refused, all.dropped += t.dropped, all.responded += t.responded;
  }
  const bool fifo = !f.has(kAny) && f.groups == 1;
  load.expect_clean(fifo && !f.has(kRandomSlots), fifo);
  EXPECT_EQ(all.dispatched + all.refused + all.dropped, plan.messages);
  EXPECT_EQ(all.responded, load.collected());
}

std::string name_of(const ::testing::TestParamInfo<flavour> &tested) { return tested.param.name; }

// clang-format off
INSTANTIATE_TEST_SUITE_P(Host, LoopLoad, ::testing::Values(
    flavour{"OneSlotSpin", {1, 64}, kSpin},
    flavour{"OneSlotInPlaceBlock", {1, 256, true}, kBlock},
    flavour{"TwoSlots", {2, 256}},
    flavour{"EightSlotsInPlace", {8, 512, true}},
    flavour{"ManySlots", {64, 1024}},
    flavour{"AThousandSlots", {1024, 72}},
    flavour{"ManySlotsBlock", {64, 1024, true}, kBlock},
    flavour{"PoolOneSlot", {1, 64}, 0, {2}},
    flavour{"PoolOneSlotInPlaceAny", {1, 64, true}, kAny, {2}},
    flavour{"PoolTwoSlotsNoMarkers", {2, 64, true}, kNoMarkers, {2}},
    flavour{"Pool", {8, 256}, 0, {2}},
    flavour{"PoolInPlace", {8, 256, true}, 0, {3}},
    flavour{"PoolNoMarkersAny", {64, 256}, kNoMarkers | kAny, {3}},
    flavour{"PoolBlock", {64, 256, true}, kBlock, {2}},
    flavour{"PoolManyFunctionsFewThreads", {64, 256}, kNoMarkers | kManyFunctions, {2}},
    flavour{"Plain", {8, 256}, kPlain},
    flavour{"PlainInPlace", {64, 256, true}, kPlain | kSpin},
    flavour{"PlainRandomSlots", {8, 256, true}, kPlain | kBlock | kNoMarkers | kRandomSlots},
    flavour{"RandomSlots", {8, 256}, kRandomSlots},
    flavour{"RandomSlotsInPlaceSpin", {64, 256, true}, kSpin | kRandomSlots},
    flavour{"RandomSlotsPool", {8, 256}, kRandomSlots, {2}},
    flavour{"RandomSlotsPoolNoMarkers", {64, 256, true}, kNoMarkers | kRandomSlots, {2}}), name_of);

INSTANTIATE_TEST_SUITE_P(HostsOnOneRing, LoopLoad, ::testing::Values(
    flavour{"TwoInline", {8, 256}, 0, {0, 0}},
    flavour{"ThreeInlineInPlace", {64, 128, true}, 0, {0, 0, 0}},
    flavour{"InlineAndPool", {16, 256}, 0, {0, 2}},
    flavour{"InlineAndPoolInPlaceNoMarkers", {16, 128, true}, kNoMarkers, {2, 0}},
    flavour{"ThreePoolsAnyOrder", {64, 256}, kAny, {1, 2, 2}},
    flavour{"TwoInlineDropUnknown", {8, 256, true}, kDropUnknown, {0, 0}},
    flavour{"PoolDropUnknown", {2, 256}, kDropUnknown, {2, 1}},
    flavour{"OneSlot", {1, 64, true}, 0, {0, 1}},
    flavour{"Block", {64, 64}, kBlock | kNoMarkers, {0, 1}},
    flavour{"RandomSlots", {64, 128}, kRandomSlots, {0, 0}},
    flavour{"RandomSlotsDropUnknown", {64, 128, true}, kRandomSlots | kDropUnknown, {2, 0}}), name_of);

INSTANTIATE_TEST_SUITE_P(Kernel, LoopLoad, ::testing::Values(
    flavour{"OneSlot", {1, 64}, 0, {}, 1},
    flavour{"OneSlotInPlace", {1, 256, true}, 0, {}, 1},
    flavour{"ThreeSlots", {3, 72}, 0, {}, 1},
    flavour{"ManySlots", {64, 1024}, 0, {}, 1},
    flavour{"ManySlotsInPlace", {64, 512, true}, 0, {}, 1},
    flavour{"RandomSlots", {16, 256}, kRandomSlots, {}, 1},
    flavour{"AnyTwoGroups", {16, 64}, 0, {}, 1, 2},
    flavour{"AnyTwoGroupsInPlace", {15, 256, true}, 0, {}, 1, 2},
    flavour{"AnyThreeGroupsRandomSlots", {64, 1024}, kRandomSlots, {}, 1, 3}), name_of);

INSTANTIATE_TEST_SUITE_P(HostAndKernelsOnOneRing, LoopLoad, ::testing::Values(
    flavour{"OneSlot", {1, 128}, 0, {0}, 1},
    flavour{"TwoSlots", {2, 128}, 0, {0}, 1},
    flavour{"FourSlots", {4, 128}, 0, {0}, 1},
    flavour{"ManySlots", {64, 256}, 0, {0}, 1},
    flavour{"TwoSlotsInPlace", {2, 128, true}, 0, {0}, 1},
    flavour{"ManySlotsInPlace", {64, 128, true}, 0, {0}, 1},
    flavour{"HostPool", {16, 128}, 0, {2}, 1},
    flavour{"TwoKernels", {64, 128}, 0, {0}, 2},
    flavour{"KernelIsDefaultOwner", {16, 128}, kKernelOwns, {0}, 1},
    flavour{"RandomSlots", {16, 128}, kRandomSlots, {0}, 1},
    flavour{"SequencesComeRound", {8, 128}, kRandomSlots | kComesRound, {0}, 1}), name_of);
// clang-format on

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Field note 17: the decoder recovers from any exception, also from one in the middle of a matching.
#include "unittests/qec/qec_test_support.h"
#include "unittests/qec/shot_lists.h"
#include "unittests/support/program_paths.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace {
// Allocations of this thread until one fails; negative: no allocation fails.
thread_local long allocations_left = -1;

void *allocate(std::size_t bytes) {
  if (allocations_left == 0) {
    allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0)
    --allocations_left;
  if (void *memory = std::malloc(bytes == 0 ? 1 : bytes))
    return memory;
  throw std::bad_alloc();
}
} // namespace

// Not inline: if a compiler inlines only one of new and delete, it warns of a free that does not match.
[[gnu::noinline]] void *operator new(std::size_t bytes) { return allocate(bytes); }
// The buffer of std::stable_sort is of this form. It may fail without an exception.
[[gnu::noinline]] void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  try {
    return allocate(bytes);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

namespace cudaq::qec::realtime::test {
namespace {

class DecoderOutOfMemory : public testing::TestWithParam<std::string> {};

// Known failure 17.
TEST_P(DecoderOutOfMemory, EveryFailedAllocationCostsOneShotOnly) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a matcher that ran out of memory is leaked on purpose, and the leak checker reports it";
#endif
  const shot_set set = load_committed(shot_set_name(GetParam() == "lookup" ? 3 : 7, "0.005"));
  const auto with = make_or_throw(GetParam(), set.dem_text);
  std::vector<std::uint64_t> events(set.num_detectors);
  double gap = 0;
  decode_details details;
  std::vector<error_probability> list;
  if (with->refuses_gaps() == nullptr) { // without a list no matcher is needed, and nothing is allocated
    details.gaps = {&gap, 1};
    list.push_back({0, parse_or_throw(set.dem_text).components[0].probability});
    std::uint8_t out = 0; // the first list makes the matchers of lists
    ASSERT_EQ(with->decode(std::span(events).first(0), {&out, 1}, list, &details), decode_status::ok);
  }
  decode_details *const wanted = list.empty() ? nullptr : &details;
  long failures = 0;
  const std::uint64_t shots = list.empty() ? 40 : 15; // two decodes each
  for (std::uint64_t shot = 0; shot < shots; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
    const auto fired = std::span<const std::uint64_t>(events).first(count);
    for (long after = 0; after < 60; ++after) {
      std::uint8_t out = 0xEE;
      allocations_left = after;
      const decode_status status = with->decode(fired, {&out, 1}, list, wanted);
      allocations_left = -1;
      ASSERT_TRUE(status == decode_status::ok || status == decode_status::internal_error);
      EXPECT_EQ(out, status == decode_status::ok ? set.prediction_row(shot)[0] : 0);
      failures += status != decode_status::ok;
      ASSERT_EQ(with->decode(fired, {&out, 1}, list, wanted), decode_status::ok);
      EXPECT_EQ(out, set.prediction_row(shot)[0]) << "shot " << shot << " after " << after;
    }
  }
  if (GetParam() == "lookup")
    EXPECT_EQ(failures, 0) << "a table decode allocates nothing";
  else
    EXPECT_GT(failures, 0) << "nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderOutOfMemory, testing::ValuesIn([] {
                           auto kinds = decoder_kinds();
                           if (pymatching_available())
                             kinds.emplace_back("pymatching:confidence=1");
                           return kinds;
                         }()),
                         kind_name);

class ListsOutOfMemory : public testing::TestWithParam<std::string> {};

// Probabilities above 1/2 turn the sign of weights, also of edges that only a wanted weight needs.
TEST_P(ListsOutOfMemory, EveryFailedAllocationCostsOneShotOnly) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a matcher that ran out of memory is leaked on purpose, and the leak checker reports it";
#endif
  const bool is_correlated = GetParam() == "pymatching-correlated";
  std::vector<std::string> models{std::string(load_committed(shot_set_name(3, "0.005")).dem_text)};
  if (!is_correlated) // parallel errors that flip different observables, which an edge then chooses from
    models.emplace_back("error(0.1) D0\nerror(0.2) D0 L0\nerror(0.1) D0 D1\nerror(0.3) D1\nerror(0.4) D1 L1\n"
                        "error(0.2) L0\nerror(0.1) D2\nerror(0.1) D2 D3\n");
  std::mt19937 random(5);
  long failures = 0;
  for (int shot = 0; shot < 12; ++shot) {
    const std::string &dem = models[static_cast<std::size_t>(shot) % models.size()];
    const detector_error_model model = parse_or_throw(dem);
    const auto with = make_or_throw(GetParam(), dem), untouched = make_or_throw(GetParam(), dem);
    std::vector<std::uint64_t> events;
    for (std::uint64_t detector = 0; detector < model.num_detectors; ++detector)
      if (random() % 4 == 0)
        events.push_back(detector);
    const shot_list list = random_list(model, 0.5, is_correlated ? 0.5 : 1, random);
    const weighed_answer expected = weigh(*untouched, events, list);
    decode_status status = decode_status::internal_error;
    for (long after = 0; after < 2000 && status != decode_status::ok; ++after) {
      std::vector<std::uint8_t> out(with->observable_bytes(), 0xEE);
      decode_details details;
      allocations_left = after;
      status = with->decode(events, out, list, &details);
      allocations_left = -1;
      ASSERT_TRUE(status == decode_status::ok || status == decode_status::internal_error);
      failures += status != decode_status::ok;
      const weighed_answer next = weigh(*with, events, list);
      ASSERT_EQ(next.found, expected.found) << "shot " << shot << " after " << after;
      ASSERT_EQ(next.weight, expected.weight) << "shot " << shot << " after " << after;
      ASSERT_EQ(decode(*with, events), decode(*untouched, events)) << "shot " << shot << " after " << after;
    }
    EXPECT_EQ(status, decode_status::ok);
  }
  EXPECT_GT(failures, 100) << "nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(Kinds, ListsOutOfMemory, testing::Values("pymatching", "pymatching-correlated"), kind_name);

class ConstructionOutOfMemory : public testing::TestWithParam<std::string> {};

// PyMatching's graph is moved by functions that must not throw, and allocate.
TEST_P(ConstructionOutOfMemory, EveryFailedAllocationIsARefusalForTheMachine) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a matcher that ran out of memory is leaked on purpose, and the leak checker reports it";
#endif
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  constexpr long kMany = 1'000'000;
  allocations_left = kMany;
  const std::string name = make_or_throw(GetParam(), set.dem_text)->name();
  const long all = kMany - std::exchange(allocations_left, -1);
  ASSERT_GT(all, 100);
  int refusals = 0;
  const long step = std::max(all / 300, 1L);
  for (long after = 0; after < all; after += step) {
    allocations_left = after;
    const decoder_result made = make_decoder(GetParam(), set.dem_text);
    allocations_left = -1;
    refusals += !made;
    EXPECT_TRUE(made || made.machine_lacks) << after << ": " << made.error;
    if (made) { // `auto` takes no other decoder for lack of memory
      EXPECT_EQ(made.instance->name(), name) << after;
    }
  }
  EXPECT_GT(refusals, all / step / 2) << "nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(Kinds, ConstructionOutOfMemory,
                         testing::Values("auto", "pymatching", "pymatching-correlated", "lookup", "bp-osd", "relay-bp",
                                         "pymatching:confidence=1", "bp-osd:confidence=1"),
                         kind_name);

class PropagationOutOfMemory : public testing::TestWithParam<std::string> {};

TEST_P(PropagationOutOfMemory, ADecodeAllocatesNothing) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto with = make_or_throw(GetParam(), set.dem_text);
  std::vector<std::uint64_t> events(set.num_detectors);
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
    std::uint8_t out = 0;
    allocations_left = 0;
    const decode_status status = with->decode(std::span(events).first(count), {&out, 1});
    const bool none_failed = allocations_left == 0;
    allocations_left = -1;
    ASSERT_EQ(status, decode_status::ok);
    ASSERT_TRUE(none_failed) << "shot " << shot;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PropagationOutOfMemory, testing::Values("bp-osd", "relay-bp"), kind_name);

// The plug-in's destroy is in its own memory: it must run before the plug-in is unloaded.
TEST(DecoderOutOfMemory, APluginIsFreedBeforeItIsUnloaded) {
  const char *const plugin = CUDAQ_TEST_OWN_DESTROY;
  int failures = 0;
  for (long after = 0; after < 200; ++after) {
    allocations_left = after;
    const decoder_result made = make_decoder(plugin, "error(0.1) D1000 L0\n");
    allocations_left = -1;
    failures += !made;
  }
  EXPECT_GT(failures, 5) << "nothing was tested";
  EXPECT_LT(failures, 200) << "every call fails";
}

} // namespace
} // namespace cudaq::qec::realtime::test

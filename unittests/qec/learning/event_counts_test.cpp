// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/learning/learning_test_support.h"

#include <bit>

namespace cudaq::qec::realtime::test {
namespace {

/// The number of shots in which the parity of these detectors is 1, bit by bit.
std::size_t odd_by_hand(const std::vector<shot_bytes> &shots, std::span<const std::uint32_t> detectors) {
  std::size_t odd = 0;
  for (const shot_bytes &shot : shots) {
    unsigned parity = 0;
    for (const std::uint32_t d : detectors)
      parity ^= shot[d / 8] >> d % 8 & 1U;
    odd += parity;
  }
  return odd;
}

TEST(ParitySets, AreAllSubsetsOfSmallErrorsAndThePairsOfLargeOnes) {
  const auto sets = sets_of(model_of("error(0.1) D0 D1 ^ D3\nerror(0.1) D5\nerror(0.1) D1 D3\n"
                                     "error(0.1) D4 D5 D6 D7 D8 D9 D10\n"));
  EXPECT_EQ(sets->num_detectors(), 11u);
  EXPECT_EQ(sets->end_of_pairs(), 11u + 3 + 21); // of {0, 1, 3}, and of the error with seven
  EXPECT_EQ(sets->size(), sets->end_of_pairs() + 1);
  const std::uint32_t three[] = {0, 1, 3}, no_error[] = {0, 4}, large[] = {4, 5, 6}, outside[] = {11};
  EXPECT_EQ(sets->find(three), sets->end_of_pairs());
  EXPECT_EQ(sets->find(no_error), parity_sets::kNone);
  EXPECT_EQ(sets->find(large), parity_sets::kNone);
  EXPECT_EQ(sets->find(outside), parity_sets::kNone);
}

TEST(ParitySets, ADetectorThatTwoComponentsFlipIsInNoSet) {
  const auto sets = sets_of(model_of("error(0.1) D0 D1 ^ D1 D2\n"));
  const std::uint32_t outer[] = {0, 2}, inner[] = {0, 1};
  EXPECT_NE(sets->find(outer), parity_sets::kNone);
  EXPECT_EQ(sets->find(inner), parity_sets::kNone);
}

TEST(ParitySets, RefuseAModelWithoutDetectorsAndAnErrorOfTooMany) {
  EXPECT_EQ(parity_sets::of(model_of("error(0.1) L0\n")).text(), "the model has no detectors");
  std::string text = "detector D0\nerror(0.1)";
  for (int d = 0; d < 65; ++d)
    text += " D" + std::to_string(d);
  EXPECT_EQ(parity_sets::of(model_of(text)).text(), "line 2: the error flips 65 detectors; rates are learned of models "
                                                    "whose errors flip at most 64");
}

TEST(ParitySets, RefuseAModelWhoseSetsOverlapTooMuch) {
  const auto with_neighbours = [](int number) {
    std::string text;
    for (int d = 1; d <= number; ++d)
      text += "error(0.001) D0 D" + std::to_string(d) + "\n";
    return parity_sets::of(model_of(text + text)); // the second half is the same errors again
  };
  EXPECT_TRUE(with_neighbours(3000).ok());
  EXPECT_EQ(with_neighbours(15000).text(), "too many sets of detectors overlap, for example 15001 in detector 0: the "
                                           "rates would take too much memory or time");
}

TEST(EventCounts, EqualACountBitByBitForEachNumberOfShots) {
  for (const char *name : {"surface_z_d3_p0.005", "surface_z_d5_p0.005"}) { // 3 and 15 bytes, one and two words
    const detector_error_model model = model_of(load_committed(name).dem_text);
    for (const std::size_t count : {1U, 63U, 64U, 65U, 300U}) {
      std::vector<shot_bytes> shots;
      sample_shots(model, count, count, [&](const shot_bytes &shot) { shots.push_back(shot); });
      event_counts counts(sets_of(model));
      for (const shot_bytes &shot : shots)
        ASSERT_EQ(counts.add(shot), decode_status::ok);
      counts.flush();
      ASSERT_EQ(counts.shots(), static_cast<double>(count));
      for (std::size_t k = 0; k < counts.sets()->size(); ++k)
        ASSERT_EQ(counts.odd(k), static_cast<double>(odd_by_hand(shots, (*counts.sets())[k]))) << name << ", set " << k;
    }
  }
}

TEST(EventCounts, KnowMeanAndVarianceOfTheEventsOfAShot) {
  event_counts counts(sets_of(model_of("error(0.1) D0 D1\nerror(0.1) D2\n")));
  for (const std::uint8_t shot : shot_bytes{0, 7, 3, 0})
    ASSERT_EQ(counts.add({&shot, 1}), decode_status::ok);
  counts.flush();
  EXPECT_DOUBLE_EQ(counts.mean_events(), 5.0 / 4);
  EXPECT_DOUBLE_EQ(counts.variance_of_events(), 13.0 / 4 - 25.0 / 16);
}

TEST(EventCounts, AShotWithWrongBitsChangesNothing) {
  event_counts counts(sets_of(model_of("error(0.1) D0 D9\n")));
  const std::uint8_t shot[] = {1, 2, 0}, outside[] = {0, 4}, far_outside[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(counts.add({shot, 1}), decode_status::buffer_too_small);
  EXPECT_EQ(counts.add({}), decode_status::buffer_too_small);
  EXPECT_EQ(counts.add(outside), decode_status::bad_detector_index);
  EXPECT_EQ(counts.add(far_outside), decode_status::bad_detector_index);
  EXPECT_EQ(counts.add(shot), decode_status::ok); // more bytes than needed, which are 0
  counts.flush();
  EXPECT_EQ(counts.shots(), 1);
  EXPECT_EQ(counts.odd(0), 1);
  EXPECT_EQ(counts.odd(9), 1);
  EXPECT_EQ(counts.mean_events(), 2);
}

TEST(EventCounts, HalvingWeightsOlderShotsLess) {
  event_counts counts(sets_of(model_of("error(0.1) D0\n")));
  const std::uint8_t fired = 1, quiet = 0;
  for (int k = 0; k < 100; ++k)
    ASSERT_EQ(counts.add({&fired, 1}), decode_status::ok);
  counts.halve();
  for (int k = 0; k < 50; ++k)
    ASSERT_EQ(counts.add({&quiet, 1}), decode_status::ok);
  counts.flush();
  EXPECT_EQ(counts.odd(0), 50);
  EXPECT_EQ(counts.shots(), 100);
  EXPECT_DOUBLE_EQ(counts.effective_shots(), 100.0 * 100 / (100 / 4 + 50));
}

TEST(EventCounts, MergedCountsAreThoseOfAllShots) {
  const detector_error_model model = surface_code();
  event_counts one = counts_of(model, 100, 1), both(one.sets());
  const event_counts other = counts_of(model, 200, 2);
  for (const std::uint64_t seed : {1U, 2U})
    sample_shots(model, 100 * seed, seed,
                 [&](const shot_bytes &shot) { ASSERT_EQ(both.add(shot), decode_status::ok); });
  both.flush();
  ASSERT_TRUE(one.merge(other).ok());
  EXPECT_EQ(one.shots(), 300);
  EXPECT_DOUBLE_EQ(one.variance_of_events(), both.variance_of_events());
  for (std::size_t k = 0; k < both.sets()->size(); ++k)
    ASSERT_EQ(one.odd(k), both.odd(k));
}

TEST(EventCounts, MergingRefusesOtherSetsAndShotsThatAreNotCounted) {
  event_counts counts(sets_of(model_of("error(0.1) D0 D1\n")));
  event_counts open(counts.sets());
  const std::uint8_t shot = 1;
  ASSERT_EQ(open.add({&shot, 1}), decode_status::ok);
  EXPECT_EQ(counts.merge(open).text(), "the counts to add have 1 shots that are not counted; flush first");
  EXPECT_EQ(counts.merge(event_counts(sets_of(model_of("error(0.1) D0\n")))).text(),
            "the counts are those of another model");
  EXPECT_EQ(counts.shots(), 0);
}

TEST(EventCounts, FindPassagesThatRepeatAtAnyOffset) {
  const detector_error_model model = surface_code();
  std::vector<shot_bytes> shots;
  sample_shots(model, 5000, 1, [&](const shot_bytes &shot) { shots.push_back(shot); });
  event_counts counts(sets_of(model));
  for (const shot_bytes &shot : shots)
    ASSERT_EQ(counts.add(shot), decode_status::ok);
  EXPECT_EQ(counts.repeated_shots(), 0);
  for (std::size_t k = 17; k < 2017; ++k)
    ASSERT_EQ(counts.add(shots[k]), decode_status::ok);
  EXPECT_GT(counts.repeated_shots(), 1000);
  EXPECT_LE(counts.repeated_shots(), 2000);
}

TEST(EventCounts, AreEmptyAfterClear) {
  event_counts counts = counts_of(surface_code(), 100, 1);
  counts.clear();
  EXPECT_EQ(counts.shots(), 0);
  EXPECT_EQ(counts.effective_shots(), 0);
  EXPECT_EQ(counts.mean_events(), 0);
  for (std::size_t k = 0; k < counts.sets()->size(); ++k)
    ASSERT_EQ(counts.odd(k), 0);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/qec/whole_errors.h"

namespace cudaq::qec::realtime::test {
namespace {

const stream_options kSmall{.decoder = "pymatching", .commit = 3, .buffer = 3, .rounds = "time"};

class Stream : public testing::Test {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }
};

TEST_F(Stream, WindowsOfWholeErrorsMayBeParallel) {
  const std::string text = whole_errors(surface_dem());
  const auto stream = stream_or_throw(text, {.commit = 4, .buffer = 4, .mode = stream_mode::parallel, .workers = 2});
  EXPECT_NE(stream->description().find("pymatching; parallel"), std::string::npos) << stream->description();
  const auto whole = *repeating_or_throw(text).unrolled(20);
  component_sampler errors(whole, 3);
  int wrong = 0;
  for (int k = 0; k < 100; ++k) {
    const auto shot = errors.next();
    stream->reset();
    ASSERT_EQ(run(*stream, shot.events, whole.num_detectors), decode_status::ok);
    wrong += flips_of(*stream) != shot.observables;
  }
  EXPECT_LT(wrong, 30) << "of 100 shots of 42 rounds";
}

TEST_F(Stream, CorrectsEveryPairOfErrorsOfADistance5Code) {
  const std::string text = repetition_dem(5, 0.01, 2, 8);
  const auto whole = *parse_dem(text);
  const auto stream = stream_or_throw(text, {.decoder = "pymatching"});
  for (std::size_t a = 0; a < whole.components.size(); ++a)
    for (std::size_t b = a + 1; b < whole.components.size(); ++b)
      ASSERT_NO_FATAL_FAILURE(expect_corrects(*stream, whole, {a, b}));
}

TEST_F(Stream, AWindowLongerThanTheExperimentIsAWholeShot) {
  const std::string text = surface_dem();
  const repeating_model model = repeating_or_throw(text);
  const auto stream = stream_or_throw(text, {.decoder = "pymatching", .commit = 40, .buffer = 2});
  for (const std::uint64_t repetitions : {0U, 1U, 7U}) {
    const auto whole = *model.unrolled(repetitions);
    std::string flat = text;
    const std::size_t at = flat.find("repeat ") + 7;
    flat.replace(at, flat.find(' ', at) - at, std::to_string(repetitions));
    const auto shots = make_or_throw("pymatching", flat);
    component_sampler errors(whole, 3);
    for (int k = 0; k < 100; ++k) {
      const auto shot = errors.next();
      std::vector<std::uint8_t> expected(1);
      ASSERT_EQ(shots->decode_bits(shot.events, expected), decode_status::ok);
      stream->reset();
      ASSERT_EQ(run(*stream, shot.events, whole.num_detectors), decode_status::ok);
      ASSERT_EQ(stream->windows(), 1U);
      ASSERT_EQ(flips_of(*stream), expected);
    }
  }
}

TEST_F(Stream, FramesBecomeFinalWindowByWindow) {
  const std::string text = repetition_dem(4, 0.01, 1, 1000);
  const auto stream = stream_or_throw(text, kSmall);
  const std::vector<std::uint8_t> quiet(8);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    ASSERT_EQ(stream->push(quiet, 3), decode_status::ok);
    EXPECT_EQ(stream->pushed_rounds(), round);
    EXPECT_EQ(stream->committed_rounds(), round < 6 ? 0 : (round - 3) / 3 * 3) << round;
  }
}

TEST_F(Stream, EndsOnlyAfterAWholeRepetitionAndTakesNothingOtherwise) {
  const std::string text = repetition_dem(3, 0.01, 2, 10);
  const auto stream = stream_or_throw(text, kSmall);
  const std::vector<std::uint8_t> quiet(8);
  EXPECT_EQ(stream->finish(quiet, 2), decode_status::stream_misaligned) << "the head has not come";
  ASSERT_EQ(stream->push(quiet, 2 + 4 + 2), decode_status::ok);
  EXPECT_EQ(stream->finish(quiet, 2), decode_status::stream_misaligned) << "half of a repetition";
  ASSERT_EQ(stream->push(quiet, 2), decode_status::ok);
  EXPECT_EQ(stream->finish(quiet, 3), decode_status::stream_misaligned) << "another number of bits";
  EXPECT_EQ(stream->finish(std::span(quiet).first(0), 2), decode_status::buffer_too_small);
  EXPECT_EQ(stream->push(std::span(quiet).first(1), 9), decode_status::buffer_too_small);
  EXPECT_EQ(stream->pushed_bits(), 10U);
  ASSERT_EQ(stream->finish(quiet, 2), decode_status::ok);
  EXPECT_EQ(stream->committed_rounds(), 6U);
  EXPECT_EQ(stream->pushed_rounds(), 6U);
  EXPECT_EQ(stream->finish(quiet, 2), decode_status::stream_misaligned);
  EXPECT_EQ(stream->push(quiet, 1), decode_status::stream_misaligned) << "the experiment is over";
  stream->reset();
  EXPECT_EQ(stream->push(quiet, 2), decode_status::ok);
}

TEST_F(Stream, AFailedWindowBreaksTheStreamUntilItIsReset) {
  // Without a boundary an odd number of events has no solution.
  const std::string text =
      "detector(0) D0\ndetector(0) D1\nrepeat 50 {\nerror(0.1) D0 D1 L0\nerror(0.1) D0 D2\n"
      "error(0.1) D1 D3\nshift_detectors(1) 2\ndetector(0) D0\ndetector(0) D1\n}\nerror(0.1) D0 D1\n";
  const auto stream = stream_or_throw(text, {.decoder = "pymatching", .commit = 2, .buffer = 2});
  const std::vector<std::uint8_t> quiet(8);
  std::vector<std::uint8_t> odd(1, 1);
  ASSERT_EQ(stream->push(quiet, 40), decode_status::ok);
  ASSERT_EQ(stream->push(odd, 8), decode_status::ok) << "the window's far side is open: the rest may come later";
  const std::uint64_t before = stream->committed_rounds();
  EXPECT_EQ(stream->finish(quiet, 0), decode_status::no_solution);
  EXPECT_EQ(stream->push(quiet, 1), decode_status::no_solution);
  EXPECT_GE(stream->committed_rounds(), before);
  EXPECT_LT(stream->committed_rounds(), stream->pushed_rounds());
  stream->reset();
  ASSERT_EQ(stream->push(quiet, 42), decode_status::ok);
  EXPECT_EQ(stream->finish(quiet, 0), decode_status::ok);
}

TEST_F(Stream, RefusesWindowsThatCannotBeRightWithAText) {
  const auto refused = [](std::string_view text, const stream_options &options) {
    return make_stream_decoder(text, options).error;
  };
  const std::string text = repetition_dem(3, 0.01, 1, 10);
  EXPECT_NE(refused(text, {.decoder = "pymatching", .commit = 2, .buffer = 1}).find("reaches over"), std::string::npos);
  EXPECT_NE(refused(text, {.decoder = "none"}).find("unknown decoder"), std::string::npos);
  EXPECT_NE(refused(text, {.decoder = "sliding-window:inner=sliding-window"}).find("has no windows itself"),
            std::string::npos);
  EXPECT_NE(refused(text, {.rounds = "x"}).find("index:N"), std::string::npos);
  EXPECT_NE(refused("error(0.1) D0 L0", {}).find("no loop"), std::string::npos);
  EXPECT_NE(refused(text + "error(0.7) L0\n", {.decoder = "pymatching"}).find("no window can take it"),
            std::string::npos);
  EXPECT_NE(refused("repeat 3 {\ndetector(0) D0\nerror(0.1) D0\nshift_detectors(1) 1\n}\n", {}).find("give commit"),
            std::string::npos);
}

TEST_F(Stream, ALongCommitBuildsItsLastWindowWhenItIsNeeded) {
  const std::string text = repetition_dem(3, 0.01, 1, 5);
  const auto stream = stream_or_throw(text, {.decoder = "pymatching", .commit = 3000, .buffer = 3});
  const std::vector<std::uint8_t> quiet(2000);
  ASSERT_EQ(stream->push(quiet, 2 * 3500), decode_status::ok);
  EXPECT_EQ(stream->committed_rounds(), 3000U);
  EXPECT_EQ(stream->finish(quiet, 2), decode_status::ok);
  EXPECT_EQ(stream->committed_rounds(), 3501U);
  EXPECT_NE(make_stream_decoder(text, {.commit = UINT64_MAX, .buffer = 3}).error.find("at most"), std::string::npos);
  EXPECT_NE(make_stream_decoder(repetition_dem(3, 0.01, 1009, 5), {.commit = 1013, .buffer = 3}).error.find("divisor"),
            std::string::npos);
}

TEST_F(Stream, AHeadThatNamesFarDetectorsIsRefused) {
  const std::string text = "error(0.1) D8 L0\nrepeat 10 {\nerror(0.1) D0 D1 L0\nshift_detectors 2\n}\n";
  EXPECT_NE(make_stream_decoder(text, {.decoder = "bp-osd", .commit = 2, .buffer = 2, .rounds = "index:1"}).error, "");
}

TEST_F(Stream, AnObservableBeforeItsDetectorsCountsForErrorsThatAreTakenWhole) {
  std::string text = repetition_dem(3, 0.01, 1, 6);
  const auto joined = *parse_dem(text);
  for (std::size_t at = 0; (at = text.find(" D0 L0", at)) != std::string::npos; at += 8)
    text.replace(at, 6, " L0 ^ D0");
  const auto stream = stream_or_throw(text, {.decoder = "bp-osd", .commit = 3, .buffer = 3});
  expect_corrects_every_error(*stream, joined);
}

TEST_F(Stream, AutoThatEndsAtBpOsdGetsErrorsWhole) {
  // An error with three detectors, which matching refuses.
  std::string text = repetition_dem(3, 0.01, 1, 6);
  text.insert(text.find("repeat 6 {\n") + 11, "error(0.001) D0 D1 D2\n");
  const auto stream = stream_or_throw(text, {.decoder = "auto:osd_order=2", .commit = 3, .buffer = 3});
  EXPECT_NE(stream->description().find("; bp-osd:osd_order=2;"), std::string::npos) << stream->description();
  expect_corrects_every_error(*stream, *parse_dem(text));
}

TEST_F(Stream, AnObservableWithoutDetectorsBelongsToItsError) {
  std::string joined = repetition_dem(3, 0.01, 1, 6), apart = joined;
  for (std::size_t at = 0; (at = apart.find(" D0 L0", at)) != std::string::npos; at += 8)
    apart.replace(at, 6, " D0 ^ L0");
  ASSERT_NE(joined, apart);
  const auto whole = *parse_dem(joined);
  const auto a = stream_or_throw(joined, kSmall), b = stream_or_throw(apart, kSmall);
  component_sampler errors(whole, 3);
  for (int k = 0; k < 100; ++k) {
    const auto shot = errors.next();
    a->reset();
    b->reset();
    ASSERT_EQ(run(*a, shot.events, whole.num_detectors), decode_status::ok);
    ASSERT_EQ(run(*b, shot.events, whole.num_detectors), decode_status::ok);
    ASSERT_EQ(flips_of(*a), flips_of(*b));
  }
}

TEST_F(Stream, TakesTheDistanceOfTheCodeForItsWindows) {
  for (const int d : {3, 4, 7})
    EXPECT_NE(stream_or_throw(repetition_dem(d, 0.01, 1, 10), {.decoder = "pymatching"})
                  ->description()
                  .find("(distance " + std::to_string(d) + ")"),
              std::string::npos);
}

TEST_F(Stream, RunsFarBeyondTheLengthOfTheTextInConstantMemoryAndTime) {
  const std::string text = repetition_dem(3, 0.01, 1, 5);
  const auto stream = stream_or_throw(text, {.decoder = "pymatching"});
  const std::vector<std::uint8_t> quiet(250);
  for (int k = 0; k < 1000; ++k)
    ASSERT_EQ(stream->push(quiet, 2000), decode_status::ok);
  EXPECT_EQ(stream->pushed_rounds(), 1'000'000U);
  EXPECT_GE(stream->committed_rounds(), 999'990U);
  EXPECT_EQ(stream->finish(quiet, 2), decode_status::ok);
}

TEST_F(Stream, IsUsedAsItsPageSays) {
  const std::string dem_text = repetition_dem(3, 0.01, 1, 5);
  const std::vector<std::uint8_t> bits(4), tail_bits(1);
  const std::uint64_t count = 2 + 5 * 2;
  stream_result made = make_stream_decoder(dem_text, {.decoder = "pymatching"});
  ASSERT_TRUE(made) << made.error;
  stream_decoder &stream = *made.instance;
  decode_status status = stream.push(bits, count); // any number of bits, as they come
  ASSERT_EQ(status, decode_status::ok);
  status = stream.finish(tail_bits, stream.tail_detectors());
  ASSERT_EQ(status, decode_status::ok);
  EXPECT_EQ(stream.committed_rounds(), 7U);
}

TEST_F(Stream, IsADecoderOfWholeShotsByName) {
  const std::string text = repetition_dem(4, 0.05, 2, 30);
  const auto whole = *parse_dem(text);
  const auto stream = stream_or_throw(text, kSmall);
  const auto shots = make_or_throw("sliding-window:inner=pymatching,commit=3,buffer=3,edges=0", text);
  EXPECT_EQ(shots->num_detectors(), whole.num_detectors);
  component_sampler errors(whole, 4);
  for (int k = 0; k < 200; ++k) {
    const auto shot = errors.next();
    stream->reset();
    ASSERT_EQ(run(*stream, shot.events, whole.num_detectors), decode_status::ok);
    std::vector<std::uint8_t> out(1);
    ASSERT_EQ(shots->decode_bits(shot.events, out), decode_status::ok);
    ASSERT_EQ(out, flips_of(*stream));
  }
  EXPECT_NE(make_decoder("sliding-window:inner=pymatching,osd_order=3", text).error.find("unknown setting"),
            std::string::npos)
      << "settings of the inner decoder are checked";
  EXPECT_NE(make_decoder("sliding-window", "error(0.1) D0 L0").error.find("no loop"), std::string::npos);
}

class StreamKinds : public testing::TestWithParam<std::string> {};

TEST_P(StreamKinds, DecodersOfEveryKindCorrectSingleErrors) {
  const std::string text = surface_dem();
  const auto stream = stream_or_throw(text, {.decoder = GetParam(), .commit = 3, .buffer = 3});
  expect_corrects_every_error(*stream, *repeating_or_throw(text).unrolled(4), 5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StreamKinds,
                         testing::ValuesIn(pymatching_available()
                                               ? std::vector<std::string>{"pymatching", "pymatching-correlated",
                                                                          "bp-osd", "relay-bp"}
                                               : std::vector<std::string>{"bp-osd", "relay-bp"}),
                         kind_name);

} // namespace
} // namespace cudaq::qec::realtime::test

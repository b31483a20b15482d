// SPDX-License-Identifier: Apache-2.0
// What holds for sequential and parallel windows, with and without workers.
#include "lib/qec/stream/window_set.h"
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/qec/whole_errors.h"
#include "unittests/support/sanitized.h"

#include <map>

namespace cudaq::qec::realtime::test {
namespace {

struct flavour {
  const char *name;
  stream_mode mode;
  std::size_t workers;
};

class StreamModes : public testing::TestWithParam<flavour> {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }

  stream_options options(std::uint64_t commit = 0, std::uint64_t buffer = 0, std::string rounds = "time") const {
    return {.decoder = "pymatching",
            .commit = commit,
            .buffer = buffer,
            .rounds = std::move(rounds),
            .mode = GetParam().mode,
            .workers = GetParam().workers};
  }

  /// Each error of the model on its own (with workers: some of them), for streams of these repetitions.
  static void expect_corrects_every_error(stream_decoder &stream, const repeating_model &model,
                                          const std::vector<std::uint64_t> &repetitions) {
    const std::size_t step = GetParam().workers == 0 ? 1 : cudaq::realtime::test::kSanitized ? 41 : 7;
    for (const std::uint64_t length : repetitions) {
      SCOPED_TRACE(std::to_string(length) + " repetitions");
      test::expect_corrects_every_error(stream, *model.unrolled(length), step);
    }
  }
};

TEST_P(StreamModes, CorrectEverySingleErrorAtEveryLength) {
  for (const std::string &text : {surface_dem(), whole_errors(surface_dem())}) { // repetitions of two rounds
    const auto stream = stream_or_throw(text, options());
    EXPECT_EQ(stream->is_parallel(), GetParam().mode == stream_mode::parallel);
    expect_corrects_every_error(*stream, repeating_or_throw(text), {0, 1, 2, 3, 4, 5, 6, 7});
  }
}

TEST_P(StreamModes, CorrectSingleErrorsForEveryCommitAndBuffer) {
  const std::string text = repetition_dem(4, 0.01, 3, 9);
  for (const std::uint64_t commit : {1U, 2U, 4U, 5U, 7U})
    for (const std::uint64_t buffer : {3U, 4U, 9U}) {
      if (commit == 1 && GetParam().mode == stream_mode::parallel)
        continue; // an error reaches over such a window
      SCOPED_TRACE("commit " + std::to_string(commit) + ", buffer " + std::to_string(buffer));
      expect_corrects_every_error(*stream_or_throw(text, options(commit, buffer)), repeating_or_throw(text), {0, 9});
    }
}

TEST_P(StreamModes, CorrectEveryPairOfErrorsOfADistance5Code) {
  const std::string text = repetition_dem(5, 0.01, 1, 24);
  const auto whole = *parse_dem(text);
  const auto stream = stream_or_throw(text, options());
  // The first error in a repetition that lies in both kinds of windows and at their borders, the second within reach.
  const std::size_t size = whole.components.size(), near = 36;
  const std::size_t step = GetParam().workers == 0 ? 1 : cudaq::realtime::test::kSanitized ? 29 : 7;
  for (std::size_t a = size / 4; a < size * 3 / 4; a += step)
    for (std::size_t b = a + 1; b < a + near; b += step)
      ASSERT_NO_FATAL_FAILURE(expect_corrects(*stream, whole, {a, b}));
}

TEST_P(StreamModes, TakeExperimentsOfThreeRounds) {
  const std::string text = repetition_dem(3, 0.01, 1, 1000);
  const auto stream = stream_or_throw(text, options(5, 5));
  expect_corrects_every_error(*stream, repeating_or_throw(text), {1});
  EXPECT_EQ(stream->pushed_rounds(), 3U);
  EXPECT_EQ(stream->windows(), 1U);
}

TEST_P(StreamModes, TakeExperimentsWithoutRounds) {
  const std::string text = "repeat 9 {\nerror(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\ndetector(0) D0\n"
                           "detector(1) D1\nshift_detectors(2) 2\n}\n"; // neither head nor tail
  const auto stream = stream_or_throw(text, options(2, 2));
  for (const std::uint64_t rounds : {0U, 2U, 14U, 0U}) {
    stream->reset();
    EXPECT_FALSE(stream->poll().is_final);
    const std::vector<std::uint8_t> none(2);
    ASSERT_EQ(stream->push(none, rounds), decode_status::ok);
    ASSERT_EQ(stream->finish({}, 0), decode_status::ok);
    const stream_progress end = stream->wait_committed(UINT64_MAX, soon());
    EXPECT_TRUE(end.is_final);
    EXPECT_EQ(end.committed_rounds, rounds);
    EXPECT_EQ(end.pushed_rounds, rounds);
  }
}

TEST_P(StreamModes, TakeErrorsThatReachTwoRepetitionsAhead) {
  const auto round = [](int first) {
    const std::string a = " D" + std::to_string(first), b = " D" + std::to_string(first + 1);
    return "error(0.01)" + a + " L0\nerror(0.01)" + a + b + "\nerror(0.01)" + b + "\n";
  };
  const std::string in_time = "error(0.01) D0 D2\nerror(0.01) D1 D3\n";
  const std::string text = "detector(0) D0\ndetector(0) D1\n" + round(0) + "repeat 30 {\n" + in_time +
                           "error(0.01) D0 D4\nshift_detectors(1) 2\ndetector(0) D0\ndetector(0) D1\n" + round(0) +
                           "}\ndetector(1) D2\ndetector(1) D3\n" + in_time + round(2);
  const repeating_model model = repeating_or_throw(text);
  ASSERT_EQ(model.reach(), 3U);
  expect_corrects_every_error(*stream_or_throw(text, options(3, 4)), model, {1, 2, 9, 30});
}

TEST_P(StreamModes, TakeSeveralPhases) {
  // Another patch shape in a loop of its own, and then the memory that repeats.
  std::string text = repetition_dem(3, 0.01, 1, 900);
  const std::string other = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.01) D0 D2\nerror(0.01) D1 D3\nerror(0.01) D0 "
                            "L0\nerror(0.01) D0 D1\nerror(0.01) D1\nshift_detectors(0,1) 2\n";
  text = "repeat 7 {\n" + other + "}\nrepeat 2 {\nrepeat 2 {\n" + other + "}\n}\n" + text;
  expect_corrects_every_error(*stream_or_throw(text, options(3, 3)), repeating_or_throw(text), {0, 1, 5});
}

TEST_P(StreamModes, CountRoundsByIndexWhereThereAreNoCoordinates) {
  std::string text = repetition_dem(4, 0.01, 2, 10);
  for (std::size_t at = 0; (at = text.find("detector(", at)) != std::string::npos;)
    text.erase(at, text.find('\n', at) + 1 - at);
  const auto stream = stream_or_throw(text, options(3, 3, "index:3"));
  expect_corrects_every_error(*stream, repeating_or_throw(text, "index:3"), {0, 3});
}

TEST_P(StreamModes, GiveTheFramesOfTheirModeWhateverThePieces) {
  const std::string text = repetition_dem(4, 0.06, 2, 40);
  const auto whole = *parse_dem(text);
  stream_options alone = options(3, 3);
  alone.workers = 0;
  const auto reference = stream_or_throw(text, alone), stream = stream_or_throw(text, options(3, 3));
  component_sampler errors(whole, 5);
  std::mt19937 random(7);
  const std::uint64_t tail = stream->tail_detectors(), before = whole.num_detectors - tail;
  for (int k = 0; k < 40; ++k) {
    const auto shot = errors.next();
    std::map<std::uint64_t, std::vector<std::uint8_t>> frames; // by committed rounds
    std::vector<std::uint8_t> frame(1);
    reference->reset();
    for (std::uint64_t at = 0; at < before; at += 3) {
      ASSERT_EQ(reference->push(part_of(shot.events, at, 3), 3), decode_status::ok);
      frames[reference->committed_rounds()] = flips_of(*reference);
    }
    ASSERT_EQ(finish(*reference, shot.events, whole.num_detectors), decode_status::ok);
    frames[reference->committed_rounds()] = flips_of(*reference);

    stream->reset();
    std::uint64_t committed = 0;
    const auto expect_known_frame = [&] {
      const stream_progress now = stream->poll(frame);
      ASSERT_EQ(now.status, decode_status::ok);
      ASSERT_GE(now.committed_rounds, committed);
      ASSERT_LE(now.committed_rounds, now.pushed_rounds);
      committed = now.committed_rounds;
      if (frames.contains(committed)) { // pieces skip some
        ASSERT_EQ(frame, frames[committed]) << committed;
      }
    };
    for (std::uint64_t at = 0; at < before;) {
      const std::uint64_t count = std::min<std::uint64_t>(random() % 40, before - at);
      ASSERT_EQ(push_part(*stream, shot.events, at, at + count), decode_status::ok);
      at += count;
      ASSERT_EQ(stream->pushed_bits(), at);
      expect_known_frame();
    }
    ASSERT_EQ(finish(*stream, shot.events, whole.num_detectors), decode_status::ok);
    expect_known_frame();
    ASSERT_EQ(committed, whole.num_detectors / 3);
    ASSERT_EQ(flips_of(*stream), flips_of(*reference));
    const stream_statistics counts = stream->statistics();
    ASSERT_EQ(counts.windows, reference->windows());
    ASSERT_GT(counts.worst_decode_ns, 0U);
    ASSERT_GE(counts.decode_ns, counts.worst_decode_ns);
    ASSERT_GE(counts.worst_lag_rounds, 6U) << "commit and buffer";
  }
}

#if !defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(InTheCallingThread, StreamModes,
                         testing::Values(flavour{"Sequential", stream_mode::sequential, 0},
                                         flavour{"Parallel", stream_mode::parallel, 0}),
                         [](const auto &tested) { return std::string(tested.param.name); });
#endif
INSTANTIATE_TEST_SUITE_P(WithWorkers, StreamModes,
                         testing::Values(flavour{"SequentialOnAWorker", stream_mode::sequential, 1},
                                         flavour{"ParallelOnThreeWorkers", stream_mode::parallel, 3}),
                         [](const auto &tested) { return std::string(tested.param.name); });

class ParallelWindows : public testing::Test {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }
};

TEST_F(ParallelWindows, AreReleasedInTheOrderOfRounds) {
  const auto stream =
      stream_or_throw(repetition_dem(4, 0.01, 1, 1000),
                      {.decoder = "pymatching", .commit = 3, .buffer = 3, .mode = stream_mode::parallel});
  const std::vector<std::uint8_t> quiet(8);
  for (std::uint64_t round = 1; round <= 40; ++round) {
    ASSERT_EQ(stream->push(quiet, 3), decode_status::ok);
    // Window 0 needs rounds 0 to 5; windows 1 and 2 need rounds up to 11, windows 3 and 4 up to 17.
    EXPECT_EQ(stream->committed_rounds(), round < 6 ? 0 : (round - 6) / 6 * 6 + 3) << round;
  }
}

TEST_F(ParallelWindows, CommitEachErrorExactlyOnce) {
  const repeating_model repeating = repeating_or_throw(surface_dem());
  const auto model = *repeating.unrolled(12);
  const std::vector<std::uint64_t> rounds = repeating.rounds(12);
  const window_source source(model, rounds, error_form::components);
  const std::uint64_t end = source.num_rounds();
  for (const std::uint64_t commit : {2U, 3U, 5U}) {
    const window_layout layout{commit, 3, true};
    std::size_t committed = 0;
    std::uint64_t j = 0;
    for (; j < layout.complete(end); ++j) {
      const window_rounds here = layout.rounds_of(j);
      const window_model window = source.window(here);
      const auto *const parsed = &window.errors;
      for (const dem_component &c : parsed->components)
        committed += std::ranges::any_of(parsed->detectors_of(c), [&](std::uint64_t d) {
          const std::uint64_t round = rounds[window.first_detector + d];
          return round >= here.commit_begin && round < here.commit_end;
        });
    }
    ASSERT_EQ(j % 2, 1U) << "windows end with one that needs no neighbour";
    committed += source.window({j * commit, j * commit, end, end}).errors.components.size();
    std::size_t all = 0; // half of the components flip no observable and nothing that does
    const connected_parts parts(model, true);
    for (const dem_component &c : model.components)
      all += c.detectors != 0 && parts.parts[parts.part_of[model.detectors_of(c)[0]]].flips_observables ? 1 : 0;
    EXPECT_EQ(committed, all) << "commit " << commit;
  }
}

TEST_F(ParallelWindows, AreRefusedWhereAWindowBetweenOthersMayHaveNoSolution) {
  const auto error = [](const std::string &text, stream_options options) {
    options.mode = stream_mode::parallel;
    return make_stream_decoder(text, options).error;
  };
  // A ring of three detectors: no boundary, as in a toric code.
  std::string ring =
      "repeat 50 {\ndetector(0) D0\ndetector(0) D1\ndetector(0) D2\nerror(0.01) D0 D1 L0\nerror(0.01) D1 "
      "D2\nerror(0.01) D2 D0\nerror(0.01) D0 D3\nerror(0.01) D1 D4\nerror(0.01) D2 D5\n"
      "shift_detectors(1) 3\n}\ndetector(0) D0\ndetector(0) D1\ndetector(0) D2\nerror(0.01) D0 D1 L0\n"
      "error(0.01) D1 D2\nerror(0.01) D2 D0\n";
  const stream_options three{.decoder = "pymatching", .commit = 3, .buffer = 3};
  EXPECT_NE(error(ring, three).find("boundary"), std::string::npos) << error(ring, three);
  EXPECT_NE(error(surface_dem(), {.decoder = "bp-osd", .commit = 3, .buffer = 3}).find("more than two"),
            std::string::npos);
  EXPECT_NE(error(repetition_dem(3, 0.01, 1, 9), {.decoder = "pymatching", .commit = 1, .buffer = 3}).find("reaches"),
            std::string::npos);
  stream_options automatic = three;
  automatic.workers = 2;
  const auto fallen_back = stream_or_throw(ring, automatic);
  EXPECT_FALSE(fallen_back->is_parallel()) << "automatic takes sequential windows for it";
  EXPECT_TRUE(stream_or_throw(repetition_dem(3, 0.01, 1, 9), automatic)->is_parallel());
  automatic.workers = 1;
  EXPECT_FALSE(stream_or_throw(repetition_dem(3, 0.01, 1, 9), automatic)->is_parallel());
}

TEST_F(ParallelWindows, NoticeACorrectionThatDoesNotExplainItsEvents) {
  const std::string text = repetition_dem(4, 0.05, 1, 60);
  const std::string wrong = std::string(CUDAQ_TEST_GATED_PLUGIN) + ":wrong=1";
  const auto stream =
      stream_or_throw(text, {.decoder = wrong, .commit = 3, .buffer = 3, .mode = stream_mode::parallel});
  std::vector<std::uint8_t> bits(40);
  ASSERT_EQ(stream->push(bits, 3 * 20), decode_status::ok) << "without events there is nothing to correct";
  bits[1] = 8;
  EXPECT_EQ(stream->push(bits, 3 * 20), decode_status::internal_error) << "an event, and no correction";
  stream->reset();
  EXPECT_EQ(stream->push(std::vector<std::uint8_t>(40), 3 * 20), decode_status::ok);
}

} // namespace
} // namespace cudaq::qec::realtime::test

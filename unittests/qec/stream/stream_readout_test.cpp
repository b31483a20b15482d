// SPDX-License-Identifier: Apache-2.0
// Streams with soft values and flags. The oracles are decoders of whole shots, and decoders that are made for one
// window of one shot alone.
#include "unittests/qec/stream/stream_readout_support.h"

#include "lib/qec/decoding/split_errors/component_errors.h"
#include "lib/qec/decoding/split_errors/decompose_errors.h"
#include "lib/qec/stream/window_set.h"

#include <limits>

namespace cudaq::qec::realtime::test {
namespace {

std::vector<std::string> models() {
  return {repetition_dem(5, 0.02, 1, 15), repetition_dem(3, 0.03, 2, 9), short_surface_dem(6)};
}

class StreamReadout : public testing::Test {
protected:
  void SetUp() override { CUDAQ_SKIP_WITHOUT_PYMATCHING(); }
};

stream_options options_of(const stream_readout_case &of, stream_options options) {
  options.decoder = "pymatching";
  options.readout = of.table;
  return options;
}

TEST_F(StreamReadout, IsThatOfTheWholeShotIfOneWindowHasAll) {
  std::mt19937 random(11);
  int changed = 0;
  for (const std::string &dem : models()) {
    const stream_readout_case of(dem);
    const auto whole = make_or_throw("pymatching", dem);
    const auto stream = stream_or_throw(dem, options_of(of, {.commit = 64, .buffer = 4}));
    std::vector<std::uint8_t> expected(whole->observable_bytes());
    for (int k = 0; k < 200; ++k) {
      const read_shot shot = sample(of, random);
      std::vector<std::uint8_t> hard(whole->observable_bytes());
      ASSERT_EQ(whole->decode_bits(shot.bits.events, expected, list_of_shot(of, shot)), decode_status::ok);
      ASSERT_EQ(whole->decode_bits(shot.bits.events, hard), decode_status::ok);
      stream->reset();
      ASSERT_EQ(shot_sender(*stream, of, shot).run(), decode_status::ok) << stream->fault();
      ASSERT_EQ(flips_of(*stream), expected) << k;
      changed += hard != expected ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 20) << "the values must matter";
}

/// The windows of an experiment, each with a decoder for the probabilities of the shot: the frames after each.
class windows_of_shot {
public:
  windows_of_shot(const stream_readout_case &of, const read_shot &shot, window_layout layout) : layout_(layout) {
    detector_error_model model = of.whole;
    const shot_list list = list_of_shot(of, shot);
    for (dem_component &c : model.components)
      for (const error_probability &one : list)
        if (one.error == c.mechanism)
          c.probability = std::max(one.probability, 1e-9);
    auto split = component_errors(std::move(model));
    if (split.ok())
      split = decompose_errors(std::move(*split));
    if (split.failed())
      throw std::runtime_error(split.text());
    rounds_ = of.model.rounds(of.model.repetitions());
    source_.emplace(std::move(*split), rounds_, error_form::components);
    bits_ = shot.bits.events;
  }

  /// The observables after the next window; of the last one all rounds.
  std::vector<std::uint8_t> next(bool is_last) {
    const std::uint64_t line = number_ * layout_.commit, end = source_->num_rounds();
    const window_model made =
        source_->window(is_last ? window_rounds{line, line, end, end} : layout_.rounds_of(number_));
    ++number_;
    std::vector<std::uint64_t> events;
    for (std::uint64_t k = 0; k < made.num_detectors; ++k) {
      const std::uint64_t d = made.first_detector + k;
      if (made.is_needed[k] != 0 && (bits_[d / 8] >> d % 8 & 1) != 0)
        events.push_back(k);
    }
    const auto decoder = make_or_throw("pymatching", text_of(made.errors));
    std::vector<std::uint8_t> answer(decoder->observable_bytes());
    if (decoder->decode(events, answer) != decode_status::ok)
      throw std::runtime_error("a window was not decoded");
    const auto bit = [&](std::uint64_t k) { return (answer[k / 8] >> k % 8 & 1) != 0; };
    frame_.resize((made.num_observables + 7) / 8);
    for (std::uint64_t k = 0; k < made.num_observables; ++k)
      if (bit(k))
        flip_bits(std::initializer_list<std::uint64_t>{k}, frame_);
    for (std::size_t k = 0; k < made.crossings.size(); ++k)
      if (bit(made.num_observables + k))
        flip_bits(std::initializer_list<std::uint64_t>{made.first_detector + made.crossings[k]}, bits_);
    return frame_;
  }

private:
  const window_layout layout_;
  std::vector<std::uint64_t> rounds_;
  std::optional<window_source> source_;
  std::vector<std::uint8_t> bits_, frame_;
  std::uint64_t number_ = 0;
};

TEST_F(StreamReadout, OfAWindowIsThatOfADecoderForThisWindowAndShotAlone) {
  std::mt19937 random(12);
  for (const std::string &dem : models()) {
    const stream_readout_case of(dem);
    const auto stream = stream_or_throw(dem, options_of(of, {.commit = 3, .buffer = 4}));
    int frames = 0, different = 0;
    for (int k = 0; k < 25; ++k) {
      const read_shot shot = sample(of, random);
      windows_of_shot oracle(of, shot, {3, 4, false});
      stream->reset();
      shot_sender sender(*stream, of, shot);
      const std::uint64_t before = of.whole.num_detectors - of.model.tail_detectors();
      for (std::uint64_t windows = 0; sender.bits() < before;) {
        ASSERT_EQ(sender.push(1), decode_status::ok) << stream->fault();
        if (stream->windows() == windows)
          continue;
        ASSERT_EQ(stream->windows(), ++windows);
        different += flips_of(*stream) != oracle.next(false) ? 1 : 0;
        ++frames;
      }
      ASSERT_EQ(sender.finish(), decode_status::ok) << stream->fault();
      different += flips_of(*stream) != oracle.next(true) ? 1 : 0;
      ++frames;
    }
    EXPECT_GT(frames, 80);
    EXPECT_EQ(different, 0) << "of " << frames;
  }
}

TEST_F(StreamReadout, GivesTheFramesOfItsModeWhateverThePiecesAndWorkers) {
  std::mt19937 random(13);
  const stream_readout_case of(repetition_dem(5, 0.02, 2, 40));
  for (const stream_mode mode : {stream_mode::sequential, stream_mode::parallel}) {
    const auto plain = stream_or_throw(of.dem, options_of(of, {.commit = 5, .buffer = 5, .mode = mode}));
    const auto pieces = stream_or_throw(
        of.dem, options_of(of, {.commit = 5, .buffer = 5, .mode = mode, .workers = 2, .queue_rounds = 40}));
    for (int k = 0; k < 20; ++k) {
      const read_shot shot = sample(of, random);
      plain->reset();
      ASSERT_EQ(shot_sender(*plain, of, shot).run(), decode_status::ok) << plain->fault();
      pieces->reset();
      shot_sender sender(*pieces, of, shot);
      const std::uint64_t before = of.whole.num_detectors - of.model.tail_detectors();
      std::uint64_t soft = 0, flags = 0;
      while (sender.bits() < before) {
        const std::uint64_t bits = std::min<std::uint64_t>(random() % 13, before - sender.bits());
        // Early by up to two repetitions, of which the tail is none.
        const std::uint64_t head = of.model.head_detectors(), body = of.model.body_detectors();
        const std::uint64_t then = std::max(sender.bits() + bits, head);
        const std::uint64_t begun =
            std::min<std::uint64_t>((then - head + body - 1) / body + random() % 3, of.model.repetitions());
        soft = std::max(soft, of.soft.head + begun * of.soft.body);
        flags = std::max(flags, of.flags.head + begun * of.flags.body);
        ASSERT_EQ(sender.push(bits, soft, flags), decode_status::ok) << pieces->fault();
      }
      ASSERT_EQ(sender.finish(), decode_status::ok) << pieces->fault();
      ASSERT_EQ(flips_of(*pieces), flips_of(*plain)) << k;
    }
  }
}

struct chain_round {
  bool event;
  std::uint8_t value, flag;
};

/// One push of one round: its bit, value and flag.
decode_status push_round(stream_decoder &to, const chain_round &one, soft_kind kind) {
  const auto value = static_cast<float>(one.value);
  const std::uint8_t bit = one.event ? 1 : 0;
  const auto *const floats = reinterpret_cast<const std::uint8_t *>(&value);
  const std::span<const std::uint8_t> soft =
      kind == soft_kind::f32 ? std::span(floats, sizeof value) : std::span(&one.value, 1);
  decode_status status = decode_status::busy;
  for (const auto deadline = soon(); status == decode_status::busy && std::chrono::steady_clock::now() < deadline;) {
    const std::uint64_t committed = to.committed_rounds();
    status = to.push({&bit, 1}, 1, {soft, 1, kind, {&one.flag, 1}, 1});
    if (status == decode_status::busy)
      static_cast<void>(to.wait_committed(committed + 1, deadline));
  }
  return status;
}

TEST_F(StreamReadout, SaysWhichErrorOfAPairHasHappenedFarBeyondTheLengthOfTheText) {
  const std::string dem = chain_dem(), table = chain_table(dem);
  constexpr std::uint64_t kMany = 3001;
  for (const stream_mode mode : {stream_mode::sequential, stream_mode::parallel})
    for (const soft_kind kind : {soft_kind::f32, soft_kind::u8, soft_kind::u4}) {
      const auto stream = stream_or_throw(dem, {.decoder = "pymatching",
                                                .commit = 3,
                                                .buffer = 3,
                                                .mode = mode,
                                                .workers = kind == soft_kind::u8 ? 2U : 0U,
                                                .queue_rounds = kind == soft_kind::u8 ? 40U : 0U,
                                                .readout = table});
      // Pairs of events each 5 rounds: of each three the value is in the middle, the flag is 2, or both are sure.
      std::uint8_t flips = 0;
      for (std::uint64_t k = 0; k < kMany; ++k) {
        const std::uint64_t of_pair = k / 5 % 3;
        chain_round one{k % 5 < 2, 12, static_cast<std::uint8_t>(k % 2)};
        if (k % 5 == 0 && k + 1 < kMany) {
          one.value = of_pair == 0 ? 8 : 12;
          one.flag = of_pair == 1 ? 2 : 1;
          flips ^= of_pair == 2 ? 1 : 0;
        }
        if (k + 1 == kMany)
          one.event = false;
        ASSERT_EQ(push_round(*stream, one, kind), decode_status::ok) << stream->fault();
      }
      const std::uint8_t none = 0;
      ASSERT_EQ(stream->finish({&none, 1}, 1), decode_status::ok) << stream->fault();
      ASSERT_EQ(stream->wait_committed(UINT64_MAX, soon()).status, decode_status::ok);
      EXPECT_EQ(flips_of(*stream)[0], flips);
    }
}

TEST_F(StreamReadout, RefusesValuesThatCannotComeNextAndGoesOn) {
  const std::string dem = chain_dem(), table = chain_table(dem);
  const auto stream = stream_or_throw(dem, {.decoder = "pymatching", .commit = 2, .buffer = 2, .readout = table});
  EXPECT_EQ(stream->values_info(), (stream_values_info{1, 1, 1, 1, 7}));
  const std::vector<std::uint8_t> bytes(400, 1), threes(1, 3), none;
  const stream_values one{bytes, 1, soft_kind::u8, bytes, 1};
  for (std::uint64_t k = 0; k < 3; ++k)
    ASSERT_EQ(stream->push(none, 0, one), decode_status::ok);
  const struct {
    std::uint64_t bits;
    stream_values given;
    decode_status status;
    const char *fault;
  } cases[] = {
      {4, {}, decode_status::buffer_too_small, "3 soft values have come, and the rounds that are complete need 4"},
      {4, {bytes, 1, soft_kind::u8}, decode_status::buffer_too_small, "3 flags have come, and the rounds"},
      {1, {bytes, 60, soft_kind::u8}, decode_status::not_supported, "63 soft values have come, and with these rounds"},
      {1, {bytes, 0, soft_kind::u8, bytes, 60}, decode_status::not_supported, "63 flags have come, and with these"},
      {1, {bytes, 1, soft_kind::f32}, decode_status::not_supported, "have another kind than those before"},
      {1, {bytes, 1, static_cast<soft_kind>(3)}, decode_status::not_supported, "does not take this kind"},
      {1, {none, 1, soft_kind::u8}, decode_status::buffer_too_small, "1 soft values in 0 bytes"},
      {1, {none, 0, soft_kind::u8, none, 1}, decode_status::buffer_too_small, "1 flags in 0 bytes"},
      {1, {bytes, UINT64_MAX, soft_kind::u8}, decode_status::not_supported, "more than 2^40"},
      {1, {none, 0, soft_kind::u8, threes, 1}, decode_status::bad_probability, "flag 3 has the value 3"},
  };
  for (const auto &[bits, given, status, fault] : cases) {
    EXPECT_EQ(stream->push(bytes, bits, given), status) << fault;
    EXPECT_NE(std::string(stream->fault()).find(fault), std::string::npos) << stream->fault() << "; not " << fault;
    EXPECT_EQ(stream->pushed_bits(), 0U);
  }
  ASSERT_EQ(stream->push(none, 0, one), decode_status::ok);
  EXPECT_STREQ(stream->fault(), "");
  ASSERT_EQ(stream->push(bytes, 4), decode_status::ok);
  EXPECT_EQ(stream->committed_rounds(), 2U);
  EXPECT_EQ(stream->finish(bytes, 1, {bytes, 1, soft_kind::u8, bytes, 1}), decode_status::buffer_too_small);
  EXPECT_NE(std::string(stream->fault()).find("5 soft values have come, and with these rounds there may be 4"),
            std::string::npos)
      << stream->fault();
  EXPECT_EQ(stream->finish(bytes, 1), decode_status::ok) << stream->fault();
}

TEST_F(StreamReadout, BreaksAtAValueThatIsNotFiniteInTheWindowThatNeedsIt) {
  const std::string dem = chain_dem(), table = chain_table(dem);
  for (const std::size_t workers : {0U, 2U}) {
    const auto stream = stream_or_throw(dem, {.decoder = "pymatching",
                                              .commit = 2,
                                              .buffer = 2,
                                              .mode = stream_mode::sequential,
                                              .workers = workers,
                                              .readout = table});
    const float values[] = {12, 12, 12, 12, std::numeric_limits<float>::quiet_NaN(), 12};
    const auto *const bytes = reinterpret_cast<const std::uint8_t *>(values);
    const std::vector<std::uint8_t> zeros(2);
    const stream_values known{{bytes, sizeof values}, 6, soft_kind::f32, zeros, 6};
    static_cast<void>(stream->push(zeros, 6, known));
    EXPECT_EQ(stream->wait_committed(UINT64_MAX, soon()).status, decode_status::bad_probability);
    EXPECT_STREQ(stream->fault(), "window 1: soft value 4 is not finite");
    stream->reset();
    EXPECT_EQ(stream->poll().status, decode_status::ok);
  }
}

TEST_F(StreamReadout, OfTablesThatNoStreamCanHaveIsRefused) {
  const std::string dem = chain_dem(), good = chain_table(dem);
  const auto with = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string once = "error(0.1) D0 L0\ndetector(0) D0\nshift_detectors(1) 1\nrepeat 1 {\nerror(0.1) D0\n"
                           "detector(0) D0\nshift_detectors(1) 1\n}\nerror(0.1) D0\ndetector(0) D0\n";
  const stream_readout_case repetition(repetition_dem(5, 0.02, 1, 15));
  std::string above_half = repetition.table; // of each flag
  for (std::size_t at = 0; (at = above_half.find(" 0.3", at)) != std::string::npos; ++at)
    above_half.replace(at, 4, " 0.6");
  const struct {
    std::string dem, table, decoder, refusal;
  } cases[] = {
      {dem, good, "pymatching", ""},
      {dem, good, "lookup", "readout: "},
      {dem, with("misread 11 0 2 0\n", ""), "pymatching", "the readout of repetition 2 of the loop is not that of"},
      {dem, with("misread 15 0 3 0\n", "misread 15 0.1 3 0\n"), "pymatching",
       "the readout of repetition 3 of the loop"},
      {dem, with("flag 3 2 15 0.4", "flag 3 1 15 0.4"), "pymatching", "the readout of repetition 3 of the loop"},
      {dem, with("misread 7 0 1 0\nmisread 11 0 2 0", "misread 7 0 2 0\nmisread 11 0 1 0"), "pymatching",
       "the readout of repetition 3 of the loop"},
      {dem, good.substr(0, good.find("misread 7")), "pymatching", "how many soft values a repetition"},
      {once,
       head_of_text("cudaq-realtime-readout 1", once) + "measurements 3\ngaussian 0 1 -1 1 0.5\nmisread 1 0 1 0\n",
       "pymatching", "how many soft values a repetition of the loop has is not known"},
      {dem, "cudaq-realtime-readout 1\nmodel 00000000\nflags 1\n", "pymatching", "readout: line 2"},
      {dem, "", "pymatching", "readout: line 1"},
      {repetition.dem, above_half, "pymatching", ""},
      {repetition.dem, repetition.table, "pymatching-correlated", ""},
      {repetition.dem, above_half, "pymatching-correlated", "readout: a probability of the shot is not from 0 to 1"},
  };
  for (const auto &one : cases) {
    const std::string error =
        make_stream_decoder(one.dem, {.decoder = one.decoder, .commit = 3, .buffer = 3, .readout = one.table}).error;
    const bool is_as_expected = one.refusal.empty() ? error.empty() : error.find(one.refusal) != std::string::npos;
    EXPECT_TRUE(is_as_expected) << error << "; not " << one.refusal;
  }
  const auto without = stream_or_throw(dem, {.decoder = "pymatching", .commit = 3, .buffer = 3});
  const std::vector<std::uint8_t> bytes(4);
  EXPECT_EQ(without->push(bytes, 1, {bytes, 1, soft_kind::u8}), decode_status::not_supported);
  EXPECT_STREQ(without->fault(), "the stream has no table of a readout");
  EXPECT_EQ(without->values_info(), stream_values_info{});
}

TEST_F(StreamReadout, MakesWindowsAsGoodAsWholeShots) {
  std::mt19937 random(14);
  const stream_readout_case of(repetition_dem(5, 0.03, 1, 40));
  const auto whole = make_or_throw("pymatching", of.dem);
  const auto stream = stream_or_throw(of.dem, options_of(of, {.commit = 5, .buffer = 5}));
  const readout_table_result table = read_readout_table(of.table, of.dem);
  int wrong_whole = 0, wrong_windows = 0, wrong_hard = 0, only_windows = 0;
  std::vector<std::uint8_t> answer(1);
  shot_list list;
  std::string fault;
  for (int k = 0; k < 3000; ++k) {
    const read_shot shot = sample(of, random);
    ASSERT_EQ(whole->decode_bits(shot.bits.events, answer), decode_status::ok);
    wrong_hard += answer != shot.bits.observables ? 1 : 0;
    const std::vector<std::uint8_t> soft = shot.soft_bytes(), leakage = shot.leakage_bytes();
    ASSERT_EQ(table.instance->list_of({.soft = soft, .leakage = leakage}, list, fault), decode_status::ok);
    ASSERT_EQ(whole->decode_bits(shot.bits.events, answer, list), decode_status::ok);
    stream->reset();
    ASSERT_EQ(shot_sender(*stream, of, shot).run(), decode_status::ok) << stream->fault();
    const bool is_wrong = flips_of(*stream) != shot.bits.observables, is_wrong_whole = answer != shot.bits.observables;
    wrong_windows += is_wrong ? 1 : 0;
    wrong_whole += is_wrong_whole ? 1 : 0;
    only_windows += is_wrong && !is_wrong_whole ? 1 : 0;
  }
  EXPECT_GT(wrong_whole, 50);
  EXPECT_GT(wrong_hard, 1.3 * wrong_whole);
  EXPECT_LE(std::abs(wrong_windows - wrong_whole), 10 + wrong_whole / 20) << wrong_windows << " and " << wrong_whole;
  EXPECT_LT(only_windows, 10 + wrong_whole / 10);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Streams with heralds: detectors of a round that say which errors it may have.
#include "lib/qec/stream/stream_heralds.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/shot_lists.h"
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/support/scratch_folder.h"

namespace cudaq::qec::realtime::test {
namespace {

using cudaq::realtime::test::scratch_folder;

constexpr std::uint64_t kRepetitions = 30;

/// A chain of rounds: detector 0 of each is flipped by errors, detector 1 is a herald. An error flips the observable,
/// another one is a readout that was wrong. The herald means an error that joins the observable's detector with that of
/// the next round, and flips the observable.
std::string chain_dem(const char *of_loop = "") {
  const std::string round = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.01) D0 L0\nerror(0.012) D0\n";
  const std::string joined = "error(1e-9) D0 D2 L0\nerror(0.0125) D0 D2\n";
  return round + joined + "shift_detectors(0,1) 2\nrepeat " + std::to_string(kRepetitions) + " {\n" + round + joined +
         of_loop + "shift_detectors(0,1) 2\n}\n" + round;
}

/// A file of heralds for chain_dem. The entry of round `other` is `text` instead.
std::string chain_heralds(std::uint64_t other = UINT64_MAX, const std::string &text = "") {
  std::string lines = "detectors " + std::to_string(2 * (kRepetitions + 2)) + "\n";
  for (std::uint64_t round = 0; round <= kRepetitions; ++round)
    lines += round == other
                 ? text
                 : "herald " + std::to_string(2 * round + 1) + " " + std::to_string(4 * round + 2) + " 0.4\n";
  return lines;
}

class StreamHeralds : public testing::Test {
protected:
  std::string file_of(const std::string &dem, const std::string &lines) {
    const std::filesystem::path path = folder_.path() / "heralds.txt";
    std::ofstream(path) << heralds_text(dem, lines);
    return path;
  }
  std::string refusal(const std::string &dem, const std::string &lines, const std::string &inner = "pymatching") {
    return make_stream_decoder(dem, {.decoder = inner, .commit = 3, .buffer = 3, .heralds = file_of(dem, lines)}).error;
  }

private:
  scratch_folder folder_;
};

std::vector<std::uint8_t> bits_of(std::initializer_list<std::uint64_t> detectors, std::uint64_t count) {
  std::vector<std::uint8_t> bits((count + 7) / 8);
  flip_bits(detectors, bits);
  return bits;
}

TEST_F(StreamHeralds, SayWhichErrorOfAPairOfEventsHasHappenedInEachRoundAndMode) {
  const std::string dem = chain_dem(), file = file_of(dem, chain_heralds());
  const std::uint64_t detectors = 2 * (kRepetitions + 2);
  for (const stream_mode mode : {stream_mode::sequential, stream_mode::parallel})
    for (const std::uint64_t commit : {2U, 3U, 5U}) {
      const auto stream = stream_or_throw(
          dem, {.decoder = "pymatching", .commit = commit, .buffer = 3, .mode = mode, .workers = 2, .heralds = file});
      for (std::uint64_t round = 0; round <= kRepetitions; ++round) {
        const std::uint64_t event = 2 * round;
        ASSERT_EQ(run(*stream, bits_of({event, event + 2}, detectors), detectors), decode_status::ok);
        EXPECT_EQ(flips_of(*stream)[0], 0) << "no herald: the error without the observable, round " << round;
        stream->reset();
        ASSERT_EQ(run(*stream, bits_of({event, event + 1, event + 2}, detectors), detectors), decode_status::ok);
        EXPECT_EQ(flips_of(*stream)[0], 1) << "round " << round << ", commit " << commit;
        stream->reset();
      }
    }
}

TEST_F(StreamHeralds, CountInAWindowThatBeginsAfterThem) {
  // The herald of a round means an error of the next one: where a window begins there, the herald has gone by.
  const std::string round = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.01) D0\n";
  const std::string later = "error(1e-9) D2 L0\n";
  const std::string dem =
      round + later + "shift_detectors(0,1) 2\nrepeat 30 {\n" + round + later + "shift_detectors(0,1) 2\n}\n" + round;
  std::string lines = "detectors 64\n";
  for (std::uint64_t k = 0; k < 31; ++k)
    lines += "herald " + std::to_string(2 * k + 1) + " " + std::to_string(2 * k + 1) + " 0.4\n";
  const auto stream =
      stream_or_throw(dem, {.decoder = "pymatching", .commit = 2, .buffer = 2, .heralds = file_of(dem, lines)});
  for (std::uint64_t k = 0; k < 31; ++k) {
    ASSERT_EQ(run(*stream, bits_of({2 * k + 1, 2 * k + 2}, 64), 64), decode_status::ok);
    EXPECT_EQ(flips_of(*stream)[0], 1) << k;
    stream->reset();
  }
}

TEST_F(StreamHeralds, StayInTheRingForAsLongAsAWindowNeedsThem) {
  // 20,000 repetitions, all heralds have fired: each pair of events is the heralded error.
  const std::string dem = chain_dem();
  for (const std::size_t workers : {0U, 2U}) {
    const auto stream = stream_or_throw(dem, {.decoder = "pymatching",
                                              .commit = 3,
                                              .buffer = 3,
                                              .workers = workers,
                                              .heralds = file_of(dem, chain_heralds())});
    constexpr std::uint64_t kMany = 20'001;
    const std::uint64_t detectors = 2 * (kMany + 2);
    std::vector<std::uint8_t> bits((detectors + 7) / 8);
    std::uint8_t flips = 0;
    for (std::uint64_t k = 0; k + 1 < kMany; k += 5) {
      flip_bits(std::initializer_list<std::uint64_t>{2 * k, 2 * k + 1, 2 * k + 2}, bits);
      flips ^= 1;
    }
    ASSERT_EQ(run(*stream, bits, detectors), decode_status::ok);
    EXPECT_EQ(flips_of(*stream)[0], flips);
  }
}

TEST_F(StreamHeralds, AreThoseOfTheWholeShotIfOneWindowHasAll) {
  const std::string dem = chain_dem(), file = file_of(dem, chain_heralds());
  const auto whole = make_or_throw("pymatching:heralds=" + file, dem);
  const auto windows = make_or_throw("sliding-window:inner=pymatching,commit=40,buffer=3,heralds=" + file, dem);
  ASSERT_EQ(whole->num_detectors(), windows->num_detectors());
  std::mt19937 random(7);
  std::vector<std::uint8_t> expected(1), got(1);
  for (int shot = 0; shot < 300; ++shot) {
    std::vector<std::uint64_t> events;
    for (std::uint64_t k = 0; k + 1 < whole->num_detectors(); ++k)
      if (random() % 5 == 0)
        events.push_back(k);
    ASSERT_EQ(whole->decode(events, expected), decode_status::ok);
    ASSERT_EQ(windows->decode(events, got), decode_status::ok);
    EXPECT_EQ(got, expected) << shot;
  }
}

TEST_F(StreamHeralds, AreRefusedIfNoStreamCanHaveThem) {
  const std::string dem = chain_dem();
  EXPECT_EQ(refusal(dem, chain_heralds()), "");
  EXPECT_NE(
      refusal(dem, chain_heralds(7, "")).find("the heralds of repetition 7 of the loop are not those of the first"),
      std::string::npos);
  EXPECT_NE(refusal(dem, chain_heralds(7, "herald 15 30 0.3\n")).find("repetition 7"), std::string::npos);
  EXPECT_NE(refusal(dem, chain_heralds(kRepetitions, "")).find("repetition 30"), std::string::npos);
  EXPECT_NE(refusal(dem, chain_heralds(7, "herald 15 29 0.3\n")).find("repetition 7"), std::string::npos);
  EXPECT_NE(refusal(dem, chain_heralds(0, "herald 1 5 0.3\n"))
                .find("herald 1 lists error 5, and only one of them is in "
                      "the head; accepted: both in the same part"),
            std::string::npos);
  EXPECT_NE(
      refusal(chain_dem("error(0.1) D1\n"), "detectors 64\nherald 3 4 0.5\n").find("herald 3 is flipped by error"),
      std::string::npos);
  EXPECT_NE(refusal(dem, "detectors 65\nherald 1 2 0.5\n").find("no detectors of the model"), std::string::npos);
  EXPECT_NE(refusal(dem, chain_heralds(), "lookup").find("heralds: "), std::string::npos);
  EXPECT_NE(make_stream_decoder(dem, {.decoder = "pymatching", .heralds = "/no/such/file"}).error.find("/no/such/file"),
            std::string::npos);
}

TEST_F(StreamHeralds, StandInTheNameOrInTheOptions) {
  const std::string dem = chain_dem(), file = file_of(dem, chain_heralds());
  const std::string name = "sliding-window:inner=pymatching,commit=3,buffer=3,heralds=" + file;
  EXPECT_EQ(make_stream_decoder(dem, {.decoder = name, .heralds = file}).error, "");
  EXPECT_NE(make_stream_decoder(dem, {.decoder = name, .heralds = "/other"}).error.find("heralds is also given"),
            std::string::npos);
}

} // namespace
} // namespace cudaq::qec::realtime::test

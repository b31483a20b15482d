// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --stream`: frames are those of the interface, however the rounds come.
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/support/sanitized.h"
#include "unittests/tools/common/served_program.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <cstring>
#include <regex>
#include <sys/stat.h>

namespace cudaq::realtime::tools::test {
namespace {

using qec::realtime::decode_status;
namespace qec_test = qec::realtime::test;

/// One experiment of a model: its rounds, and what comes out.
struct experiment {
  std::string model, lines, line, rows; ///< 01 with a line a round, and in one line; b8
  std::string frames, records;          ///< 01 and b8
  std::string observables;              ///< of the last frame, 01

  experiment(std::string dem, std::uint64_t repetitions, std::uint32_t seed) : model(std::move(dem)) {
    const auto repeating = qec_test::repeating_or_throw(model);
    const auto whole = *repeating.unrolled(repetitions);
    const auto shot = qec_test::component_sampler(whole, seed).next();
    const auto stream = qec_test::stream_or_throw(model, {});
    std::uint64_t from = 0;
    const auto add = [&](std::uint64_t detectors) {
      const auto bits = qec_test::part_of(shot.events, from, detectors);
      for (std::uint64_t k = 0; k < detectors; ++k)
        line += (bits[k / 8] >> (k % 8) & 1) != 0 ? '1' : '0';
      lines += line.substr(line.size() - detectors) + "\n";
      rows.append(bits.begin(), bits.end());
      from += detectors;
      return bits;
    };
    const auto note = [&](decode_status status, std::uint64_t before) {
      if (status != decode_status::ok)
        throw std::runtime_error("the experiment cannot be decoded");
      const std::uint64_t rounds = stream->committed_rounds();
      if (rounds == before)
        return;
      observables.clear();
      for (std::uint64_t k = 0; k < stream->num_observables(); ++k)
        observables += (stream->observables()[k / 8] >> (k % 8) & 1) != 0 ? '1' : '0';
      frames += std::to_string(rounds) + " " + observables + "\n";
      std::array<char, 8> number{};
      std::memcpy(number.data(), &rounds, 8);
      records.append(number.begin(), number.end());
      records.append(stream->observables().begin(), stream->observables().end());
    };
    const auto push = [&](const std::vector<std::uint64_t> &sizes) {
      for (const std::uint64_t detectors : sizes) {
        const std::uint64_t before = stream->committed_rounds();
        note(stream->push(add(detectors), detectors), before);
      }
    };
    push(repeating.head());
    for (std::uint64_t k = 0; k < repetitions; ++k)
      push(repeating.body());
    const std::uint64_t tail = from, before = stream->committed_rounds();
    for (const std::uint64_t detectors : repeating.tail())
      add(detectors);
    note(stream->finish(qec_test::part_of(shot.events, tail, from - tail), from - tail), before);
    line += "\n";
  }
};

/// The model with the head's round once more, before its tail.
std::string with_a_tail_of_two_rounds(std::string model) {
  return model.insert(model.find("}\n") + 2, model.substr(0, model.find("repeat")));
}

class DecodeStream : public decode_files_test {
protected:
  /// A repetition code with two detectors a round, a head and a tail of one round, and one round in the loop.
  std::string chain() const { return file("chain.dem", qec_test::repetition_dem(3, 0.01, 1, 10)); }
};

TEST_F(DecodeStream, FramesAreThoseOfTheInterfaceInEachFormat) {
  SKIP_WITHOUT_PYMATCHING();
  const std::vector<experiment> experiments{{qec_test::surface_dem(), 31, 7},
                                            {qec_test::repetition_dem(3, 0.03, 2, 5), 40, 8},
                                            {qec_test::repetition_dem(12, 0.02, 3, 5), 9, 9},
                                            {qec_test::repetition_dem(3, 0.02, 1, 5), 1, 10},
                                            {with_a_tail_of_two_rounds(qec_test::repetition_dem(12, 0.2, 1, 5)), 9, 4}};
  for (const experiment &one : experiments) {
    const std::string run = "decode --stream --dem " + file("model.dem", one.model) + " ";
    for (const std::string &in : {file("lines.01", one.lines), file("line.01", one.line), file("rows.b8", one.rows),
                                  file("crlf.01", std::regex_replace(one.lines, std::regex("\n"), "\r\n"))}) {
      const program_result text = run_program(run + "--in " + in);
      EXPECT_EQ(text.exit_code, 0) << text.err;
      EXPECT_EQ(text.out, one.frames) << in;
      EXPECT_EQ(run_program(run + "--in " + in + " --out_format b8").out, one.records) << in;
    }
    const program_result piped = run_program(run + "--in_format b8", CUDAQ_TOOL_PATH, scratch_.path() / "rows.b8");
    EXPECT_EQ(piped.out, one.frames) << piped.err;
  }
}

TEST_F(DecodeStream, CountsTheDeadlinesOfItsWindows) {
  SKIP_WITHOUT_PYMATCHING(); // of the experiment's frames
  const experiment one(qec_test::surface_dem(), 31, 7);
  const program_result r =
      run_program("decode --stream --dem " + file("model.dem", one.model) + " --in " + file("lines.01", one.lines) +
                  " --decoder bp-osd:deadline_us=1000000000 --out /dev/null --json");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto report = r.json();
  EXPECT_EQ(report.at("deadline_met"), report.at("windows"));
  EXPECT_EQ(report.at("deadline_missed"), 0);
}

TEST_F(DecodeStream, FramesDoNotDependOnTheNumberOfWorkers) {
  SKIP_WITHOUT_PYMATCHING();
  for (const experiment &one :
       {experiment{qec_test::surface_dem(), 60, 7}, experiment{qec_test::repetition_dem(12, 0.02, 3, 5), 40, 9},
        experiment{qec_test::repetition_dem(3, 0.02, 1, 5), 1, 10}}) {
    const std::string run = "decode --stream --dem " + file("model.dem", one.model) + " --in " +
                            file("lines.01", one.lines) + " --decoder sliding-window:inner=pymatching,mode=";
    const std::string parallel = run_program(run + "parallel").out;
    EXPECT_EQ(std::ranges::count(parallel, '\n'), std::ranges::count(one.frames, '\n'));
    for (const char *workers : {"1", "3"}) {
      const program_result r = run_program(run + "sequential --workers " + workers);
      EXPECT_EQ(r.exit_code, 0) << r.err;
      EXPECT_EQ(r.out, one.frames) << workers;
      EXPECT_EQ(run_program(run + "parallel --workers " + workers).out, parallel) << workers;
    }
    const program_result r = run_program(run + "auto --workers 2");
    EXPECT_EQ(r.out, parallel);
    EXPECT_TRUE(contains(r.err, "; parallel, 2 workers")) << r.err;
  }
}

TEST_F(DecodeStream, TheNameOfTheDecoderMayHaveTheWindows) {
  SKIP_WITHOUT_PYMATCHING();
  const experiment one(qec_test::surface_dem(), 20, 3);
  const std::string run =
      "--stream --dem " + file("model.dem", one.model) + " --in " + file("rounds.01", one.lines) + " --decoder ";
  const program_result options = run_program("decode " + run + "pymatching --commit 4 --buffer 5");
  EXPECT_EQ(options.exit_code, 0) << options.err;
  EXPECT_EQ(run_program("decode " + run + "sliding-window:inner=pymatching,commit=4,buffer=5").out, options.out);
  expect_refusal(run + "sliding-window:commit=4 --commit 5", "commit is also given outside of the name");
}

TEST_F(DecodeStream, WorkersNameAWindowThatFailsAfterTheFramesBeforeIt) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string round = "detector(0) D0\ndetector(0) D1\nerror(0.1) D0 D1 L0\n";
  const std::string model = file("pairs.dem", "repeat 9 {\n" + round + "shift_detectors(1) 2\n}\n" + round);
  expect_refusal("--stream --workers 2 --decoder sliding-window:mode=sequential --commit 2 --buffer 1 --dem " + model +
                     " --in " + file("r.01", "00\n11\n00\n00\n00\n10\n00\n00\n00\n00\n00\n"),
                 "no error of the model causes these detection events (odd parity without a boundary?)\nrounds final "
                 "before that: 4",
                 "2 1\n4 1\n");
}

TEST_F(DecodeStream, TheReportHasRoundsWindowsAndTheLastFrame) {
  SKIP_WITHOUT_PYMATCHING();
  const experiment one(qec_test::surface_dem(), 20, 3);
  const std::string out = scratch_.path() / "frames", json = scratch_.path() / "json", html = scratch_.path() / "html";
  const std::string run = "decode --stream --dem " + file("model.dem", one.model) + " --in " +
                          file("rounds.01", one.lines) + " --commit 4 --buffer 5 --out " + out + " --json " + json +
                          " --html " + html + " --obs_in ";
  for (const bool is_right : {true, false}) {
    const char wrong = one.observables == "0" ? '1' : '0';
    const program_result r =
        run_program(run + file("obs.01", (is_right ? one.observables : wrong + std::string()) + "\n"));
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(contains(r.out, is_right
                                    ? "observables     as in --obs_in"
                                    : "observables     differ from --obs_in: a logical error (counted, no failure)"))
        << r.out;
    const auto j = nlohmann::json::parse(read_file(json));
    const auto lines = static_cast<std::uint64_t>(std::ranges::count(read_file(out), '\n'));
    EXPECT_EQ(j.at("rounds"), std::ranges::count(one.lines, '\n'));
    EXPECT_EQ(j.at("committed_rounds"), j.at("rounds"));
    EXPECT_EQ(j.at("committed_observables"), one.observables);
    EXPECT_EQ(j.at("frames"), lines);
    EXPECT_EQ(j.at("windows"), lines);
    EXPECT_EQ(j.at("window_ns").at("count"), lines);
    EXPECT_GT(j.at("round_mean_ns"), 0);
    EXPECT_EQ(j.at("detectors"), j.at("head_detectors").get<int>() + j.at("tail_detectors").get<int>() +
                                     20 * j.at("body_detectors").get<int>());
    EXPECT_TRUE(contains(r.out, "parts           head " + j.at("head_detectors").dump() + " detectors in ")) << r.out;
    EXPECT_EQ(j.at("logical_errors"), is_right ? 0 : 1);
    EXPECT_TRUE(contains(j.at("stream"), "commit 4 and buffer 5 rounds")) << j.at("stream");
    EXPECT_TRUE(contains(read_file(html), "Rounds"));
  }
  expect_refusal("--stream --dem " + file("model.dem", one.model) + " --out /dev/null --in " +
                     file("rounds.01", one.lines) + " --obs_in " + file("obs.01", "0\n1\n"),
                 "obs.01: several shots, but a stream is one experiment");
}

// Every 100 rounds one error of the data flips the observable and one detector: the answer is known.
TEST_F(DecodeStream, AMillionRoundsOfAPipeNeedNoMoreMemoryThanTenThousand) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string in = scratch_.path() / "in", out = scratch_.path() / "out", json = scratch_.path() / "json";
  ASSERT_EQ(mkfifo(in.c_str(), 0600), 0);
  const int fifo = open(in.c_str(), O_RDWR | O_CLOEXEC);
  running_program program({"decode", "--stream", "--dem", chain(), "--in", in, "--in_format", "b8", "--out", out,
                           "--obs_in", file("obs.01", "0\n"), "--json", json},
                          scratch_.path() / "err");
  constexpr std::size_t kRounds = 1000000, kFew = 10000;
  std::string rows(kRounds, '\0');
  for (std::size_t r = 50; r < kRounds; r += 100)
    rows[r] = 1;
  const auto max_memory_after = [&](std::size_t begin, std::size_t end) {
    while (begin < end) {
      const ssize_t written = write(fifo, rows.data() + begin, end - begin);
      begin = written > 0 ? begin + static_cast<std::size_t>(written) : end;
    }
    const std::string last = "\n" + std::to_string((end - 1 - 3) / 3 * 3) + " "; // commit and buffer are 3
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    while (!contains(read_file(out), last) && program.runs() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(contains(read_file(out), last)) << last;
    std::ifstream status("/proc/" + std::to_string(program.pid()) + "/status");
    std::string line;
    while (std::getline(status, line) && !line.starts_with("VmHWM:")) {
    }
    return std::stol("0" + line.substr(line.find_first_of("0123456789")));
  };
  const long before = max_memory_after(0, kFew), after = max_memory_after(kFew, kRounds);
  EXPECT_GT(before, 0);
  if (!cudaq::realtime::test::kSanitized) { // ASan keeps what was freed
    EXPECT_LT(after - before, 800) << "KiB more; the input has 977 KiB";
  }
  close(fifo);
  EXPECT_EQ(program.wait(), 0) << read_file(scratch_.path() / "err");
  const auto j = nlohmann::json::parse(read_file(json));
  EXPECT_EQ(j.at("rounds"), kRounds);
  EXPECT_EQ(j.at("logical_errors"), 0);
}

TEST_F(DecodeStream, AnInputThatEndsTooEarlyKeepsTheFramesBeforeIt) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string dem =
      "--stream --dem " + file("period.dem", qec_test::repetition_dem(3, 0.01, 2, 10)) + " --commit 2 --buffer 2 --in ";
  std::string rounds;
  for (int r = 0; r < 9; ++r)
    rounds += "00\n";
  const std::string experiment = ": it has a head of 1 round, whole repetitions of 2 rounds, and a tail of 2 bits in 1 "
                                 "round";
  expect_refusal(dem + file("r.01", rounds),
                 "r.01: the input ends 2 bits after round 7, where no experiment ends" + experiment +
                     "\nrounds final before that: 6",
                 "2 0\n4 0\n6 0\n");
  expect_refusal(dem + file("r.01", rounds + "0"), "r.01: the input ends 3 bits after round 7", "2 0\n4 0\n6 0\n");
  expect_refusal(dem + file("r.01", ""), "r.01: the input ends 0 bits after its beginning");
  expect_refusal(dem + file("r.01", "0"), "r.01: the input ends 1 bit after its beginning");
  expect_refusal(dem + file("r.b8", std::string(9, '\0')), "r.b8: the input ends 1 byte after round 7",
                 "2 0\n4 0\n6 0\n");
  const program_result good = run_program("decode " + dem + file("r.01", rounds + "00"));
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "2 0\n4 0\n6 0\n10 0\n");
}

TEST_F(DecodeStream, AFullDiskIsNamedOnce) {
  SKIP_WITHOUT_PYMATCHING();
  const program_result r =
      run_program("decode --stream --dem " + chain() + " --commit 2 --buffer 2 --out /dev/full --in_format b8 --in " +
                  file("r.b8", std::string(200'000, '\0')));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "/dev/full: cannot be written")) << r.err;
  EXPECT_EQ(r.err.find("cannot be written"), r.err.rfind("cannot be written")) << r.err;
}

TEST_F(DecodeStream, RowsThatDoNotFitTheirRoundsAreRefused) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string dem = "--stream --dem " + chain() + " --commit 2 --buffer 2 --in ";
  const std::string first = "00\n00\n00\n00\n00\n", frames = "2 0\n";
  expect_refusal(dem + file("r.01", first + "0\n0\n00\n00\n"), "r.01: round 5: a line ends after 1 of its 2 detectors",
                 frames);
  expect_refusal(dem + file("r.01", first + "0x\n"), "r.01: byte 16: 'x' is neither 0, 1 nor the end of a line",
                 frames);
  for (const char *const end : {"0\r0\n", "0\r"})
    expect_refusal(dem + file("r.01", first + end), "r.01: byte 16: 0x0d is neither", frames);
  expect_refusal(dem + file("r.b8", std::string("\1\2\0\0\0\4\0\0", 8)),
                 "r.b8: round 5: bits after its 2 detectors are set (is each round a row of whole bytes?)", "2 1\n");
  const program_result empty_lines = run_program("decode " + dem + file("r.01", "\n0000\n\n00\n\n\n00"));
  EXPECT_EQ(empty_lines.exit_code, 0) << empty_lines.err;
}

TEST_F(DecodeStream, AWindowThatCannotBeDecodedIsNamed) {
  SKIP_WITHOUT_PYMATCHING();
  // Each error flips two detectors, so an odd number of events has no reason.
  const std::string ring = "detector(0) D0\ndetector(0) D1\nerror(0.1) D0 D1 L0\nerror(0.1) D0 D2\nerror(0.1) D1 D3\n"
                           "shift_detectors(1) 2\n";
  const std::string model = file("ring.dem", "repeat 9 {\n" + ring +
                                                 "}\ndetector(0) D0\ndetector(0) D1\n"
                                                 "error(0.1) D0 D1 L0\n");
  const std::string text = "r.01: window 4, from round 8: no error of the model causes these detection events";
  expect_refusal("--stream --commit 2 --buffer 2 --dem " + model + " --in " +
                     file("r.01", "00\n11\n00\n00\n00\n00\n00\n00\n00\n00\n01\n"),
                 text, "2 1\n4 1\n6 1\n8 1\n");
}

TEST_F(DecodeStream, OptionsThatDoNotFitAreRefusedWithAText) {
  const std::string dem = "--dem " + chain() + " ", run = "--stream " + dem + "--in /dev/null ";
  for (const char *of_shots :
       {"--threads 2", "--predecoder local", "--predictions x", "--in_includes_appended_observables"})
    expect_refusal(run + of_shots, "excludes");
  for (const char *of_streams : {"--commit 2", "--buffer 2", "--rounds time", "--workers 2"})
    expect_refusal(dem + of_streams, "requires --stream");
  expect_refusal(run + "--commit 0", "--commit");
  expect_refusal(run + "--rounds index:0", "rounds=index:0: expected time, or index:N");
  expect_refusal(run + "--buffer 1 --commit 1", "buffer 1 is less than the 2 rounds");
  expect_refusal(run + "--in_format hits", "the format hits has whole shots; --stream takes 01 and b8");
  expect_refusal(run + "--out x.r8", "--out x.r8: the format r8 has whole shots");
  expect_refusal("--stream " + dem + "--obs_in -", "only one of them can be stdin");
  expect_refusal("--stream --in /dev/null --dem " + file("flat.dem", "error(0.1) D0 L0\n"), "the model has no loop");
}

TEST_F(DecodeStream, AModelThatIsTooLongForAShotIsAStreamOrDecodesByWindows) {
  SKIP_WITHOUT_PYMATCHING();
  const std::string dem = "--dem " + file("long.dem", qec_test::repetition_dem(3, 0.01, 1, 525000)) + " ";
  expect_refusal(dem + "--in /dev/null",
                 "a shot has at most 1048576 detectors; a model with a loop decodes as a stream "
                 "of any length (decode --stream)");
  const std::string shot = file("shot.b8", std::string((525002 * 2 + 7) / 8, '\0'));
  const program_result whole = run_program("decode --decoder sliding-window " + dem + "--in " + shot);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.out, "0\n");
}

} // namespace
} // namespace cudaq::realtime::tools::test

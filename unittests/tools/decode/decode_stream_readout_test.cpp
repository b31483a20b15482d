// SPDX-License-Identifier: Apache-2.0
// `cudaq-realtime decode --stream --readout`: rounds that come with soft values and flags.
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/stream/stream_readout_support.h"
#include "unittests/tools/common/served_program.h"
#include "unittests/tools/decode/decode_test_support.h"

#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace cudaq::realtime::tools::test {
namespace {

namespace qec_test = qec::realtime::test;
using qec::realtime::decode_status;

constexpr unsigned kReadRounds = 60; ///< before the tail

/// An experiment of the chain, round by round, and its frames.
struct read_experiment {
  const std::string model = qec_test::chain_dem(), table = qec_test::chain_table(model);
  std::string lines, frames, hard_frames;
  std::vector<unsigned> values, flags;

  read_experiment() {
    std::mt19937 random(29);
    for (unsigned k = 0; k < kReadRounds; ++k) {
      lines += random() % 3 == 0 ? "1\n" : "0\n";
      values.push_back(random() % 3 == 0 ? 8 : random() % 2 == 0 ? 12 : 3);
      flags.push_back(static_cast<unsigned>(random() % 3));
    }
    lines += "0\n"; // the tail
    frames = frames_of(true);
    hard_frames = frames_of(false);
  }
  [[nodiscard]] std::string soft(qec::realtime::soft_kind kind) const {
    const auto bytes = qec_test::soft_bytes_of(values, kind);
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] std::string leakage() const {
    const auto bytes = qec_test::flag_bytes_of(flags);
    return {bytes.begin(), bytes.end()};
  }

private:
  [[nodiscard]] std::string frames_of(bool is_read) const {
    qec::realtime::stream_options options{.decoder = "bp-osd", .commit = 2, .buffer = 2};
    if (is_read)
      options.readout = table;
    const auto stream = qec_test::stream_or_throw(model, options);
    std::string text;
    for (unsigned k = 0; k <= kReadRounds; ++k) {
      const std::uint64_t before = stream->committed_rounds();
      const std::uint8_t bit = lines[2 * k] == '1' ? 1 : 0;
      if (k == kReadRounds) {
        EXPECT_EQ(stream->finish({&bit, 1}, 1), decode_status::ok) << stream->fault();
      } else {
        const auto value = static_cast<std::uint8_t>(values[k]), flag = static_cast<std::uint8_t>(flags[k]);
        const qec::realtime::stream_values known{{&value, 1}, 1, qec::realtime::soft_kind::u8, {&flag, 1}, 1};
        EXPECT_EQ(stream->push({&bit, 1}, 1, is_read ? known : qec::realtime::stream_values{}), decode_status::ok)
            << stream->fault();
      }
      if (stream->committed_rounds() != before)
        text += std::to_string(stream->committed_rounds()) + (stream->observables()[0] != 0 ? " 1\n" : " 0\n");
    }
    return text;
  }
};

class DecodeStreamReadout : public decode_files_test {
protected:
  void SetUp() override {
    file("model.dem", one_.model);
    file("readout.txt", one_.table);
    file("rounds.01", one_.lines);
    for (const auto kind : qec_test::kAllKinds)
      file("soft." + std::string(name_of(kind)), one_.soft(kind));
    file("leakage", one_.leakage());
  }
  [[nodiscard]] std::string of_kind(const std::string &kind) const {
    return " --soft_kind " + kind + " --soft " + path("soft." + kind) + " --leakage " + path("leakage");
  }
  [[nodiscard]] std::string options(const std::string &more) const {
    return "--stream --dem " + path("model.dem") + " --in " + path("rounds.01") +
           " --decoder bp-osd --commit 2 --buffer 2 --readout " + path("readout.txt") + more;
  }
  /// The frames of rounds up to this one.
  [[nodiscard]] std::string frames_until(unsigned rounds) const {
    return one_.frames.substr(0, one_.frames.find("\n" + std::to_string(rounds) + " ") + 1);
  }

  const read_experiment one_;
};

TEST_F(DecodeStreamReadout, GivesTheFramesOfTheInterfaceForEachKind) {
  ASSERT_NE(one_.frames, one_.hard_frames) << "the values must matter";
  for (const char *kind : {"f32", "u8", "u4"})
    for (const char *workers : {"", " --workers 1"}) {
      const program_result r = run_program("decode " + options(of_kind(kind) + workers));
      ASSERT_EQ(r.exit_code, 0) << r.err;
      EXPECT_EQ(r.out, one_.frames) << kind << workers;
      EXPECT_TRUE(contains(r.err, "readout         60 soft values and 60 flags by ")) << r.err;
    }
  const program_result piped =
      run_program("decode " + options(" --soft - --leakage " + path("leakage")), CUDAQ_TOOL_PATH, path("soft.f32"));
  EXPECT_EQ(piped.out, one_.frames) << piped.err;
}

// A device writes the value of a measurement when it is read, so the program must not wait for a later one.
TEST_F(DecodeStreamReadout, ReadsOnlyTheValuesThatItsWindowsNeed) {
  file("soft.u8", one_.soft(qec::realtime::soft_kind::u8).substr(0, 31));
  expect_refusal(options(of_kind("u8")), "soft.u8: it ends after 31 soft values, and the rounds up to here need 32",
                 frames_until(30));
  file("soft.u8", one_.soft(qec::realtime::soft_kind::u8));
  file("leakage", one_.leakage().substr(0, 5));
  expect_refusal(options(of_kind("u8")), "leakage: it ends after 20 flags, and the rounds up to here need 22",
                 frames_until(20));
}

// What gives the values may wait for a frame.
TEST_F(DecodeStreamReadout, WritesFinalFramesBeforeItWaitsForAValue) {
  for (const char *workers : {"0", "1"}) {
    const std::string soft = path(std::string("fifo") + workers), out = path(std::string("out") + workers);
    ASSERT_EQ(mkfifo(soft.c_str(), 0600), 0);
    const int fifo = open(soft.c_str(), O_RDWR | O_CLOEXEC);
    running_program program({"decode",      "--stream",
                             "--dem",       path("model.dem"),
                             "--in",        path("rounds.01"),
                             "--decoder",   "bp-osd",
                             "--commit",    "2",
                             "--buffer",    "2",
                             "--readout",   path("readout.txt"),
                             "--soft",      soft,
                             "--soft_kind", "u8",
                             "--leakage",   path("leakage"),
                             "--workers",   workers,
                             "--out",       out},
                            path("err"));
    const std::string values = one_.soft(qec::realtime::soft_kind::u8), first = frames_until(30);
    ASSERT_EQ(write(fifo, values.data(), 31), 31);
    program.until([&] { return read_file(out) == first; });
    EXPECT_EQ(read_file(out), first) << read_file(path("err"));
    ASSERT_EQ(write(fifo, values.data() + 31, values.size() - 31), static_cast<ssize_t>(values.size() - 31));
    program.until([&] { return read_file(out) == one_.frames; });
    close(fifo);
    EXPECT_EQ(program.wait(), 0) << read_file(path("err"));
    EXPECT_EQ(read_file(out), one_.frames);
  }
}

TEST_F(DecodeStreamReadout, RefusesFilesThatAreNotThoseOfTheExperiment) {
  const auto soft = one_.soft(qec::realtime::soft_kind::f32);
  file("soft.f32", soft + std::string(4, '\0'));
  expect_refusal(options(of_kind("f32")), "soft.f32: it has more than the 60 soft values of the experiment",
                 one_.frames);
  std::string not_a_number = soft;
  not_a_number.replace(4 * 9, 4, "\xff\xff\xff\x7f");
  file("soft.f32", not_a_number);
  expect_refusal(options(of_kind("f32")), "soft value 9 is not finite", frames_until(8));
  file("soft.f32", soft);
  std::string flag_of_3 = one_.leakage();
  flag_of_3[2] = '\x0c'; // of flag 9
  file("leakage", flag_of_3);
  expect_refusal(options(of_kind("f32")), "flag 9 has the value 3", frames_until(8));
  expect_refusal(options(" --leakage " + path("leakage")), "--soft is missing: the table of --readout has soft values");
  expect_refusal(options(" --soft " + path("soft.f32")), "--leakage is missing: the table of --readout has flags");
  file("readout.txt", qec_test::chain_table(one_.model, false));
  expect_refusal(options(of_kind("f32")), "the table of --readout has no flags");
  std::string levels = "levels 0";
  for (int k = 0; k < 16; ++k)
    levels += " " + std::to_string(k - 8);
  file("readout.txt", qec_test::chain_table(one_.model, true, levels + "\n"));
  expect_refusal(options(of_kind("f32")), "--soft_kind f32: the table of --readout does not take this kind");
  file("readout.txt", "");
  expect_refusal(options(of_kind("f32")), "readout: line 1");
}

} // namespace
} // namespace cudaq::realtime::tools::test

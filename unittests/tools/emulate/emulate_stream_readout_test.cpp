// SPDX-License-Identifier: Apache-2.0
// Endless experiments with soft values: `serve` with a stream in one process, `emulate --rounds --readout` in another.
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/stream/stream_readout_support.h"
#include "unittests/tools/common/two_terminals.h"

#include <random>

namespace cudaq::realtime::tools::test {
namespace {

namespace qec_test = cudaq::qec::realtime::test;

constexpr unsigned kRecordedRounds = 60; ///< before the tail

/// Decoder 4 takes values and flags; 5 takes none.
class ReadoutStreamTerminals : public TwoTerminals {
protected:
  std::string decoders() const override {
    const std::string dem = qec_test::chain_dem();
    write("model.dem", dem);
    write("readout.txt", qec_test::chain_table(dem));
    write_record();
    std::string text = "decoders:\n";
    for (const char *id : {"4", "5"})
      text += "  - {id: " + std::string(id) +
              ", type: bp-osd, stream: true, dem_file: model.dem, decoder_custom_args: {" +
              (*id == '4' ? "readout: readout.txt" : "osd_order: 0") + "}}\n";
    return text;
  }
  /// An experiment of kRecordedRounds and the tail.
  void write_record() const {
    std::mt19937 random(29);
    std::string lines;
    std::vector<unsigned> values, flags;
    for (unsigned k = 0; k < kRecordedRounds; ++k) {
      lines += random() % 3 == 0 ? "1\n" : "0\n";
      values.push_back(random() % 3 == 0 ? 8 : random() % 2 == 0 ? 12 : 3);
      flags.push_back(static_cast<unsigned>(random() % 3));
    }
    write("rounds.01", lines + "0\n");
    const auto text = [](const std::vector<std::uint8_t> &bytes) { return std::string(bytes.begin(), bytes.end()); };
    for (const auto kind : qec_test::kAllKinds)
      write("soft." + std::string(name_of(kind)), text(qec_test::soft_bytes_of(values, kind)));
    write("leakage", text(qec_test::flag_bytes_of(flags)));
  }
  std::string record(const std::string &kind) const {
    return " --stream --dem " + path("model.dem") + " --in " + path("rounds.01") + readout() + "--soft_kind " + kind +
           " --soft " + path("soft." + kind) + " --leakage " + path("leakage") + " ";
  }
  void write(const std::string &name, const std::string &text) const { std::ofstream(path(name)) << text; }
  std::string path(const std::string &name) const { return (scratch_.path() / name).string(); }
  std::string stream(const std::string &options) const { return "--dem " + path("model.dem") + " " + options; }
  std::string readout() const { return " --readout " + path("readout.txt") + " "; }
};

TEST_P(ReadoutStreamTerminals, GiveTheFramesOfTheSameValuesForEachKind) {
  for (const std::string kind : {"f32", "u8", "u4"}) {
    const auto r = play(stream("--decoder-ids 4 --rounds 1000 --cycle-us 20 --shots 2" + readout() +
                               "--leaked 0.2 --soft_kind " + kind + (kind == "u8" ? " --window 1" : "")));
    ASSERT_FALSE(r.is_discarded());
    EXPECT_EQ(r.at("shots_answered"), 2) << kind;
    EXPECT_EQ(r.at("mismatches"), 0) << kind;
    EXPECT_EQ(r.at("error_statuses"), 0) << kind;
    EXPECT_GE(r.at("frames"), 4) << kind;
    EXPECT_EQ(r.at("readout"), "1 soft value (f32, u8, u4) and 1 flag");
    EXPECT_EQ(r.at("server_has_other_model"), false) << "the digest has the table, too";
  }
}

TEST_P(ReadoutStreamTerminals, ReplayARecordWithItsValuesAndFlagsAsDecodeReadsIt) {
  for (const std::string kind : {"f32", "u8", "u4"}) {
    const program_result decoded = run_program("decode --decoder bp-osd" + record(kind));
    ASSERT_EQ(decoded.exit_code, 0) << decoded.err;
    const std::string last = decoded.out.substr(decoded.out.size() - 2); // the observable of the last frame
    write("right.01", last);
    write("wrong.01", last == "1\n" ? "0\n" : "1\n");
    for (const bool is_right : {true, false}) {
      const auto r = play(record(kind) + "--decoder-ids 4 --cycle-us 20 --shots 2 --obs_in " +
                          path(is_right ? "right.01" : "wrong.01"));
      ASSERT_FALSE(r.is_discarded());
      EXPECT_EQ(r.at("recorded"), true);
      EXPECT_EQ(r.at("rounds_per_experiment"), kRecordedRounds + 1);
      EXPECT_EQ(r.at("shots_answered"), 2) << kind;
      EXPECT_EQ(r.at("mismatches"), 0) << kind;
      EXPECT_EQ(r.at("logical_errors"), is_right ? 0 : 2) << kind;
    }
  }
  const auto r = play(record("u8") + "--decoder-ids 4 --cycle-us 0");
  ASSERT_FALSE(r.is_discarded());
  EXPECT_EQ(r.at("logical_errors"), nullptr) << "without --obs_in it is not known";
}

TEST_P(ReadoutStreamTerminals, RefuseWhatTheServerDoesNotTake) {
  const auto refused = [&](const std::string &options, const std::string &text) {
    const bool is_record = contains(options, "--stream");
    const program_result r = run_program(command(is_record ? options : stream("--rounds 100 " + options)));
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << ": " << r.err;
    EXPECT_FALSE(is_record && contains(r.err, "--decoder gives another one")) << "a fault of the record: " << r.err;
  };
  refused("--decoder-ids 4", "decoder 4 of the server needs 1 soft value (f32, u8, u4) and 1 flag with each "
                             "repetition: give --readout");
  const std::string soft = " --soft " + path("soft.f32"), leakage = " --leakage " + path("leakage"),
                    bits = "--stream --decoder-ids 4 --dem " + path("model.dem") + " --in " + path("rounds.01");
  refused(bits + readout() + leakage, "--soft is missing: the table of --readout has soft values");
  refused(bits + readout() + soft, "--leakage is missing: the table of --readout has flags");
  refused(bits + readout() + soft + " --leakage " + path("soft.u8"), "soft.u8: it has more than the 60 flags");
  refused(bits + readout() + " --soft " + path("soft.u8") + leakage, "soft.u8: it ends after 15 soft values");
  for (const auto &[option, file] :
       {std::pair{"--in", "rounds.01"}, {"--soft", "soft.f32"}, {"--leakage", "leakage"}}) {
    const std::string before = read_file(path(file));
    refused(bits + readout() + soft + leakage + " --html " + path(file), option + (" " + path(file)) + ": this is the");
    EXPECT_EQ(read_file(path(file)), before) << "a report replaces no recording";
  }
  refused(bits + " --seed 5", "--seed: it has no effect with --stream");
  refused(bits + " --sample", "excludes --");
  refused("--stream --decoder-ids 4 --dem " + path("model.dem"), "--stream requires --in");
  refused("--decoder-ids 4 --in " + path("rounds.01"), "--in: it has no effect with --rounds, which draws rounds");
  write("rounds.01", "1\n1");
  refused(bits + readout() + soft + leakage, "rounds.01: an experiment without a repetition");
  refused("--decoder-ids 5" + readout(), "decoder 5 of the server takes no soft values and no flags");
  refused("--decoder-ids 4 --soft " + path("model.dem") + readout(), "--soft: it has no effect with --rounds");
  write("readout.txt", "");
  refused("--decoder-ids 4" + readout(), "readout: line 1");
}

INSTANTIATE_TEST_SUITE_P(Shapes, ReadoutStreamTerminals,
                         testing::Values(shape{"UdpUnified", "udp", CUDAQ_UDP_PROVIDER, "--port=0 --unified"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

} // namespace
} // namespace cudaq::realtime::tools::test

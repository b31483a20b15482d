// SPDX-License-Identifier: Apache-2.0
// Recorded soft values and flags of leakage: `emulate` plays them to `serve`, and the answers are those of `decode`.
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/tools/common/two_terminals.h"

#include <random>

namespace cudaq::realtime::tools::test {
namespace {

namespace of_server = cudaq::qec::realtime::test;

constexpr unsigned kShots = 200;

/// Decoders 6 and 7 are the same and take values and flags; 8 takes none.
class EmulatedReadout : public TwoTerminals {
protected:
  std::string decoders() const override {
    write("model.dem", of_server::kReadoutModel);
    write("readout.txt", of_server::readout_text());
    std::mt19937 random(44);
    std::string events, leakage;
    std::vector<std::string> soft(3);
    for (unsigned shot = 0; shot < kShots; ++shot) {
      events += static_cast<char>(random() % 4);
      std::vector<unsigned> values, flags;
      for (unsigned k = 0; k < 3; ++k)
        values.push_back(static_cast<unsigned>(random() % 16));
      for (unsigned k = 0; k < 5; ++k)
        flags.push_back(static_cast<unsigned>(random() % 3));
      for (const auto kind : of_server::kAllKinds)
        for (const std::uint8_t byte : of_server::soft_bytes_of(values, kind))
          soft[static_cast<unsigned>(kind)] += static_cast<char>(byte);
      for (const std::uint8_t byte : of_server::flag_bytes_of(flags))
        leakage += static_cast<char>(byte);
    }
    write("events.b8", events);
    write("values.f32", soft[0]);
    write("values.u8", soft[1]);
    write("values.u4", soft[2]);
    write("flags", leakage);
    std::string text = "decoders:\n";
    for (const char *id : {"6", "7", "8"})
      text += "  - {id: " + std::string(id) + ", type: bp-osd, dem_file: model.dem" +
              (*id == '8' ? "" : ", decoder_custom_args: {readout: readout.txt}") + "}\n";
    return text;
  }
  void write(const std::string &name, const std::string &text) const { std::ofstream(path(name)) << text; }
  std::string path(const std::string &name) const { return (scratch_.path() / name).string(); }
  std::string data() const { return "--dem " + path("model.dem") + " --in " + path("events.b8"); }
  std::string readout(const std::string &kind) const {
    return " --readout " + path("readout.txt") + " --soft_kind " + kind + " --soft " + path("values." + kind) +
           " --leakage " + path("flags");
  }
  void expect_refused(const std::string &options, const std::string &text) const {
    const program_result r = run_program(command(data() + " --shots 20 " + options));
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << ": " << r.err;
  }
};

TEST_P(EmulatedReadout, HasTheAnswersOfDecode) {
  for (const std::string kind : {"f32", "u8", "u4"}) {
    const program_result decoded =
        run_program("decode --decoder bp-osd " + data() + readout(kind) + " --out " + path("wanted.b8"));
    ASSERT_EQ(decoded.exit_code, 0) << decoded.err;
    for (const std::string protocol : {"--protocol decode", "--protocol server --decoder-ids 6,7"}) {
      const auto r = play(data() + readout(kind) + " --predictions " + path("wanted.b8") + " --shots 300 " + protocol);
      ASSERT_FALSE(r.is_discarded());
      EXPECT_EQ(r.at("shots_answered"), 300) << kind << protocol;
      EXPECT_EQ(r.at("mismatches"), 0) << kind << protocol;
      EXPECT_EQ(r.at("server_has_other_model"), false) << "the digest has the table, too";
      EXPECT_EQ(r.at("readout"), "3 soft values (f32, u8, u4) and 5 flags");
    }
  }
  const auto here = play(data() + readout("u8") + " --decoder bp-osd --shots 200");
  ASSERT_FALSE(here.is_discarded());
  EXPECT_EQ(here.at("mismatches"), 0) << "decoded here";
  write("other", std::string(2 * kShots, '\x02')); // flag 0 is 2, and others: other answers than those of `flags`
  const program_result other = run_program("decode --decoder bp-osd " + data() + " --readout " + path("readout.txt") +
                                           " --soft_kind u8 --soft " + path("values.u8") + " --leakage " +
                                           path("other") + " --out " + path("wrong.b8"));
  ASSERT_EQ(other.exit_code, 0) << other.err;
  const program_result r =
      run_program(command(data() + readout("u8") + " --predictions " + path("wrong.b8") + " --shots 200"));
  EXPECT_EQ(r.exit_code, 1) << "a server that ignores the flags would not differ: " << r.err;
}

TEST_P(EmulatedReadout, DrawsValuesAndCountsLogicalErrorsWithAndWithoutThem) {
  const std::string table = "--sample --dem " + path("model.dem") + " --readout " + path("readout.txt") +
                            " --leakage " + path("flags") + " --shots 200 ";
  for (const std::string kind : {"f32", "u4"}) {
    const auto r = play(table + "--protocol server --decoder-ids 6,7 --seed 3 --soft_kind " + kind);
    ASSERT_FALSE(r.is_discarded());
    EXPECT_EQ(r.at("shots_answered"), 200) << kind;
    EXPECT_EQ(r.at("mismatches"), 0) << "checked by the decoder that the server names: " << r.at("corrections_checked");
    EXPECT_EQ(r.at("without_readout").at("shots"), 200);
    EXPECT_LE(r.at("logical_errors"), r.at("without_readout").at("errors")) << kind;
    EXPECT_GT(r.at("without_readout").at("errors"), 0) << kind;
    EXPECT_EQ(r.at("logical_errors"), play(table + "--seed 3 --soft_kind " + kind).at("logical_errors")) << "same seed";
  }
  const auto drawn = play("--sample --dem " + path("model.dem") + " --readout " + path("readout.txt") +
                          " --leaked 0.3 --shots 200 --protocol server --decoder-ids 6,7");
  ASSERT_FALSE(drawn.is_discarded());
  EXPECT_EQ(drawn.at("mismatches"), 0) << "flags that are drawn, too";
  EXPECT_EQ(drawn.at("shots_answered"), 200);
  const auto refused = [&](const std::string &options, const std::string &text) {
    const program_result r = run_program(command(table + options));
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << ": " << r.err;
  };
  refused("--soft " + path("values.u8"), "--soft: it has no effect with --sample");
  refused("--leaked 0.3", " excludes --leak");
  write("readout.txt", of_server::readout_text("measurements 3\nflags 5\ngaussian 0 -1 3 2 0.5\nmisread 0 0.01 1 0\n"));
  refused("--soft_kind u8", "values of measurement 1 cannot be drawn: calibration 0 has means that are not "
                            "values of this kind");
}

TEST_P(EmulatedReadout, RefusesWhatTheServerDoesNotTake) {
  const std::string server = "--protocol server --decoder-ids ";
  expect_refused(server + "6", "decoder 6 of the server needs 3 soft values (f32, u8, u4) and 5 flags with each shot: "
                               "give --readout, and --soft or --leakage");
  expect_refused(server + "8" + readout("u8"), "decoder 8 of the server takes no soft values and no flags: its "
                                               "configuration needs the setting readout");
  write("readout.txt", of_server::readout_text("measurements 3\ngaussian 0 12 3 2 0.5\nmisread 0 0.01 1 0\n"));
  expect_refused(server + "6 --readout " + path("readout.txt") + " --soft_kind u8 --soft " + path("values.u8"),
                 "decoder 6 of the server takes 3 soft values (f32, u8, u4) and 5 flags, the table of --readout 3 soft "
                 "values (f32, u8, u4)");
  expect_refused("--readout " + path("readout.txt"), "--soft is missing: the table of --readout has soft values");
  expect_refused("--readout " + path("readout.txt") + " --soft " + path("values.u8"),
                 "600 bytes; 200 shots of 12 bytes each have 2400");
  expect_refused("--soft " + path("values.u8"), "--readout");
  write("check.yaml", "decoders: [{id: 6, type: lookup, dem_file: model.dem, decoder_custom_args: {readout: "
                      "readout.txt}}]\n");
  const program_result check = run_program("serve --check " + path("check.yaml"));
  EXPECT_EQ(check.exit_code, 2);
  EXPECT_TRUE(contains(check.err, "decoders[0] (id 6): readout: lookup")) << check.err;
  // By --protocol decode no decoder has an id: the server answers with a status.
  const program_result r = run_program(command(data() + " --shots 20"));
  EXPECT_EQ(r.exit_code, 1) << r.err;
  EXPECT_TRUE(contains(r.err, "status 4")) << r.err;
}

INSTANTIATE_TEST_SUITE_P(Shapes, EmulatedReadout,
                         testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

} // namespace
} // namespace cudaq::realtime::tools::test

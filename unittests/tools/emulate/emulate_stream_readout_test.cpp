// SPDX-License-Identifier: Apache-2.0
// Endless experiments with soft values: `serve` with a stream in one process, `emulate --rounds --readout` in another.
#include "unittests/qec/stream/stream_readout_support.h"
#include "unittests/tools/common/two_terminals.h"

namespace cudaq::realtime::tools::test {
namespace {

namespace qec_test = cudaq::qec::realtime::test;

/// Decoder 4 takes values; 5 takes none.
class ReadoutStreamTerminals : public TwoTerminals {
protected:
  std::string decoders() const override {
    const std::string dem = qec_test::chain_dem();
    write("model.dem", dem);
    write("readout.txt", qec_test::chain_table(dem, false));
    write("flags.txt", qec_test::chain_table(dem));
    std::string text = "decoders:\n";
    for (const char *id : {"4", "5"})
      text += "  - {id: " + std::string(id) +
              ", type: bp-osd, stream: true, dem_file: model.dem, decoder_custom_args: {" +
              (*id == '4' ? "readout: readout.txt" : "osd_order: 0") + "}}\n";
    return text;
  }
  void write(const std::string &name, const std::string &text) const { std::ofstream(path(name)) << text; }
  std::string path(const std::string &name) const { return (scratch_.path() / name).string(); }
  std::string stream(const std::string &options) const { return "--dem " + path("model.dem") + " " + options; }
  std::string readout() const { return " --readout " + path("readout.txt") + " "; }
};

TEST_P(ReadoutStreamTerminals, GiveTheFramesOfTheSameValuesForEachKind) {
  for (const std::string kind : {"f32", "u8", "u4"}) {
    const auto r = play(stream("--decoder-ids 4 --rounds 1000 --cycle-us 20 --shots 2" + readout() + "--soft_kind " +
                               kind + (kind == "u8" ? " --window 1" : "")));
    ASSERT_FALSE(r.is_discarded());
    EXPECT_EQ(r.at("shots_answered"), 2) << kind;
    EXPECT_EQ(r.at("mismatches"), 0) << kind;
    EXPECT_EQ(r.at("error_statuses"), 0) << kind;
    EXPECT_GE(r.at("frames"), 4) << kind;
    EXPECT_EQ(r.at("readout"), "1 soft value (f32, u8, u4)");
    EXPECT_EQ(r.at("server_has_other_model"), false) << "the digest has the table, too";
  }
}

TEST_P(ReadoutStreamTerminals, RefuseWhatTheServerDoesNotTake) {
  const auto refused = [&](const std::string &options, const std::string &text) {
    const program_result r = run_program(command(stream("--rounds 100 " + options)));
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << ": " << r.err;
  };
  refused("--decoder-ids 4", "decoder 4 of the server needs 1 soft value (f32, u8, u4) with each repetition: give "
                             "--readout");
  refused("--decoder-ids 5" + readout(), "decoder 5 of the server takes no soft values and no flags");
  refused("--decoder-ids 4 --readout " + path("flags.txt"), "flags of leakage, which are not drawn");
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

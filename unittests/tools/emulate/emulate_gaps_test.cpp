// SPDX-License-Identifier: Apache-2.0
// A server whose answers have gaps after the bits: `emulate` compares the bits.
#include "unittests/tools/common/two_terminals.h"

#include <fstream>

namespace cudaq::realtime::tools::test {
namespace {

class EmulatedGaps : public TwoTerminals {
protected:
  std::string decoders() const override {
    std::ofstream(path("model.dem")) << "error(0.1) D0 L0\nerror(0.05) D0 D1\nerror(0.01) D1\n";
    std::string events, wanted;
    for (int shot = 0; shot < 40; ++shot) {
      events += static_cast<char>(shot % 4);
      wanted += static_cast<char>(shot % 4 == 1 ? 1 : 0);
    }
    std::ofstream(path("events.b8")) << events;
    std::ofstream(path("wanted.b8")) << wanted;
    return "decoders:\n  - {id: 6, type: pymatching, dem_file: model.dem, decoder_custom_args: {confidence: 1}}\n";
  }
  std::string path(const std::string &name) const { return (scratch_.path() / name).string(); }
};

TEST_P(EmulatedGaps, AreNotComparedWithTheBits) {
  for (const std::string protocol : {"--protocol decode", "--protocol server --decoder-ids 6"}) {
    const auto r = play("--dem " + path("model.dem") + " --in " + path("events.b8") + " --predictions " +
                        path("wanted.b8") + " --shots 60 " + protocol);
    ASSERT_FALSE(r.is_discarded());
    EXPECT_EQ(r.at("shots_answered"), 60) << protocol;
    EXPECT_EQ(r.at("mismatches"), 0) << protocol;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EmulatedGaps,
                         testing::Values(shape{"UdpRing", "udp", CUDAQ_UDP_PROVIDER, "--port=0"},
                                         shape{"ShmUnified", "shm", CUDAQ_SHM_PROVIDER, "--name= --unified"}),
                         [](const auto &one) { return std::string(one.param.name); });

} // namespace
} // namespace cudaq::realtime::tools::test

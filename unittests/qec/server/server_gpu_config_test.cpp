// SPDX-License-Identifier: Apache-2.0
// dispatch device_graph: the decoder on the GPU or a refusal, never the CPU.
#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/server/server_config.h"

#include <gtest/gtest.h>

namespace cudaq::qec::realtime {
namespace {

/// What the builder makes of a decoder of this type.
expected<std::vector<decoder_setup>> built(const std::string &type) {
  decoder_config config;
  config.place = "decoders[0]";
  config.type = type;
  config.dem = "error(0.1) D0 D1 L0\nerror(0.1) D0\nerror(0.1) D1\n";
  config.is_on_gpu = true;
  config.cuda_device_id = 3;
  server_config all;
  all.decoders.push_back(config);
  return build_decoders(all, ".");
}

TEST(ServerGpuDecoder, IsRefusedForTypesThatRunOnTheCpuOnly) {
  for (const std::string type : {"bp-osd", "lookup", "auto", "relay-bp-gpu", "pymatching",
                                 "pymatching:predecoder=local", "bp-osd:predecoder=model=FILE"}) {
    const auto result = built(type);
    ASSERT_TRUE(result.failed()) << type;
    EXPECT_NE(
        result.text().find("only relay-bp, and pymatching after a network (predecoder=model=FILE), decode on a GPU"),
        std::string::npos)
        << result.text();
  }
}

TEST(ServerGpuDecoder, IsNeverReplacedByTheCpu) {
  const auto result = built("relay-bp:seed=1");
  if (result.ok()) // a machine with four GPUs
    EXPECT_STREQ(result->front().unit->decoder_name(), "relay-bp-gpu");
  else
    EXPECT_NE(result.text().find("relay-bp-gpu"), std::string::npos) << result.text();
}

// The settings go along, so a wrong one is refused by the decoder on the GPU.
TEST(ServerGpuDecoder, OfANetworkIsNeverReplacedByTheCpu) {
  const auto result = built("pymatching:edges=1,predecoder=model=/absent/file");
  ASSERT_TRUE(result.failed());
  EXPECT_NE(result.text().find("model-gpu"), std::string::npos) << result.text();
}

} // namespace
} // namespace cudaq::qec::realtime

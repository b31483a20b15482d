// SPDX-License-Identifier: Apache-2.0
// `serve` with a network on the GPU (dispatch: device_graph) and pymatching after it, `emulate` in another process: all
// answers are compared with the same decoder there, whose kernels give the same bits.
#include "unittests/gpu/support/gpu_test.h"
#include "unittests/tools/common/two_terminals.h"

namespace cudaq::realtime::test {
namespace {

using namespace cudaq::realtime::tools::test;

const std::string kMemory = std::string(CUDAQ_TEST_DATA_DIR) + "/surface_z_d5_p0.003.dem";
const std::string kWeights = std::string(CUDAQ_TEST_WEIGHTS) + "/surface_128x6.safetensors";

class ServeModelGpu : public gpu_test {};

TEST_F(ServeModelGpu, GivesTheAnswersOfTheDecoderThatThisGpuMakes) {
  if (contains(run_program("serve --config /dev/null").err, "no YAML parser"))
    GTEST_SKIP() << "this build has no YAML parser, so no server";
  const scratch_folder scratch;
  const std::string config = (scratch.path() / "decoders.yaml").string(), err = (scratch.path() / "err").string();
  const std::string device = std::to_string(test_device());
  std::ofstream(config) << "decoders:\n  - {id: 0, type: 'pymatching:predecoder=model=" << kWeights
                        << "', dem_file: " << kMemory << ", dispatch: device_graph, cuda_device_id: " << device
                        << "}\n";
  running_program server({"serve", "--config", config, "--transport", CUDAQ_UDP_PROVIDER, "--", "--port=0"}, err);
  const std::string ready = server.line();
  if (contains(read_file(err), "PyMatching"))
    GTEST_SKIP() << "this build has no PyMatching";
  ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << ready << read_file(err);
  const auto report = run_good_program(
      "emulate --json --timeout 30 --transport udp --port " + value_in(ready, "port") + " --dem " + kMemory +
      " --sample --seed 5 --shots 500 --decoder model-gpu:weights=" + kWeights + ",device=" + device);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("shots_answered"), 500);
  EXPECT_EQ(report.at("mismatches"), 0);
  EXPECT_EQ(report.at("lost"), 0);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << read_file(err);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Soft values through the router, to a node whose decoder takes them.
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/route/routed_servers.h"

namespace cudaq::realtime::tools::test {
namespace {

namespace of_server = cudaq::qec::realtime::test;

TEST(RouteReadout, TheNodeHasTheValuesOfItsRequests) {
  if (no_yaml())
    GTEST_SKIP() << "this build has no YAML parser";
  const scratch_folder folder;
  const auto path = [&](const char *name) { return folder.path() / name; };
  write(path("model.dem"), of_server::kReadoutModel);
  write(path("readout.txt"), of_server::readout_text());
  write(path("node.yaml"), "decoders: [{id: 6, type: bp-osd, dem_file: model.dem, age_limit_us: 60000000,\n"
                           "  decoder_custom_args: {readout: readout.txt}}]\n");
  const reserved_port port;
  running_program node({"serve", "--config", path("node.yaml"), "--transport", "ucx", "--wait", "block", "--",
                        "--port=" + std::to_string(port.number()), "--tls=tcp"},
                       path("stderr"));
  ASSERT_TRUE(node.line().starts_with("QEC_DECODING_SERVER_READY ")) << read_file(path("stderr"));
  write(path("route.yaml"), "nodes: [{name: a, decoders: [6], port: " + std::to_string(port.number()) +
                                "}]\nfunctions: [{name: qec_decode, node: a}]\ntls: tcp\nlost_after_ms: 20000\n"
                                "answer_limit_ms: 60000\n");
  running_program router({"route", "--config", path("route.yaml"), "--transport", CUDAQ_TEST_SOCKET_PROVIDER, "--",
                          "--socket=" + path("front.sock").string()},
                         path("stderr"));
  ASSERT_TRUE(router.line().starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << read_file(path("stderr"));
  ASSERT_TRUE(contains(router.line(), "state=joined")) << read_file(path("stderr"));
  socket_peer peer(path("front.sock"));
  const of_server::readout_shot sure{"10", {12, 12, 3}, {0, 0, 0, 0, 0}}, unsure{"10", {3, 7, 8}, {0, 0, 0, 0, 0}};
  std::uint64_t counter = 0;
  for (const auto &[shot, answer] : {std::pair{sure, 1}, {unsure, 0}})
    for (const auto kind : of_server::kAllKinds) {
      EXPECT_EQ(peer.call(CUDAQ_QEC_ENQUEUE_READOUT, of_server::readout_payload(6, ++counter, shot, kind)).status, 0);
      EXPECT_EQ(peer.call(kGet, of_server::get_payload(6, 1, true)).result, bytes{static_cast<std::uint8_t>(answer)});
      EXPECT_EQ(peer.call(CUDAQ_QEC_DECODE, of_server::one_shot_payload(shot, kind)).result,
                bytes{static_cast<std::uint8_t>(answer)});
      EXPECT_EQ(peer.call(CUDAQ_QEC_DECODE_READOUT, of_server::readout_payload(6, 0, shot, kind)).result,
                bytes{static_cast<std::uint8_t>(answer)});
    }
  EXPECT_EQ(peer.call(CUDAQ_QEC_DECODE_READOUT, of_server::readout_payload(7, 0, sure, of_server::kAllKinds[0])).status,
            -CUDAQ_QEC_SERVER_INVALID_DECODER)
      << "as a server says it";
  EXPECT_EQ(peer.call(kEnqueue, of_server::enqueue_payload(6, ++counter, "10")).status, CUDAQ_QEC_SERVER_BAD_REQUEST);
  const wire_answer described = peer.call(CUDAQ_QEC_DESCRIBE_DECODER, numbers({6, 3}));
  ASSERT_EQ(described.result.size(), sizeof(cudaq_qec_readout_description_t));
  cudaq_qec_readout_description_t description;
  std::memcpy(&description, described.result.data(), sizeof description);
  EXPECT_EQ(description.num_measurements, 3u);
  EXPECT_EQ(description.num_flags, 5u);
  EXPECT_EQ(description.soft_kinds, 7u);
}

} // namespace
} // namespace cudaq::realtime::tools::test

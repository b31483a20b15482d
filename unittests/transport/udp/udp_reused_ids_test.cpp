// SPDX-License-Identifier: Apache-2.0
// Clients of the existing wire: the ids of their requests are always 0.
#include "unittests/support/program_paths.h"
#include "unittests/transport/datagram/datagram_server_process.h"
#include "unittests/transport/datagram/datagram_service.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <set>

namespace cudaq::realtime::test {
namespace {

TEST(UdpReusedIds, EachRequestOfABurstIsAnsweredInADatagramOfASlotsSize) {
  for (const std::vector<std::string> &shape : {std::vector<std::string>{}, {"--unified"}}) {
    std::vector<std::string> options{"--num-slots=4"};
    options.insert(options.end(), shape.begin(), shape.end());
    datagram_server_process server(CUDAQ_UDP_PROVIDER, options);
    udp_peer peer(server.port());
    for (int n = 0; n < 50; ++n)
      peer.send(request_bytes(kIncrement, 0, {static_cast<std::uint8_t>(n)}, 256));
    std::multiset<std::uint8_t> results;
    for (int n = 0; n < 50; ++n) {
      const auto answer = peer.receive();
      ASSERT_TRUE(answer) << n;
      EXPECT_EQ(answer->size(), 256u);
      results.insert(result_of(*answer).at(0));
    }
    for (int n = 0; n < 50; ++n)
      EXPECT_EQ(results.count(static_cast<std::uint8_t>(n + 1)), 1u);
    EXPECT_EQ(count_in(server.stop(), "count"), 50u);
  }
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/server/server_threads_support.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

TEST(ServerReadoutQueue, KeepsTheLongestRequestsAndRefusesLongerOnes) {
  decoding_server server(one_setup({.id = 6, .queue_length = 4}, readout_unit()));
  requester client(server);
  ASSERT_EQ(server.start(requester::receiver(), CUDAQ_WAIT_BLOCK).text(), "");
  const readout_shot sure{"10", {12, 12, 3}, {0, 0, 0, 0, 0}}, unsure{"10", {3, 7, 8}, {0, 0, 0, 0, 0}};
  std::uint64_t counter = 0;
  for (const auto &[shot, answer] : {std::pair{sure, "1"}, {unsure, "0"}, {sure, "1"}, {sure, "1"}, {unsure, "0"}})
    for (const soft_kind kind : kAllKinds) {
      EXPECT_EQ(client.call(kEnqueueReadoutFunctionId, readout_payload(6, counter++, shot, kind)),
                answered(server_status::ok));
      EXPECT_EQ(client.call(kGetCorrectionsFunctionId, get_payload(6, 1, true)), answered(server_status::ok, answer));
      EXPECT_EQ(client.call(kOneShotFunctionId, one_shot_payload(shot, kind)), answered(server_status::ok, answer));
    }
  bytes longer = one_shot_payload(unsure, soft_kind::f32);
  longer.push_back(0);
  EXPECT_EQ(client.call(kOneShotFunctionId, longer).status, -static_cast<std::int32_t>(server_status::bad_request));
  const readout_shot too_many{"10", {7, 7, 7, 7}, {0, 0, 0, 0, 0}};
  EXPECT_EQ(client.call(kEnqueueReadoutFunctionId, readout_payload(6, counter, too_many, soft_kind::f32)),
            answered(server_status::bad_request));
  EXPECT_TRUE(server.stop(soon()));
}

} // namespace

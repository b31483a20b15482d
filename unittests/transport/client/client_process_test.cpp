// SPDX-License-Identifier: Apache-2.0
// A client over a fork: both sides have its socket and its next id. If the child used it, each could take the answer of
// the other, and the server would take a request of one for the repetition of the other's.
#include "unittests/support/processes/started_program.h"
#include "unittests/transport/client/played_server.h"

namespace cudaq::realtime::test {
namespace {

TEST(ClientProcess, IsTheOneThatOpenedTheClient) {
  played_server server([](const played_request &, std::size_t) { return played_answer{0, {7}}; });
  udp_client client(server.port());
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(client.call(CUDAQ_QEC_GET_CORRECTIONS, {1}, answer), CUDAQ_OK);
  EXPECT_EQ(status_in_child([&] {
              const auto request = udp_client::request(CUDAQ_QEC_GET_CORRECTIONS, {});
              cudaq_qec_client_answer_t mine;
              cudaq_qec_client_counts_t counts;
              cudaq_qec_decoder_description_t model;
              std::int32_t status = 0;
              std::uint32_t id = 0;
              int restarted = 0, wrong = 0;
              for (const cudaq_status_t refused :
                   {cudaq_qec_client_call(client.get(), &request, &mine),
                    cudaq_qec_client_send(client.get(), &request, &id), cudaq_qec_client_wait(client.get(), 0, &mine),
                    cudaq_qec_client_give_up(client.get(), 1),
                    cudaq_qec_client_describe(client.get(), 1, 0, &model, &status),
                    cudaq_qec_client_was_restarted(client.get(), 1, 0, &restarted),
                    cudaq_qec_client_get_counts(client.get(), &counts)})
                wrong += refused == CUDAQ_ERR_STATE ? 0 : 1;
              wrong += std::string(cudaq_qec_client_error()).find("fork") == std::string::npos ? 1 : 0;
              cudaq_qec_client_close(client.get());
              return wrong;
            }),
            0);
  ASSERT_EQ(client.call(CUDAQ_QEC_GET_CORRECTIONS, {1}, answer), CUDAQ_OK) << "the parent goes on";
  EXPECT_EQ(server.requests().size(), 2u) << "the child has sent nothing";
}

TEST(ClientProcess, MayOpenAClientOfItsOwnAfterFork) {
  played_server server([](const played_request &, std::size_t) { return played_answer{0, {7}}; });
  EXPECT_EQ(status_in_child([&] {
              udp_client mine(server.port());
              cudaq_qec_client_answer_t answer;
              return mine.call(CUDAQ_QEC_GET_CORRECTIONS, {1}, answer) == CUDAQ_OK ? 0 : 1;
            }),
            0);
}

} // namespace
} // namespace cudaq::realtime::test

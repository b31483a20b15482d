// SPDX-License-Identifier: Apache-2.0
// The client library of the decoding server over shared memory, with a server of any functions.
#include "cudaq/qec/realtime/decoding_client.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <algorithm>
#include <sys/wait.h>

namespace cudaq::realtime::test {
namespace {

class ShmQecClient : public ::testing::TestWithParam<const char *> {
protected:
  ~ShmQecClient() override { cudaq_qec_client_close(client); }
  void open(const std::string &name, std::uint32_t max_open = 1) {
    cudaq_qec_client_options_t options{};
    options.struct_size = sizeof(options);
    options.max_open = max_open;
    ASSERT_EQ(cudaq_qec_client_open_shm(&client, name.c_str(), kPatience, &options), CUDAQ_OK)
        << cudaq_qec_client_error();
  }
  static cudaq_qec_client_request_t request(std::uint32_t function, const std::string &body) {
    return {function, CUDAQ_QEC_CLIENT_BUSY_IS_AN_ANSWER, nullptr, 0, body.data(), body.size(), kPatience};
  }
  static std::string text(const cudaq_qec_client_answer_t &a) { return {a.result, a.result + a.result_bytes}; }

  cudaq_qec_client_t *client = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Shape, ShmQecClient, ::testing::Values("ring", "unified"));

TEST_P(ShmQecClient, CallsGoRoundTheRing) {
  const std::string name = own_name("call");
  peer_server server(GetParam(), name);
  open(name);
  const std::string body = "HAL";
  const auto r = request(kIncrement, body);
  cudaq_qec_client_answer_t answer;
  for (int k = 0; k < 40; ++k) {
    ASSERT_EQ(cudaq_qec_client_call(client, &r, &answer), CUDAQ_OK) << cudaq_qec_client_error();
    ASSERT_EQ(text(answer), "IBM");
    ASSERT_EQ(answer.attempts, 1u);
  }
  const auto unknown = request(0xBADF00D, body);
  EXPECT_EQ(cudaq_qec_client_call(client, &unknown, &answer), CUDAQ_ERR_UNSUPPORTED);
  ASSERT_EQ(cudaq_qec_client_call(client, &r, &answer), CUDAQ_OK) << "after a request that was dropped";
  server.stop();
  EXPECT_EQ(cudaq_qec_client_call(client, &r, &answer), CUDAQ_ERR_STATE);
}

TEST_P(ShmQecClient, SeveralRequestsAreOpen) {
  const std::string name = own_name("several");
  peer_server server(GetParam(), name);
  open(name, 4);
  const std::string bodies[] = {"A", "B", "C", "D"};
  std::vector<std::uint32_t> ids(4);
  for (int turn = 0; turn < 10; ++turn) {
    for (std::size_t k = 0; k < 4; ++k) {
      const auto r = request(kIncrement, bodies[k]);
      ASSERT_EQ(cudaq_qec_client_send(client, &r, &ids[k]), CUDAQ_OK) << cudaq_qec_client_error();
    }
    for (std::size_t k = 0; k < 4; ++k) {
      cudaq_qec_client_answer_t answer;
      ASSERT_EQ(cudaq_qec_client_wait(client, kPatience, &answer), CUDAQ_OK) << cudaq_qec_client_error();
      const auto place = static_cast<std::size_t>(std::ranges::find(ids, answer.request) - ids.begin());
      ASSERT_LT(place, 4u);
      ASSERT_EQ(text(answer)[0], bodies[place][0] + 1);
    }
  }
}

TEST_P(ShmQecClient, EndsTheWaitsOfSeveralRequestsIfTheServerIsKilled) {
  const std::string name = own_name("killed");
  peer_server server(GetParam(), name);
  open(name, 4);
  server.signal(SIGSTOP); // so that it answers nothing
  const std::string body = "HAL";
  const auto r = request(kIncrement, body);
  for (int k = 0; k < 2; ++k) {
    std::uint32_t id = 0;
    ASSERT_EQ(cudaq_qec_client_send(client, &r, &id), CUDAQ_OK) << cudaq_qec_client_error();
  }
  server.kill();
  cudaq_qec_client_answer_t answer;
  cudaq_status_t status = CUDAQ_ERR_TIMEOUT;
  while (status == CUDAQ_ERR_TIMEOUT)
    status = cudaq_qec_client_wait(client, 1'000'000, &answer);
  EXPECT_EQ(status, CUDAQ_ERR_STATE);
}

TEST_P(ShmQecClient, IsRefusedInAChildOfFork) {
  const std::string name = own_name("child");
  peer_server server(GetParam(), name);
  open(name);
  const std::string body = "HAL";
  const auto r = request(kIncrement, body);
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(status_in_child([&] {
              const bool refused = cudaq_qec_client_call(client, &r, &answer) == CUDAQ_ERR_STATE;
              cudaq_qec_client_close(client);
              return refused ? 0 : 1;
            }),
            0);
  EXPECT_EQ(cudaq_qec_client_call(client, &r, &answer), CUDAQ_OK) << cudaq_qec_client_error();
}

} // namespace
} // namespace cudaq::realtime::test

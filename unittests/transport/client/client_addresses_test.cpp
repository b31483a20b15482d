// SPDX-License-Identifier: Apache-2.0
// Names with several addresses. getaddrinfo of this program takes the place of the system's one, so that the test does
// not depend on the names of a machine. It must be visible, or the library goes on with that of the system.
#include "unittests/transport/client/played_server.h"
#include "unittests/transport/datagram/unused_udp_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>

namespace {

/// The server listens at the second one only, as with `localhost` that is ::1 first.
struct two_addresses {
  addrinfo entries[2]{};
  sockaddr_in addresses[2]{};
};

} // namespace

extern "C" [[gnu::visibility("default")]] int getaddrinfo(const char *, const char *service, const addrinfo *,
                                                          addrinfo **out) {
  auto *const both = new two_addresses;
  for (int k = 0; k < 2; ++k) {
    both->addresses[k].sin_family = AF_INET;
    both->addresses[k].sin_port = htons(static_cast<std::uint16_t>(std::stoi(service)));
    inet_pton(AF_INET, k == 0 ? "127.0.0.2" : "127.0.0.1", &both->addresses[k].sin_addr);
    both->entries[k].ai_family = AF_INET;
    both->entries[k].ai_socktype = SOCK_DGRAM;
    both->entries[k].ai_addr = reinterpret_cast<sockaddr *>(&both->addresses[k]);
    both->entries[k].ai_addrlen = sizeof(sockaddr_in);
  }
  both->entries[0].ai_next = &both->entries[1];
  *out = both->entries;
  return 0;
}
extern "C" [[gnu::visibility("default")]] void freeaddrinfo(addrinfo *first) {
  delete reinterpret_cast<two_addresses *>(first);
}

namespace cudaq::realtime::test {
namespace {

TEST(ClientAddresses, NextOneIsTriedWhereNothingListens) {
  played_server server([](const played_request &, std::size_t) { return played_answer{}; });
  for (const std::uint64_t repeat_after : {CUDAQ_QEC_CLIENT_NEVER, 10'000 * kMs}) { // neither waits for a repetition
    udp_client client(server.port(), repeat_after);
    cudaq_qec_client_answer_t answer;
    for (int k = 0; k < 3; ++k)
      ASSERT_EQ(client.call(CUDAQ_QEC_RESET_DECODER, {1}, answer, 5'000 * kMs), CUDAQ_OK) << cudaq_qec_client_error();
  }
  const auto sent = server.requests();
  EXPECT_EQ(sent.size(), 6u);
}

TEST(ClientAddresses, AllOpenRequestsGoToTheNextOne) {
  played_server server([](const played_request &, std::size_t) { return played_answer{}; });
  const int socket = next_socket();
  udp_client client(server.port(), CUDAQ_QEC_CLIENT_NEVER, 4);
  const bytes body = {1};
  const auto request = udp_client::request(CUDAQ_QEC_RESET_DECODER, body, 5'000 * kMs);
  for (int k = 0; k < 4; ++k) {
    std::uint32_t id = 0;
    ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &id), CUDAQ_OK) << cudaq_qec_client_error();
    if (k == 0)
      wait_for_refusal(socket); // it is reported when the second one is sent
  }
  cudaq_qec_client_answer_t answer;
  for (int k = 0; k < 4; ++k) {
    ASSERT_EQ(cudaq_qec_client_wait(client.get(), kLong, &answer), CUDAQ_OK) << cudaq_qec_client_error();
    EXPECT_EQ(answer.event, static_cast<std::uint32_t>(CUDAQ_QEC_CLIENT_ANSWERED));
  }
  EXPECT_EQ(server.requests().size(), 4u) << "no frame came twice";
}

TEST(ClientAddresses, AReportOfOneThatIsNotInUseChangesNothing) {
  played_server server([](const played_request &, std::size_t) { return played_answer{}; });
  const int first = next_socket();
  udp_client client(server.port(), 10'000 * kMs);
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(client.call(CUDAQ_QEC_RESET_DECODER, {1}, answer), CUDAQ_OK) << cudaq_qec_client_error();
  EXPECT_EQ(answer.attempts, 2u) << "the first address has refused it";
  ASSERT_EQ(::send(first, "", 1, 0), 1);
  wait_for_refusal(first);
  ASSERT_EQ(client.call(CUDAQ_QEC_RESET_DECODER, {1}, answer), CUDAQ_OK) << cudaq_qec_client_error();
  EXPECT_EQ(answer.attempts, 1u);
}

TEST(ClientAddresses, SendsEndIfSeveralRequestsAreOpenAndNoneListens) {
  const auto port = static_cast<std::uint16_t>(unused_udp_port());
  udp_client client(port, 5 * kMs, 4, "localhost", 50 * kMs);
  const bytes body = {1};
  const auto request = udp_client::request(CUDAQ_QEC_RESET_DECODER, body);
  for (int k = 0; k < 4; ++k) {
    std::uint32_t id = 0;
    ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &id), CUDAQ_OK) << cudaq_qec_client_error();
  }
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(cudaq_qec_client_wait(client.get(), kLong, &answer), CUDAQ_ERR_STATE) << cudaq_qec_client_error();
}

TEST(ClientAddresses, AllRefuseBeforeNoServerListens) {
  const auto port = static_cast<std::uint16_t>(unused_udp_port());
  udp_client client(port, CUDAQ_QEC_CLIENT_NEVER);
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(client.call(CUDAQ_QEC_RESET_DECODER, {1}, answer, 5'000 * kMs), CUDAQ_ERR_STATE)
      << cudaq_qec_client_error();
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Names with several addresses. getaddrinfo of this program takes the place of the system's one, so that the test does
// not depend on the names of a machine.
#include "unittests/transport/client/played_server.h"

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

extern "C" int getaddrinfo(const char *, const char *service, const addrinfo *, addrinfo **out) {
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
extern "C" void freeaddrinfo(addrinfo *first) { delete reinterpret_cast<two_addresses *>(first); }

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

TEST(ClientAddresses, AllRefuseBeforeNoServerListens) {
  std::uint16_t port = 0;
  {
    port = played_server([](const played_request &, std::size_t) { return std::nullopt; }).port();
  }
  udp_client client(port, CUDAQ_QEC_CLIENT_NEVER);
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(client.call(CUDAQ_QEC_RESET_DECODER, {1}, answer, 5'000 * kMs), CUDAQ_ERR_STATE)
      << cudaq_qec_client_error();
}

} // namespace
} // namespace cudaq::realtime::test

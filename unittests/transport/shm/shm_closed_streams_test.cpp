// SPDX-License-Identifier: Apache-2.0
// A process without standard streams, as daemons are: what it prints must not reach a ring.
#include "unittests/environment/child_process.h"
#include "unittests/transport/shm/provider_handle.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <fcntl.h>

namespace cudaq::realtime::test {
namespace {

std::string serve_and_attach(const std::vector<std::string> &options) {
  for (const int number : {0, 1, 2})
    close(number);
  const std::string name = own_name("closed");
  std::vector<std::string> words{"--name", name};
  words.insert(words.end(), options.begin(), options.end());
  const provider_handle provider(words);
  if (provider.status != CUDAQ_OK)
    return provider.text;
  const shm_client client(name);
  if (client.status != CUDAQ_OK)
    return client.text;
  for (const int number : {0, 1, 2})
    if (fcntl(number, F_GETFD) >= 0)
      return "descriptor " + std::to_string(number) + " belongs to the ring";
  return "";
}

TEST(ShmClosedStreams, ARingHasNoDescriptorOfAStandardStream) {
  CUDAQ_EXPECT_GOOD_CHILD([] { return serve_and_attach({}); });
  CUDAQ_EXPECT_GOOD_CHILD([] { return serve_and_attach({"--unified", "--max-clients=3"}); });
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The processes of shm_peer.cpp, as tests start them.
#pragma once

#include "unittests/support/processes/started_program.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/test_scale.h"
#include "unittests/transport/shm/provider_handle.h"

#include <cstdlib>

namespace cudaq::realtime::test {

class peer_server : public started_program {
public:
  peer_server(const std::string &shape, const std::string &name, const std::vector<std::string> &options = {})
      : started_program(words({CUDAQ_SHM_PEER, "server", shape, "--name", name}, options)), name_(name) {
    const std::string ready = line();
    EXPECT_EQ(ready.rfind("READY transport=shm name=" + name, 0), 0u) << ready;
  }

  ~peer_server() { // a server that is killed leaves its files
    started_program::kill();
    for (const char *suffix : {".sock", ".lock"})
      ::unlink(("/dev/shm/cudaq-realtime-" + name_ + suffix).c_str());
  }

  /// Ends the server in order. The number of requests that it has processed.
  std::uint64_t stop() {
    close_input();
    const std::string text = line();
    EXPECT_EQ(text.rfind("PROCESSED ", 0), 0u) << text;
    EXPECT_EQ(wait(), 0);
    return text.size() > 10 ? std::strtoull(text.c_str() + 10, nullptr, 10) : 0;
  }

private:
  std::string name_;
};

class peer_client : public started_program {
public:
  explicit peer_client(const std::vector<std::string> &arguments)
      : started_program(words({CUDAQ_SHM_PEER}, arguments)) {}

  /// Waits for its last line, which must be DONE. The number of its messages.
  std::uint64_t done(std::chrono::seconds limit = std::chrono::seconds(120)) {
    const std::string text = line(limit);
    EXPECT_EQ(text.rfind("DONE ", 0), 0u) << text;
    EXPECT_EQ(wait(), 0);
    return text.size() > 5 ? std::strtoull(text.c_str() + 5, nullptr, 10) : 0;
  }
};

} // namespace cudaq::realtime::test

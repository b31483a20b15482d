// SPDX-License-Identifier: Apache-2.0
// The processes of shm_peer.cpp, as tests start them.
#pragma once

#include "unittests/support/processes/started_program.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/test_scale.h"
#include "unittests/transport/shm/provider_handle.h"

#include <cstdlib>

namespace cudaq::realtime::test {

/// The process of a server. One that is killed leaves its files.
class server_process : public started_program {
public:
  server_process(std::string name, std::vector<std::string> command)
      : started_program(std::move(command)), name_(std::move(name)) {}
  ~server_process() {
    started_program::kill();
    for (const char *suffix : {".sock", ".lock"})
      ::unlink(("/dev/shm/cudaq-realtime-" + name_ + suffix).c_str());
  }

private:
  const std::string name_;
};

class peer_server : public server_process {
public:
  peer_server(const std::string &shape, const std::string &name, const std::vector<std::string> &options = {})
      : server_process(name, words({CUDAQ_SHM_PEER, "server", shape, "--name", name}, options)) {
    const std::string ready = line();
    EXPECT_EQ(ready.rfind("READY transport=shm name=" + name, 0), 0u) << ready;
  }
  /// Ends the server in order. The number of requests that it has processed.
  std::uint64_t stop() {
    close_input();
    const std::string text = line();
    EXPECT_EQ(text.rfind("PROCESSED ", 0), 0u) << text;
    EXPECT_EQ(wait(), 0);
    return text.size() > 10 ? std::strtoull(text.c_str() + 10, nullptr, 10) : 0;
  }
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

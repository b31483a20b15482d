// SPDX-License-Identifier: Apache-2.0
// A server in a process of its own. Every wait has a deadline.
#pragma once

#include "unittests/support/host_fixture.h"
#include "unittests/support/processes/started_program.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/provider_library.h"

namespace cudaq::realtime::test {

class datagram_server_process : public started_program {
public:
  /// Starts the server, with the provider of `library`, and waits until it serves.
  datagram_server_process(const char *library, const std::vector<std::string> &options)
      : started_program(words({CUDAQ_DATAGRAM_SERVER, library}, options)), endpoint(line()) {
    EXPECT_EQ(endpoint.substr(0, 6), "READY ") << "the server did not start";
  }

  std::uint32_t port() const {
    const std::string text = value_of(endpoint, "port");
    return text.empty() ? 0 : static_cast<std::uint32_t>(std::stoul(text));
  }
  /// Ends the server and returns its last line.
  std::string stop() {
    close_input();
    const std::string last = line();
    EXPECT_EQ(wait(), 0) << last;
    return last;
  }

  const std::string endpoint;
};

inline std::uint64_t count_in(const std::string &line, const std::string &key) {
  const std::string text = value_of(line, key);
  EXPECT_NE(text, "") << key << " in '" << line << "'";
  return text.empty() ? 0 : std::stoull(text);
}

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A server in a process of its own. Every wait has a deadline.
#pragma once

#include "unittests/support/host_fixture.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/datagram/datagram_provider_library.h"

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cudaq::realtime::test {

class datagram_server_process {
public:
  /// Starts the server, with the provider of `library`, and waits until it serves.
  datagram_server_process(const char *library, std::vector<std::string> options) {
    options.insert(options.begin(), {CUDAQ_DATAGRAM_SERVER, library});
    int to_child[2], from_child[2];
    EXPECT_EQ(pipe2(to_child, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from_child, O_CLOEXEC), 0);
    std::vector<char *> argv;
    for (std::string &word : options)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to_child[0], STDIN_FILENO);
      dup2(from_child[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(to_child[0]);
    close(from_child[1]);
    input_ = to_child[1];
    output_ = from_child[0];
    endpoint = line();
    EXPECT_EQ(endpoint.substr(0, 6), "READY ") << "the server did not start";
  }
  ~datagram_server_process() {
    if (child_ > 0)
      kill9();
    close(output_);
  }
  datagram_server_process(const datagram_server_process &) = delete;
  datagram_server_process &operator=(const datagram_server_process &) = delete;

  std::uint32_t port() const {
    const std::string text = value_of(endpoint, "port");
    return text.empty() ? 0 : static_cast<std::uint32_t>(std::stoul(text));
  }
  /// Ends the server and returns its last line.
  std::string stop() {
    close(input_);
    input_ = -1;
    const std::string last = line();
    int status = -1;
    EXPECT_TRUE(eventually([&] { return waitpid(child_, &status, WNOHANG) == child_; })) << "the server did not end";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
    child_ = -1;
    return last;
  }
  void kill9() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
    if (input_ >= 0)
      close(input_);
    input_ = -1;
  }

  std::string endpoint;

private:
  std::string line() {
    std::string text;
    char byte = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (byte != '\n' && std::chrono::steady_clock::now() < end) {
      pollfd entry{output_, POLLIN, 0};
      if (poll(&entry, 1, 100) <= 0)
        continue;
      if (read(output_, &byte, 1) <= 0)
        break;
      text += byte;
    }
    return text;
  }

  pid_t child_ = -1;
  int input_ = -1, output_ = -1;
};

inline std::uint64_t count_in(const std::string &line, const std::string &key) {
  const std::string text = value_of(line, key);
  EXPECT_NE(text, "") << key << " in '" << line << "'";
  return text.empty() ? 0 : std::stoull(text);
}

} // namespace cudaq::realtime::test

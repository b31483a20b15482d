// SPDX-License-Identifier: Apache-2.0
// A program that a test starts by fork and exec: its lines, its end, and its death by SIGKILL at any moment.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::test {

class child_process {
public:
  explicit child_process(std::vector<std::string> arguments) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) {
      ADD_FAILURE() << "pipe2: " << std::strerror(errno);
      return;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::vector<char *> argv;
    for (std::string &a : arguments)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    const int error = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    EXPECT_EQ(error, 0) << arguments[0] << ": " << std::strerror(error);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1], out_ = out[0];
    if (error != 0)
      pid_ = -1;
  }
  ~child_process() {
    kill();
    close_input();
    if (out_ >= 0)
      ::close(out_);
  }
  child_process(const child_process &) = delete;
  child_process &operator=(const child_process &) = delete;

  /// The next line of its output. Empty: it ended, or the deadline passed.
  std::string line(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      if (const std::size_t at = text_.find('\n'); at != std::string::npos) {
        const std::string found = text_.substr(0, at);
        text_.erase(0, at + 1);
        return found;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd ready{out_, POLLIN, 0};
      char buffer[512];
      if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0)
        return {};
      const ssize_t got = ::read(out_, buffer, sizeof(buffer));
      if (got <= 0)
        return {};
      text_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  /// The programs of these tests end when their input ends.
  void close_input() {
    if (in_ >= 0)
      ::close(in_);
    in_ = -1;
  }

  /// Waits for its end. The exit status; 256 + the signal that ended it; -1 after the deadline.
  int wait(std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (pid_ > 0) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        result_ = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
      } else if (std::chrono::steady_clock::now() >= end) {
        return -1;
      } else {
        ::usleep(500);
      }
    }
    return result_;
  }

  void kill() {
    if (pid_ > 0)
      ::kill(pid_, SIGKILL);
    wait();
  }
  void signal(int number) const {
    if (pid_ > 0)
      ::kill(pid_, number);
  }
  bool runs() { return pid_ > 0 && wait(std::chrono::milliseconds(0)) == -1; }

private:
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, result_ = -1;
  std::string text_;
};

} // namespace cudaq::realtime::test

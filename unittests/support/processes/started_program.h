// SPDX-License-Identifier: Apache-2.0
// A program that a test starts: its lines, its end, and its death by SIGKILL at any moment. And a function that runs in
// a child of fork.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::test {

class started_program {
public:
  /// `arguments`: with the program's path. `err`: a file that gets its stderr. `variable`: NAME=VALUE for its
  /// environment. Both may be empty. Its signals have their default actions, whatever the test has inherited.
  explicit started_program(std::vector<std::string> arguments, const std::string &err = "", std::string variable = "") {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) {
      ADD_FAILURE() << "pipe2: " << std::strerror(errno);
      return;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    if (!err.empty())
      posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    sigset_t to_default;
    sigemptyset(&to_default);
    for (const int number : {SIGINT, SIGTERM, SIGPIPE})
      sigaddset(&to_default, number);
    posix_spawnattr_setsigdefault(&attributes, &to_default);
    std::vector<char *> argv, variables;
    for (std::string &a : arguments)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    if (!variable.empty())
      variables.push_back(variable.data());
    for (char **inherited = environ; *inherited != nullptr; ++inherited)
      variables.push_back(*inherited);
    variables.push_back(nullptr);
    const int error = ::posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), variables.data());
    EXPECT_EQ(error, 0) << arguments[0] << ": " << std::strerror(error);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1], out_ = out[0];
    if (error != 0)
      pid_ = -1;
  }
  ~started_program() {
    kill();
    close_input();
    close_output();
  }
  started_program(const started_program &) = delete;
  started_program &operator=(const started_program &) = delete;

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
  /// Its lines have no reader any more. No line() after it.
  void close_output() {
    if (out_ >= 0)
      ::close(out_);
    out_ = -1;
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
  pid_t pid() const { return pid_; }
  bool runs() const {
    siginfo_t info{};
    return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  }

protected:
  static std::vector<std::string> words(std::vector<std::string> first, const std::vector<std::string> &others) {
    first.insert(first.end(), others.begin(), others.end());
    return first;
  }

  std::string text_; ///< what it has written after the last line that was read

private:
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, result_ = -1;
};

/// The status with which `body` ends in a child of fork; -1: a signal ended it, as after 20 s.
inline int status_in_child(const std::function<int()> &body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20); // a call may wait for a thread that is not here
    ::_exit(body());
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace cudaq::realtime::test

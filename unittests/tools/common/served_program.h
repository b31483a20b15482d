// SPDX-License-Identifier: Apache-2.0
// Runs `cudaq-realtime serve` over the example's socket provider, and speaks to it as a control system.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "unittests/support/processes/started_program.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <regex>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <vector>

namespace cudaq::realtime::tools::test {

using bytes = std::vector<std::uint8_t>;
inline constexpr int kLimitMs = 120000; ///< of every wait; only so that a hang ends

/// A program that runs, with an empty stdin. Its stdout is read line by line; its stderr goes to a file.
class running_program : public realtime::test::started_program {
public:
  /// argv without the program itself.
  running_program(const std::vector<std::string> &arguments, const std::filesystem::path &err,
                  const std::string &notify_socket = "", const char *program = CUDAQ_TOOL_PATH)
      : started_program(words({program}, arguments), err,
                        notify_socket.empty() ? "" : "NOTIFY_SOCKET=" + notify_socket) {
    close_input();
  }

  /// It has a handler of its own for the signal. Not after wait.
  bool catches(int number) const {
    std::ifstream status("/proc/" + std::to_string(pid()) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigCgt:"))
        return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
    return false;
  }

  /// Waits until `done()` holds, but not longer than the program runs, and not beyond the limit. Not after wait.
  template <class Done>
  void until(Done &&done) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    while (!done() && runs() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  /// The next line of stdout; "" at its end or after the limit. Without the time at the end of a line that has one.
  std::string line() {
    const std::string found = started_program::line(std::chrono::milliseconds(kLimitMs));
    static const std::regex kTime(R"( time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$)");
    const bool is_event =
        found.find("_CONFIG_") != std::string::npos || found.starts_with("CUDAQ_REALTIME_ROUTER_NODE ");
    EXPECT_TRUE(!is_event || std::regex_search(found, kTime)) << found;
    return std::regex_replace(found, kTime, "");
  }

  /// All that stdout has until its end, or until the limit of a line.
  std::string rest() {
    std::string all;
    for (std::string next = line(); !next.empty() || !text_.empty(); next = line())
      all += next + "\n";
    return all;
  }

  /// Waits for the end and returns the exit status; -1: ended by a signal, or not before the limit.
  int wait() {
    const int status = started_program::wait(std::chrono::milliseconds(kLimitMs));
    ended_by_ = std::max(status - 256, 0);
    return status < 256 ? status : -1;
  }
  /// After wait: the signal that ended the program, or 0.
  int ended_by() const { return ended_by_; }

private:
  int ended_by_ = 0;
};

struct wire_answer {
  std::int32_t status = -9999; ///< -9999: no answer
  std::uint32_t request_id = 0;
  bytes result;
};

/// The peer of the socket provider: one frame is one message.
class socket_peer {
public:
  explicit socket_peer(const std::filesystem::path &path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0)
      throw std::runtime_error("the peer cannot connect to " + path.string());
  }
  ~socket_peer() { close(fd_); }
  socket_peer(const socket_peer &) = delete;
  socket_peer &operator=(const socket_peer &) = delete;

  void send_frame(std::uint32_t function, const bytes &payload) {
    cudaq_rpc_header_t header{};
    header.magic = CUDAQ_RPC_MAGIC_REQUEST;
    header.function_id = function;
    header.arg_len = static_cast<std::uint32_t>(payload.size());
    header.request_id = ++sent_;
    bytes frame(sizeof header + payload.size());
    std::memcpy(frame.data(), &header, sizeof header);
    std::copy(payload.begin(), payload.end(), frame.begin() + sizeof header);
    EXPECT_EQ(send(fd_, frame.data(), frame.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frame.size()));
  }
  wire_answer receive() {
    wire_answer answer;
    bytes frame(65536);
    pollfd fd{fd_, POLLIN, 0};
    const ssize_t n = poll(&fd, 1, kLimitMs) > 0 ? recv(fd_, frame.data(), frame.size(), 0) : 0;
    cudaq_rpc_response_t header{};
    if (n < static_cast<ssize_t>(sizeof header))
      return answer;
    std::memcpy(&header, frame.data(), sizeof header);
    answer.status = header.status;
    answer.request_id = header.request_id;
    answer.result.assign(frame.begin() + sizeof header, frame.begin() + sizeof header + header.result_len);
    return answer;
  }
  wire_answer call(std::uint32_t function, const bytes &payload) {
    send_frame(function, payload);
    wire_answer answer = receive();
    EXPECT_EQ(answer.request_id, sent_);
    return answer;
  }

private:
  int fd_ = -1;
  std::uint32_t sent_ = 0;
};

/// All until the end of the stream.
inline std::string read_all(int fd) {
  std::string text;
  char part[4096];
  for (pollfd ready{fd, POLLIN, 0}; poll(&ready, 1, kLimitMs) > 0;) {
    const ssize_t n = read(fd, part, sizeof part);
    if (n <= 0)
      break;
    text.append(part, static_cast<std::size_t>(n));
  }
  return text;
}

/// What a server tells at its Unix socket for live counters.
inline std::string counters_at(const std::filesystem::path &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
  std::string text = connected ? read_all(fd) : "";
  close(fd);
  return text;
}

/// The socket of a service manager.
class notified_socket {
public:
  explicit notified_socket(std::string path)
      : path_(std::move(path)), fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
  }
  ~notified_socket() { close(fd_); }
  notified_socket(const notified_socket &) = delete;
  notified_socket &operator=(const notified_socket &) = delete;
  const std::string &path() const { return path_; }
  /// The next message; "" if none comes before the limit.
  std::string next() const {
    char text[1024];
    pollfd ready{fd_, POLLIN, 0};
    const ssize_t n = poll(&ready, 1, kLimitMs) > 0 ? recv(fd_, text, sizeof text, 0) : 0;
    return std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  void send_to(const notified_socket &other, const std::string &text) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    other.path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(sendto(fd_, text.data(), text.size(), 0, reinterpret_cast<const sockaddr *>(&address), sizeof address),
              static_cast<ssize_t>(text.size()));
  }

private:
  const std::string path_;
  const int fd_;
};

/// Little-endian numbers of 8 bytes.
inline bytes numbers(std::initializer_list<std::uint64_t> values) {
  bytes out;
  for (const std::uint64_t value : values)
    for (unsigned k = 0; k < 8; ++k)
      out.push_back(static_cast<std::uint8_t>(value >> (8 * k)));
  return out;
}
inline bytes joined(bytes first, const bytes &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

} // namespace cudaq::realtime::tools::test

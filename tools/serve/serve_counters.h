// SPDX-License-Identifier: Apache-2.0
// The counters of a running server for people and programs: as Prometheus text, on a Unix socket or over HTTP on the
// loopback interface.
#pragma once

#include "lib/qec/server/decoding_server.h"
#include "tools/serve/http_answer.h"
#include "tools/services/provider_service.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// The label of a server_status: its name in lower case.
std::string status_label(std::size_t status);

/// What the program knows of its server. `start`: in seconds since 1970.
struct server_facts {
  double start = 0;
  std::uint64_t reloads = 0, reloads_rejected = 0;
};

/// Prometheus' text format, version 0.0.4. `more`: lines before the end.
std::string counters_text(const cudaq::qec::realtime::decoding_server &server, const provider_service &transport,
                          const server_facts &facts, const std::string &more = "");

/// Listens for readers of the counters, on the thread that calls answer(). Off unless a path or a port is given.
class counter_listeners {
public:
  /// `socket_path`: a Unix socket, "" for none; each connection gets the text and is closed. A socket that a killed
  /// program left there is replaced. `port`: of 127.0.0.1, -1 for none, 0 for any free one; answers each HTTP request
  /// with the text. Throws usage_error if the path cannot be used, std::runtime_error if path or port is in use or the
  /// system refuses it.
  counter_listeners(const std::string &socket_path, int port);
  counter_listeners(const counter_listeners &) = delete;
  counter_listeners &operator=(const counter_listeners &) = delete;
  ~counter_listeners();

  /// For poll.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// The port that is in use; -1 for none.
  [[nodiscard]] int port() const noexcept { return port_; }
  /// Answers one reader that waits at this descriptor. Returns after at most 0.2 s: a slow reader is given up. `pages`:
  /// what HTTP requests can have, too.
  void answer(int descriptor, const std::function<std::string()> &text, const std::vector<http_page> &pages = {});
  /// Closes both and removes the socket.
  void close_all() noexcept;

private:
  std::string socket_path_;
  int unix_fd_ = -1, tcp_fd_ = -1, port_ = -1;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The server's end: its name, and the thread that attaches and detaches clients.
//
// The name belongs to the process that holds a lock (flock) on its lock file. The kernel releases the lock when the
// process ends. The socket of a server that died is then replaced by the next server of that name.
//
//   a client             the server's thread                            the loop
//   connect, request --> finds an idle ring, maps a segment, opens it
//              reply <-- segment, bell
//   requests, answers ------------------------------------------------> rx_poll, tx_publish
//   ends, or is killed-> the connection breaks: ring leaves --------->  finishes its requests, settles the ring
//                        unmaps the segment: ring idle <--------------
#pragma once

#include "lib/base/runner.h"
#include "lib/transport/shm/shm_dataplane.h"
#include "lib/transport/shm/shm_segment.h"

#include <optional>
#include <poll.h>

namespace cudaq::realtime::detail {

class shm_server {
public:
  static constexpr std::size_t kMaxNewConnections = 64;

  explicit shm_server(shm_options options) : options_(std::move(options)) {}
  shm_server(const shm_server &) = delete;
  shm_server &operator=(const shm_server &) = delete;
  ~shm_server() { disconnect(); }

  /// Takes the name, makes the memory and starts the thread. Once.
  expected<> start();
  /// Ends the thread and all connections, and gives the name back. The memory stays: a dispatcher may still run.
  void disconnect();

  const shm_options &options() const { return options_; }
  std::string endpoint() const;
  /// What the dispatcher's config->num_slots must be.
  std::uint32_t slot_numbers() const;
  /// Ring shape: the ring of the one client.
  cudaq_ringbuffer_t ring() const;
  /// Unified shape. Valid while the server lives.
  cudaq_cpu_dataplane_t dataplane();

private:
  struct new_connection { ///< a connection without a ring yet
    file_handle socket;
    steady_clock::time_point deadline;
  };

  expected<> take_name();
  expected<> listen();
  bool keeps_segments() const { return options_.pinned || !options_.unified; }
  void run();
  void serve_events(std::vector<pollfd> &watched);
  int poll_timeout_ms() const;
  void accept_new_connections();
  void serve_new_connection(new_connection &c);
  void attach(new_connection &c, const shm_attach_request &request);
  void refuse(new_connection &c, cudaq_status_t status, const char *text);
  expected<> prepare_segment(std::uint32_t k);
  void reclaim();
  bool collect_all(std::uint32_t k);
  bool laps_have_come(std::uint32_t k);
  bool rewind(std::uint32_t k);
  void wake() const;

  shm_options options_;
  shm_memory memory_;
  std::optional<shm_dataplane> dataplane_;
  file_handle lock_, listener_, event_;
  loop_thread thread_;
  shared_word<std::uint32_t> ends_;
  // The thread's own:
  std::vector<new_connection> new_connections_;
  std::vector<file_handle> connections_; ///< by client
  steady_clock::time_point free_since_;  ///< when all flags were 0 first, while laps do not agree
  bool is_rewinding_ = false;            ///< ring shape: the last slot has held the frame that moves the cursor
};

} // namespace cudaq::realtime::detail

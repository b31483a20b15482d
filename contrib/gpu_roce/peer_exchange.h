// SPDX-License-Identifier: Apache-2.0
// The exchange of queue pair numbers over TCP (--exchange-qp). The caller sends 12 bytes first, three numbers of 32
// bits in network order: its queue pair, its key, its IPv4 address. The reply has the same form.
#pragma once

#include "lib/base/runner.h"

#include <cstdint>

namespace cudaq::realtime::detail {

struct peer_numbers {
  std::uint32_t queue_pair = 0, key = 0;
  std::uint32_t address = 0; ///< IPv4, the first byte of the text is the highest
};

class peer_exchange {
public:
  peer_exchange() = default;
  peer_exchange(const peer_exchange &) = delete;
  peer_exchange &operator=(const peer_exchange &) = delete;
  ~peer_exchange();

  /// Listens on all addresses of the machine. Port 0: the system chooses one.
  expected<> listen(std::uint32_t port);
  std::uint32_t port() const { return port_; }

  /// Waits for a caller with valid numbers. A caller that sends none within a second, or wrong ones, is disconnected,
  /// and the next one is taken. `only`: the address that the numbers must have; 0: any.
  ///   CUDAQ_ERR_TIMEOUT   no such caller until the deadline
  ///   CUDAQ_ERR_STATE     cancel was called
  expected<> wait(std::uint32_t only, steady_clock::time_point deadline, peer_numbers &out);
  /// Sends the own numbers to that caller; the address is the one that the caller has reached.
  expected<> reply(std::uint32_t queue_pair, std::uint32_t key);

  /// Any thread. Ends a wait that runs, and each later one.
  void cancel();

private:
  expected<> wait_for(int descriptor, steady_clock::time_point deadline) const;
  bool read_numbers(steady_clock::time_point deadline, peer_numbers &out) const;

  int listener_ = -1, caller_ = -1, cancelled_ = -1;
  std::uint32_t port_ = 0;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// Makes messages of the packets of a transport UC (unreliable connection). UC has no acknowledgement and no repetition:
// a message of which a packet is missing is never delivered. Nor is a page with a hole, which an RDMA adapter would
// deliver.
//
// Two kinds of messages are delivered: a SEND, and a page. A page is a slot of the memory that peers may write. Writes
// without an immediate put bytes into it, in any number of messages of any number of packets; a write with an immediate
// completes it. An example, as a sensor bridge sends it, with pages of 256 bytes and packets of at most 128:
//
//   PSN 7  write only, address 512, 128 bytes              page 2 begins: address 512 is its first byte
//   PSN 8  write only, address 640, 128 bytes              the same page
//   PSN 9  write only with immediate, address 768, 20 bytes: not in page 2: refused; the page is broken
//
//   PSN 10 write only, address 0, 128 bytes                page 0 begins
//   PSN 12 write only, address 128, 40 bytes, immediate 0  11 is lost: the page is broken, and nothing is delivered
//
//   PSN 13 write only, address 0, 128 bytes                page 0 begins again
//   PSN 14 SEND only                                       is delivered, and leaves the page as it is
//   PSN 15 write only, address 128, 40 bytes, immediate 0  168 bytes are delivered
#pragma once

#include "lib/transport/roce/roce_counters.h"
#include "lib/transport/roce/roce_packet.h"

#include <memory>
#include <vector>

namespace cudaq::realtime::detail {

struct uc_limits {
  std::uint32_t mtu = kLargestMtu; ///< most payload bytes of a packet; exact for a first or middle one
  std::uint32_t page_bytes = 256;  ///< most bytes of a message
  std::uint32_t num_pages = 0;     ///< 0: no peer may write
  std::uint32_t rkey = 0;          ///< that writes must have
};

/// One thread uses it. Peers are numbers below max_peers.
class uc_receiver {
public:
  uc_receiver(const uc_limits &limits, std::uint32_t max_peers, roce_counters &counters);

  /// The number belongs to another peer from now on.
  void restart(std::uint32_t peer) { flows_[peer] = {}; }
  struct message {
    bool complete = false;
    std::span<const std::uint8_t> bytes; ///< valid until the next call, and as long as the packet
  };
  /// A packet whose ICRC and queue pair are right. Counts it.
  message receive(std::uint32_t peer, const roce_packet &packet);

private:
  enum class kind : std::uint8_t { none, send, write };
  struct flow {
    bool known = false;     ///< a packet has come: next_psn is valid
    kind open = kind::none; ///< a message of several packets that has begun
    bool page_open = false;
    std::uint32_t next_psn = 0;
    std::uint32_t page = 0;
    std::uint32_t end = 0;  ///< number of bytes in the buffer
    std::uint32_t at = 0;   ///< where the next packet of the open message goes
    std::uint32_t left = 0; ///< bytes of the open write that are missing
  };

  bool follows(flow &f, const roce_packet &packet);
  message receive_send(std::uint32_t peer, flow &f, const roce_packet &packet);
  message receive_write(std::uint32_t peer, flow &f, const roce_packet &packet);
  /// Begins or goes on with a page. Returns the counter of the reason if that is refused.
  counter *place_write(flow &f, const roce_packet &packet);
  void append(std::uint32_t peer, flow &f, std::span<const std::uint8_t> payload);
  message part();
  message done(std::span<const std::uint8_t> bytes);
  message refuse(flow &f, counter &reason);
  void give_up(flow &f);
  std::uint8_t *buffer(std::uint32_t peer) { return buffers_.get() + std::size_t{peer} * limits_.page_bytes; }

  const uc_limits limits_;
  roce_counters &counters_;
  std::vector<flow> flows_;
  std::unique_ptr<std::uint8_t[]> buffers_; ///< a page for each peer
};

} // namespace cudaq::realtime::detail

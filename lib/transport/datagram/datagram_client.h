// SPDX-License-Identifier: Apache-2.0
// A client of a provider over datagrams, by the rules of open_requests.h: whole slots, or packets of RoCE. For tests
// and for the emulated control system; those of users have decoding_client.h. One thread uses an object at a time.
//
// Repeating is safe for requests that may be executed twice, for those of the decoding server
// (docs/transport/server_wire.md, "Repeated requests"), and for all requests if the provider has a replay window of at
// least `window` ids. A repeated datagram is equal to the first one.
#pragma once

#include "lib/transport/client/open_requests.h"
#include "lib/transport/client/refusal_watch.h"
#include "lib/transport/datagram/udp_socket.h"

#include <chrono>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::realtime::detail {

struct datagram_client_options {
  std::string address = "127.0.0.1";
  std::uint32_t port = 0;
  std::uint32_t slot_size = 256; ///< the provider's frame_size
  /// Most requests that are open at the same time, a power of two. Ids that are open together must differ modulo this
  /// number; consecutive ids do.
  std::uint32_t window = 64;
  std::chrono::nanoseconds retry_after{0}; ///< a request without an answer is sent again after this time; 0: never
  /// Not later than this after it was first sent.
  std::chrono::nanoseconds retry_for = std::chrono::nanoseconds::max();
  std::uint32_t receive_buffer = 0; ///< bytes; 0: the system's default
  std::string own_address;          ///< "": the system chooses one
  std::uint32_t own_port = 0;       ///< 0: the system chooses one
  bool from_any_port = false;       ///< answers come from the server's address, but not from its port
  /// refused() is known. The socket is connected for it: datagrams of others are not received. Not over RoCE: the ICRC
  /// covers a field of IP that the system then sets.
  bool reports_refusals = false;
};

struct datagram_reply {
  cudaq_rpc_response_t header{};
  std::span<const std::uint8_t> result; ///< valid until the next call of receive
  std::uint32_t attempts = 0;           ///< how often the request was sent
};

class datagram_client {
public:
  static constexpr int kMaxStrays = 1024;

  expected<> open(const datagram_client_options &options, std::unique_ptr<datagram_wire> wire);

  /// Sends a request. False: too many requests are open, or one with the same place in the window.
  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t ptp_timestamp = 0);
  /// An answer that has arrived. Answers to no open request are counted and passed over, as are BUSY answers if
  /// requests are repeated: such a request stays open. At most kMaxStrays of them in one call: a peer that floods does
  /// not keep the caller in it.
  std::optional<datagram_reply> receive();
  /// The same, and waits. Empty after `time`. Repeats requests meanwhile.
  std::optional<datagram_reply> receive_within(std::chrono::nanoseconds time);
  /// Repeats the requests whose time has come. Returns their number.
  std::uint32_t repeat_due();
  /// The request is not open any more: a late answer is not delivered.
  void give_up(std::uint32_t id);

  std::uint32_t num_open() const { return requests_->size(); }
  std::uint64_t repeated() const { return requests_->repeated(); }
  std::uint64_t unexpected() const { return unexpected_; } ///< answers to no open request, and other datagrams
  std::uint64_t busy() const { return requests_->busy(); }
  /// Since the last answer the system has reported that no program listens at the server's address. It knows this of
  /// this machine, and of another one that says so. If requests are repeated, the reports must go on for
  /// kMaxRefusedTime, in which a server may start.
  bool refused() const { return absence_->is_absent(); }
  static constexpr std::chrono::seconds kMaxRefusedTime{3};
  /// With reports_refusals: sends an empty datagram, which a provider drops. If no program listens, the system reports
  /// it at a later call of receive() or send(): also when all requests had arrived before their server ended.
  void probe();
  /// For a query to a server whose slots may have another size: from now on requests leave through this wire, which
  /// has smaller datagrams, and answers of any size are delivered. NULL: as opened.
  void query_through(datagram_wire *wire) { query_sender_ = wire == nullptr ? nullptr : wire->make_sender(); }
  /// Bytes of the last answer that has not the size of a slot; 0: there was none. The server has such slots then.
  std::size_t other_size() const { return other_size_; }
  const udp_socket &socket() const { return socket_; }

private:
  bool is_server(udp_address from) const;
  expected<> open_socket(const datagram_client_options &options);
  void transmit(std::uint32_t place, std::uint64_t now);
  std::uint64_t now_if_repeated() const;

  datagram_client_options options_;
  udp_address server_;
  udp_socket socket_;
  std::unique_ptr<datagram_wire> wire_;
  std::unique_ptr<frame_receiver> incoming_;
  std::unique_ptr<frame_sender> outgoing_, query_sender_; ///< query_sender_: NULL, or in place of outgoing_
  std::optional<open_requests> requests_;
  std::optional<refusal_watch> absence_;
  std::vector<std::uint8_t> reply_;
  std::uint64_t unexpected_ = 0;
  std::size_t other_size_ = 0;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// A node's end of the routers' messages, without network, thread and clock: sessions, and the requests in the slots of
// a dispatcher. docs/transport/route.md has the wire.
//
// A request is executed at most once, and never after the end of its session:
//   - a hello with a router's id ends the router's older session; its requests that were not taken are discarded
//   - the new session is welcomed when the taken requests of the old one have their answers, which go nowhere
//   - so no request of the old session can reach a decoder after a reset that the router sends in the new one
#pragma once

#include "lib/transport/route/route_wire.h"

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/base/shared_word.h"

#include <chrono>
#include <vector>

namespace cudaq::realtime::detail {

struct session_limits {
  std::uint32_t num_slots = 64, slot_size = 256;
  std::uint32_t max_routers = 2;                              ///< each gets num_slots / max_routers credits
  std::chrono::nanoseconds silence = std::chrono::seconds(5); ///< of a router, or of a connection without a session
};

/// What the sessions use. No function may call them back.
class node_port {
public:
  virtual ~node_port() = default;
  virtual void send(std::uint64_t connection, const route_header &header, std::span<const std::uint8_t> payload) = 0;
  virtual void close(std::uint64_t connection) = 0;
};

struct node_counters {
  counter requests;  ///< that were received and have a slot
  counter answers;   ///< that were sent
  counter discarded; ///< answers and requests of sessions that had ended
  counter strays;    ///< messages that no session could have sent, and malformed ones
  counter sessions;
};

/// One thread at a time uses it. `ring`: slots of num_slots x slot_size; of its flags only rx_flags_host is used, to
/// find requests that the dispatcher drops.
class node_sessions {
public:
  using time = std::chrono::nanoseconds;

  node_sessions(const session_limits &limits, const cudaq_ringbuffer_t &ring, node_port &port);

  void connected(std::uint64_t connection, time now);
  void disconnected(std::uint64_t connection);
  /// `connection`: 0 if the message does not name it, as all but hello of an earlier version. A session whose
  /// messages have named it takes no others.
  void received(std::uint64_t connection, std::span<const std::uint8_t> message, time now);
  /// Call it often, after received() has got the messages that have arrived.
  void tick(time now);

  /// The next request, which lies in this slot. False: there is none.
  bool take(std::uint32_t &slot);
  /// The answer lies in the TX slot. False: the slot was not taken.
  bool publish(std::uint32_t slot);
  /// The end: answers the requests that the loop has not taken SHUTTING_DOWN, and says bye.
  void close();

  [[nodiscard]] const node_counters &counters() const noexcept { return counters_; }

private:
  struct session {
    std::uint64_t connection = 0, epoch = 0, router_id = 0;
    std::uint16_t node = 0;
    bool welcomed = false, names_connection = false; ///< names_connection: each message does
    std::uint32_t credits = 0;
    std::vector<bool> busy; ///< wire slots
    time last_message{};
  };
  struct open_connection {
    std::uint64_t id = 0;
    time since{};
  };
  enum class slot_phase : std::uint8_t { free, ready, taken };
  struct slot_record {
    slot_phase phase = slot_phase::free;
    std::uint64_t epoch = 0, router_id = 0, generation = 0;
    std::uint32_t wire_slot = 0;
  };

  session *find(std::uint64_t epoch);
  void begin(std::uint64_t connection, const route_header &header, time now);
  void welcome_waiting();
  /// Requests of other sessions that were taken, and that a router's credits must leave room for.
  std::uint32_t taken_of_ended(std::uint64_t router_id, bool only_this_router) const;
  void end(std::size_t index);
  void accept_request(session &owner, const route_header &header, std::span<const std::uint8_t> payload);
  void answer(std::uint32_t slot, std::int32_t status, std::span<const std::uint8_t> result);
  void release(std::uint32_t slot);
  void take_back_dropped();
  std::uint8_t *rx_slot(std::uint32_t slot) const { return ring_.rx_data_host + slot * ring_.rx_stride_sz; }

  const session_limits limits_;
  const cudaq_ringbuffer_t ring_;
  node_port &port_;
  std::vector<session> sessions_;
  std::vector<open_connection> connections_; ///< without a session
  std::vector<slot_record> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> ready_;
  std::uint64_t used_by_ = 0; ///< id of the only router that has sent requests
  bool used_ = false, used_by_several_ = false;
  node_counters counters_;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// Any datagrams of some peers, answers, and time that passes, through the gate of the udp provider. Each datagram is
// counted once; a request is executed once; a replayed answer is the one that was kept; memory does not grow.
#include "lib/transport/datagram/request_gate.h"
#include "unittests/fuzz/fuzz_input.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace {

using namespace cudaq::realtime::detail;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;
using action = gate_decision::action;

constexpr std::uint32_t kSlotSize = 64;
constexpr std::chrono::milliseconds kTimeout(1000);

datagram_options options_of(std::uint8_t shape) {
  datagram_options options;
  options.slot_size = kSlotSize;
  options.replay_window = shape % 5 == 0 ? 0 : 1u << (shape % 5 - 1);
  options.max_peers = 1 + (shape >> 4) % 3u;
  options.peer_timeout_ms = static_cast<std::uint64_t>(kTimeout.count());
  return options;
}

bool is_busy(std::span<const std::uint8_t> answer) {
  cudaq_rpc_response_t header{};
  std::memcpy(&header, answer.data(), std::min(answer.size(), sizeof(header)));
  return answer.size() >= sizeof(header) && header.magic == CUDAQ_RPC_MAGIC_RESPONSE &&
         header.status == CUDAQ_RPC_ERR_BUSY;
}

/// What a peer knows of its requests.
struct peer_record {
  struct request {
    std::uint64_t position = 0; ///< the id without its wrap: the same id gets another one after 2^32 ids
    std::vector<std::uint8_t> answer;
  };
  std::map<std::uint32_t, request> requests;
  std::uint64_t newest = 0; ///< position
  std::uint32_t open = 0;
  peer_windows::time last_seen{};
};

class checked_gate {
public:
  explicit checked_gate(std::uint8_t shape) : options_(options_of(shape)), gate_(options_, counters_) {}

  void receive(std::uint32_t from, std::span<const std::uint8_t> datagram, bool room) {
    udp_address address;
    address.bytes.sin6_port = static_cast<std::uint16_t>(from);
    address.length = sizeof(address.bytes);
    const bool cut = datagram.size() > kSlotSize;
    const auto received = datagram.first(std::min<std::size_t>(datagram.size(), kSlotSize));
    const std::vector<std::uint8_t> exact(received.begin(), received.end());
    const std::uint64_t not_seen = unseen();
    const gate_decision decision = gate_.judge({&address, exact, cut}, room, now_);
    ++datagrams_;
    peer_record &peer = peers_[from];
    if (unseen() == not_seen) { // the gate has looked up the peer
      if (peer.open == 0 && now_ - peer.last_seen > kTimeout)
        peer = {}; // it had expired
      peer.last_seen = now_;
    }
    if (decision.what == action::accept) {
      require(room, "a request is accepted only if there is room");
      accepted(from, peer, decision);
    } else if (!decision.replay.empty()) {
      const auto at = peer.requests.find(decision.header.request_id);
      require(at != peer.requests.end(), "a replay belongs to a request of this peer");
      require(std::equal(decision.replay.begin(), decision.replay.end(), at->second.answer.begin(),
                         at->second.answer.end()),
              "a replay is the answer that was kept");
    }
    check_counts();
  }
  void finish(std::size_t which, std::span<const std::uint8_t> answer, bool with_answer) {
    if (open_.empty())
      return;
    const auto at = open_.begin() + static_cast<std::ptrdiff_t>(which % open_.size());
    peer_record &peer = peers_[at->from];
    --peer.open;
    if (with_answer) {
      gate_.answered(at->key, answer);
      peer_record::request &request = peer.requests[at->key.id];
      request.answer.assign(answer.begin(), answer.end());
      if (is_busy(answer))
        request.position = 0; // it may be executed again
    } else {
      gate_.unanswered(at->key);
    }
    open_.erase(at);
  }
  void pass(std::chrono::milliseconds time) { now_ += time; }

private:
  struct open_request {
    std::uint32_t from;
    request_key key;
  };

  void accepted(std::uint32_t from, peer_record &peer, const gate_decision &decision) {
    if (options_.replay_window == 0)
      return;
    const std::uint32_t id = decision.header.request_id;
    if (peer.requests.empty())
      peer.newest = (std::uint64_t{1} << 32) + id;
    const auto distance = static_cast<std::int32_t>(id - static_cast<std::uint32_t>(peer.newest));
    const std::uint64_t position = peer.newest + static_cast<std::uint64_t>(std::int64_t{distance});
    const auto before = peer.requests.find(id);
    require(before == peer.requests.end() || before->second.position != position, "a request is executed once");
    peer.newest = std::max(peer.newest, position);
    peer.requests[id] = {position, {}};
    ++peer.open;
    open_.push_back({from, decision.key});
  }
  /// Datagrams that were decided without the replay window.
  std::uint64_t unseen() const {
    return counters_.dropped_magic.value() + counters_.dropped_short.value() + counters_.dropped_long.value() +
           counters_.dropped_peers.value() + counters_.answered_truncated.value();
  }
  void check_counts() const {
    const datagram_counters &c = counters_;
    require(c.received.value() == datagrams_, "each datagram is counted");
    require(c.accepted.value() + c.replays.value() + c.dropped_magic.value() + c.dropped_short.value() +
                    c.dropped_long.value() + c.dropped_duplicates.value() + c.dropped_peers.value() +
                    c.answered_truncated.value() + c.answered_busy.value() + c.answered_stale.value() +
                    c.answered_reused.value() ==
                datagrams_,
            "each datagram has one end");
    require(c.peers.load() <= options_.max_peers, "there are not too many peers");
  }

  const datagram_options options_;
  datagram_counters counters_;
  request_gate gate_;
  peer_windows::time now_{};
  std::map<std::uint32_t, peer_record> peers_;
  std::vector<open_request> open_;
  std::uint64_t datagrams_ = 0;
};

/// A request that is well formed, with an id near one of the places where arithmetic may fail.
std::vector<std::uint8_t> request_of(fuzz_input &input) {
  constexpr std::uint32_t kPlaces[] = {0, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu};
  const auto place = input.take<std::uint8_t>();
  const std::uint32_t id = kPlaces[place % 4] + static_cast<std::uint32_t>(input.take<std::int8_t>());
  const auto payload = input.bytes(place >> 4);
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, 1, static_cast<std::uint32_t>(payload.size()), id, 0};
  const auto *const first = reinterpret_cast<const std::uint8_t *>(&header);
  std::vector<std::uint8_t> frame(first, first + sizeof(header));
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  checked_gate gate(input.take<std::uint8_t>());
  while (!input.empty()) {
    const auto step = input.take<std::uint8_t>();
    const std::uint32_t from = (step >> 4) & 3;
    switch (step & 7) {
    case 0:
    case 1:
    case 2:
      gate.receive(from, request_of(input), true);
      break;
    case 3:
      gate.receive(from, request_of(input), false);
      break;
    case 4: // any bytes
      gate.receive(from, input.bytes(input.take<std::uint8_t>() % 70u), (step & 8) != 0);
      break;
    case 5:
      gate.finish(step >> 3, input.bytes(input.take<std::uint8_t>() % kSlotSize), true);
      break;
    case 6:
      gate.finish(step >> 3, {}, false);
      break;
    default:
      gate.pass(std::chrono::milliseconds(input.take<std::uint8_t>() * 10));
    }
  }
  return 0;
}

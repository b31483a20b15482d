// SPDX-License-Identifier: Apache-2.0
// A provider between its peers and the dispatcher's loop, without threads: the test plays both ends, step by step. One
// class for each provider, so that a promise of all of them is one test.
#pragma once

#include "lib/transport/datagram/datagram_dataplane.h"
#include "lib/transport/datagram/datagram_ring.h"
#include "unittests/transport/cpu_roce/cpu_roce_rig.h"
#include "unittests/transport/datagram/datagram_shapes.h"
#include "unittests/transport/roce/roce_requester.h"
#include "unittests/transport/shm/loop_by_hand.h"

#include <deque>
#include <set>
#include <stdexcept>
#include <utility>

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kDrivenSlotBytes = 128;

class driven_transport {
public:
  struct reply {
    std::uint32_t id;
    bytes result;
    bool operator==(const reply &) const = default;
  };
  virtual ~driven_transport() = default;

  // --- a peer; it obeys the provider's rule of who may write a slot ---
  virtual void send(unsigned peer, std::uint32_t id, const bytes &payload = {}) = 0;
  /// Any bytes, of a stranger.
  virtual void send_bytes(const bytes &) { GTEST_FAIL(); }
  /// The next answer, if it has come.
  virtual std::optional<reply> arrived(unsigned peer) = 0;
  /// Throws if none comes, which ends the test.
  reply receive(unsigned peer) {
    std::optional<reply> found;
    if (!eventually([&] { return work(), (found = arrived(peer)).has_value(); }))
      throw std::runtime_error("no answer");
    return *found;
  }

  // --- the loop ---
  virtual bool poll(std::uint32_t &slot) = 0;
  /// The slot of the next request. Throws if none comes.
  std::uint32_t next() {
    std::uint32_t slot = 0;
    if (!eventually([&] { return poll(slot); }))
      throw std::runtime_error("no request");
    return slot;
  }
  cudaq_status_t answer(std::uint32_t slot, const bytes &result) {
    if (slot < num_slots) {
      const cudaq_rpc_response_t header = {CUDAQ_RPC_MAGIC_RESPONSE, 0, static_cast<std::uint32_t>(result.size()),
                                           id_in(slot), 0};
      std::uint8_t *const frame = ring.tx_data_host + slot * ring.tx_stride_sz;
      std::memcpy(frame, &header, sizeof(header));
      std::copy(result.begin(), result.end(), frame + sizeof(header));
    }
    return publish(slot);
  }
  virtual void drop(std::uint32_t slot) { detail::store_release<std::uint64_t>(ring.rx_flags_host[slot], 0); }
  std::uint32_t id_in(std::uint32_t slot) const {
    cudaq_rpc_header_t header;
    std::memcpy(&header, ring.rx_data_host + slot * ring.rx_stride_sz, sizeof(header));
    return header.request_id;
  }

  // --- the control thread; of providers over datagrams ---
  virtual detail::expected<> disconnect() { return {CUDAQ_ERR_UNSUPPORTED, "not driven"}; }
  virtual void launch() {}
  /// Until a datagram waits in the system.
  virtual void wait_for_arrival() {}
  /// Answers that were sent, where the provider counts them.
  virtual std::optional<std::uint64_t> replied() { return {}; }
  /// Requests that the loop has dropped, where the provider counts them.
  virtual std::optional<std::uint64_t> unanswered() { return {}; }

  cudaq_ringbuffer_t ring{};
  std::uint32_t num_slots = 0;

protected:
  virtual cudaq_status_t publish(std::uint32_t slot) = 0;
  virtual void work() {}
};

/// udp or roce, in one of the shapes.
class driven_datagrams : public driven_transport {
public:
  driven_datagrams(std::uint32_t slots, bool roce, bool unified)
      : roce_(roce), unified_(unified), memory_({slots, kDrivenSlotBytes, false}),
        exchange_(small_slots(slots, kDrivenSlotBytes), wire(slots), memory_.ring), plane_(exchange_),
        pump_(exchange_) {
    EXPECT_EQ(exchange_.open().text(), "");
    ring = memory_.ring;
    num_slots = slots;
    for (auto &peer : peers_) {
      peer = std::make_unique<roce_requester>(kDrivenSlotBytes, slots);
      peer->options.from_any_port = roce;
      peer->options.window = 64;
      peer->options.port = exchange_.socket().port();
      EXPECT_EQ(roce ? peer->open(peer->options.port)
                     : peer->client.open(peer->options, detail::make_udp_wire(kDrivenSlotBytes)).text(),
                "");
    }
    stranger_ = std::make_unique<udp_peer>(exchange_.socket().port());
  }

  void send(unsigned peer, std::uint32_t id, const bytes &payload) override {
    EXPECT_TRUE(peers_[peer]->client.send(id, 1, payload)) << id;
  }
  void send_bytes(const bytes &any) override { stranger_->send(any); }
  std::optional<reply> arrived(unsigned peer) override {
    const auto found = peers_[peer]->client.receive();
    if (!found)
      return {};
    return reply{found->header.request_id, bytes(found->result.begin(), found->result.end())};
  }
  bool poll(std::uint32_t &slot) override {
    if (unified_)
      return plane_.poll(slot) == CUDAQ_RX_READY;
    pump_.turn();
    if (held_.contains(cursor_) || detail::load_acquire(ring.rx_flags_host[cursor_]) == 0)
      return false;
    held_.insert(slot = cursor_);
    cursor_ = (cursor_ + 1) % num_slots;
    return true;
  }
  void drop(std::uint32_t slot) override {
    held_.erase(slot);
    driven_transport::drop(slot);
  }
  detail::expected<> disconnect() override { return unified_ ? plane_.disconnect() : pump_.disconnect(); }
  void launch() override { plane_.launch(); }
  void wait_for_arrival() override { exchange_.socket().wait(true, kDeadline); }
  std::optional<std::uint64_t> replied() override { return exchange_.counters().replied.value(); }
  std::optional<std::uint64_t> unanswered() override { return exchange_.counters().unanswered.value(); }

private:
  std::unique_ptr<detail::datagram_wire> wire(std::uint32_t slots) const {
    if (!roce_)
      return detail::make_udp_wire(kDrivenSlotBytes);
    detail::roce_wire_options options;
    options.slot_size = kDrivenSlotBytes;
    options.num_slots = slots;
    return detail::make_roce_wire(options, std::make_shared<detail::roce_counters>());
  }
  cudaq_status_t publish(std::uint32_t slot) override {
    if (unified_)
      return plane_.publish(slot).status();
    held_.erase(slot);
    detail::store_release(ring.tx_flags_host[slot],
                          reinterpret_cast<std::uint64_t>(ring.tx_data_host + slot * ring.tx_stride_sz));
    detail::store_release<std::uint64_t>(ring.rx_flags_host[slot], 0);
    pump_.turn();
    return CUDAQ_OK;
  }
  void work() override {
    if (!unified_)
      pump_.turn();
  }

  const bool roce_, unified_;
  host_ring memory_;
  detail::datagram_exchange exchange_;
  detail::datagram_dataplane plane_; ///< one of the two is used
  detail::datagram_ring pump_;
  std::unique_ptr<roce_requester> peers_[2];
  std::unique_ptr<udp_peer> stranger_;
  std::set<std::uint32_t> held_; ///< of the ring shape: by the loop
  std::uint32_t cursor_ = 0;
};

/// A provider whose peers write into slots that are free: a request waits at its peer until one is.
class driven_slots : public driven_transport {
public:
  void send(unsigned peer, std::uint32_t id, const bytes &payload) override {
    waiting_.push_back({peer, id, payload});
    write_waiting();
  }
  bool poll(std::uint32_t &slot) override {
    write_waiting();
    return poll_provider(slot);
  }

protected:
  virtual bool write(unsigned peer, std::uint32_t id, const bytes &payload) = 0;
  virtual bool poll_provider(std::uint32_t &slot) = 0;

private:
  struct request {
    unsigned peer;
    std::uint32_t id;
    bytes payload;
  };
  void write_waiting() {
    while (!waiting_.empty() && write(waiting_.front().peer, waiting_.front().id, waiting_.front().payload))
      waiting_.pop_front();
  }
  std::deque<request> waiting_;
};

/// cpu_roce over the test double of an adapter.
class driven_cpu_roce : public driven_slots {
public:
  driven_cpu_roce(std::uint32_t slots, bool reliable) : rig_(options(slots, reliable)), used_(slots) {
    ring = rig_.memory.ring;
    num_slots = slots;
  }
  void send_bytes(const bytes &garbage) override { // to a free slot, or with a number of no slot
    const auto end = garbage.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(garbage.size(), 23));
    rig_.adapter->write(cursor_, {garbage.begin(), end}, garbage.size() % 2 == 0 ? cursor_ : num_slots);
    rig_.exchange.poll();
  }
  std::optional<reply> arrived(unsigned) override {
    const bytes frame = rig_.adapter->take_frame();
    if (frame.empty())
      return {};
    return reply{response_of(frame).request_id, result_of(frame)};
  }
  void drop(std::uint32_t slot) override {
    EXPECT_EQ(rig_.exchange.drop(slot).text(), "");
    used_[slot] = false;
  }
  std::optional<std::uint64_t> replied() override { return rig_.exchange.counters().replied.value(); }
  std::optional<std::uint64_t> unanswered() override { return rig_.exchange.counters().unanswered.value(); }

private:
  static detail::cpu_roce_options options(std::uint32_t slots, bool reliable) {
    detail::cpu_roce_options o = rig_options();
    o.num_slots = slots;
    o.reliable = reliable;
    return o;
  }
  bool write(unsigned, std::uint32_t id, const bytes &payload) override {
    for (std::uint32_t n = 0; n < num_slots; ++n) {
      const std::uint32_t slot = std::exchange(cursor_, (cursor_ + 1) % num_slots);
      if (!used_[slot] && rig_.write(slot, request_frame(id, payload)))
        return used_[slot] = true;
    }
    return false;
  }
  bool poll_provider(std::uint32_t &slot) override {
    const std::optional<std::uint32_t> found = rig_.exchange.poll();
    slot = found.value_or(0);
    return found.has_value();
  }
  cudaq_status_t publish(std::uint32_t slot) override {
    const cudaq_status_t status = rig_.exchange.answer(slot).status();
    if (status == CUDAQ_OK)
      used_[slot] = false;
    return status;
  }

  exchange_rig rig_;
  std::vector<bool> used_; ///< slots for which the peer has no credit
  std::uint32_t cursor_ = 0;
};

/// The provider shm in the shape unified, with two clients in this process.
class driven_shm : public driven_slots {
public:
  explicit driven_shm(std::uint32_t slots) : loop_("2", std::to_string(slots)), slots_(slots) {
    ring = loop_.plane.ring;
    EXPECT_EQ(loop_.provider.table->get_ring_geometry(loop_.provider.handle, &num_slots, &slot_bytes_), CUDAQ_OK);
    for (auto &peer : peers_) {
      peer.client = loop_.attach();
      EXPECT_EQ(peer.client->status, CUDAQ_OK) << peer.client->text;
    }
  }
  std::optional<reply> arrived(unsigned peer) override {
    for (std::uint32_t slot = 0; slot < slots_; ++slot) {
      const cudaq_ringbuffer_t &own = peers_[peer].client->ring;
      cudaq_rpc_response_t header{};
      const void *result = nullptr;
      if (cudaq_host_ringbuffer_poll_tx_flag(&own, slot, nullptr) == CUDAQ_TX_EMPTY ||
          cudaq_host_ringbuffer_read_rpc_response(&own, slot, &header, &result) != CUDAQ_OK)
        continue;
      const auto *const first = static_cast<const std::uint8_t *>(result);
      const reply found{header.request_id, bytes(first, first + header.result_len)};
      cudaq_host_ringbuffer_clear_slot(&own, slot);
      return found;
    }
    return {};
  }

private:
  bool write(unsigned peer, std::uint32_t id, const bytes &payload) override {
    auto &[client, cursor] = peers_[peer];
    for (std::uint32_t n = 0; n < slots_; ++n, cursor = (cursor + 1) % slots_)
      if (client->try_send(cursor, 1, payload.data(), static_cast<std::uint32_t>(payload.size()), id))
        return true;
    return false;
  }
  bool poll_provider(std::uint32_t &slot) override { return loop_.poll(slot); }
  cudaq_status_t publish(std::uint32_t slot) override { return loop_.plane.tx_publish(loop_.plane.ctx, slot); }

  struct attached {
    std::unique_ptr<shm_client> client;
    std::uint32_t cursor = 0;
  };
  loop_by_hand loop_;
  const std::uint32_t slots_; ///< of each client
  std::uint32_t slot_bytes_ = 0;
  attached peers_[2];
};

} // namespace cudaq::realtime::test

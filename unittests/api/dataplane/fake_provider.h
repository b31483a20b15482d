// SPDX-License-Identifier: Apache-2.0
// A unified provider in memory, with its peer. The peer hands over frames and collects answers; any number of
// threads may play it. The provider checks that the library obeys the contract of cudaq_cpu_dataplane_t.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_types.h"
#include "unittests/support/host_fixture.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <stdexcept>

namespace cudaq::realtime::test {

/// How a function of the provider ends.
enum class misstep : std::uint8_t { none, throws, ends_thread };

class fake_provider {
public:
  explicit fake_provider(const ring_shape &shape = {}, bool reports_drops = true) : shape_(shape) {
    const std::size_t bytes = std::size_t{shape.num_slots} * shape.slot_size;
    rx_.resize(bytes / 8);
    tx_.resize(shape.in_place ? 0 : bytes / 8);
    flags_.resize(shape.num_slots);
    state_.assign(shape.num_slots, slot_state::free);
    plane.ctx = this;
    plane.ring.rx_data_host = reinterpret_cast<std::uint8_t *>(rx_.data());
    plane.ring.tx_data_host = shape.in_place ? nullptr : reinterpret_cast<std::uint8_t *>(tx_.data());
    plane.ring.rx_stride_sz = plane.ring.tx_stride_sz = shape.slot_size;
    plane.ring.rx_flags_host = reports_drops ? flags_.data() : nullptr;
    plane.rx_poll = [](void *ctx, std::uint32_t *out) {
      auto &self = *static_cast<fake_provider *>(ctx);
      take_step(self.in_poll);
      return self.poll(*out);
    };
    plane.tx_publish = [](void *ctx, std::uint32_t slot) {
      auto &self = *static_cast<fake_provider *>(ctx);
      take_step(self.in_publish);
      return self.publish(slot);
    };
  }

  // --- the peer: any thread ---

  void send(std::uint32_t function_id, std::vector<std::uint8_t> payload, std::uint32_t request_id,
            std::uint32_t magic = CUDAQ_RPC_MAGIC_REQUEST) {
    frame f;
    f.header.magic = magic;
    f.header.function_id = function_id;
    f.header.arg_len = static_cast<std::uint32_t>(payload.size());
    f.header.request_id = request_id;
    f.payload = std::move(payload);
    const std::lock_guard lock(mutex_);
    arriving_.push_back(std::move(f));
  }

  /// Waits for the answer to a request.
  answer collect(std::uint32_t request_id) {
    answer out;
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      const auto found = answers_.find(request_id);
      if (found == answers_.end())
        return false;
      out = found->second;
      answers_.erase(found);
      return true;
    })) << "no answer to request "
        << request_id;
    return out;
  }

  answer call(std::uint32_t function_id, std::vector<std::uint8_t> payload, std::uint32_t request_id) {
    send(function_id, std::move(payload), request_id);
    return collect(request_id);
  }

  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return arriving_.size();
  }
  std::size_t slots_with_the_loop() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count(state_.begin(), state_.end(), slot_state::taken));
  }
  /// Answers that arrived twice, slots that were published without being taken. 0 in a correct library.
  int wrong() const {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }

  // --- misbehaviour ---

  /// How the next call ends.
  std::atomic<misstep> in_poll{misstep::none}, in_publish{misstep::none};
  void publish_fails(bool fails) {
    const std::lock_guard lock(mutex_);
    publish_fails_ = fails;
  }
  /// rx_poll returns this slot once, whatever its state.
  void return_slot_once(std::uint32_t slot) {
    const std::lock_guard lock(mutex_);
    forced_ = slot;
  }
  bool returned_it() const {
    const std::lock_guard lock(mutex_);
    return !forced_.has_value();
  }

  cudaq_cpu_dataplane_t plane{};

private:
  static void take_step(const std::atomic<misstep> &how) {
    if (how == misstep::throws)
      throw std::runtime_error("of the provider");
    if (how == misstep::ends_thread)
      pthread_exit(nullptr);
  }
  enum class slot_state : std::uint8_t { free, taken };
  struct frame {
    cudaq_rpc_header_t header{};
    std::vector<std::uint8_t> payload;
  };

  cudaq_rx_status_t poll(std::uint32_t &out) {
    const std::lock_guard lock(mutex_);
    if (forced_) {
      out = *forced_;
      forced_.reset();
      return CUDAQ_RX_READY;
    }
    if (arriving_.empty())
      return CUDAQ_RX_EMPTY;
    next_ = (next_ + 5) % shape_.num_slots; // an order of slots that no ring has
    for (std::uint32_t tried = 0; tried < shape_.num_slots; ++tried) {
      const std::uint32_t slot = (next_ + tried) % shape_.num_slots;
      if (state_[slot] == slot_state::taken && plane.ring.rx_flags_host != nullptr && flags_[slot] == 0)
        state_[slot] = slot_state::free; // the loop has dropped its request
      if (state_[slot] != slot_state::free)
        continue;
      const frame f = std::move(arriving_.front());
      arriving_.pop_front();
      std::uint8_t *at = plane.ring.rx_data_host + std::size_t{slot} * shape_.slot_size;
      std::memcpy(at, &f.header, sizeof(f.header));
      if (!f.payload.empty())
        std::memcpy(at + sizeof(f.header), f.payload.data(), f.payload.size());
      state_[slot] = slot_state::taken;
      flags_[slot] = 1;
      out = slot;
      return CUDAQ_RX_READY;
    }
    return CUDAQ_RX_EMPTY;
  }

  cudaq_status_t publish(std::uint32_t slot) {
    const std::lock_guard lock(mutex_);
    if (slot >= shape_.num_slots || state_[slot] != slot_state::taken) {
      ++wrong_;
      return CUDAQ_ERR_INVALID_ARG;
    }
    state_[slot] = slot_state::free;
    if (publish_fails_)
      return CUDAQ_ERR_INTERNAL;
    const std::uint8_t *base = shape_.in_place ? plane.ring.rx_data_host : plane.ring.tx_data_host;
    const std::uint8_t *at = base + std::size_t{slot} * shape_.slot_size;
    answer out;
    out.tx = CUDAQ_TX_READY;
    std::memcpy(&out.header, at, sizeof(out.header));
    out.result.assign(at + sizeof(out.header), at + sizeof(out.header) + out.header.result_len);
    wrong_ += !answers_.emplace(std::uint32_t{out.header.request_id}, out).second;
    return CUDAQ_OK;
  }

  const ring_shape shape_;
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> rx_, tx_;
  std::vector<std::uint64_t> flags_; ///< the loop's thread alone uses them: it calls poll
  std::vector<slot_state> state_;
  std::deque<frame> arriving_;
  std::map<std::uint32_t, answer> answers_;
  std::optional<std::uint32_t> forced_;
  std::uint32_t next_ = 0;
  int wrong_ = 0;
  bool publish_fails_ = false;
};

} // namespace cudaq::realtime::test

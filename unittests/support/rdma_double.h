// SPDX-License-Identifier: Apache-2.0
// TEST DOUBLE of an RDMA adapter (lib/transport/cpu_roce/rdma_port.h): memory and a mutex in place of a network. The
// test plays the peer of each queue pair. It models what the provider relies on, and nothing else: a write with
// immediate puts its bytes into the memory and takes a receive; without a receive, UC loses the message (its bytes are
// in the memory all the same), and RC holds the sender back.
#pragma once

#include "lib/transport/cpu_roce/rdma_port.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

namespace cudaq::realtime::test {

/// What the queue pairs of a double share. Any thread.
struct rdma_double_state {
  struct pair_state {
    std::uint32_t number = 0;
    detail::rdma_peer peer{};
    bool connected = false;
    std::uint32_t receives = 0;
    std::deque<detail::rdma_completion> completions;
    std::deque<std::vector<std::uint8_t>> frames; ///< that the peer has received
    std::uint32_t uncompleted = 0;                ///< sends whose completion is held back
  };

  std::mutex mutex;
  detail::rdma_port_options options;
  detail::rdma_memory memory;
  std::uint32_t slot_size = 256;                  ///< of the provider
  std::vector<std::unique_ptr<pair_state>> pairs; ///< all that were made; the last one is in use
  bool hold_sends = false;                        ///< sends do not complete
  bool refuse_sends = false, refuse_receives = false, refuse_start = false;

  // --- the peer of the newest queue pair ---
  /// False: RC holds the sender back.
  bool write(std::uint32_t slot, const std::vector<std::uint8_t> &bytes, std::uint32_t immediate, bool last = true) {
    const std::lock_guard<std::mutex> lock(mutex);
    pair_state &p = *pairs.back();
    if (!p.connected || (options.reliable && last && p.receives == 0))
      return false;
    const std::size_t at = std::size_t{slot} * slot_size;
    std::ranges::copy(std::span(bytes).first(std::min(bytes.size(), memory.requests.size() - at)),
                      memory.requests.subspan(at).begin());
    if (last && p.receives != 0) {
      --p.receives;
      p.completions.push_back(
          {detail::rdma_completion::kind::request, immediate, static_cast<std::uint32_t>(bytes.size()), nullptr});
    }
    return true;
  }
  /// The oldest frame that the peer has received, or none.
  std::vector<std::uint8_t> take_frame() {
    const std::lock_guard<std::mutex> lock(mutex);
    auto &frames = pairs.back()->frames;
    if (frames.empty())
      return {};
    std::vector<std::uint8_t> frame = frames.front();
    frames.pop_front();
    return frame;
  }
  void complete_sends() {
    const std::lock_guard<std::mutex> lock(mutex);
    hold_sends = false;
    for (pair_state &p = *pairs.back(); p.uncompleted != 0; --p.uncompleted)
      p.completions.push_back({detail::rdma_completion::kind::sent, 0, 0, nullptr});
  }
  void fail(const char *reason) {
    const std::lock_guard<std::mutex> lock(mutex);
    pairs.back()->completions.push_back({detail::rdma_completion::kind::failed, 0, 0, reason});
  }
  bool connected() {
    const std::lock_guard<std::mutex> lock(mutex);
    return !pairs.empty() && pairs.back()->connected;
  }
  std::uint32_t receives() {
    const std::lock_guard<std::mutex> lock(mutex);
    return pairs.back()->receives;
  }
  std::size_t num_pairs() {
    const std::lock_guard<std::mutex> lock(mutex);
    return pairs.size();
  }
  detail::rdma_peer peer() {
    const std::lock_guard<std::mutex> lock(mutex);
    return pairs.back()->peer;
  }
};

class rdma_double_pair final : public detail::rdma_queue_pair {
public:
  rdma_double_pair(std::shared_ptr<rdma_double_state> all, rdma_double_state::pair_state &own)
      : all_(std::move(all)), own_(own) {}
  ~rdma_double_pair() override { halt(); }

  detail::expected<> start(const detail::rdma_peer &peer, std::uint32_t receives) override {
    const std::lock_guard<std::mutex> lock(all_->mutex);
    if (all_->refuse_start)
      return {CUDAQ_ERR_INTERNAL, "the double refuses to start"};
    own_.peer = peer;
    own_.completions.clear();
    own_.uncompleted = 0;
    own_.receives = receives;
    own_.connected = true;
    return {};
  }
  void halt() override {
    const std::lock_guard<std::mutex> lock(all_->mutex);
    own_.connected = false;
  }
  std::uint32_t number() const override { return own_.number; }
  bool post_receive() override {
    const std::lock_guard<std::mutex> lock(all_->mutex);
    if (all_->refuse_receives || own_.receives == all_->options.receives)
      return false;
    ++own_.receives;
    return true;
  }
  bool post_send(const std::uint8_t *frame) override {
    const std::lock_guard<std::mutex> lock(all_->mutex);
    if (all_->refuse_sends || own_.uncompleted == all_->options.sends || !registered(frame))
      return false;
    own_.frames.emplace_back(frame, frame + all_->options.frame_size);
    if (all_->hold_sends)
      ++own_.uncompleted;
    else
      own_.completions.push_back({detail::rdma_completion::kind::sent, 0, 0, nullptr});
    return true;
  }
  std::uint32_t poll(std::span<detail::rdma_completion> out) override {
    const std::lock_guard<std::mutex> lock(all_->mutex);
    std::uint32_t n = 0;
    for (; n < out.size() && !own_.completions.empty(); own_.completions.pop_front())
      out[n++] = own_.completions.front();
    return n;
  }

private:
  bool registered(const std::uint8_t *frame) const {
    const auto inside = [&](std::span<std::uint8_t> m) {
      return frame >= m.data() && frame + all_->options.frame_size <= m.data() + m.size();
    };
    return inside(all_->memory.answers) || inside(all_->memory.refusals);
  }

  const std::shared_ptr<rdma_double_state> all_;
  rdma_double_state::pair_state &own_;
};

class rdma_double_port final : public detail::rdma_port {
public:
  explicit rdma_double_port(std::shared_ptr<rdma_double_state> all) : all_(std::move(all)) {}
  detail::expected<> make_queue_pair(std::unique_ptr<detail::rdma_queue_pair> &out) override {
    const std::lock_guard<std::mutex> lock(all_->mutex);
    all_->pairs.push_back(std::make_unique<rdma_double_state::pair_state>());
    all_->pairs.back()->number = 0x100 + static_cast<std::uint32_t>(all_->pairs.size());
    out = std::make_unique<rdma_double_pair>(all_, *all_->pairs.back());
    return {};
  }
  std::uint32_t rkey() const override { return 0x5678; }
  std::uint32_t mtu() const override { return all_->options.mtu; }

private:
  const std::shared_ptr<rdma_double_state> all_;
};

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A link whose requests and answers lie in the slots of a ring.
#pragma once

#include "tools/emulate/link.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::realtime::tools {

/// Slots are filled in ring order. Answers come in any order, so all slots from the oldest open one are looked at.
class slot_link : public link {
public:
  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override;
  std::optional<link_answer> receive() override;
  /// The slot stays with the server, which may still answer in it. It is used again if the server has dropped the
  /// request, which leaves the slot free.
  void give_up(std::uint32_t id) override;
  link_counters counters() const override { return {0, unexpected_, 0}; }

protected:
  /// Before the first request.
  void use_ring(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots);
  const cudaq_ringbuffer_t &ring() const { return ring_; }
  /// Writes and signals a request in the slot, by the slot helpers. False: the slot is not free.
  virtual bool write(std::uint32_t slot, std::uint32_t id, std::uint32_t function_id,
                     std::span<const std::uint8_t> payload, std::uint64_t timestamp);
  /// The slot holds a request: its rx flag is not set yet.
  virtual void signal(std::uint32_t slot) = 0;

private:
  struct slot_state {
    std::uint32_t id = 0;
    bool open = false, given_up = false;
  };

  std::uint32_t after(std::uint32_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
  /// Its request is not open any more.
  void close(std::uint32_t slot);
  bool was_dropped(std::uint32_t slot) const;
  /// The slot whose answer the last receive has returned.
  void give_back();

  static constexpr std::uint32_t kNone = UINT32_MAX;
  cudaq_ringbuffer_t ring_{};
  std::vector<slot_state> slots_;
  std::uint32_t next_ = 0, first_ = 0, open_ = 0, read_ = kNone; ///< first_: no open slot is before it
  std::uint64_t unexpected_ = 0;
};

} // namespace cudaq::realtime::tools

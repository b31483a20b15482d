// SPDX-License-Identifier: Apache-2.0
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "tools/common/report.h"
#include "tools/emulate/links.h"
#include "tools/services/api_objects.h"

#include <vector>

namespace cudaq::realtime::tools {
namespace {

void require(cudaq_status_t status, const char *call) {
  if (status != CUDAQ_OK)
    throw api_error(fmt::format("{}: {}", call, cudaq_shm_client_error()));
}

/// Slots are filled in ring order. Answers come in any order, so all slots from the oldest open one are looked at.
class shm_link final : public link {
public:
  shm_link(const emulate_options &o, std::size_t payload_bytes) {
    require(cudaq_shm_client_attach(&client_, o.name.c_str(), static_cast<std::uint64_t>(o.timeout_s * 1e9), nullptr),
            "shared memory");
    std::uint32_t num_slots = 0, slot_size = 0;
    require(cudaq_shm_client_ring(client_, &ring_, &num_slots, &slot_size), "the ring");
    slots_.resize(num_slots);
    where_ = fmt::format("shm {}, {} slots of {} bytes", o.name, num_slots, slot_size);
    if (payload_bytes + CUDAQ_RPC_HEADER_SIZE > slot_size) {
      cudaq_shm_client_detach(client_);
      throw usage_error(
          fmt::format("the slots of {} have {} bytes; a request of these shots needs {}: start the server "
                      "with --slot-size",
                      o.name, slot_size, payload_bytes + CUDAQ_RPC_HEADER_SIZE));
    }
    const std::uint32_t kind = cudaq_shm_client_memory_kind(client_);
    if (kind != CUDAQ_MEMORY_DEVICE_RX)
      return;
    where_ += ", requests in GPU memory";
    if (cudaq_ringbuffer_producer_open_ring(&ring_, num_slots, kind, &producer_) != CUDAQ_OK) {
      const std::string reason = cudaq_last_error_message();
      cudaq_shm_client_detach(client_);
      throw api_error(fmt::format("cudaq_ringbuffer_producer_open_ring: {}", reason));
    }
  }
  ~shm_link() override {
    if (producer_ != nullptr)
      cudaq_ringbuffer_producer_close(producer_);
    cudaq_shm_client_detach(client_);
  }

  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp) override {
    if (slots_[next_].open || !write(id, function_id, payload, timestamp))
      return false;
    slots_[next_] = {id, true};
    ++open_;
    next_ = after(next_);
    return true;
  }

  std::optional<link_answer> receive() override {
    give_back();
    std::uint32_t seen = 0;
    for (std::uint32_t slot = first_; seen < open_; slot = after(slot)) {
      if (!slots_[slot].open)
        continue;
      ++seen;
      int cuda_error = 0;
      const cudaq_tx_status_t tx = cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, &cuda_error);
      if (tx != CUDAQ_TX_READY && tx != CUDAQ_TX_ERROR)
        continue;
      slots_[slot].open = false;
      --open_;
      while (open_ != 0 && !slots_[first_].open)
        first_ = after(first_);
      if (open_ == 0)
        first_ = next_;
      read_ = slot;
      link_answer answer;
      const void *result = nullptr;
      if (tx == CUDAQ_TX_READY &&
          cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &answer.header, &result) == CUDAQ_OK &&
          answer.header.request_id == slots_[slot].id) {
        answer.result = {static_cast<const std::uint8_t *>(result), answer.header.result_len};
        return answer;
      }
      ++unexpected_;
      give_back();
    }
    return std::nullopt;
  }

  /// The slot stays with the server, which may still answer in it.
  void give_up(std::uint32_t) override {}
  bool alive() override { return cudaq_shm_client_alive(client_) == 1; }
  link_counters counters() const override { return {0, unexpected_, 0}; }
  std::string describe() const override { return where_; }

private:
  struct slot_state {
    std::uint32_t id = 0;
    bool open = false;
  };

  /// Writes and signals a request in slot next_. False: the slot is not free.
  bool write(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
             std::uint64_t timestamp) {
    const auto bytes = static_cast<std::uint32_t>(payload.size());
    if (producer_ != nullptr) { // the handle claims the slots in the same order, from slot 0
      std::uint32_t slot = 0, count = 0;
      require_ok(cudaq_ringbuffer_producer_claim(producer_, 1, &slot, &count), "cudaq_ringbuffer_producer_claim");
      if (count == 0)
        return false;
      require_ok(cudaq_ringbuffer_producer_write(producer_, slot, function_id, payload.data(), bytes, id, timestamp),
                 "cudaq_ringbuffer_producer_write");
      require_ok(cudaq_ringbuffer_producer_commit(producer_, slot, 1), "cudaq_ringbuffer_producer_commit");
      return true;
    }
    if (cudaq_host_ringbuffer_slot_available(&ring_, next_) != 1)
      return false;
    require_ok(
        cudaq_host_ringbuffer_write_rpc_request(&ring_, next_, function_id, payload.data(), bytes, id, timestamp),
        "cudaq_host_ringbuffer_write_rpc_request");
    cudaq_shm_client_signal(client_, next_);
    return true;
  }
  std::uint32_t after(std::uint32_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
  /// The slot whose answer the last receive has returned.
  void give_back() {
    if (read_ == kNone)
      return;
    cudaq_host_ringbuffer_clear_slot(&ring_, read_);
    read_ = kNone;
  }

  static constexpr std::uint32_t kNone = UINT32_MAX;
  cudaq_shm_client_t *client_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  cudaq_ringbuffer_producer_t *producer_ = nullptr; ///< with requests in GPU memory: the helpers would read there
  std::vector<slot_state> slots_;
  std::uint32_t next_ = 0, first_ = 0, open_ = 0, read_ = kNone; ///< first_: no open slot is before it
  std::uint64_t unexpected_ = 0;
  std::string where_;
};

} // namespace

std::unique_ptr<link> make_shm_link(const emulate_options &o, std::size_t payload_bytes) {
  if (o.name.empty())
    throw usage_error("--name is missing: the name of the server's shared memory, which it prints when it is ready");
  return std::make_unique<shm_link>(o, payload_bytes);
}

} // namespace cudaq::realtime::tools

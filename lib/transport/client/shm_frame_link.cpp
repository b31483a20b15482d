// SPDX-License-Identifier: Apache-2.0
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "lib/transport/client/frame_link.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sched.h>
#include <thread>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kLongestWait = 200'000; ///< ns, on one of several slots: another one may be answered before
constexpr std::uint64_t kCheckInterval = 10'000'000; ///< ns between checks of the connection

/// Slots are filled in ring order; answers come in any order.
class shm_link final : public frame_link {
public:
  explicit shm_link(cudaq_shm_client_t *client) : client_(client) {
    std::uint32_t slots = 0, size = 0;
    (void)cudaq_shm_client_ring(client_, &ring_, &slots, &size);
    ids_.resize(slots);
    slot_size_ = size;
    answer_.resize(size);
  }
  ~shm_link() override { cudaq_shm_client_detach(client_); }

  bool send(std::span<const std::uint8_t> frame, std::uint64_t) override {
    const std::uint32_t slot = next_slot();
    if (cudaq_host_ringbuffer_slot_available(&ring_, slot) == 0)
      return false;
    std::erase(waiting_, slot); // a request that was given up, and that the server has dropped since
    cudaq_rpc_header_t header;
    std::memcpy(&header, frame.data(), sizeof(header));
    if (cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, header.function_id, frame.data() + sizeof(header),
                                                header.arg_len, header.request_id, header.ptp_timestamp) != CUDAQ_OK)
      return false;
    cudaq_shm_client_signal(client_, slot);
    ids_[slot] = header.request_id;
    waiting_.push_back(slot);
    ++sent_;
    return true;
  }

  std::optional<arrival> receive(std::uint64_t now) override {
    now_ = now;
    for (std::size_t k = 0; k < waiting_.size(); ++k) {
      const std::uint32_t slot = waiting_[k];
      const cudaq_tx_status_t state = cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr);
      const bool answered = state == CUDAQ_TX_READY || state == CUDAQ_TX_ERROR;
      if (!answered && cudaq_host_ringbuffer_slot_available(&ring_, slot) == 0)
        continue;
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(k));
      return answered ? arrival{take(slot, state), std::nullopt} : arrival{{}, ids_[slot]};
    }
    return std::nullopt;
  }

  void wait(std::uint64_t time_ns) override {
    if (waiting_.empty()) {
      if (cudaq_host_ringbuffer_slot_available(&ring_, next_slot()) == 0) // not free yet, shortly after its answer
        ::sched_yield();
      else // a request that was answered BUSY is sent later
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(time_ns, kCheckInterval)));
      return;
    }
    const std::uint64_t limit = waiting_.size() == 1 ? time_ns : std::min(time_ns, kLongestWait);
    ended_ = cudaq_shm_client_wait(client_, waiting_.front(), limit) == CUDAQ_ERR_STATE;
  }
  [[nodiscard]] expected<> check() override {
    // A wait checks the connection only if it is long, and on one of its slots.
    if (!ended_ && (last_check_ == 0 || now_ - last_check_ >= kCheckInterval)) {
      last_check_ = now_;
      ended_ = cudaq_shm_client_alive(client_) == 0;
    }
    if (ended_ && !any_answered()) // the last answers are delivered
      return {CUDAQ_ERR_STATE, "the server has ended, or has closed the connection; open another client"};
    return {};
  }
  [[nodiscard]] std::uint64_t slot_size() const override { return slot_size_; }

private:
  [[nodiscard]] std::uint32_t next_slot() const { return static_cast<std::uint32_t>(sent_ % ids_.size()); }
  [[nodiscard]] bool any_answered() const {
    return std::ranges::any_of(waiting_, [&](std::uint32_t slot) {
      const cudaq_tx_status_t state = cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr);
      return state == CUDAQ_TX_READY || state == CUDAQ_TX_ERROR;
    });
  }
  /// The answer's frame; if the slot holds none, one with a protocol error. The slot is free then.
  std::span<const std::uint8_t> take(std::uint32_t slot, cudaq_tx_status_t state) {
    cudaq_rpc_response_t header;
    const void *result = nullptr; // after an error the slot still holds an earlier frame
    const bool good = state == CUDAQ_TX_READY &&
                      cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &header, &result) == CUDAQ_OK &&
                      header.result_len <= answer_.size() - sizeof(header);
    if (!good)
      header = {CUDAQ_RPC_MAGIC_RESPONSE,
                state == CUDAQ_TX_ERROR ? CUDAQ_RPC_ERR_LAUNCH_FAILED : CUDAQ_RPC_ERR_NO_RESPONSE, 0, ids_[slot], 0};
    std::memcpy(answer_.data(), &header, sizeof(header));
    if (header.result_len != 0)
      std::memcpy(answer_.data() + sizeof(header), result, header.result_len);
    cudaq_host_ringbuffer_clear_slot(&ring_, slot);
    return {answer_.data(), sizeof(header) + header.result_len};
  }

  cudaq_shm_client_t *client_;
  cudaq_ringbuffer_t ring_{};
  std::uint64_t slot_size_ = 0, sent_ = 0;
  std::uint64_t now_ = 0, last_check_ = 0; ///< of the connection
  std::vector<std::uint32_t> ids_;         ///< for each slot: of its last request
  std::vector<std::uint32_t> waiting_;     ///< slots, in the order in which they were sent
  std::vector<std::uint8_t> answer_;
  bool ended_ = false;
};

} // namespace

expected<std::unique_ptr<frame_link>> make_shm_link(const char *name, std::uint64_t timeout_ns) {
  cudaq_shm_client_options_t options{};
  options.struct_size = sizeof(options);
  options.wait_policy = CUDAQ_WAIT_BLOCK;
  cudaq_shm_client_t *client = nullptr;
  if (const cudaq_status_t status = cudaq_shm_client_attach(&client, name, timeout_ns, &options); status != CUDAQ_OK)
    return make_reason(status, "%s", cudaq_shm_client_error());
  try {
    return std::unique_ptr<frame_link>(std::make_unique<shm_link>(client));
  } catch (...) {
    cudaq_shm_client_detach(client);
    throw;
  }
}

} // namespace cudaq::realtime::detail

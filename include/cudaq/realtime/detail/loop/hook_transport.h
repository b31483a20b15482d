// SPDX-License-Identifier: Apache-2.0
// The transport of a unified kernel over the device hooks of a provider (daemon/bridge/device_transport.cuh).
// ring_transport.h describes the members. There is one message at a time, and no ring: a look waits in rx_poll until a
// message comes, or until the loop has to end. So the loop posts its counters before each look (kWaits), and a message
// that rx_poll has returned is always served.
//
//   Hooks   attach, rx_poll, tx_publish: one thread calls them. On a device they are linked with the kernel
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"
#include "cudaq/realtime/detail/loop/thread_group.h"
#include "cudaq/realtime/detail/ring/frame.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kHookStorageBytes = 256; ///< memory of the hooks, for as long as the kernel runs

template <class Group, class Hooks>
class hook_transport {
public:
  static constexpr bool kWaits = true, kSlotsInOrder = false;
  static constexpr std::uint32_t kSeekPolls = 32;
  struct message {
    const std::uint8_t *request = nullptr;
    std::uint8_t *response = nullptr;
  };
  using frames = message;
  /// Memory that the group shares; shared memory on a device.
  struct shared_state {
    alignas(16) std::uint8_t storage[kHookStorageBytes];
    message looked; ///< the message of the last look
  };

  /// slot_size: the bytes of a request, and of a response, that may be read and written.
  CUDAQ_REALTIME_HOST_DEVICE hook_transport(shared_state &shared, void *ctx, volatile int *shutdown,
                                            std::uint32_t slot_size)
      : shared_(shared), slot_size_(slot_size) {
    if (Group::lane() == 0)
      session_ = Hooks::attach(shared.storage, ctx, shutdown);
    session_ = Group::from(session_, 0);
    fault_ = session_ == nullptr ? kNotAttached : cudaSuccess;
  }

  /// False on all lanes: there is no session.
  CUDAQ_REALTIME_HOST_DEVICE bool attached() const { return session_ != nullptr; }
  /// Valid in lane 0: why the loop ended, if it was not a shutdown.
  CUDAQ_REALTIME_HOST_DEVICE cudaError_t fault() const { return fault_; }

  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t window() { return 1; }
  CUDAQ_REALTIME_HOST_DEVICE bool poll(std::uint32_t, message &m) {
    void *request = nullptr, *response = nullptr;
    if (!Hooks::rx_poll(session_, &request, &response))
      return false;
    const auto both = reinterpret_cast<std::uint64_t>(request) | reinterpret_cast<std::uint64_t>(response);
    if (request == nullptr || response == nullptr || request == response || both % (aligned16() ? 16 : 8) != 0) {
      fault_ = kWrongFrames;
      return false;
    }
    m = {static_cast<const std::uint8_t *>(request), static_cast<std::uint8_t *>(response)};
    shared_.looked = m;
    return true;
  }
  CUDAQ_REALTIME_HOST_DEVICE message at(std::uint32_t) const { return shared_.looked; }
  CUDAQ_REALTIME_HOST_DEVICE static const std::uint8_t *request(const message &m) { return m.request; }
  CUDAQ_REALTIME_HOST_DEVICE static std::uint8_t *response(const message &m) { return m.response; }
  CUDAQ_REALTIME_HOST_DEVICE void send(const message &m) const { Hooks::tx_publish(session_, m.response); }
  /// The hooks have no other way to give a frame back than to publish it. A header of zeros is no response.
  CUDAQ_REALTIME_HOST_DEVICE void discard(const message &m) const {
    write_header(m.response, detail::response{});
    send(m);
  }
  CUDAQ_REALTIME_HOST_DEVICE static void advance(std::uint32_t) {}
  CUDAQ_REALTIME_HOST_DEVICE static bool expected(const message &) { return true; }
  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t number(const message &) { return 0; }
  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t cursor() { return 0; }

  CUDAQ_REALTIME_HOST_DEVICE frames front(const message &) const { return shared_.looked; }
  CUDAQ_REALTIME_HOST_DEVICE void send_front(const message &m) const { send(m); }
  CUDAQ_REALTIME_HOST_DEVICE static void prepare(const message &) {}
  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t precompute_next() { return 0; }
  CUDAQ_REALTIME_HOST_DEVICE static void advance_one() {}

  CUDAQ_REALTIME_HOST_DEVICE bool aligned16() const { return slot_size_ % 16 == 0; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t slot_size() const { return slot_size_; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t max_payload() const { return slot_size_ - CUDAQ_RPC_HEADER_SIZE; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t readable() const { return slot_size_; }
  CUDAQ_REALTIME_HOST_DEVICE static bool seek() { return false; }
  CUDAQ_REALTIME_HOST_DEVICE static void post_owed() {}

private:
  shared_state &shared_;
  void *session_ = nullptr;
  std::uint32_t slot_size_;
  cudaError_t fault_;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// A kernel on a ring that other dispatchers serve, too: the common router, and the member that represents the kernel
// there.
#include "lib/api/device_path/device_back_end.h"
#include "lib/api/host_views.h"
#include "lib/base/cuda_device.h"
#include "lib/host_dispatcher/diagnostics.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {

namespace {
constexpr std::size_t kPlaceholderFlagBytes = 16;      ///< bytes before its slots
constexpr auto kQuiet = std::chrono::milliseconds(10); ///< without a new heartbeat for this time the driver is queried

/// What CUDA knows about the memory at a device address. `device` is current.
host_place place_of(const volatile void *address) {
  cudaPointerAttributes a{};
  if (cudaPointerGetAttributes(&a, const_cast<const void *>(address)) != cudaSuccess) {
    cudaGetLastError(); // clears the error of this thread
    return {nullptr, "CUDA cannot tell its host address"};
  }
  switch (a.type) {
  case cudaMemoryTypeHost:
    return {a.hostPointer, "pinned memory without a host address"};
  case cudaMemoryTypeDevice:
    return {nullptr, "device memory, which has no host address"};
  case cudaMemoryTypeManaged:
    return {nullptr, "managed memory, which host and device cannot share as a ring"};
  default:
    return {nullptr, "memory that CUDA did not allocate and that is not registered"};
  }
}

} // namespace

expected<> device_back_end::check_ring(cudaq_ringbuffer_t &ring) const {
  if (unified()) // its kernel brings its own ring
    return {};
  cudaq_dispatcher_config_t alone = config_;
  alone.shared_ring_mode = 0;
  if (expected<> result = validate_device_ring(ring, alone); result.failed() || !shared())
    return result;
  const bool incomplete = ring.rx_flags_host == nullptr || ring.tx_flags_host == nullptr ||
                          ring.rx_data_host == nullptr ||
                          (ring.tx_data_host == nullptr && !is_in_place(ring, ring_side::device));
  if (incomplete) { // only then this call uses CUDA
    const device_guard guard(config_.device_id);
    if (expected<> result = find_host_views(ring, config_, place_of); result.failed())
      return result;
  }
  return validate_device_ring(ring, config_);
}

expected<> device_back_end::take_ring(wiring &w) {
  if (shared() && w.rewired) { // after a new wiring the ring starts at slot 0, unless other dispatchers are on it
    router_.reset();
    member_.release_ring();
  }
  expected<> result;
  if (!unified()) { // a unified kernel brings its own ring
    result = shared() ? manager_.join_ring(view_of(*w.ring, config_, ring_side::host), router_)
                      : manager_.reserve_ring(identity_of(*w.ring));
    if (result.failed())
      return result;
    held_ring_ = identity_of(*w.ring);
  }
  return manager_.claim(this, claim_of(w, config_, config_.num_slots));
}

expected<> device_back_end::prepare_sharing(const wiring &w, dispatch_params &p) {
  if (!shared())
    return {};
  const std::size_t inbox_bytes = ring_inbox::bytes(config_.num_slots);
  const std::size_t strides = w.ring->rx_stride_sz + std::max(w.ring->rx_stride_sz, w.ring->tx_stride_sz);
  if (inbox_memory_ != nullptr && w.rewired) { // the strides may differ
    manager_.give_back_mapped_block(inbox_memory_);
    inbox_memory_ = nullptr;
  }
  if (inbox_memory_ == nullptr)
    if (expected<> result = manager_.take_mapped_block(inbox_bytes + kPlaceholderFlagBytes + strides, inbox_memory_);
        result.failed())
      return result;
  void *address = nullptr;
  if (const cudaError_t error = cudaHostGetDevicePointer(&address, inbox_memory_, 0))
    return cuda_failed("cudaHostGetDevicePointer", error);
  member_.prepare({router_, table_.host_index(), p.rules, w.options.default_owner != 0, inbox_memory_});
  p.inbox = ring_inbox::in(address, config_.num_slots);
  p.sharing = ring_sharing::routed;
  make_placeholder_ring(p.ring, static_cast<std::uint8_t *>(address) + inbox_bytes,
                        static_cast<std::uint8_t *>(inbox_memory_) + inbox_bytes);
  last_heartbeat_ = 0;
  last_heartbeat_time_ = steady_clock::now();
  return {};
}

/// Makes the placeholder ring: one slot, like those of the real ring, whose flags stay 0.
void device_back_end::make_placeholder_ring(const slot_ring &like, std::uint8_t *device, std::uint8_t *host) {
  std::memset(host, 0, kPlaceholderFlagBytes);
  placeholder_ring_ = like;
  placeholder_ring_.num_slots = 1;
  placeholder_ring_.rx_flags = reinterpret_cast<volatile std::uint64_t *>(device);
  placeholder_ring_.tx_flags = placeholder_ring_.rx_flags + 1;
  placeholder_ring_.rx_data = device + kPlaceholderFlagBytes;
  placeholder_ring_.tx_data = like.in_place() ? placeholder_ring_.rx_data : placeholder_ring_.rx_data + like.rx_stride;
  placeholder_ring_.rx_alias = 0;
}

/// Called before the launch, so that a function that another dispatcher serves is refused before a kernel runs.
/// Requests that are routed before the kernel runs wait in its inbox. They are given back if no kernel runs.
expected<> device_back_end::join_ring(const wiring &w) {
  if (!shared())
    return {};
  const cudaq_dispatcher_options_t &o = w.options;
  return member_.join({o.dispatcher_core, o.numa_node, o.realtime_priority},
                      static_cast<cudaq_wait_policy_t>(o.wait_policy), o.block_interval_ns,
                      [this] { return kernel_has_ended(); });
}

/// Called by the member's thread from time to time. A running kernel shows it by its heartbeat. Only if there is no new
/// heartbeat for kQuiet, the driver is queried, because a driver call may wait for the calls of other threads. False if
/// the end is not certain: a request taken back too early would be answered twice.
bool device_back_end::kernel_has_ended() {
  cudaq_dispatcher_stats_t stats{};
  reports_.read(stats);
  const steady_clock::time_point now = steady_clock::now();
  const bool beats = stats.heartbeat != last_heartbeat_ || under_way_.load() == 0;
  if (!beats && now - last_heartbeat_time_ < kQuiet)
    return false;
  last_heartbeat_ = stats.heartbeat;
  last_heartbeat_time_ = now;
  if (beats)
    return false;
  cudaStreamCaptureMode mode =
      cudaStreamCaptureModeRelaxed; // only for this thread; no other code uses its current device
  if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess || cudaSetDevice(config_.device_id) != cudaSuccess)
    return false;
  const cudaError_t state = cudaStreamQuery(kernel_stream_);
  return state == cudaSuccess || ends_the_context(state);
}

void device_back_end::read_stats(cudaq_dispatcher_stats_t &out) const {
  reports_.read(out);
  const thread_counters &routed = member_.counts();
  // Each is read once: `received` has what the three have.
  const std::uint64_t bad_magic = routed.dropped_bad_magic.value();
  const std::uint64_t unknown_function = routed.dropped_unknown_function.value();
  const std::uint64_t flag_value = routed.dropped_flag_value.value();
  out.received += bad_magic + unknown_function + flag_value;
  out.dropped_bad_magic += bad_magic;
  out.dropped_unknown_function += unknown_function;
  out.dropped_flag_value += flag_value;
  out.unexpected_flag_values += routed.unexpected_flag_values.value();
  out.tx_busy_waits += routed.tx_busy_waits.value();
  out.cursor_jumps += routed.cursor_jumps.value();
}

std::string device_back_end::describe_sharing() const {
  std::string text;
  if (shared())
    append(text, "ring: shared, routed by the host; cursors of loops count in the inbox of %u entries\n",
           config_.num_slots);
  return text;
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ucx/ucx_node.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <new>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint32_t kPollsPerTick = 32; // without a request
constexpr std::uint64_t kFlushNs = 200000000;

cudaq_rx_status_t rx_poll(void *self, std::uint32_t *out_slot) {
  return static_cast<ucx_node *>(self)->poll(*out_slot);
}
cudaq_status_t tx_publish(void *self, std::uint32_t slot) {
  return guarded_brief("tx_publish", [&] { return static_cast<ucx_node *>(self)->publish(slot); });
}

} // namespace

ucx_node::~ucx_node() {
  disconnect();
  if (memory_ != nullptr)
    cudaq_ringbuffer_destroy(memory_);
}

expected<> ucx_node::open(const ucx_options &options) {
  options_ = options;
  cudaq_ringbuffer_options_t wanted;
  cudaq_ringbuffer_options_init(&wanted, sizeof(wanted));
  wanted.memory_kind = CUDAQ_MEMORY_HOST;
  wanted.num_slots = options.num_slots;
  wanted.slot_size = options.slot_size;
  if (const cudaq_status_t status = cudaq_ringbuffer_create(&wanted, &memory_, &ring_); status != CUDAQ_OK)
    return make_reason(status, "--num-slots %u, --slot-size %u: %s", options.num_slots, options.slot_size,
                       cudaq_last_error_message());
  session_limits limits;
  limits.num_slots = options.num_slots;
  limits.slot_size = options.slot_size;
  limits.max_routers = options.max_routers;
  limits.silence = std::chrono::milliseconds(options.silence_ms);
  sessions_ = std::make_unique<node_sessions>(limits, ring_, static_cast<node_port &>(*this));
  ucx_settings settings;
  settings.tls = options.tls;
  settings.loopback = options.bind_address.starts_with("127.");
  settings.max_bytes = options.slot_size + static_cast<std::uint32_t>(kRouteHeaderBytes);
  if (expected<> result = worker_.open(settings, {[this](std::uint64_t from, std::span<const std::uint8_t> bytes) {
                                                    sessions_->received(from, bytes, read_clock());
                                                  },
                                                  [this](std::uint64_t id) { sessions_->connected(id, read_clock()); },
                                                  [this](std::uint64_t id) { sessions_->disconnected(id); }});
      result.failed())
    return result;
  if (expected<> result = worker_.listen(options.bind_address, options.port); result.failed())
    return result;
  endpoint_ = "transport=ucx port=" + std::to_string(worker_.port()) + " address=" + options.bind_address +
              " frame_size=" + std::to_string(options.slot_size) +
              " credits=" + std::to_string(options.num_slots / options.max_routers) + options.ignored_words;
  return {};
}

cudaq_cpu_dataplane_t ucx_node::dataplane() noexcept { return {this, ring_, rx_poll, tx_publish}; }

void ucx_node::send(std::uint64_t connection, const route_header &header, std::span<const std::uint8_t> payload) {
  worker_.send(connection, {reinterpret_cast<const std::uint8_t *>(&header), sizeof header}, payload, true);
}

/// At each message: with the time of an earlier poll a router would count as silent for as long as the loop has paused.
node_sessions::time ucx_node::read_clock() {
  now_ = steady_clock::now().time_since_epoch();
  return now_;
}

void ucx_node::move(bool with_clock) {
  if (with_clock)
    read_clock();
  worker_.progress();
  if (with_clock)
    sessions_->tick(now_);
}

cudaq_rx_status_t ucx_node::poll(std::uint32_t &slot) {
  if (stopped_.load() != 0)
    return CUDAQ_RX_EMPTY;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || stopped_.load() != 0)
    return CUDAQ_RX_EMPTY;
  if (sessions_->take(slot))
    return CUDAQ_RX_READY;
  try {
    move(empty_polls_++ % kPollsPerTick == 0);
  } catch (const std::bad_alloc &) { // the next poll goes on
    return CUDAQ_RX_EMPTY;
  }
  return sessions_->take(slot) ? CUDAQ_RX_READY : CUDAQ_RX_EMPTY;
}

expected<> ucx_node::publish(std::uint32_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!sessions_->publish(slot))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot %u: the loop does not have it", slot);
  return {};
}

void ucx_node::launch() { stopped_.store(0); }

void ucx_node::disconnect() {
  stopped_.store(1);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bye_sent_ || !sessions_)
    return;
  bye_sent_ = true;
  move(true); // requests that have arrived are answered, too
  sessions_->close();
  worker_.flush(kFlushNs);
}

} // namespace cudaq::realtime::detail

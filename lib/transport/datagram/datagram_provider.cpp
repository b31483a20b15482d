// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_provider.h"

namespace cudaq::realtime::detail {
namespace {

cudaq_rx_status_t rx_poll(void *ctx, std::uint32_t *out_slot) {
  return static_cast<datagram_dataplane *>(ctx)->poll(*out_slot);
}
cudaq_status_t tx_publish(void *ctx, std::uint32_t slot) {
  return guarded_brief("tx_publish", [&] { return static_cast<datagram_dataplane *>(ctx)->publish(slot); });
}

} // namespace

expected<> datagram_provider::open(const datagram_options &options, std::unique_ptr<datagram_wire> wire) {
  if (expected<> result = allocate(options.num_slots, options.slot_size, options.pinned_rings); result.failed())
    return result;
  exchange_ = std::make_unique<datagram_exchange>(options, std::move(wire), ring());
  if (expected<> result = exchange_->open(); result.failed())
    return result;
  endpoint_ = "transport=" + options.provider + " port=" + std::to_string(exchange_->socket().port()) +
              " address=" + options.bind_address + " frame_size=" + std::to_string(options.slot_size) +
              options.ignored_words;
  if (options.unified)
    dataplane_ = std::make_unique<datagram_dataplane>(*exchange_);
  else
    pump_ = std::make_unique<datagram_ring>(*exchange_);
  return {};
}

expected<> datagram_provider::launch() {
  if (pump_)
    return pump_->launch();
  dataplane_->launch();
  return {};
}

expected<> datagram_provider::disconnect() { return pump_ ? pump_->disconnect() : dataplane_->disconnect(); }

expected<> datagram_provider::close() {
  // The last answers are sent; those that find no room end here.
  if (pump_) {
    if (expected<> result = pump_->end_thread(); result.failed())
      return result;
    (void)pump_->disconnect();
  } else {
    (void)dataplane_->disconnect();
  }
  return {};
}

cudaq_cpu_dataplane_t datagram_provider::dataplane() { return {dataplane_.get(), ring(), rx_poll, tx_publish}; }

cudaq_status_t get_request_statistics(const char *endpoint, cudaq_udp_statistics_t *out) {
  return read_statistics("cudaq_udp_get_statistics", endpoint, out,
                         [](const provider_instance &instance, cudaq_udp_statistics_t &all) {
                           static_cast<const datagram_provider &>(instance).counters().read(all); // all are such
                         });
}

} // namespace cudaq::realtime::detail

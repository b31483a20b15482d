// SPDX-License-Identifier: Apache-2.0
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/emulate/links.h"
#include "tools/emulate/slot_link.h"
#include "tools/services/decode_service.h"
#include "tools/services/host_service.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

/// The server is a dispatcher of this process: its thread decodes.
class ring_link final : public slot_link {
public:
  ring_link(const emulate_options &o, const qec::shot_set &shots, std::uint32_t num_slots)
      : decoder_(std::make_shared<decode_service>(o.decoder, shots, 1)) {
    ring_service_config config;
    config.num_slots = num_slots;
    config.slot_bytes =
        CUDAQ_RPC_HEADER_SIZE + static_cast<std::uint32_t>(std::max(shots.detection_bytes(), shots.observable_bytes()));
    config.options = default_options();
    config.options.wait_policy = CUDAQ_WAIT_SPIN_YIELD; // it may share a core with the client
    const cudaq_handler_schema_t schema = decoder_->schema();
    service_ = std::make_unique<host_service>(config, kDecodeFunctionId, &decode_service::handle, decoder_, &schema);
    use_ring(service_->ring(), num_slots);
    service_->start();
    where_ = fmt::format("ring in this process, {} slots of {} bytes, decoder {}{}", num_slots, config.slot_bytes,
                         decoder_->decoder_name(),
                         decoder_->decoder_choice().empty() ? "" : " (" + decoder_->decoder_choice() + ")");
  }

  bool alive() override { return true; }
  std::string describe() const override { return where_; }

private:
  const std::shared_ptr<decode_service> decoder_;
  std::unique_ptr<host_service> service_;
  std::string where_;
};

} // namespace

std::unique_ptr<link> make_ring_link(const emulate_options &o, const qec::shot_set &shots, std::uint32_t num_slots) {
  return std::make_unique<ring_link>(o, shots, num_slots);
}

} // namespace cudaq::realtime::tools

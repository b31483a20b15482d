// SPDX-License-Identifier: Apache-2.0
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "tools/common/api_objects.h"
#include "tools/common/report.h"
#include "tools/emulate/links.h"
#include "tools/emulate/slot_link.h"

namespace cudaq::realtime::tools {
namespace {

void require(cudaq_status_t status, const char *call) {
  if (status != CUDAQ_OK)
    throw api_error(fmt::format("{}: {}", call, cudaq_shm_client_error()));
}

class shm_link final : public slot_link {
public:
  explicit shm_link(const emulate_options &o) : name_(o.name) {
    require(cudaq_shm_client_attach(&client_, o.name.c_str(), static_cast<std::uint64_t>(o.timeout_s * 1e9), nullptr),
            "shared memory");
    std::uint32_t num_slots = 0;
    cudaq_ringbuffer_t ring{};
    require(cudaq_shm_client_ring(client_, &ring, &num_slots, &slot_size_), "the ring");
    use_ring(ring, num_slots);
    where_ = fmt::format("shm {}, {} slots of {} bytes", o.name, num_slots, slot_size_);
    const std::uint32_t kind = cudaq_shm_client_memory_kind(client_);
    if (kind != CUDAQ_MEMORY_DEVICE_RX)
      return;
    where_ += ", requests in GPU memory";
    if (cudaq_ringbuffer_producer_open_ring(&ring, num_slots, kind, &producer_) != CUDAQ_OK) {
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

  bool alive() override { return cudaq_shm_client_alive(client_) == 1; }
  void require_room(std::size_t payload_bytes) const override {
    if (payload_bytes + CUDAQ_RPC_HEADER_SIZE > slot_size_)
      throw usage_error(fmt::format("the slots of {} have {} bytes; a request of these shots needs {}: start the "
                                    "server with --slot-size",
                                    name_, slot_size_, payload_bytes + CUDAQ_RPC_HEADER_SIZE));
  }
  std::string describe() const override { return where_; }

private:
  bool write(std::uint32_t slot, std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
             std::uint64_t timestamp) override {
    if (producer_ == nullptr)
      return slot_link::write(slot, id, function_id, payload, timestamp);
    std::uint32_t claimed = 0, count = 0; // the handle claims the slots in the same order, from slot 0
    require_ok(cudaq_ringbuffer_producer_claim(producer_, 1, &claimed, &count), "cudaq_ringbuffer_producer_claim");
    if (count == 0)
      return false;
    require_ok(cudaq_ringbuffer_producer_write(producer_, claimed, function_id, payload.data(),
                                               static_cast<std::uint32_t>(payload.size()), id, timestamp),
               "cudaq_ringbuffer_producer_write");
    require_ok(cudaq_ringbuffer_producer_commit(producer_, claimed, 1), "cudaq_ringbuffer_producer_commit");
    return true;
  }
  void signal(std::uint32_t slot) override { cudaq_shm_client_signal(client_, slot); }

  cudaq_shm_client_t *client_ = nullptr;
  cudaq_ringbuffer_producer_t *producer_ = nullptr; ///< with requests in GPU memory: the helpers would read there
  const std::string name_;
  std::uint32_t slot_size_ = 0;
  std::string where_;
};

} // namespace

std::unique_ptr<link> make_shm_link(const emulate_options &o) {
  if (o.name.empty())
    throw usage_error("--name is missing: the name of the server's shared memory, which it prints when it is ready");
  return std::make_unique<shm_link>(o);
}

} // namespace cudaq::realtime::tools

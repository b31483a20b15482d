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
    require(cudaq_shm_client_ring(client_, &ring_, &num_slots, &slot_size_), "the ring");
    where_ = fmt::format("shm {}, {} slots of {} bytes", o.name, num_slots, slot_size_);
    const std::uint32_t kind = cudaq_shm_client_memory_kind(client_);
    if (kind != CUDAQ_MEMORY_DEVICE_RX) {
      use_ring({ring_, &shm_link::signal, this}, num_slots);
      return;
    }
    where_ += ", requests in GPU memory";
    if (cudaq_ringbuffer_producer_open_ring(&ring_, num_slots, kind, &producer_) != CUDAQ_OK) {
      const std::string reason = cudaq_last_error_message();
      cudaq_shm_client_detach(client_);
      throw api_error(fmt::format("cudaq_ringbuffer_producer_open_ring: {}", reason));
    }
    use_ring({ring_, producer_}, num_slots); // the handle claims the slots in the same order, from slot 0
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
  static void signal(void *self, std::uint32_t slot) {
    cudaq_shm_client_signal(static_cast<shm_link *>(self)->client_, slot);
  }

  cudaq_shm_client_t *client_ = nullptr;
  cudaq_ringbuffer_t ring_{};
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

std::unique_ptr<link> make_served_link(const emulate_options &o, std::uint32_t window, std::size_t payload_bytes) {
  return o.transport == "shm"    ? make_shm_link(o)
         : o.transport == "roce" ? make_roce_link(o, window, payload_bytes)
                                 : make_udp_link(o, window, payload_bytes);
}

} // namespace cudaq::realtime::tools

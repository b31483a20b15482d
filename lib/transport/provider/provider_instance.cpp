// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/provider/provider_instance.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#include <mutex>
#include <vector>

namespace cudaq::realtime::detail {

provider_instance::ring_memory::~ring_memory() {
  if (memory != nullptr)
    cudaq_ringbuffer_destroy(memory);
}

expected<> provider_instance::allocate(std::uint32_t num_slots, std::uint32_t slot_size, bool pinned,
                                       std::uint32_t alignment) {
  constexpr std::uint32_t kLeast = 64; // the library's

  cudaq_ringbuffer_options_t wanted;
  cudaq_ringbuffer_options_init(&wanted, sizeof(wanted));
  wanted.memory_kind = pinned ? CUDAQ_MEMORY_MAPPED : CUDAQ_MEMORY_HOST;
  wanted.num_slots = num_slots + (alignment - kLeast + slot_size - 1) / slot_size; // room to move the first slot
  wanted.slot_size = slot_size_ = slot_size;
  num_slots_ = num_slots;
  const cudaq_status_t status = cudaq_ringbuffer_create(&wanted, &memory_.memory, &memory_.ring);
  if (status == CUDAQ_OK) {
    cudaq_ringbuffer_t &ring = memory_.ring;
    const std::uintptr_t shift = -reinterpret_cast<std::uintptr_t>(ring.rx_data_host) & (alignment - 1);
    ring.rx_data_host += shift;
    if (ring.rx_data != nullptr)
      ring.rx_data += shift;
    return {};
  }
  return make_reason(status, "%s--num-slots %u, --slot-size %u: %s", pinned ? "--pinned-rings, " : "", num_slots,
                     slot_size, cudaq_last_error_message());
}

namespace {

/// All instances of the process. It is process-wide because a program that uses the loader has no handle of the
/// provider: it knows an instance by its endpoint line. Never destroyed: instances may live until the process ends.
class instance_list {
public:
  static instance_list &get() {
    static instance_list *const list = new instance_list;
    return *list;
  }
  void add(provider_instance *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    instances_.push_back(provider);
  }
  void remove(provider_instance *provider) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(instances_, provider);
  }
  bool visit(const char *endpoint, const std::function<void(const provider_instance &)> &visitor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const provider_instance *const provider : instances_)
      if (provider->endpoint() == endpoint) {
        visitor(*provider);
        return true;
      }
    return false;
  }

private:
  std::mutex mutex_;
  std::vector<provider_instance *> instances_;
};

} // namespace

expected<> instance_entries::close(instance &closed) {
  if (expected<> result = closed.close(); result.failed())
    return result;
  instance_list::get().remove(&closed);
  return {};
}

expected<> instance_entries::context(instance &of, cudaq_realtime_transport_context_t kind, void *out) {
  if (expected<> result = need_shape(kind, of.unified()); result.failed())
    return result;
  if (of.unified())
    write_host_driven(out);
  else
    std::memcpy(out, &of.ring(), sizeof(of.ring()));
  return {};
}

expected<> instance_entries::dataplane(instance &of, cudaq_cpu_dataplane_t &out) {
  if (expected<> result = need_dataplane(of.unified()); result.failed())
    return result;
  out = of.dataplane();
  return {};
}

std::unique_ptr<provider_instance> list_instance(std::unique_ptr<provider_instance> made) {
  instance_list::get().add(made.get());
  return made;
}

expected<> visit_instance(const char *endpoint, const std::function<void(const provider_instance &)> &visitor) {
  if (!instance_list::get().visit(endpoint, visitor))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "endpoint '%.100s': no instance has this line", endpoint);
  return {};
}

} // namespace cudaq::realtime::detail

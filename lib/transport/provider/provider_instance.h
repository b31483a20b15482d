// SPDX-License-Identifier: Apache-2.0
// An instance of a provider: the memory of its ring, its shape, and what the entries of the provider's table do with
// it, except `create`. A provider derives its class from it.
#pragma once

#include "lib/transport/provider/provider_entries.h"

#include <functional>

namespace cudaq::realtime::detail {

class provider_instance {
public:
  provider_instance() = default;
  virtual ~provider_instance() = default;
  provider_instance(const provider_instance &) = delete;
  provider_instance &operator=(const provider_instance &) = delete;

  virtual expected<> connect() { return {}; } ///< for transports whose peers need no connection
  virtual expected<> launch() = 0;
  virtual expected<> disconnect() = 0;
  /// Before its end; a reason prevents it.
  virtual expected<> close() { return disconnect(); }
  virtual bool unified() const = 0;
  /// Only in the unified shape.
  virtual cudaq_cpu_dataplane_t dataplane() = 0;

  const cudaq_ringbuffer_t &ring() const { return memory_.ring; }
  const std::string &endpoint() const { return endpoint_; }
  std::uint32_t num_slots() const { return num_slots_; }
  std::uint32_t slot_size() const { return slot_size_; }

protected:
  /// `pinned`: a GPU can use the ring. `alignment` of the first RX slot: a power of two.
  expected<> allocate(std::uint32_t num_slots, std::uint32_t slot_size, bool pinned, std::uint32_t alignment = 64);
  std::string endpoint_; ///< the line; not changed after create

private:
  struct ring_memory {
    ring_memory() = default;
    ring_memory(const ring_memory &) = delete;
    ring_memory &operator=(const ring_memory &) = delete;
    ~ring_memory();
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring{};
  } memory_;
  std::uint32_t num_slots_ = 0, slot_size_ = 0;
};

/// What provider_entries needs, except kPrefix and create.
struct instance_entries {
  using instance = provider_instance;
  static expected<> close(instance &closed);
  static expected<> context(instance &of, cudaq_realtime_transport_context_t kind, void *out);
  static expected<> dataplane(instance &of, cudaq_cpu_dataplane_t &out);
  static expected<> connect(instance &called) { return called.connect(); }
  static expected<> launch(instance &called) { return called.launch(); }
  static expected<> disconnect(instance &called) { return called.disconnect(); }
  static const std::string &endpoint(const instance &of) { return of.endpoint(); }
  static std::uint32_t slots(const instance &of) { return of.num_slots(); }
  static std::uint32_t slot_bytes(const instance &of) { return of.slot_size(); }
};

/// At the end of `create`: the instance is found by its endpoint line until its close.
std::unique_ptr<provider_instance> list_instance(std::unique_ptr<provider_instance> made);

/// Calls `look` for the instance with this endpoint line, which is not destroyed meanwhile.
expected<> visit_instance(const char *endpoint, const std::function<void(const provider_instance &)> &visitor);

/// Copies the counters of an instance. The struct begins with uint32_t struct_size, then one more uint32_t, then
/// uint64_t fields; the caller's may have fewer of them.
template <class Statistics, class Read>
cudaq_status_t read_statistics(const char *function, const char *endpoint, Statistics *out, Read &&read) {
  return guarded(function, [&]() -> expected<> {
    if (endpoint == nullptr || out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", endpoint == nullptr ? "endpoint" : "out");
    const std::uint32_t size = out->struct_size;
    constexpr std::size_t kLeast = 2 * sizeof(std::uint64_t);
    if (size < kLeast || size > sizeof(*out))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size %u: from %zu to %zu is accepted", size, kLeast,
                         sizeof(*out));
    Statistics all{};
    if (expected<> result = visit_instance(endpoint, [&](const provider_instance &instance) { read(instance, all); });
        result.failed())
      return result;
    all.struct_size = size;
    std::memcpy(out, &all, size / sizeof(std::uint64_t) * sizeof(std::uint64_t));
    return {};
  });
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// A provider over datagrams: an instance, its memory, the choice between the two shapes, and all entries of the
// provider's table except `create`. A provider adds its options and its wire.
#pragma once

#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "lib/transport/datagram/datagram_dataplane.h"
#include "lib/transport/datagram/datagram_ring.h"

#include <cstring>
#include <functional>

namespace cudaq::realtime::detail {

/// An instance. The order of the members frees the ring last.
class datagram_provider {
public:
  datagram_provider() = default;
  virtual ~datagram_provider() = default;
  datagram_provider(const datagram_provider &) = delete;
  datagram_provider &operator=(const datagram_provider &) = delete;

  /// The endpoint line is then `transport= port= address= frame_size=`; a provider may add words to it.
  status_or_reason open(const datagram_options &options, std::unique_ptr<datagram_wire> wire);

  struct ring_memory {
    ring_memory() = default;
    ring_memory(const ring_memory &) = delete;
    ring_memory &operator=(const ring_memory &) = delete;
    ~ring_memory();
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring{};
  } memory;
  std::string endpoint;
  std::unique_ptr<datagram_exchange> exchange;
  std::unique_ptr<datagram_dataplane> dataplane; ///< one of these two is set
  std::unique_ptr<datagram_ring> pump;

private:
  status_or_reason allocate(const datagram_options &options);
};

/// The table of a provider.
cudaq_realtime_bridge_interface_t datagram_table(cudaq_status_t (*create)(cudaq_realtime_bridge_handle_t *, int,
                                                                          char **));

/// At the end of `create`: the instance belongs to the handle, and is found by its endpoint line.
void publish_instance(std::unique_ptr<datagram_provider> made, cudaq_realtime_bridge_handle_t *handle);

/// Calls `look` for the instance with this endpoint line, which is not destroyed meanwhile.
status_or_reason visit_instance(const char *endpoint, const std::function<void(const datagram_provider &)> &look);

/// Copies the counters of an instance. The struct begins with uint32_t struct_size, then one more uint32_t, then
/// uint64_t fields; the caller's may have fewer of them.
template <class Statistics, class Read>
cudaq_status_t read_statistics(const char *function, const char *endpoint, Statistics *out, Read &&read) {
  return guarded(function, [&]() -> status_or_reason {
    if (endpoint == nullptr || out == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", endpoint == nullptr ? "endpoint" : "out");
    const std::uint32_t size = out->struct_size;
    constexpr std::size_t kLeast = 2 * sizeof(std::uint64_t);
    if (size < kLeast || size > sizeof(*out))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size %u: from %zu to %zu is accepted", size, kLeast,
                         sizeof(*out));
    Statistics all{};
    if (status_or_reason refused =
            visit_instance(endpoint, [&](const datagram_provider &provider) { read(provider, all); }))
      return refused;
    all.struct_size = size;
    std::memcpy(out, &all, size / sizeof(std::uint64_t) * sizeof(std::uint64_t));
    return {};
  });
}

/// The body of cudaq_udp_get_statistics, which each provider over datagrams exports.
cudaq_status_t get_request_statistics(const char *endpoint, cudaq_udp_statistics_t *out);

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The device hooks of the provider gpu-roce: libcudaq-realtime-gpu-roce-hooks.a. A program links it beside the archive
// of the dispatch kernels. docs/transport/gpu_roce.md says which parts have run on hardware.
#include "contrib/gpu_roce/adapter_queues.cuh"
#include "cudaq/realtime/daemon/bridge/device_transport.cuh"

namespace {
using session = cudaq::realtime::detail::sensor_session<cudaq::realtime::detail::adapter_queues>;
static_assert(sizeof(session) <= CUDAQ_DEV_TRANSPORT_STORAGE_BYTES &&
              alignof(session) <= CUDAQ_DEV_TRANSPORT_STORAGE_ALIGN);
} // namespace

extern "C" __device__ void *cudaq_dev_transport_attach(void *storage, void *ctx, volatile int *shutdown) {
  return session::attach(storage, ctx, shutdown);
}

extern "C" __device__ cudaq_rx_dev_status_t cudaq_dev_rx_poll(void *s, void **request, void **response) {
  return static_cast<session *>(s)->poll(request, response) ? CUDAQ_RX_DEV_READY : CUDAQ_RX_DEV_SHUTDOWN;
}

extern "C" __device__ void cudaq_dev_tx_publish(void *s, void *response) {
  static_cast<session *>(s)->publish(response);
}

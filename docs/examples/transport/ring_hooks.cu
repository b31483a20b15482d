// SPDX-License-Identifier: Apache-2.0
// The device hooks: the unified kernel of the archive calls them. Compiled with relocatable device code.
#include "ring_hooks.h"

#include <cudaq/realtime/daemon/bridge/device_transport.cuh>

extern "C" __device__ void *cudaq_dev_transport_attach(void *storage, void *ctx, volatile int *shutdown) {
  return example::ring_attach(storage, ctx, shutdown);
}

extern "C" __device__ cudaq_rx_dev_status_t cudaq_dev_rx_poll(void *session, void **request, void **response) {
  return example::ring_poll(session, request, response) ? CUDAQ_RX_DEV_READY : CUDAQ_RX_DEV_SHUTDOWN;
}

extern "C" __device__ void cudaq_dev_tx_publish(void *session, void *response) {
  example::ring_publish(session, response);
}

// SPDX-License-Identifier: Apache-2.0
// The device hooks of a transport: three functions that a provider's device code defines, and that the unified kernel
// of the archive (libcudaq-realtime-dispatch.a) calls. So a kernel receives, dispatches and sends without a CPU. The
// device link binds the names, without function pointers: the file that defines them is compiled with -rdc=true, and
// linked with the archive. One set of hooks to a program. docs/transport/device_hooks.md has an example.
//
// The kernel is launched by cudaq_launch_unified_dispatch_device (upstream_interface.h). One of its threads, always the
// same, calls the hooks: attach first, then rx_poll, tx_publish, rx_poll and so on. A frame that rx_poll has returned
// is always published, also while the dispatcher stops.
//
// A program that links the archive and defines no hooks gets hooks that refuse to attach.
#ifndef CUDAQ_REALTIME_DEVICE_TRANSPORT_CUH
#define CUDAQ_REALTIME_DEVICE_TRANSPORT_CUH

#include "cudaq/realtime/daemon/bridge/bridge_interface.h"

/* The memory that attach gets. */
#define CUDAQ_DEV_TRANSPORT_STORAGE_BYTES 256
#define CUDAQ_DEV_TRANSPORT_STORAGE_ALIGN 16

extern "C" {

/* Called once, before the other hooks. storage: CUDAQ_DEV_TRANSPORT_STORAGE_BYTES of the kernel's own memory, for the
 * state of the hooks; not initialised; valid until the kernel ends. ctx: transport_ctx of the launch. shutdown: the
 * dispatcher's shutdown flag, perhaps in host memory. Returns the session, the first argument of the other hooks, or
 * NULL: then the kernel ends, and cudaq_dispatcher_start fails. */
__device__ void *cudaq_dev_transport_attach(void *storage, void *ctx, volatile int *shutdown);

/* Waits for a request, and watches *shutdown: a stop waits until this function returns. READY: *request has a complete
 * frame, which this thread may read (acquire), and *response is where the answer goes. Both have tx_stride_sz bytes,
 * are apart, and are aligned to 16 if tx_stride_sz is a multiple of 16, else to 8; else the kernel ends with a fault.
 * Any other value: the kernel ends. */
__device__ cudaq_rx_dev_status_t cudaq_dev_rx_poll(void *session, void **request, void **response);

/* Called exactly once for each frame that rx_poll has returned. Sends the frame in `response`, which other threads of
 * the kernel may have written before the call: publish it with release, of the scope of the reader. Returns the
 * receive credit. A request without an answer (wrong magic; an unknown function, unless these are answered) is
 * published, too: its frame then begins with a header of zeros, which is no response. */
__device__ void cudaq_dev_tx_publish(void *session, void *response);

} // extern "C"

#endif

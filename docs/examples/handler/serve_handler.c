/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the handler of handler.c over a transport, until SIGTERM or Ctrl-C.
 *   serve_handler LIBRARY [OPTION ...]      of the provider: libcudaq-realtime-bridge-udp.so --port=5021 */
#define _POSIX_C_SOURCE 200809L
#include "handler.h"

#include <cudaq/realtime/daemon/bridge/bridge_interface.h>
#include <signal.h>
#include <stdio.h>

#define TRY(call)                                                                                                      \
  if ((call) != CUDAQ_OK)                                                                                              \
  return fprintf(stderr, "%s\n", cudaq_last_error_message()), 1

int main(int argc, char **argv) {
  cudaq_realtime_bridge_handle_t bridge;
  cudaq_dispatcher_config_t config = {.dispatch_path = CUDAQ_DISPATCH_PATH_HOST, .skip_tx_markers = 1};
  cudaq_dispatcher_options_t options;
  cudaq_dispatch_manager_t *manager;
  cudaq_dispatcher_t *dispatcher;
  cudaq_ringbuffer_t ring;
  cudaq_cpu_dataplane_t dataplane; /* in place of the ring, of a provider with --unified */
  char endpoint[256];
  volatile int end = 0;
  uint64_t processed = 0;
  sigset_t signals;
  int received = 0;
  if (argc < 2)
    return fprintf(stderr, "usage: serve_handler LIBRARY [OPTION ...]\n"), 2;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, NULL); /* before the first thread: only sigwait takes them */
  TRY(cudaq_bridge_create_from_library(&bridge, argv[1], argc - 2, argv + 2));
  TRY(cudaq_bridge_get_ring_geometry(bridge, &config.num_slots, &config.slot_size));
  TRY(cudaq_bridge_get_endpoint_info(bridge, endpoint, sizeof endpoint));
  const int has_ring = cudaq_bridge_get_transport_context(bridge, RING_BUFFER, &ring) == CUDAQ_OK;
  if (!has_ring) {
    TRY(cudaq_bridge_get_cpu_dataplane(bridge, &dataplane));
    config.kernel_type = CUDAQ_KERNEL_UNIFIED;
    config.skip_tx_markers = 0;
  }
  TRY(cudaq_dispatch_manager_create(&manager));
  TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
  TRY(cudaq_dispatcher_options_init(&options, sizeof options));
  options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER; /* a peer with a wrong id gets a status, not silence */
  options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;              /* the cores may have other work */
  TRY(cudaq_dispatcher_set_options(dispatcher, &options));
  if (!has_ring)
    TRY(cudaq_dispatcher_set_cpu_dataplane(dispatcher, &dataplane));
  if (serve(dispatcher, has_ring ? &ring : NULL, &end, &processed) != 0)
    return fprintf(stderr, "%s\n", cudaq_last_error_message()), 1;
  printf("SERVER_READY %s\n", endpoint);
  fflush(stdout);
  const struct timespec at_once = {0, 0};
  cudaq_status_t connected = CUDAQ_ERR_TIMEOUT; /* connect may wait for the first peer */
  while (connected == CUDAQ_ERR_TIMEOUT && (received = sigtimedwait(&signals, NULL, &at_once)) <= 0)
    connected = cudaq_bridge_connect_timeout(bridge, 100000000);
  if (connected == CUDAQ_OK) {
    TRY(cudaq_bridge_launch(bridge));
    sigwait(&signals, &received);
  } else if (received <= 0) { /* neither a peer nor a signal */
    return fprintf(stderr, "connect: %s\n", cudaq_last_error_message()), 1;
  }
  TRY(cudaq_dispatcher_destroy(dispatcher)); /* before the ring's memory, which the provider frees */
  TRY(cudaq_dispatch_manager_destroy(manager));
  TRY(cudaq_bridge_disconnect(bridge));
  TRY(cudaq_bridge_destroy(bridge));
  printf("PROCESSED count=%llu\n", (unsigned long long)processed);
  return 0;
}

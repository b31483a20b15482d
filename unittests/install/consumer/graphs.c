/* SPDX-License-Identifier: Apache-2.0 */
/* A C program that uses graphs and no device functions, and is linked by an ordinary compiler. It checks that the
 * library refuses bad arguments; it needs no device. */
#include <cudaq/realtime/daemon/dispatcher/cudaq_realtime.h>
#include <stdio.h>
#include <string.h>

#define SLOTS 4

int main(void) {
  static uint64_t flags[2][SLOTS];
  static uint64_t slots[2][SLOTS][8];
  static cudaq_function_entry_t entry;
  static uint64_t context[7];
  void *contexts[1] = {context};
  volatile int shutdown = 0;
  uint64_t processed = 0;
  cudaq_dispatch_graph_params_t params;
  cudaq_dispatch_launch_params_t launch;
  cudaq_dispatch_graph_context *scheduler = (cudaq_dispatch_graph_context *)&params;
  cudaq_dispatch_launch_fn_v2_t for_a_dispatcher = cudaq_launch_dispatch_kernel_graph_v2;
  cudaError_t error;

  memset(&params, 0, sizeof params);
  error = cudaq_create_dispatch_graph_v2(&params, &scheduler);
  if (error != cudaErrorInvalidValue || scheduler != NULL) {
    fprintf(stderr, "a struct of size 0 gives %d\n", (int)error);
    return 1;
  }
  params.struct_size = sizeof params;
  memset(&launch, 0, sizeof launch);
  params.launch = &launch;
  launch.struct_size = sizeof launch;
  launch.rx_flags = flags[0];
  launch.tx_flags = flags[1];
  launch.rx_data = (uint8_t *)slots[0];
  launch.tx_data = (uint8_t *)slots[1];
  launch.rx_stride_sz = launch.tx_stride_sz = sizeof slots[0][0];
  launch.function_table = &entry; /* a device call without an address; this library supports no device calls */
  launch.func_count = 1;
  launch.shutdown_flag = &shutdown;
  launch.stats = &processed;
  launch.num_slots = SLOTS;
  params.graph_io_ctxs = contexts;
  error = cudaq_create_dispatch_graph_v2(&params, &scheduler);
  if (error == cudaSuccess || scheduler != NULL) {
    fprintf(stderr, "an entry without a handler gives %d\n", (int)error);
    return 1;
  }
  printf("the library answers %d\n", (int)error);
  if (for_a_dispatcher(&launch) != cudaErrorInvalidValue || cudaq_launch_dispatch_graph(NULL, NULL) == cudaSuccess ||
      cudaq_destroy_dispatch_graph(NULL) == cudaSuccess) {
    fprintf(stderr, "a launch without a scheduler is not refused\n");
    return 1;
  }
  return cudaq_realtime_version() == 0;
}

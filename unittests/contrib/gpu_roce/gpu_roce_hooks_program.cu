// SPDX-License-Identifier: Apache-2.0
// A program that serves by the device hooks of gpu-roce: the archive's kernel, linked with them. It is linked only.
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"

#include <cstdio>

int main() {
  std::printf("%d\n", cudaq_launch_unified_dispatch_device_upstream != nullptr);
  return 0;
}

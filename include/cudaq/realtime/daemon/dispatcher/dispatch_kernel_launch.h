// SPDX-License-Identifier: Apache-2.0
// C++ names of the protocol (rpc_types.h), and the C API with its launch functions.
#ifndef CUDAQ_REALTIME_DISPATCH_KERNEL_LAUNCH_H
#define CUDAQ_REALTIME_DISPATCH_KERNEL_LAUNCH_H

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#endif

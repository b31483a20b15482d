/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a C11 compiler. The assertions check it; the test compares the table with that of C++. */
#include "unittests/abi/layout.h"

#include "cudaq/qec/decoding/decoder_c.h"
#include "cudaq/qec/decoding/decoder_plugin.h"
#include "cudaq/qec/decoding/stream_c.h"
#include "cudaq/qec/realtime/decoding_client.h"
#include "cudaq/qec/realtime/decoding_server.h"
#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "cudaq/realtime/daemon/bridge/cpu_roce_provider.h"
#include "cudaq/realtime/daemon/bridge/roce_provider.h"
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_thread.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include <stddef.h>

#define CUDAQ_SIZE(type, size) _Static_assert(sizeof(type) == (size), "size of " #type);
#define CUDAQ_OFFSET(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field);
#define CUDAQ_VALUE(name, value) _Static_assert((name) == (value), #name);
#include "unittests/abi/layout_c.inc"
#undef CUDAQ_SIZE
#undef CUDAQ_OFFSET
#undef CUDAQ_VALUE

#define CUDAQ_SIZE(type, size) {"sizeof " #type, (long long)sizeof(type), (long long)(size)},
#define CUDAQ_OFFSET(type, field, offset) {#type "." #field, (long long)offsetof(type, field), (long long)(offset)},
#define CUDAQ_VALUE(name, value) {#name, (long long)(name), (long long)(value)},
const layout_row layout_seen_by_c[] = {
#include "unittests/abi/layout_c.inc"
    {NULL, 0, 0}};

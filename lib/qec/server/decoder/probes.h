// SPDX-License-Identifier: Apache-2.0
// Static probes (USDT) of the provider cudaq_qec, at the moments of a request: arrived, accepted, queued, taken,
// decoded, answered. A tracer such as bpftrace attaches to them while the server runs; until then each is one
// instruction without effect. Without sys/sdt.h (systemtap-sdt-dev) at the time of the build there are none.
#pragma once

#ifdef CUDAQ_QEC_HAS_PROBES // of the build, so that ccache knows objects with probes from those without
#include <sys/sdt.h>
#define CUDAQ_QEC_PROBE(moment, request_id, slot) DTRACE_PROBE2(cudaq_qec, moment, request_id, slot)
#else
#define CUDAQ_QEC_PROBE(moment, request_id, slot) static_cast<void>(0)
#endif

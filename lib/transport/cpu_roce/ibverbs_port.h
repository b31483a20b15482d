// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/transport/cpu_roce/rdma_port.h"

namespace cudaq::realtime::detail {

/// Opens a port of an adapter by libibverbs. The memory must live as long as the port.
expected<> open_ibverbs_port(const rdma_port_options &options, const rdma_memory &memory,
                             std::unique_ptr<rdma_port> &out);

} // namespace cudaq::realtime::detail

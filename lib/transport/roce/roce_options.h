// SPDX-License-Identifier: Apache-2.0
// The options of the roce provider. docs/transport/roce.md describes them.
#pragma once

#include "lib/transport/datagram/datagram_options.h"
#include "lib/transport/roce/roce_wire.h"

namespace cudaq::realtime::detail {

struct roce_options {
  datagram_options common;
  roce_wire_options wire;
};

/// As option_reader::read.
expected<> parse_roce_options(int argc, char *const *argv, roce_options &out);

} // namespace cudaq::realtime::detail

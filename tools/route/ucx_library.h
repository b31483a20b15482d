// SPDX-License-Identifier: Apache-2.0
// The link over UCX, from the library of the provider ucx: the program itself does not need UCX.
#pragma once

#include "lib/transport/ucx/ucx_link.h"

#include <memory>

namespace cudaq::realtime::tools {

/// Throws usage_error with what is missing, or with UCX's reason.
std::unique_ptr<detail::node_link> make_ucx_link(const detail::ucx_link_options &options);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/emulate/link.h"

#include <memory>
#include <string>

namespace cudaq::realtime::tools {

/// The decoders of a configuration, in this process and without a transport. A decoder of shots decodes inside send();
/// no request is refused because of its age. Throws usage_error or std::runtime_error with the reason.
std::unique_ptr<link> make_here_link(const std::string &config);

} // namespace cudaq::realtime::tools

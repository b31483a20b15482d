// SPDX-License-Identifier: Apache-2.0
// The options of a link to a server in another process. For *_command.cpp only, as command_options.h.
#pragma once

#include "tools/emulate/emulate.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// All but --transport and --timeout.
void add_link_options(CLI::App &command, emulate_options &o);
/// An option without effect. `with`: what makes it so, for the text.
void refuse_unless(const CLI::App &command, bool applies, const std::string &with,
                   const std::vector<const char *> &options);
/// Those of another transport than `transport`; of all if it is "". Throws CLI::ValidationError.
void refuse_options_of_other_links(const CLI::App &command, const std::string &transport);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/common/report.h"

#include <string>
#include <string_view>

namespace cudaq::realtime::tools {

/// One of the programs of this project wrote it.
bool is_report_of_ours(const json &report);

/// A report that --json wrote, from its text. Throws usage_error, which begins with `path`, if it is another text, is
/// nested deeper than any report, or comes from a run that failed.
json parse_report(std::string_view text, const std::string &path);

} // namespace cudaq::realtime::tools

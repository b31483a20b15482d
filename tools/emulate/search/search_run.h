// SPDX-License-Identifier: Apache-2.0
// `emulate --search-rate`: the runs of a search, and its report.
#pragma once

#include "tools/common/interrupt.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"
#include "tools/shots/shot_plan.h"

namespace cudaq::realtime::tools {

/// Plays over `to`, an open link, with ids from `first_id` on. Returns an exit_code.
int run_rate_search(const emulate_options &options, const shot_plan &plan, bool check, link &to, std::uint32_t first_id,
                    const interrupt_guard &interrupts, const output &out);

} // namespace cudaq::realtime::tools

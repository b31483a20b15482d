// SPDX-License-Identifier: Apache-2.0
// `emulate --search-rate`: the runs of a search, of shots or of a stream.
#pragma once

#include "tools/common/interrupt.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"
#include "tools/emulate/stream_player.h"
#include "tools/shots/shot_plan.h"

namespace cudaq::realtime::tools {

/// Plays over `to`, an open link, with ids from `first_id` on. Returns an exit_code.
int run_rate_search(const emulate_options &options, const shot_plan &plan, bool check, link &to, std::uint32_t first_id,
                    const interrupt_guard &interrupts, const output &out);
/// The same for a stream: the first run has one round each options.cycle_us. `slot_bytes`: as for stream_player.
int run_stream_search(const emulate_options &options, stream_plan &plan, link &to, std::size_t slot_bytes,
                      std::uint32_t first_id, const interrupt_guard &interrupts, const output &out);

/// Why the rate of a run of one experiment does not hold; "": it does.
std::string failure_of(const stream_play_result &result, const stream_plan &plan, double cycle_ns,
                       std::uint64_t bound_ns);

} // namespace cudaq::realtime::tools

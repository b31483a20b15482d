// SPDX-License-Identifier: Apache-2.0
// The demo's results as text and as JSON.
#pragma once

#include "tools/common/report.h"
#include "tools/demo/demo_pass.h"
#include "tools/shots/own_data.h"

namespace cudaq::realtime::tools {

/// Of the shots that were sent; one without a correction is a failure.
error_rate logical_errors(const pass_result &result, const shot_plan &plan);
/// The same for the set's predictions of the answered shots.
error_rate reference_rate(const pass_result &result, const shot_plan &plan);
void print_pass(const output &out, const pass_result &result, const shot_plan &plan);
std::string demo_html(const json &report, const std::vector<pass_result> &passes, const shot_plan &plan);
/// What the answers of the passes are compared with: "the same decoder offline".
std::string expected_text(const shot_plan &plan);
/// Logical errors of the decoder and of the reference on the recorded shots; "" without a reference.
std::string reference_text(const shot_plan &plan, const std::string &decoder);
/// A warning if the two differ beyond chance; else "".
std::string reference_warning(const shot_plan &plan, const std::string &decoder);
json reference_json(const shot_plan &plan, const std::string &decoder);

json pass_json(const pass_result &result, const shot_plan &plan);
json stats_json(const cudaq_dispatcher_stats_t &stats);

} // namespace cudaq::realtime::tools

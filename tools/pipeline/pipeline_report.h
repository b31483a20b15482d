// SPDX-License-Identifier: Apache-2.0
// The results of `pipeline` as text and as JSON.
#pragma once

#include "tools/pipeline/pipeline_run.h"

namespace cudaq::realtime::tools {

void print_pipeline_header(const output &out, const pipeline_options &options, const qec::decoding_config &config,
                           const qec::experimental::pipeline_stage_config &stages, const pipeline_shots &shots,
                           const std::string &staging);
void print_pipeline_result(const output &out, const qec::decoding_config &config, const pipeline_shots &shots,
                           const pipeline_result &result);
json pipeline_json(const pipeline_options &options, const qec::decoding_config &config,
                   const qec::experimental::pipeline_stage_config &stages, const pipeline_shots &shots,
                   const pipeline_result &result);
/// Writes nothing if `path` is empty. Throws usage_error if the file cannot be written.
std::string pipeline_html(const json &report, const pipeline_shots &shots, const pipeline_result &result);

} // namespace cudaq::realtime::tools

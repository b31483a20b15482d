// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/pipeline/pipeline_run.h"

namespace cudaq::realtime::tools {

/// A gpu_stage_maker: makes the engine that the options name, for the shots' detector error model. In a build without
/// device kernels it throws std::runtime_error.
std::unique_ptr<gpu_stage> make_gpu_stage(const pipeline_options &options, const pipeline_shots &shots, int workers,
                                          std::size_t slot_size);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// Pipelines with resident workers whose stage adds one to its request.
#pragma once

#include "unittests/gpu/qec/pipeline_gpu_rig.h"
#include "unittests/gpu/qec/resident_stages.h"

namespace cudaq::realtime::test {

inline gpu::resident_config resident_config_of(int workers) {
  gpu::resident_config c;
  c.num_workers = workers;
  c.payload_bytes = 8;
  c.output_bytes = 8;
  c.device_id = test_device();
  return c;
}

/// The CPU stage answers with the block's output.
inline void wire_resident(pipe::realtime_pipeline &p, const gpu::resident_workers &workers, seen_by_request &seen) {
  p.set_gpu_stage([&](int id) { return workers.resources(id, kDecode, nullptr); });
  p.set_cpu_stage([](const pipe::cpu_stage_context &c) {
    std::memcpy(c.response_buffer, c.gpu_output, c.gpu_output_size);
    return c.gpu_output_size;
  });
  p.set_completion_handler([&](const pipe::completion &c) {
    std::uint64_t answer = 0;
    if (c.response_size == sizeof(answer))
      std::memcpy(&answer, c.response, sizeof(answer));
    seen.record(c, (answer & UINT32_MAX) == c.request_id + 1);
  });
}

} // namespace cudaq::realtime::test

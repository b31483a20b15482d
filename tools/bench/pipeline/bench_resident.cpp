// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/pipeline/bench_pipeline_cases.h"
#include "tools/bench/pipeline/bench_pipeline_kernels.h"

#include "kernels/qec/gpu_worker.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;
namespace qec = cudaq::qec::realtime;

/// One block, and this thread in the place of a pipeline.
latency_histogram exchange_with_block(gpu::resident_workers &workers, const qec::shot_set &set, const bench_options &o,
                                      std::uint64_t warm_up) {
  const pipe::gpu_worker_resources r = workers.resources(0, kBenchPipelineFunction, nullptr);
  latency_histogram latency;
  r.stage_begin_fn(r.host_stage_data);
  std::atomic_ref ready(const_cast<int &>(*r.ready_flag));
  for (std::uint64_t k = 0; k < warm_up + o.exchanges; ++k) {
    const auto row = set.detection_row(k % set.shots);
    const std::uint64_t begin = now_ns();
    pipe::host_stage_call call{0, 0, row.data(), row.size(), nullptr, 0, 0};
    if (r.host_stage_fn(r.host_stage_data, &call) != 0)
      throw check_failed("FAILED: a resident block has not taken a request");
    while (ready.load(std::memory_order_acquire) != 1)
      if (static_cast<double>(now_ns() - begin) > o.timeout_s * 1e9)
        throw check_failed("FAILED: a resident block does not answer");
    if (k >= warm_up)
      latency.record(now_ns() - begin);
    ready.store(0, std::memory_order_relaxed);
  }
  if (!r.stage_end_fn(r.host_stage_data))
    throw check_failed("FAILED: a resident block does not end");
  return latency;
}

double p50_us(const latency_histogram &latency) { return static_cast<double>(latency.percentile(50)) / 1000; }

} // namespace

void bench_resident(const bench_options &o, const qec::decoding_config &c, const qec::shot_set &set,
                    figure_list &figures) {
  const auto graph = qec::detector_graph::from_text(set.dem_text, qec::local_rule::isolated);
  if (!graph)
    throw std::runtime_error(graph.error);
  const gpu::device_graph on_device(*graph);
  const qec::predecoder_layout layout{static_cast<std::uint32_t>(set.num_detectors),
                                      static_cast<std::uint32_t>(set.num_observables)};
  const std::uint64_t warm_up = std::min<std::uint64_t>(2000, o.exchanges);
  gpu::resident_config smallest;
  smallest.num_workers = 1;
  smallest.payload_bytes = set.detection_bytes();
  smallest.output_bytes = sizeof(std::uint64_t);
  smallest.device_id = o.gpu;
  latency_histogram wire, block;
  std::string kind;
  {
    gpu::resident_workers alone(smallest, launch_resident_first_word());
    wire = exchange_with_block(alone, set, o, warm_up);
    kind = alone.mailbox_info().memory_kind == CUDAQ_MEMORY_DEVICE_RX ? "mailbox in GPU memory" : "mapped mailbox";
  }
  {
    const auto alone = gpu::resident_predecoders(1, layout, &on_device, qec::local_rule::isolated, c.slot_size, o.gpu);
    block = exchange_with_block(*alone, set, o, warm_up);
  }
  const auto workers =
      gpu::resident_predecoders(kPipelineWorkers, layout, &on_device, qec::local_rule::isolated, c.slot_size, o.gpu);
  traffic t(o, kPipelineWorkers, c.slot_size, set.detection_bytes());
  latency_histogram to_cpu_stage; // one request at a time: one worker's thread after the other
  t.start([&](int id) { return workers->resources(id, kBenchPipelineFunction, nullptr); },
          [&](const pipe::cpu_stage_context &call) -> std::size_t {
            to_cpu_stage.record(now_ns() - t.submitted_at());
            std::memcpy(call.response_buffer, call.gpu_output, sizeof(qec::predecoder_header));
            return sizeof(qec::predecoder_header);
          },
          &set);
  t.run(traffic::drive::one_by_one, warm_up);
  to_cpu_stage = {};
  t.run(traffic::drive::one_by_one, o.exchanges);
  const latency_histogram one_by_one = to_cpu_stage, answered = t.latency;
  const std::uint64_t ns = t.run(traffic::drive::full, o.exchanges);
  t.stop();
  const std::string what = fmt::format("{}, resident, {} B, {}", c.name, set.detection_bytes(), kind);
  figures.add("P18w", what + ": one word of answer, no pipeline", wire);
  figures.add("P18f", what + ": predecoder, no pipeline", block, {}, p50_us(wire));
  figures.add("P18", what + ": request to residual", one_by_one, c.name == "d13" ? target{9, 6} : target{},
              p50_us(block));
  figures.add("P18a", what + ": request to answer", answered);
  figures.add_rate("P18r", what + ": as fast as possible", o.exchanges, ns);
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/pipeline/bench_pipeline_cases.h"
#include "benchmarks/pipeline/bench_pipeline_kernels.h"

#include "kernels/qec/gpu_worker.h"
#include "lib/qec/stages/decoding_worker.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;
namespace qec = cudaq::qec::realtime;

double p50_us(const latency_histogram &latency) { return static_cast<double>(latency.percentile(50)) / 1000; }

struct residual_times {
  latency_histogram to_cpu_stage, to_answer; ///< of one request at a time
  std::uint64_t full_ns = 0;                 ///< of all exchanges, as fast as possible
};

/// A pipeline whose CPU stage has nothing to do, with the predecoders of `stage`.
residual_times requests_to_residual(const stage_factory &stage, const qec::decoding_config &c, const qec::shot_set &set,
                                    const bench_options &o, std::uint64_t warm_up, pipe::ring_memory memory) {
  traffic t(o, kPipelineWorkers, c.slot_size, set.detection_bytes(), memory);
  residual_times times; // one request at a time: one worker's thread after the other
  std::atomic<std::uint64_t> refused{0};
  t.start(
      stage,
      [&](const pipe::cpu_stage_context &call) -> std::size_t {
        times.to_cpu_stage.record(now_ns() - t.submitted_at());
        qec::predecoder_header header;
        std::memcpy(&header, call.gpu_output, sizeof(header));
        refused.fetch_add(header.status != 0 ? 1 : 0);
        std::memcpy(call.response_buffer, &header, sizeof(header));
        return sizeof(header);
      },
      &set);
  t.run(traffic::drive::one_by_one, warm_up);
  times.to_cpu_stage = {};
  t.run(traffic::drive::one_by_one, o.exchanges);
  const latency_histogram one_by_one = times.to_cpu_stage;
  times.to_answer = t.latency;
  times.full_ns = t.run(traffic::drive::full, o.exchanges);
  t.stop();
  if (refused.load() != 0)
    throw check_failed(fmt::format("FAILED: the predecoder refused {} recorded shots", refused.load()));
  times.to_cpu_stage = one_by_one;
  return times;
}

std::unique_ptr<qec::predecoder> local_predecoder(const qec::shot_set &set) {
  auto made = qec::make_predecoder("local", set.dem_text);
  if (made.failed())
    throw std::runtime_error(made.text());
  return std::move(*made);
}

} // namespace

latency_histogram exchange_with_block(gpu::resident_workers &workers,
                                      const std::function<std::span<const std::uint8_t>(std::uint64_t)> &row_of,
                                      const bench_options &o, std::uint64_t warm_up) {
  const pipe::gpu_worker_resources r = workers.resources(0, kBenchPipelineFunction, nullptr);
  latency_histogram latency;
  r.stage_begin_fn(r.host_stage_data);
  std::atomic_ref ready(const_cast<int &>(*r.ready_flag));
  for (std::uint64_t k = 0; k < warm_up + o.exchanges; ++k) {
    const auto row = row_of(k);
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

void bench_host_predecoder(const bench_options &o, const qec::decoding_config &c, const qec::shot_set &set,
                           figure_list &figures) {
  std::vector<std::unique_ptr<qec::decoding_worker>> workers;
  for (int id = 0; id < kPipelineWorkers; ++id)
    workers.push_back(std::make_unique<qec::decoding_worker>(local_predecoder(set), std::make_unique<no_matcher>(set)));
  const auto without_pipeline = local_predecoder(set);
  std::vector<std::uint64_t> residual((without_pipeline->layout().bytes() + 7) / 8);
  const std::uint64_t warm_up = std::min<std::uint64_t>(2000, o.exchanges);
  latency_histogram alone;
  for (std::uint64_t k = 0; k < warm_up + o.exchanges; ++k) {
    const std::uint64_t begin = now_ns();
    if (without_pipeline->run(set.detection_row(k % set.shots), residual) != qec::decode_status::ok)
      throw check_failed("FAILED: the predecoder refused a recorded shot");
    if (k >= warm_up)
      alone.record(now_ns() - begin);
  }
  const residual_times times = requests_to_residual(
      [&](int id) { return workers[static_cast<std::size_t>(id)]->resources(kBenchPipelineFunction); }, c, set, o,
      warm_up, pipe::ring_memory::host);
  const std::string what = fmt::format("{}, on the CPU, {} B", c.name, set.detection_bytes());
  figures.add("host-predecoder-alone", what + ": predecoder, no pipeline", alone);
  figures.add("host-predecoder-residual", what + ": request to residual", times.to_cpu_stage, p50_us(alone));
  figures.add("host-predecoder-answer", what + ": request to answer", times.to_answer);
  figures.add_rate("host-predecoder-rate", what + ": as fast as possible", o.exchanges, times.full_ns);
}

void bench_resident(const bench_options &o, const qec::decoding_config &c, const qec::shot_set &set,
                    figure_list &figures) {
  const auto graph = qec::detector_graph::from_text(set.dem_text);
  if (graph.failed())
    throw std::runtime_error(graph.text());
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
  const auto row = [&](std::uint64_t k) { return set.detection_row(k % set.shots); };
  std::string kind;
  {
    gpu::resident_workers alone(smallest, launch_resident_first_word());
    wire = exchange_with_block(alone, row, o, warm_up);
    kind = alone.mailbox_info().memory_kind == CUDAQ_MEMORY_DEVICE_RX ? "mailbox in GPU memory" : "mapped mailbox";
  }
  {
    const auto alone = gpu::resident_predecoders(1, layout, &on_device, c.slot_size, o.gpu);
    block = exchange_with_block(*alone, row, o, warm_up);
  }
  const auto workers = gpu::resident_predecoders(kPipelineWorkers, layout, &on_device, c.slot_size, o.gpu);
  const residual_times times =
      requests_to_residual([&](int id) { return workers->resources(id, kBenchPipelineFunction, nullptr); }, c, set, o,
                           warm_up, pipe::ring_memory::mapped);
  const std::string what = fmt::format("{}, resident, {} B, {}", c.name, set.detection_bytes(), kind);
  figures.add("resident-one-word", what + ": one word of answer, no pipeline", wire);
  figures.add("resident-alone", what + ": predecoder, no pipeline", block, p50_us(wire));
  figures.add("resident-residual", what + ": request to residual", times.to_cpu_stage, p50_us(block));
  figures.add("resident-answer", what + ": request to answer", times.to_answer);
  figures.add_rate("resident-rate", what + ": as fast as possible", o.exchanges, times.full_ns);
}

} // namespace cudaq::realtime::tools

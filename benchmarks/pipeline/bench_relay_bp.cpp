// SPDX-License-Identifier: Apache-2.0
// relay-bp: the decoder relay-bp-gpu as the server uses it, from the request in the mailbox to the answer. The mailbox
// is a ring in GPU memory where the machine has it.
#include "benchmarks/pipeline/bench_pipeline_cases.h"
#include "benchmarks/pipeline/bench_pipeline_kernels.h"

#include "kernels/qec/relay_bp/relay_bp_gpu.h"
#include "lib/qec/decoders/propagation/graph_syndrome.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/model_sampler.h"
#include "tools/shots/sampled_shots.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;
namespace qec = cudaq::qec::realtime;

constexpr std::uint64_t kMaxShots = 100000;
constexpr std::uint64_t kMaxMessages = 100'000'000; ///< of all shots together: large models get fewer shots
constexpr std::uint64_t kManyIterations = 200;      ///< of a shot whose time is that of its iterations

struct sampled_syndromes {
  sampled_syndromes(const qec::tanner_graph &graph, const std::string &dem, const bench_options &o)
      : shots(std::min({o.exchanges, kMaxShots, kMaxMessages / graph.checks.size() + 1})), checks(graph.num_checks),
        all(shots * checks) {
    const auto model = qec::parse_dem(dem);
    if (model.failed())
      throw std::runtime_error(model.text());
    const qec::model_sampler sampler(*model);
    qec::graph_syndrome syndrome(graph);
    std::mt19937_64 random = random_of_batch(o.seed, 0);
    std::vector<std::uint8_t> row(sampler.shot_bytes()), observables(sampler.observable_bytes());
    for (std::uint64_t shot = 0; shot < shots; ++shot) {
      std::ranges::fill(row, std::uint8_t{0});
      sampler.sample(random, row, observables);
      std::vector<std::uint64_t> events;
      for (std::uint64_t d = 0; d < graph.num_detectors; ++d)
        if ((row[d / 8] >> d % 8 & 1) != 0)
          events.push_back(d);
      if (!syndrome.set_events(events))
        throw check_failed("FAILED: a sampled shot is none of its model");
      std::ranges::copy(syndrome.bytes(), all.begin() + static_cast<std::ptrdiff_t>(shot * checks));
    }
  }
  [[nodiscard]] std::span<const std::uint8_t> operator[](std::uint64_t shot) const {
    return std::span(all).subspan(shot * checks, checks);
  }
  const std::uint64_t shots, checks;
  std::vector<std::uint8_t> all;
};

struct ensemble {
  std::uint32_t chains, blocks; ///< blocks 0: automatic
};

qec::relay_bp_options options_of(const ensemble &e) {
  qec::relay_bp_options options;
  options.num_sets = 60;
  options.ensemble = e.chains;
  options.mode = qec::ensemble_mode::first;
  return options;
}

/// Decodes all shots, one after another. Adds a figure of a shot, and one of an iteration.
void decode_shots(gpu::relay_bp_gpu &solver, const sampled_syndromes &shots, const ensemble &e, const std::string &name,
                  double floor_us, figure_list &figures) {
  latency_histogram latency;
  std::uint64_t steps = 0, checks = 0, columns = 0, waits = 0, cycles = 0, long_ns = 0, long_steps = 0;
  const std::uint64_t warm_up = std::min<std::uint64_t>(200, shots.shots);
  for (std::uint64_t k = 0; k < warm_up + shots.shots; ++k) {
    const std::uint64_t begin = now_ns();
    if (solver.solve(shots[k % shots.shots], {}) == qec::decode_status::internal_error)
      throw check_failed("FAILED: relay-bp-gpu: " + solver.fault());
    const std::uint64_t ns = now_ns() - begin;
    if (k < warm_up)
      continue;
    latency.record(ns);
    const gpu::relay_record &r = solver.record();
    steps += r.steps, checks += r.check_cycles, columns += r.column_cycles, waits += r.wait_cycles;
    cycles += r.all_cycles;
    if (r.steps >= kManyIterations)
      long_ns += ns, long_steps += r.steps;
  }
  const auto us = [&](double percent) { return static_cast<double>(latency.percentile(percent)) / 1000; };
  figures.add("relay-bp-shot",
              fmt::format("{}, {}: p99 {:.1f}, p99.9 {:.1f}, max {:.1f} us, mean {:.1f} us", name, solver.description(),
                          us(99), us(99.9), us(100), latency.mean() / 1000),
              latency, floor_us);
  const auto of_each = [&](std::uint64_t n) { return n / std::max<std::uint64_t>(steps, 1); };
  if (long_steps != 0)
    figures.add_difference(
        "relay-bp-iteration",
        fmt::format("{}, {} chains; cycles: {} checks (of them {} wait for the cluster), {} columns, {} in all", name,
                    e.chains, of_each(checks), of_each(waits), of_each(columns), of_each(cycles)),
        static_cast<double>(long_ns) / 1000 / static_cast<double>(long_steps));
}

} // namespace

void bench_relay_bp(const bench_options &o, const std::string &name, const std::string &dem, figure_list &figures,
                    std::vector<std::string> &skipped) {
  const auto graph = qec::tanner_graph::from_text(dem);
  if (graph.failed())
    throw std::runtime_error(graph.text());
  const sampled_syndromes shots(*graph, dem, o);
  latency_histogram floor;
  {
    gpu::resident_config smallest;
    smallest.num_workers = 1;
    smallest.payload_bytes = (shots.checks + 7) / 8;
    smallest.output_bytes = sizeof(std::uint64_t);
    smallest.device_id = o.gpu;
    gpu::resident_workers alone(smallest, launch_resident_first_word());
    const std::vector<std::uint8_t> request(smallest.payload_bytes);
    floor = exchange_with_block(
        alone, [&](std::uint64_t) { return std::span<const std::uint8_t>(request); }, o, 2000);
  }
  const double floor_us = static_cast<double>(floor.percentile(50)) / 1000;
  figures.add("relay-bp-floor", name + ": one word of answer, no decoder", floor);
  for (const ensemble &e : {ensemble{1, 1}, {1, 2}, {1, 4}, {1, 8}, {16, 0}, {64, 0}, {128, 0}}) {
    std::unique_ptr<gpu::relay_bp_gpu> solver;
    try {
      solver = std::make_unique<gpu::relay_bp_gpu>(*graph, options_of(e), o.gpu,
                                                   gpu::relay_bp_gpu_limits{e.blocks, SIZE_MAX});
    } catch (const std::runtime_error &refused) { // too few multiprocessors, no clusters, too little shared memory
      if (e.chains == 1 && e.blocks == 1)
        throw;
      skipped.push_back(fmt::format("relay-bp with {}, {} chains: {}", name, e.chains, refused.what()));
      continue;
    }
    decode_shots(*solver, shots, e, name, floor_us, figures);
  }
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The cases of `pipeline` that have a file of their own.
#pragma once

#include "benchmarks/pipeline/pipeline_traffic.h"
#include "lib/qec/decoding/decoding_config.h"

#include "cudaq/qec/decoding/decoder.h"
#include "cudaq/qec/realtime/resident_workers.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A matcher that returns immediately.
class no_matcher final : public cudaq::qec::realtime::decoder {
public:
  explicit no_matcher(const cudaq::qec::realtime::shot_set &set) : decoder(set.num_detectors, set.num_observables) {}
  const char *name() const noexcept override { return "none"; }

protected:
  cudaq::qec::realtime::decode_status decode_checked(const std::vector<std::uint64_t> &, std::span<std::uint8_t>,
                                                     cudaq::qec::realtime::decode_details *) noexcept override {
    return cudaq::qec::realtime::decode_status::ok;
  }
};

/// resident: recorded shots through the local predecoder on resident blocks, to the begin of the CPU stage.
void bench_resident(const bench_options &options, const cudaq::qec::realtime::decoding_config &config,
                    const cudaq::qec::realtime::shot_set &set, figure_list &figures);

/// One resident block, and this thread in the place of a pipeline: requests `row(k)`, one after another.
latency_histogram exchange_with_block(cudaq::qec::realtime::gpu::resident_workers &workers,
                                      const std::function<std::span<const std::uint8_t>(std::uint64_t)> &row,
                                      const bench_options &options, std::uint64_t warm_up);

/// relay-bp: shots that are sampled from the model through relay-bp-gpu, with 1 to 128 chains, and the time of an
/// iteration with its stages. What the GPU has no room for goes to `skipped`, with the reason.
void bench_relay_bp(const bench_options &options, const std::string &name, const std::string &dem, figure_list &figures,
                    std::vector<std::string> &skipped);

/// learned-shot: shots of four memories through the network in the file of weights, and what each takes at least.
void bench_learned_shot(const bench_options &options, const std::string &weights, figure_list &figures,
                        std::vector<std::string> &skipped);
/// learned-rate: shots of three memories on many streams, with the plans for 1 to 32 shots at a time.
void bench_learned_rate(const bench_options &options, const std::string &weights, figure_list &figures,
                        std::vector<std::string> &skipped);
/// learned-pipeline: the same with matching in a pipeline of 1 to 12 workers: one request at a time, and all at once.
void bench_learned_pipeline(const bench_options &options, const std::string &weights, figure_list &figures,
                            std::vector<std::string> &skipped);

/// host-predecoder: the same by host functions on the CPU.
void bench_host_predecoder(const bench_options &options, const cudaq::qec::realtime::decoding_config &config,
                           const cudaq::qec::realtime::shot_set &set, figure_list &figures);

/// many-workers: 8 to 64 workers that launch their graphs themselves, and the same launches bare.
void bench_many_workers(const bench_options &options, figure_list &figures);

/// kernel-70us-buffers: a kernel of 70 us whose input the worker writes, with one and with two buffers for each worker,
/// and the same launches bare.
void bench_buffers(const bench_options &options, const cudaq::qec::realtime::decoding_config &config,
                   figure_list &figures);

/// staging: workers staged as the specification prints them.
void bench_specified_staging(const bench_options &options, const cudaq::qec::realtime::decoding_config &config,
                             figure_list &figures);
/// staging-buffers: the same with one buffer and with two for each worker, on one stream.
void bench_staging_buffers(const bench_options &options, const cudaq::qec::realtime::decoding_config &config,
                           figure_list &figures);
/// two-streams: the same with two buffers and two streams for each worker, whose kernels wait for each other.
void bench_two_streams(const bench_options &options, const cudaq::qec::realtime::decoding_config &config,
                       figure_list &figures);

} // namespace cudaq::realtime::tools

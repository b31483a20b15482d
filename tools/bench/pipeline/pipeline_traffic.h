// SPDX-License-Identifier: Apache-2.0
// What the cases of `bench pipeline` share: figures with their targets, and a pipeline with its client.
#pragma once

#include "lib/qec/decoding/shot_file.h"
#include "tools/bench/bench.h"
#include "tools/common/clock.h"
#include "tools/common/latency_histogram.h"

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

namespace pipe = cudaq::qec::realtime::experimental;

inline constexpr std::uint32_t kBenchPipelineFunction = fnv1a_hash("bench_pipeline");
inline constexpr std::uint64_t kBusyNs = 70000, kPeriodNs = 30000;
inline constexpr int kPipelineSlots = 64, kPipelineWorkers = 8;

/// A target; 0: no target. `higher`: a higher figure is better.
struct target {
  double good = 0, aim = 0;
  bool higher = false;
};

struct figure {
  std::string id, what, unit;
  double value = 0;
  target of;
  latency_histogram latency; ///< may be empty
  double floor = 0;          ///< 0: none

  [[nodiscard]] const char *verdict() const {
    const auto meets = [&](double wanted) { return of.higher ? value >= wanted : value <= wanted; };
    return of.good == 0 ? "" : meets(of.aim) ? "aim" : meets(of.good) ? "good" : "MISSED";
  }
};

/// The figures of a run, in the order of the report.
class figure_list {
public:
  void add(std::string id, std::string what, const latency_histogram &latency, target of = {}, double floor = 0,
           double without_ns = 0) {
    const double us = (static_cast<double>(latency.percentile(50)) - without_ns) / 1000;
    all_.push_back({std::move(id), std::move(what), "us", us, of, latency, floor});
  }
  /// Of two medians.
  void add_difference(std::string id, std::string what, double us, target of) {
    all_.push_back({std::move(id), std::move(what), "us", us, of, {}, 0});
  }
  void add_rate(std::string id, std::string what, std::uint64_t requests, std::uint64_t ns, target of = {}) {
    const double rate = static_cast<double>(requests) * 1e9 / static_cast<double>(ns);
    all_.push_back({std::move(id), std::move(what), "req/s", rate, of, {}, 0});
  }
  /// The part of workers / kernel time that a run has reached.
  void add_fraction(std::string id, std::string what, std::uint64_t requests, std::uint64_t ns, target of) {
    const double part = static_cast<double>(requests * kBusyNs) / static_cast<double>(ns) / kPipelineWorkers;
    all_.push_back({std::move(id), std::move(what), "", part, of, {}, 0});
  }
  [[nodiscard]] const std::vector<figure> &all() const { return all_; }

private:
  std::vector<figure> all_;
};

using stage_factory = std::function<pipe::gpu_worker_resources(int)>;

/// One pipeline, and a client that sends requests through it. The main thread sends; complete() runs on the pipeline's
/// consumer thread.
class traffic {
public:
  traffic(const bench_options &o, int workers, std::size_t slot_size, std::size_t request_bytes,
          pipe::ring_memory memory = pipe::ring_memory::mapped)
      : options_(o), request_bytes_(request_bytes), sent_(2 * kPipelineSlots),
        pipeline_(config(o, workers, slot_size, memory)) {
    std::mt19937_64 random(o.seed);
    payload_.resize(request_bytes / 8 + kVariants);
    for (std::uint64_t &word : payload_)
      word = random();
    pipeline_.set_completion_handler([this](const pipe::completion &c) { complete(c); });
  }
  static std::size_t first_and_last(const pipe::cpu_stage_context &c) {
    const auto *words = static_cast<const std::uint64_t *>(c.gpu_output);
    const std::uint64_t answer[] = {words[0], words[c.gpu_output_size / 8 - 1]};
    std::memcpy(c.response_buffer, answer, sizeof(answer));
    return sizeof(answer);
  }
  void start(stage_factory stage, pipe::cpu_stage_callback cpu, const cudaq::qec::realtime::shot_set *shots = nullptr) {
    shots_ = shots;
    pipeline_.set_gpu_stage(std::move(stage));
    pipeline_.set_cpu_stage(std::move(cpu));
    pipeline_.start();
  }
  void stop() {
    pipeline_.stop();
    if (wrong_ != 0 || !pipeline_.last_stop().drained)
      throw check_failed(fmt::format("FAILED: {} answers are wrong; {}", wrong_, pipeline_.last_stop().text));
  }

  enum class drive { one_by_one, periodic, full };
  /// Returns nanoseconds from the first submission to the last completion.
  std::uint64_t run(drive how, std::uint64_t requests) {
    pipe::ring_buffer_injector injector = pipeline_.create_injector();
    latency = {};
    const std::uint64_t base = next_, begin = now_ns();
    for (; next_ != base + requests; ++next_) {
      if (how == drive::periodic)
        while (now_ns() < begin + (next_ - base) * kPeriodNs)
          relax();
      await([&] { return try_submit(injector, next_); });
      if (how == drive::one_by_one)
        await([&] { return done_.load() == next_ + 1; });
    }
    await([&] { return done_.load() == next_; });
    return last_ns_.load() - begin;
  }
  /// The clock before the submission of the only open request. For a CPU stage, in a run with drive::one_by_one.
  [[nodiscard]] std::uint64_t submitted_at() const { return sent_[done_.load() % sent_.size()]; }
  latency_histogram latency; ///< of the last run

private:
  static constexpr std::size_t kVariants = 1024;

  static pipe::pipeline_stage_config config(const bench_options &o, int workers, std::size_t slot_size,
                                            pipe::ring_memory memory) {
    pipe::pipeline_stage_config c;
    c.num_workers = workers;
    c.num_slots = kPipelineSlots;
    c.slot_size = slot_size;
    c.memory = memory;
    c.device_id = o.gpu;
    return c;
  }
  template <class Done>
  void await(Done &&done) {
    spin_then_yield idle(10000);
    for (std::uint64_t since = now_ns(); !done(); idle.idle())
      if (static_cast<double>(now_ns() - since) > options_.timeout_s * 1e9)
        throw check_failed("FAILED: no progress; state of the pipeline:\n" + pipeline_.dump());
  }
  bool try_submit(pipe::ring_buffer_injector &to, std::uint64_t k) {
    sent_[k % sent_.size()] = now_ns();
    if (shots_ == nullptr)
      return to.try_submit(kBenchPipelineFunction, request(k), request_bytes_, k);
    const auto row = shots_->detection_row(k % shots_->shots);
    return to.try_submit(kBenchPipelineFunction, row.data(), row.size(), k);
  }
  [[nodiscard]] const std::uint64_t *request(std::uint64_t k) const { return payload_.data() + k % kVariants; }
  void complete(const pipe::completion &c) {
    const std::uint64_t now = now_ns();
    latency.record(now - sent_[c.request_id % sent_.size()]);
    if (shots_ == nullptr) {
      const std::uint64_t *words = request(c.request_id);
      const std::uint64_t expected[] = {words[0], words[request_bytes_ / 8 - 1]};
      wrong_ +=
          !c.success || c.response_size != sizeof(expected) || std::memcmp(c.response, expected, sizeof(expected)) != 0;
    } else {
      wrong_ += !c.success || c.status != 0;
    }
    last_ns_.store(now);
    done_.store(done_.load() + 1);
  }

  const bench_options &options_;
  std::size_t request_bytes_;
  const cudaq::qec::realtime::shot_set *shots_ = nullptr;
  std::vector<std::uint64_t> payload_, sent_;
  std::uint64_t next_ = 0, wrong_ = 0;
  std::atomic<std::uint64_t> done_{0}, last_ns_{0};
  pipe::realtime_pipeline pipeline_;
};

} // namespace cudaq::realtime::tools

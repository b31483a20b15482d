// SPDX-License-Identifier: Apache-2.0
// What the cases of `pipeline` share: figures, and a pipeline with its client.
#pragma once

#include "benchmarks/common/bench.h"
#include "lib/qec/decoding/shot_file.h"
#include "tools/common/clock.h"
#include "tools/common/latency_histogram.h"
#include "tools/ring/ring_client.h"
#include "tools/services/device_service.h"

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

namespace pipe = cudaq::qec::realtime::experimental;

inline constexpr std::uint32_t kBenchPipelineFunction = fnv1a_hash("bench_pipeline");
inline constexpr std::uint64_t kBusyNs = 70000, kPeriodNs = 30000;
inline constexpr int kPipelineSlots = 64, kPipelineWorkers = 8;

struct figure {
  std::string name, what, unit;
  double value = 0;
  latency_histogram latency; ///< may be empty
  double floor = 0;          ///< 0: none
};

/// The figures of a run, in the order of the report.
class figure_list {
public:
  void add(std::string name, std::string what, const latency_histogram &latency, double floor = 0,
           double without_ns = 0) {
    const double us = (static_cast<double>(latency.percentile(50)) - without_ns) / 1000;
    all_.push_back({std::move(name), std::move(what), "us", us, latency, floor});
  }
  /// Of two medians.
  void add_difference(std::string name, std::string what, double us) {
    all_.push_back({std::move(name), std::move(what), "us", us, {}, 0});
  }
  void add_value(std::string name, std::string what, std::string unit, double value) {
    all_.push_back({std::move(name), std::move(what), std::move(unit), value, {}, 0});
  }
  void add_rate(std::string name, std::string what, std::uint64_t requests, std::uint64_t ns) {
    const double rate = static_cast<double>(requests) * 1e9 / static_cast<double>(ns);
    all_.push_back({std::move(name), std::move(what), "req/s", rate, {}, 0});
  }
  /// The part of workers / kernel time that a run has reached.
  void add_fraction(std::string name, std::string what, std::uint64_t requests, std::uint64_t ns) {
    const double part = static_cast<double>(requests * kBusyNs) / static_cast<double>(ns) / kPipelineWorkers;
    all_.push_back({std::move(name), std::move(what), "", part, {}, 0});
  }
  [[nodiscard]] const std::vector<figure> &all() const { return all_; }

private:
  std::vector<figure> all_;
};

using stage_factory = std::function<pipe::gpu_worker_resources(int)>;

/// The owner of an external ring of a pipeline, in the place of an FPGA: a ring in mapped memory, with a side for
/// requests and one for answers. Answers are taken in ring order.
struct external_ring {
  external_ring(int gpu, std::uint32_t slots, std::size_t slot_bytes)
      : memory(gpu, slots, static_cast<std::uint32_t>(slot_bytes), CUDAQ_MEMORY_MAPPED), ring(memory.ring()),
        sent(slots), producer(ring, sent), consumer(ring, sent, collect_order::of_requests) {}

  bare_ring memory;
  cudaq_ringbuffer_t ring;
  sent_requests sent;
  ring_producer producer;
  ring_consumer consumer;
};

/// Who owns the ring of a pipeline.
enum class ring_of : std::uint8_t { pipeline, client };

/// One pipeline, and a client that sends requests through it. The main thread sends. Own ring: complete() runs on the
/// pipeline's consumer thread. External ring: the main thread takes the answers, too, and a time ends when it sees the
/// tx flag.
class traffic {
public:
  traffic(const bench_options &o, int workers, std::size_t slot_size, std::size_t request_bytes,
          pipe::ring_memory memory = pipe::ring_memory::mapped, ring_of owner = ring_of::pipeline, int buffers = 1)
      : options_(o), request_bytes_(request_bytes), sent_(2 * kPipelineSlots),
        external_(owner == ring_of::client
                      ? std::make_unique<external_ring>(o.gpu, std::uint32_t{kPipelineSlots}, slot_size)
                      : nullptr),
        pipeline_(config(o, workers, buffers, slot_size, memory, external_.get())) {
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
    if (wrong_.load() != 0 || !pipeline_.last_stop().drained)
      throw check_failed(fmt::format("FAILED: {} answers are wrong; {}", wrong_.load(), pipeline_.last_stop().text));
  }

  enum class drive { one_by_one, periodic, full };
  /// Returns nanoseconds from the first submission to the last completion.
  std::uint64_t run(drive how, std::uint64_t requests) {
    std::optional<pipe::ring_buffer_injector> injector;
    if (external_ == nullptr)
      injector.emplace(pipeline_.create_injector());
    latency = {};
    const std::uint64_t base = next_, begin = now_ns();
    for (; next_ != base + requests; ++next_) {
      if (how == drive::periodic)
        while (now_ns() < begin + (next_ - base) * kPeriodNs) {
          collect();
          relax();
        }
      await([&] { return try_submit(injector, next_); });
      if (how == drive::one_by_one)
        await([&] { return completed() == next_ + 1; });
    }
    await([&] { return completed() == next_; });
    return last_ns_.load() - begin;
  }
  /// The clock before the submission of the only open request. For a CPU stage, in a run with drive::one_by_one on an
  /// own ring.
  [[nodiscard]] std::uint64_t submitted_at() const { return sent_[done_.load() % sent_.size()]; }
  latency_histogram latency; ///< of the last run

private:
  static constexpr std::size_t kVariants = 1024;

  static pipe::pipeline_stage_config config(const bench_options &o, int workers, int buffers, std::size_t slot_size,
                                            pipe::ring_memory memory, external_ring *external) {
    pipe::pipeline_stage_config c;
    c.num_workers = workers;
    c.buffers = buffers;
    c.num_slots = kPipelineSlots;
    c.slot_size = slot_size;
    c.memory = memory;
    c.device_id = o.gpu;
    c.external_ringbuffer = external == nullptr ? nullptr : &external->ring;
    return c;
  }
  template <class Done>
  void await(Done &&done) {
    spin_then_yield idle(10000);
    for (std::uint64_t since = now_ns(); !done(); idle.idle())
      if (static_cast<double>(now_ns() - since) > options_.timeout_s * 1e9)
        throw check_failed("FAILED: no progress; state of the pipeline:\n" + pipeline_.dump());
  }
  bool try_submit(std::optional<pipe::ring_buffer_injector> &to, std::uint64_t k) {
    collect();
    sent_[k % sent_.size()] = now_ns();
    const std::span<const std::uint8_t> bytes = request(k);
    return to ? to->try_submit(kBenchPipelineFunction, bytes.data(), bytes.size(), k)
              : external_->producer.try_send(kBenchPipelineFunction, bytes, 0, 0, k);
  }
  [[nodiscard]] std::span<const std::uint8_t> request(std::uint64_t k) const {
    if (shots_ != nullptr)
      return shots_->detection_row(k % shots_->shots);
    return {reinterpret_cast<const std::uint8_t *>(payload_.data() + k % kVariants), request_bytes_};
  }
  [[nodiscard]] bool is_right(std::uint64_t k, std::span<const std::uint8_t> response) const {
    if (shots_ != nullptr)
      return !response.empty();
    const std::uint64_t *words = payload_.data() + k % kVariants;
    const std::uint64_t expected[] = {words[0], words[request_bytes_ / 8 - 1]};
    return response.size() == sizeof(expected) && std::memcmp(response.data(), expected, sizeof(expected)) == 0;
  }
  /// The number of requests whose answers have been taken.
  std::uint64_t completed() {
    collect();
    return done_.load();
  }
  /// External ring: takes the answers that are there.
  void collect() {
    if (external_ != nullptr)
      external_->consumer.collect([this](const answer &a) {
        const bool good = a.fault == answer_fault::none && a.header.status == CUDAQ_RPC_OK;
        record(a.sequence, a.seen_ns, good && is_right(a.sequence, a.result));
      });
  }
  void complete(const pipe::completion &c) {
    if (external_ != nullptr) // its answer is on the ring
      return;
    const std::uint64_t now = now_ns();
    record(c.request_id, now,
           c.success && c.status == 0 &&
               is_right(c.request_id, {static_cast<const std::uint8_t *>(c.response), c.response_size}));
  }
  void record(std::uint64_t k, std::uint64_t now, bool right) {
    latency.record(now - sent_[k % sent_.size()]);
    wrong_.store(wrong_.load() + (right ? 0 : 1));
    last_ns_.store(now);
    done_.store(done_.load() + 1);
  }

  const bench_options &options_;
  std::size_t request_bytes_;
  const cudaq::qec::realtime::shot_set *shots_ = nullptr;
  std::vector<std::uint64_t> payload_, sent_;
  std::uint64_t next_ = 0;
  std::atomic<std::uint64_t> done_{0}, last_ns_{0}, wrong_{0};
  std::unique_ptr<external_ring> external_; ///< outlives the pipeline
  pipe::realtime_pipeline pipeline_;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// A pipeline with a host stage that copies the request to the worker's output, a CPU stage that echoes it, and a client
// that checks the answers.
#pragma once

#include "cudaq/qec/realtime/pipeline.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "unittests/support/eventually.h"
#include "unittests/support/threads_named.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cudaq::qec::realtime::test {

using namespace experimental;
using cudaq::realtime::test::eventually;

inline constexpr std::uint32_t kFunction = cudaq::realtime::fnv1a_hash("qec_decode");
inline constexpr std::uint64_t kSecond = 1000000000u;

/// Id of the thread of this process that has this name, or 0.
inline pid_t thread_named(const std::string &wanted) {
  for (const auto &seen : cudaq::realtime::test::threads_named(wanted))
    if (seen.name == wanted)
      return seen.tid;
  return 0;
}

/// A payload that is different for each request: its id, then bytes computed from the id.
inline std::vector<std::uint8_t> payload_of(std::uint64_t id, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>((id * 0x9E3779B97F4A7C15u) >> (i % 7 * 8)) ^ static_cast<std::uint8_t>(i);
  std::memcpy(bytes.data(), &id, std::min(size, sizeof(id)));
  return bytes;
}

/// Data of one worker of the copying stage.
struct copy_worker {
  std::vector<std::uint8_t> output = std::vector<std::uint8_t>(4096);
  std::size_t size = 0;
  int ready = 0;
  std::atomic<std::uint64_t> launches{0};

  static int copy(void *self, host_stage_call *call) {
    auto &w = *static_cast<copy_worker *>(self);
    std::memcpy(w.output.data(), call->payload, call->payload_size);
    w.size = call->payload_size;
    ++w.launches;
    return 0;
  }
  /// Like copy(), but request 3n + 1 fails, and request 3n + 2 throws.
  static int copy_or_fail(void *self, host_stage_call *call) {
    std::uint64_t k = 0;
    std::memcpy(&k, call->payload, sizeof(k));
    if (k % 3 == 2)
      throw std::runtime_error("engine");
    return k % 3 == 1 ? kStageError : copy(self, call);
  }
  static constexpr int kStageError = 700;
};

/// Completions per request, counted by the completion handler.
struct seen_requests {
  explicit seen_requests(std::size_t n) : times(n), good(n) {}
  std::vector<std::atomic<int>> times;
  std::vector<std::atomic<int>> good; ///< successful, with the right answer
  std::atomic<std::uint64_t> all{0};
  std::atomic<std::uint64_t> strangers{0}; ///< ids that were never submitted

  std::size_t not_once() const {
    std::size_t n = 0;
    for (const auto &t : times)
      n += t != 1;
    return n;
  }
  std::size_t not_good() const {
    std::size_t n = 0;
    for (const auto &g : good)
      n += g != 1;
    return n;
  }
};

struct pipeline_rig {
  explicit pipeline_rig(const pipeline_stage_config &config, std::size_t requests = 0)
      : workers(static_cast<std::size_t>(config.num_workers * config.buffers)), seen(requests), pipeline(make(config)) {
    wire();
  }
  /// Sets all functions of the pipeline.
  void wire() {
    pipeline->set_gpu_stage([this](int id) { return resources(id); });
    pipeline->set_cpu_stage([](const cpu_stage_context &c) { return echo(c); });
    pipeline->set_completion_handler([this](const completion &c) { record(c); });
  }

  /// Sets the GPU stage: the rig's, which `change(resources, id)` has changed.
  template <class Change>
  void change_stage(Change change) {
    pipeline->set_gpu_stage([this, change](int id) {
      gpu_worker_resources r = resources(id);
      change(r, id);
      return r;
    });
  }
  ring_buffer_injector start() {
    pipeline->start();
    return pipeline->create_injector();
  }

  static std::unique_ptr<realtime_pipeline> make(const pipeline_stage_config &config) {
    return std::make_unique<realtime_pipeline>(config);
  }
  static pipeline_stage_config small(int num_workers = 2, int num_slots = 8, std::size_t slot_size = 256) {
    pipeline_stage_config c;
    c.num_workers = num_workers;
    c.num_slots = num_slots;
    c.slot_size = slot_size;
    c.memory = ring_memory::host;
    c.grace_period_ns = 20 * kSecond;
    return c;
  }

  /// Notified mode; the output is ready when the stage returns.
  gpu_worker_resources resources(int id) {
    copy_worker &w = workers[static_cast<std::size_t>(id)];
    gpu_worker_resources r;
    r.function_id = kFunction;
    r.host_stage_fn = &copy_worker::copy;
    r.host_stage_data = &w;
    r.gpu_output = w.output.data();
    r.gpu_output_size = w.output.size();
    r.user_context = &w;
    return r;
  }
  static std::size_t echo(const cpu_stage_context &c) {
    const auto &w = *static_cast<const copy_worker *>(c.user_context);
    std::memcpy(c.response_buffer, w.output.data(), w.size);
    return w.size;
  }

  /// The completion handler. Request k has id `first_id` + k and a payload of 8 + k % 64 bytes.
  void record(const completion &c) {
    const std::uint64_t k = c.request_id - first_id;
    if (k >= seen.times.size()) {
      ++seen.strangers;
    } else {
      ++seen.times[k];
      const std::vector<std::uint8_t> expected = payload_of(c.request_id, 8 + k % 64);
      seen.good[k] += c.success && c.cuda_error == 0 && c.response_size == expected.size() &&
                      std::memcmp(c.response, expected.data(), expected.size()) == 0;
    }
    ++seen.all;
  }
  void submit(ring_buffer_injector &to, std::uint64_t k) const {
    const std::vector<std::uint8_t> payload = payload_of(first_id + k, 8 + k % 64);
    to.submit(kFunction, payload.data(), payload.size(), first_id + k);
  }
  void submit_all() {
    ring_buffer_injector injector = pipeline->create_injector();
    for (std::uint64_t k = 0; k < seen.times.size(); ++k)
      submit(injector, k);
  }

  /// Starts the pipeline, submits every request, stops.
  void run_all() {
    pipeline->start();
    submit_all();
    pipeline->stop();
  }

  std::deque<copy_worker> workers;
  seen_requests seen;
  std::uint64_t first_id = 0x1234567800000000u; ///< does not fit into the 32 bits of the wire format
  std::unique_ptr<realtime_pipeline> pipeline;
};

/// Every request was completed once, with its own answer.
#define CUDAQ_EXPECT_ALL_GOOD(rig)                                                                                     \
  EXPECT_EQ((rig).seen.not_once(), 0u);                                                                                \
  EXPECT_EQ((rig).seen.not_good(), 0u);                                                                                \
  EXPECT_EQ((rig).seen.strangers, 0u)

} // namespace cudaq::qec::realtime::test

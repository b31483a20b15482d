// SPDX-License-Identifier: Apache-2.0
// A pipeline with graphs on a GPU, its traffic, and checks of the answers.
#pragma once

#include "kernels/qec/gpu_worker.h"
#include "lib/qec/decoding/shot_file.h"
#include "lib/qec/stages/decoding_worker.h"
#include "unittests/gpu/support/gpu_test.h"

#include "cudaq/qec/realtime/pipeline.h"
#include "unittests/support/program_paths.h"

#include <cstring>
#include <deque>
#include <span>

namespace cudaq::realtime::test {

namespace qec = cudaq::qec::realtime;
namespace pipe = cudaq::qec::realtime::experimental;
namespace gpu = cudaq::qec::realtime::gpu;

inline constexpr std::uint32_t kDecode = fnv1a_hash("qec_decode");

inline qec::shot_set recorded(const std::string &name) {
  auto set = qec::load_shot_set(CUDAQ_TEST_DATA_DIR, name);
  if (set.failed())
    throw std::runtime_error(set.text()); // the test fails with it
  return std::move(*set);
}

inline pipe::pipeline_stage_config gpu_pipeline(int workers, int slots, std::size_t slot_size) {
  pipe::pipeline_stage_config c;
  c.num_workers = workers;
  c.num_slots = slots;
  c.slot_size = slot_size;
  c.memory = pipe::ring_memory::mapped;
  c.device_id = test_device();
  c.wait = pipe::wait_policy::spin_yield; // other tests run at the same time
  return c;
}

/// What the completion handler received for each request.
struct seen_by_request {
  explicit seen_by_request(std::size_t n) : times(n) {}
  void record(const pipe::completion &c, bool right) {
    if (c.request_id >= times.size()) {
      ++strangers;
      return;
    }
    ++times[c.request_id];
    failed += !c.success;
    wrong += c.success && !right;
    if (!c.success)
      last_error = c.cuda_error;
    ++all;
  }
  void expect_each_once(std::size_t expected_failed = 0) const {
    std::size_t not_once = 0;
    for (const int n : times)
      not_once += n != 1;
    EXPECT_EQ(not_once, 0u);
    EXPECT_EQ(strangers, 0u);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(failed, expected_failed);
  }

  std::vector<int> times; ///< number of completions by request; only the consumer's thread uses it until stop
  std::size_t strangers = 0, failed = 0, wrong = 0;
  int last_error = 0;
  std::atomic<std::size_t> all{0};
};

inline void expect_stop(pipe::realtime_pipeline &p, std::chrono::nanoseconds limit = kDeadline) {
  EXPECT_TRUE(finishes_within(limit, "stop", [&] { p.stop(); }));
}
inline void expect_start(pipe::realtime_pipeline &p) {
  std::string why;
  EXPECT_TRUE(finishes_within(kStartLimit, "start", [&] {
    try {
      p.start();
    } catch (const std::exception &e) {
      why = e.what();
    }
  }));
  ASSERT_EQ(why, "");
}

/// Submits with a deadline. Returns false if the pipeline accepts no request until the deadline.
inline bool submit(pipe::ring_buffer_injector &to, const void *payload, std::size_t size, std::uint64_t id) {
  return eventually([&] { return to.try_submit(kDecode, payload, size, id); });
}

/// Submits requests 0 to n - 1. request(k) returns the bytes of request k.
template <class Request>
void submit_all(pipe::realtime_pipeline &p, std::uint64_t n, Request &&request) {
  auto injector = p.create_injector();
  for (std::uint64_t k = 0; k < n; ++k) {
    const std::span<const std::uint8_t> bytes = request(k);
    ASSERT_TRUE(submit(injector, bytes.data(), bytes.size(), k)) << p.dump();
  }
}

/// A whole run: starts the pipeline, submits a request for each element of seen.times, stops. Each must be completed
/// once, successfully and rightly, and stop must drain the pipeline.
template <class Request>
void expect_run(pipe::realtime_pipeline &p, const seen_by_request &seen, Request &&request) {
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  ASSERT_NO_FATAL_FAILURE(submit_all(p, seen.times.size(), request));
  expect_stop(p);
  EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
  seen.expect_each_once();
}

/// A predecoder of the test, whose outputs are compared with those of a worker.
template <class Predecoder>
struct compared_outputs {
  std::unique_ptr<Predecoder> own;
  std::vector<std::uint64_t> expected{};
  std::uint64_t different = 0;
};

/// A whole run in which the output of each worker must be that of its element of `by_worker`, byte for byte. Some of
/// the requests are no shots. make_stage(worker, context) returns its resources; shot_of(k) the bytes of a shot.
template <class Predecoder, class MakeStage, class ShotOf>
void expect_same_outputs(const qec::predecoder_layout &layout, std::deque<compared_outputs<Predecoder>> &by_worker,
                         std::size_t slot_size, std::uint64_t shots, MakeStage &&make_stage, ShotOf &&shot_of) {
  for (auto &one : by_worker)
    one.expected.resize((layout.bytes() + 7) / 8);
  seen_by_request seen(shots);
  pipe::realtime_pipeline p(gpu_pipeline(static_cast<int>(by_worker.size()), 16, slot_size));
  p.set_gpu_stage([&](int id) {
    const auto w = static_cast<std::size_t>(id);
    return make_stage(w, &by_worker[w]);
  });
  p.set_cpu_stage([&](const pipe::cpu_stage_context &c) -> std::size_t {
    auto &with = *static_cast<compared_outputs<Predecoder> *>(c.user_context);
    (void)with.own->run({static_cast<const std::uint8_t *>(c.payload), c.payload_size}, with.expected);
    qec::predecoder_header header;
    std::memcpy(&header, with.expected.data(), sizeof(header));
    const std::size_t bytes = header.status != 0 ? sizeof(header) : layout.events_offset() + 4 * header.num_events;
    with.different += std::memcmp(c.gpu_output, with.expected.data(), bytes) != 0;
    return 1;
  });
  p.set_completion_handler([&](const pipe::completion &c) { seen.record(c, c.response_size == 1); });
  std::vector<std::uint8_t> row;
  expect_run(p, seen, [&](std::uint64_t k) {
    const auto shot = shot_of(k);
    row.assign(shot.begin(), shot.end());
    if (k % 17 == 3)
      row.pop_back(); // too short
    if (k % 17 == 5)
      row.back() = 0xff; // sets bits after the last detector, if the last byte has such bits
    if (k % 17 == 7)
      row.push_back(1); // a bit after the last detector
    return std::span<const std::uint8_t>(row);
  });
  for (const auto &with : by_worker)
    EXPECT_EQ(with.different, 0u);
}

/// The bytes of a number as a request.
inline std::span<const std::uint8_t> bytes_of(const std::uint64_t &number) {
  return {reinterpret_cast<const std::uint8_t *>(&number), sizeof(number)};
}

/// Plays the owner of an external ring: writes requests 0 to n-1 in order, and takes the answers. request(k) returns
/// the bytes of request k. right(k, result, result_len) returns whether the result is right. Returns the number of
/// wrong answers, or n if an answer is missing.
template <class Request, class Right>
std::uint64_t exchange_on_ring(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots, std::uint64_t n,
                               Request &&request, Right &&right) {
  std::uint64_t sent = 0, received = 0, wrong = 0;
  const auto makes_progress = [&] {
    const std::uint64_t before = sent + received;
    const auto to = static_cast<std::uint32_t>(sent % num_slots);
    if (sent < n && cudaq_host_ringbuffer_slot_available(&ring, to) != 0) {
      const std::span<const std::uint8_t> bytes = request(sent);
      cudaq_host_ringbuffer_write_rpc_request(&ring, to, kDecode, bytes.data(),
                                              static_cast<std::uint32_t>(bytes.size()),
                                              static_cast<std::uint32_t>(sent), sent);
      cudaq_host_ringbuffer_signal_slot(&ring, to);
      ++sent;
    }
    const auto from = static_cast<std::uint32_t>(received % num_slots);
    if (received < sent && cudaq_host_ringbuffer_poll_tx_flag(&ring, from, nullptr) == CUDAQ_TX_READY) {
      cudaq_rpc_response_t header{};
      const void *result = nullptr;
      wrong += cudaq_host_ringbuffer_read_rpc_response(&ring, from, &header, &result) != CUDAQ_OK ||
               header.request_id != received || !right(received, result, header.result_len);
      cudaq_host_ringbuffer_clear_slot(&ring, from);
      ++received;
    }
    return sent + received != before;
  };
  while (received < n && eventually(makes_progress)) {
  }
  return received == n ? wrong : n;
}

/// The worker that decodes the same shots offline.
inline std::unique_ptr<qec::decoding_worker> offline_worker(const qec::shot_set &set, const std::string &engine) {
  auto first = qec::make_predecoder(engine, set.dem_text);
  auto second = qec::make_decoder("auto", set.dem_text);
  EXPECT_TRUE(first.ok() && second) << first.text() << second.error;
  return std::make_unique<qec::decoding_worker>(std::move(*first), std::move(second.instance));
}
/// The offline answer to each shot.
inline std::vector<std::vector<std::uint8_t>> offline_answers(const qec::shot_set &set, qec::decoding_worker &by) {
  std::vector<std::vector<std::uint8_t>> answers;
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    answers.emplace_back(by.stage().response_bytes());
    qec::decode_status status{};
    by.decode(set.detection_row(shot), answers.back(), status);
    EXPECT_EQ(status, qec::decode_status::ok) << "shot " << shot;
  }
  return answers;
}

/// The GPU stage of a worker; the second argument is for its CPU stage.
using stage_of_worker = std::function<pipe::gpu_worker_resources(std::size_t, void *)>;
inline stage_of_worker stage_of(const std::vector<std::unique_ptr<gpu::predecoding_worker>> &workers) {
  return [&workers](std::size_t id, void *context) { return workers[id]->resources(kDecode, context); };
}
inline stage_of_worker stage_of(const gpu::resident_workers &workers) {
  return
      [&workers](std::size_t id, void *context) { return workers.resources(static_cast<int>(id), kDecode, context); };
}

/// Sends `requests` requests, the shots of the set over and over, through a pipeline with these stages and matchers.
/// They go through an injector, or through the external ring if the config has one. Each request must be completed once
/// with its expected answer, and stop must drain the pipeline.
inline void expect_offline_answers(const pipe::pipeline_stage_config &config, const qec::shot_set &set,
                                   const stage_of_worker &stage,
                                   const std::vector<std::unique_ptr<qec::decoding_worker>> &matchers,
                                   const std::vector<std::vector<std::uint8_t>> &expected, std::uint64_t requests) {
  const auto right = [&](std::uint64_t k, const void *answer, std::size_t bytes) {
    const auto &wanted = expected[k % set.shots];
    return bytes == wanted.size() && std::memcmp(answer, wanted.data(), bytes) == 0;
  };
  const auto row = [&](std::uint64_t k) { return set.detection_row(k % set.shots); };
  seen_by_request seen(requests);
  pipe::realtime_pipeline p(config);
  p.set_gpu_stage([&](int id) {
    const auto w = static_cast<std::size_t>(id);
    return stage(w, matchers[w].get());
  });
  p.set_cpu_stage([](const pipe::cpu_stage_context &c) { return qec::decoding_worker::match(c); });
  const auto *const external = static_cast<const cudaq_ringbuffer_t *>(config.external_ringbuffer);
  p.set_completion_handler([&](const pipe::completion &c) { // the answer of an external ring goes to its owner
    seen.record(c, external != nullptr ? c.response == nullptr : right(c.request_id, c.response, c.response_size));
  });
  if (external == nullptr) {
    expect_run(p, seen, row);
    return;
  }
  ASSERT_NO_FATAL_FAILURE(expect_start(p));
  EXPECT_EQ(exchange_on_ring(*external, static_cast<std::uint32_t>(config.num_slots), requests, row, right), 0u);
  expect_stop(p);
  EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
  seen.expect_each_once();
}

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Streams as stages of a pipeline: rounds come as requests through its ring.
#include "lib/qec/stages/stream_worker.h"
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <algorithm>
#include <climits>

namespace cudaq::qec::realtime::test {
namespace {

constexpr std::uint32_t kStream = 0x51000000; ///< function id of stream 0; stream k has the next k

std::vector<std::uint8_t> request_of(stream_command command, std::uint64_t num_bits = 0,
                                     const std::vector<std::uint8_t> &bits = {}) {
  const stream_request head{static_cast<std::uint32_t>(command), static_cast<std::uint32_t>(num_bits)};
  std::vector<std::uint8_t> request(sizeof head);
  std::memcpy(request.data(), &head, sizeof head);
  request.insert(request.end(), bits.begin(), bits.end());
  return request;
}

std::vector<std::uint8_t> answer_of(std::uint64_t committed, std::uint64_t pushed,
                                    std::span<const std::uint8_t> observables) {
  const stream_answer numbers{committed, pushed};
  std::vector<std::uint8_t> answer(sizeof numbers);
  std::memcpy(answer.data(), &numbers, sizeof numbers);
  answer.insert(answer.end(), observables.begin(), observables.end());
  return answer;
}

/// A pipeline of streams. A completion may come after those of later requests.
struct streams_rig {
  static constexpr std::uint64_t kMaxStreams = 16;
  streams_rig(const std::string &dem, const stream_options &options, int streams)
      : answers(streams), sent(streams), pipeline([&] {
          pipeline_stage_config config;
          config.num_workers = streams;
          config.num_slots = 8;
          config.slot_size = 256;
          config.memory = ring_memory::host;
          return config;
        }()) {
    for (int k = 0; k < streams; ++k)
      workers.push_back(std::make_unique<stream_worker>(stream_or_throw(dem, options)));
    pipeline.set_gpu_stage(
        [this](int k) { return workers[static_cast<std::size_t>(k)]->resources(kStream + static_cast<unsigned>(k)); });
    pipeline.set_cpu_stage(&stream_worker::serve);
    pipeline.set_completion_handler([this](const completion &c) {
      const auto *bytes = static_cast<const std::uint8_t *>(c.response);
      auto &of = answers[c.request_id % kMaxStreams];
      const std::size_t number = c.request_id / kMaxStreams;
      of.resize(std::max(of.size(), number + 1), {INT_MIN, {}});
      EXPECT_EQ(of[number].first, INT_MIN) << "a second completion";
      of[number] = {c.status, std::vector<std::uint8_t>(bytes, bytes + c.response_size)};
    });
    pipeline.start();
  }
  void send(int stream, const std::vector<std::uint8_t> &request) {
    const auto of = static_cast<std::size_t>(stream);
    injector().submit(kStream + static_cast<unsigned>(stream), request.data(), request.size(),
                      kMaxStreams * sent[of]++ + of);
  }
  ring_buffer_injector &injector() {
    if (!made)
      made.emplace(pipeline.create_injector());
    return *made;
  }
  void stop() {
    pipeline.stop();
    EXPECT_TRUE(pipeline.last_stop().drained) << pipeline.last_stop().text;
  }

  std::vector<std::unique_ptr<stream_worker>> workers;
  std::vector<std::vector<std::pair<int, std::vector<std::uint8_t>>>>
      answers;                     ///< of each stream, in the order of its requests: status, result
  std::vector<std::uint64_t> sent; ///< requests of each stream
  realtime_pipeline pipeline;
  std::optional<ring_buffer_injector> made;
};

const std::string kDem = repetition_dem(3, 0.05, 1, 100); // 2 detectors a round; head and tail have one

TEST(StreamWorker, AnswersEachRequestWithWhatIsFinalThen) {
  constexpr int kStreams = 2;
  constexpr std::uint64_t kRounds = 60;
  const stream_options options{.decoder = "lookup", .commit = 3, .buffer = 2};
  const auto model = repeating_or_throw(kDem);
  const auto whole = *model.unrolled(kRounds - 2);
  component_sampler sampler(whole, 11);
  streams_rig rig(kDem, options, kStreams);
  std::vector<std::vector<std::pair<int, std::vector<std::uint8_t>>>> expected(kStreams);
  const auto reference = stream_or_throw(kDem, options);
  for (int experiment = 0; experiment < 5; ++experiment)
    for (int k = 0; k < kStreams; ++k) {
      const auto shot = sampler.next();
      const auto send = [&](const std::vector<std::uint8_t> &request) {
        rig.send(k, request);
        expected[static_cast<std::size_t>(k)].emplace_back(
            0, answer_of(reference->committed_rounds(), reference->pushed_rounds(), reference->observables()));
      };
      reference->reset();
      send(request_of(stream_command::reset));
      const std::uint64_t before = 2 * (kRounds - 1), part = experiment == 0 ? 2 : 7;
      for (std::uint64_t at = 0; at < before; at += part) {
        const std::uint64_t count = std::min(part, before - at);
        const auto bits = part_of(shot.events, at, count);
        ASSERT_EQ(reference->push(bits, count), decode_status::ok);
        send(request_of(stream_command::rounds, count, bits));
      }
      const auto tail = part_of(shot.events, before, 2);
      ASSERT_EQ(reference->finish(tail, 2), decode_status::ok);
      send(request_of(stream_command::tail, 2, tail));
      send(request_of(stream_command::rounds));
    }
  rig.stop();
  for (std::size_t k = 0; k < kStreams; ++k)
    EXPECT_EQ(rig.answers[k], expected[k]) << k;
}

TEST(StreamWorker, KeepsEveryRoundWhileItsOwnWorkersDecode) {
  const stream_options options{
      .decoder = "lookup", .commit = 3, .buffer = 2, .mode = stream_mode::sequential, .workers = 2, .queue_rounds = 40};
  constexpr std::uint64_t kRounds = 1000;
  const auto whole = *repeating_or_throw(kDem).unrolled(kRounds - 2);
  const auto shot = component_sampler(whole, 12).next();
  const auto reference = stream_or_throw(kDem, {.decoder = "lookup", .commit = 3, .buffer = 2});
  ASSERT_EQ(run(*reference, shot.events, 2 * kRounds), decode_status::ok);
  streams_rig rig(kDem, options, 1);
  for (std::uint64_t round = 0; round + 1 < kRounds; ++round)
    rig.send(0, request_of(stream_command::rounds, 2, part_of(shot.events, 2 * round, 2)));
  rig.send(0, request_of(stream_command::tail, 2, part_of(shot.events, 2 * (kRounds - 1), 2)));
  const auto last = answer_of(kRounds, kRounds, reference->observables());
  EXPECT_TRUE(eventually([&] { return rig.workers[0]->stream().poll().is_final; }));
  rig.send(0, request_of(stream_command::rounds));
  rig.stop();
  ASSERT_EQ(rig.answers[0].size(), kRounds + 1);
  EXPECT_EQ(rig.answers[0].back().second, last);
  for (const auto &[status, answer] : rig.answers[0])
    EXPECT_EQ(status, 0);
}

TEST(StreamWorker, RefusesWhatItDoesNotKnowAndStaysBrokenUntilAReset) {
  // Two errors flip the two detectors of a round together: one event alone has no explanation.
  const std::string round = "detector(0) D0\ndetector(0) D1\nerror(0.1) D0 D1 L0\n", next = "shift_detectors(1) 2\n";
  const std::string dem = round + next + "repeat 100 {\n" + round + next + "}\n" + round;
  streams_rig rig(dem, {.decoder = "lookup", .commit = 2, .buffer = 1}, 1);
  const std::pair<std::vector<std::uint8_t>, decode_status> requests[] = {
      {{1, 2, 3}, decode_status::buffer_too_small},
      {request_of(static_cast<stream_command>(9)), decode_status::not_supported},
      {request_of(stream_command::reset, 1, {0}), decode_status::not_supported},
      {request_of(stream_command::rounds, 9, {0}), decode_status::buffer_too_small},
      {request_of(stream_command::tail, 2, {0}), decode_status::stream_misaligned}, // the head is missing
      {request_of(stream_command::rounds, 6, {1}), decode_status::no_solution},
      {request_of(stream_command::rounds, 2, {0}), decode_status::no_solution},
      {request_of(stream_command::rounds), decode_status::no_solution},
      {request_of(stream_command::reset), decode_status::ok},
      {request_of(stream_command::rounds, 6, {3}), decode_status::ok}};
  for (const auto &[request, status] : requests)
    rig.send(0, request);
  rig.stop();
  ASSERT_EQ(rig.answers[0].size(), std::size(requests));
  for (std::size_t k = 0; k < std::size(requests); ++k) {
    EXPECT_EQ(rig.answers[0][k].first, static_cast<int>(requests[k].second)) << k;
    EXPECT_EQ(rig.answers[0][k].second.empty(), requests[k].second != decode_status::ok) << k;
  }
  EXPECT_EQ(rig.answers[0].back().second, answer_of(2, 3, std::vector<std::uint8_t>{1}));
  std::uint8_t small[64];
  EXPECT_EQ(rig.workers[0]->answer(request_of(stream_command::reset), small + 32, 16), 0U);
  EXPECT_EQ(rig.workers[0]->stream().pushed_rounds(), 3U) << "it was not taken";
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What the moments of a request, their histograms and the flight recorder cost, on one thread: docs/performance.md,
// "The decoding server". The least of many blocks counts, which other programs hardly disturb.
//   stage_times_cost [FILE]    FILE: of the recorder, which is made and stays; by default none is measured
#include "lib/qec/server/decoder/stage_times.h"
#include "lib/qec/server/decoder/steady_by_ticks.h"
#include "lib/qec/server/record/request_recorder.h"
#include "lib/qec/server/session/wire_requests.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::detail::steady_ns;

template <class Step>
double least_ns(Step step) {
  constexpr int kBlocks = 2000, kSteps = 1000;
  double least = 1e9;
  for (int block = 0; block < kBlocks; ++block) {
    const std::uint64_t begin = steady_ns();
    for (int k = 0; k < kSteps; ++k)
      step();
    least = std::min(least, static_cast<double>(steady_ns() - begin) / kSteps);
  }
  return least;
}

int measure_recorder(const char *path, const cudaq::realtime::detail::tick_clock &ticks) {
  const auto recorder = request_recorder::create(path, {65'536, 128}, 1, ticks);
  if (recorder.failed()) {
    std::fprintf(stderr, "%s\n", recorder.text().c_str());
    return 1;
  }
  const std::array<std::uint8_t, 96> payload{};
  const std::array<std::uint8_t, 8> result{};
  bool all = true;
  const double recorded = least_ns([&] {
    request_moments m;
    m.record = (*recorder)->add_request(kOneShotFunctionId, payload, 1, 2, m.arrived);
    all = (*recorder)->add_answer(m.record, 0, result) && all;
    (*recorder)->end(m, m.arrived);
  });
  std::printf("the recorder, for a request of 96 bytes and an answer of 8: %.1f ns\n", recorded);
  return all ? 0 : 1;
}

} // namespace

int main(int count, char **words) {
  const auto ticks = cudaq::realtime::detail::tick_clock::measured();
  stage_times times(ticks);
  volatile std::uint64_t read = 0;
  const double tick = least_ns([&] { read = times.now(); });
  const double steady = least_ns([&] { read = steady_ns(); });
  std::uint64_t last = times.now();
  steady_by_ticks arrivals;
  const double request = least_ns([&] { // as request_queue and decoder_turn
    request_moments m;
    m.arrived = m.accepted = m.queued = times.now();
    read = static_cast<std::uint64_t>(arrivals.at(m.accepted, ticks).time_since_epoch().count());
    m.taken = times.now();
    m.decoded = times.now();
    last = times.now();
    times.record(m, last, false);
  });
  const double alone = least_ns([&] { // as served_decoder without a queue
    request_moments m;
    m.arrived = m.accepted = m.queued = m.taken = times.now();
    read = static_cast<std::uint64_t>(arrivals.at(m.arrived, ticks).time_since_epoch().count());
    m.decoded = last = times.now();
    times.record(m, last, true);
  });
  std::printf("a read of the counter %.1f ns, of steady_clock %.1f ns\n"
              "the times of a request %.1f ns; without them it reads steady_clock, so they add %.1f ns; if it has an "
              "age limit, it reads that twice, so they add %.1f ns\n"
              "without a queue %.1f ns, so they add %.1f ns\n",
              tick, steady, request, request - steady, request - 2 * steady, alone, alone - steady);
  return last == 0 ? 1 : count > 1 ? measure_recorder(words[1], ticks) : 0;
}

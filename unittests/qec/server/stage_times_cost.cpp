// SPDX-License-Identifier: Apache-2.0
// What the moments of a request and their histograms cost, on one thread: docs/performance.md, "The decoding server".
// The least of many blocks counts, which other programs hardly disturb.
#include "lib/qec/server/decoder/stage_times.h"

#include <algorithm>
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

} // namespace

int main() {
  stage_times times(cudaq::realtime::detail::tick_clock::measured());
  volatile std::uint64_t read = 0;
  const double tick = least_ns([&] { read = times.now(); });
  const double steady = least_ns([&] { read = steady_ns(); });
  std::uint64_t last = times.now();
  const auto request = [&](bool waited) {
    request_moments m;
    m.arrived = m.accepted = times.now();
    m.queued = times.now();
    m.taken = waited ? m.queued : times.now(); // stands for the end of the request before it
    m.decoded = times.now();
    last = times.now();
    times.record(m, last, false);
  };
  const double all = least_ns([&] { request(false); }), waited = least_ns([&] { request(true); });
  std::printf("a read of the counter %.1f ns, of steady_clock %.1f ns\n"
              "a request that finds its decoder idle %.1f ns, one that waited for another one %.1f ns\n",
              tick, steady, all, waited);
  return last == 0 ? 1 : 0;
}

// SPDX-License-Identifier: Apache-2.0
// How many flags a look reads, and how many empty looks follow each other, for rings whose flags lie in device memory.
//
//   look_shapes [EXCHANGES [ROUNDS]]    20000 of each shape and 10; prints tables and one line of JSON
//
//   traffic   what it is                                                                 floor
//   echo      requests in GPU memory, 1 block of 32 threads, 8 B echo, closed loop       that of the benchmark
//   frames    the same memory, 256 threads, 4096 B, first word read, last written        that of the benchmark
//   ring      ring in device memory, a kernel sends: GPU cycles, not ns                  that of the benchmark
//
// Floor and shapes alternate in every round. Every reply is checked. A shape replaces two constants of the loop; the
// first one has the library's values. CUDAQ_TEST_DEVICE: the device.
#include "unittests/gpu/loop/look_shapes.h"
#include "benchmarks/device/bench_rigs.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string>

namespace {

using namespace cudaq::realtime;
using namespace cudaq::realtime::tools;
using cudaq::realtime::test::look_shape;
using cudaq::realtime::test::look_shapes;

constexpr std::uint32_t kSlots = 64, kFrame = 4096;

round_runner shaped_rounds(bench_session &session, const look_shape &shape, bool frames,
                           drive how = drive::one_by_one) {
  mapped_case c = make_mapped_case(session, kSlots, frames ? kFrame : 8);
  c.service.memory = CUDAQ_MEMORY_DEVICE_RX;
  c.service.launch_fn = shape.launch;
  c.how = how;
  if (frames) {
    c.service.threads = 256;
    c.handler = bench_handler::last_word;
    c.rule = reply_rule::last_word;
  }
  return dispatcher_rounds(session, c);
}

struct measured_shape {
  std::string name;
  round_runner round;
  loop_result result{};
};

/// Prints a table, and adds an element to `json`. Returns the number of wrong replies.
std::uint64_t measure(const std::string &traffic, std::vector<measured_shape> shapes, std::uint32_t rounds,
                      std::string &json) {
  for (std::uint32_t round = 0; round < rounds; ++round)
    for (measured_shape &s : shapes)
      s.result.merge(s.round());
  std::printf("\n%s\n%-22s %8s %8s %8s %8s %8s\n", traffic.c_str(), "", "min", "p50", "p99", "p99.9", "ratio");
  std::uint64_t wrong = 0;
  json += (json.empty() ? "" : ", ") + ("{\"traffic\": \"" + traffic + "\", \"shapes\": [");
  const auto of = [](const measured_shape &s, double percent) {
    return static_cast<unsigned long long>(s.result.per_exchange.percentile(percent));
  };
  for (const measured_shape &s : shapes) {
    const bool is_first = &s == shapes.data();
    const auto min = static_cast<unsigned long long>(s.result.per_exchange.min());
    const double ratio = static_cast<double>(of(s, 50)) / static_cast<double>(of(shapes.front(), 50));
    wrong += s.result.wrong;
    std::printf("%-22s %8llu %8llu %8llu %8llu %8.3f\n", s.name.c_str(), min, of(s, 50), of(s, 99), of(s, 99.9), ratio);
    json += (is_first ? "" : ", ") + ("{\"shape\": \"" + s.name + "\", \"min\": " + std::to_string(min)) +
            ", \"p50\": " + std::to_string(of(s, 50)) + ", \"p99\": " + std::to_string(of(s, 99)) +
            ", \"p99.9\": " + std::to_string(of(s, 99.9)) + "}";
  }
  json += "]}";
  std::fflush(stdout);
  return wrong;
}

/// The floor, then the shapes.
std::vector<measured_shape> of_device_rx(bench_session &session, bool frames) {
  const std::uint32_t bytes = frames ? kFrame : 64;
  std::vector<measured_shape> all;
  all.push_back(
      {"floor", floor_rounds(session, in_order_plan(kSlots, bytes), frames ? kFrame - CUDAQ_RPC_HEADER_SIZE : 8,
                             drive::one_by_one, CUDAQ_MEMORY_DEVICE_RX)});
  for (const look_shape &s : look_shapes())
    all.push_back({fmt::format("{} flags, {} looks", s.flags, s.looks), shaped_rounds(session, s, frames)});
  return all;
}
std::vector<measured_shape> of_device_ring(bench_session &session) {
  std::vector<measured_shape> all;
  for (const look_shape &s : look_shapes()) {
    bench_rig rig = make_device_ring_rig(session, s.launch);
    if (all.empty())
      all.push_back({"floor", std::move(rig.floor)});
    all.push_back({fmt::format("{} flags, {} looks", s.flags, s.looks), std::move(rig.ours)});
  }
  return all;
}

/// The stages of one round.
void print_stages(const char *traffic, const round_runner &round) {
  const loop_result result = round();
  test::stage_cycles s{};
  require_cuda(test::read_stages(s), "reading the stages");
  const auto each = [&](long long sum) {
    return s.requests == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(s.requests);
  };
  std::printf("\n%s, mean cycles of %llu requests: flag seen to load of the frame %.0f, read, judge and handler %.0f, "
              "answer frame stored %.0f, given back %.0f; wrong %llu\n",
              traffic, s.requests, each(s.to_fetch), each(s.to_handler_end), each(s.to_frame_stored),
              each(s.to_given_back), static_cast<unsigned long long>(result.wrong));
  const auto of_batch = [&](long long sum) {
    return s.batches == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(s.batches);
  };
  std::printf("  publications: %llu of %.1f requests: to the first handler %.0f, to the last %.0f, to the publication "
              "%.0f, published %.0f; %.0f requests/s\n",
              s.batches, of_batch(static_cast<long long>(s.batched)), of_batch(s.to_first_call),
              of_batch(s.to_last_call), of_batch(s.to_publication), of_batch(s.to_published),
              1e9 * static_cast<double>(result.exchanges) / static_cast<double>(result.wall_ns));
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  try {
    bench_options o;
    o.exchanges = argc > 1 ? std::stoull(argv[1]) : 20000;
    o.rounds = argc > 2 ? static_cast<std::uint32_t>(std::stoul(argv[2])) : 10;
    const char *const device = std::getenv("CUDAQ_TEST_DEVICE");
    o.gpu = device == nullptr ? 0 : std::atoi(device);
    open_gpu(o.gpu);
    std::string json;
    std::uint64_t wrong = 0;
    {
      bench_session session(o);
      print_stages("stages, echo with requests in GPU memory", shaped_rounds(session, test::staged_loop(), false));
      print_stages("stages, 64 requests in GPU memory in flight",
                   shaped_rounds(session, test::staged_loop(), false, drive::full_ring));
      print_stages("stages, the same by batches",
                   shaped_rounds(session, test::staged_loop(), false, drive::full_by_batches));
      print_stages("stages, ring in device memory", make_device_ring_rig(session, test::staged_loop().launch).ours);
      wrong += measure("echo, ns", of_device_rx(session, false), o.rounds, json);
      wrong += measure("frames, ns", of_device_rx(session, true), o.rounds, json);
      wrong += measure("ring, cycles", of_device_ring(session), o.rounds, json);
    }
    std::printf(
        "\n{\"case\": \"look shapes\", \"exchanges\": %llu, \"rounds\": %u, \"wrong\": %llu, \"traffics\": [%s]}\n",
        static_cast<unsigned long long>(o.exchanges), o.rounds, static_cast<unsigned long long>(wrong), json.c_str());
    return wrong == 0 ? 0 : 1;
  } catch (const std::exception &e) {
    std::fprintf(stderr, "look_shapes: %s\n", e.what());
    return 1;
  }
}

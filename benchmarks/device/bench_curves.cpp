// SPDX-License-Identifier: Apache-2.0
// How cost grows with payload, slots, functions, blocks and dispatchers.
#include "benchmarks/device/bench_rigs.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kSlots = 64;
constexpr std::uint32_t kWarp = 32;

bench_curve payload_curve(bench_session &session) {
  bench_curve curve{
      "payload", "payload: regular 1x256, first word read, last written, closed loop", "bytes", false, {}};
  for (const std::uint32_t bytes : {8u, 32u, 128u, 512u, 2048u, 4096u, 8192u, 16384u, 32768u, 65536u}) {
    mapped_case c = make_mapped_case(session, kSlots, bytes);
    c.service.threads = 256;
    c.handler = bench_handler::last_word;
    c.rule = reply_rule::last_word;
    // The floor's frame: header and payload, rounded up to a multiple of 16 bytes.
    const std::uint32_t frame = (CUDAQ_RPC_HEADER_SIZE + bytes + 15) / 16 * 16;
    const round_runner floor = floor_rounds(session, in_order_plan(kSlots, frame), bytes, drive::one_by_one);
    const round_runner ours = dispatcher_rounds(session, c);
    curve.points.push_back(measure_point(session, std::to_string(bytes), {bytes, bytes, floor, ours, {}}));
  }
  return curve;
}

bench_curve slots_curve(bench_session &session) {
  bench_curve curve{"slots", "slots: regular 1x32, 8 B echo, closed loop", "slots", false, {}};
  for (const std::uint32_t slots : {1u, 4u, 16u, 64u, 256u, 1024u}) {
    const round_runner floor = floor_rounds(session, in_order_plan(slots, 64), 8, drive::one_by_one);
    const round_runner ours = dispatcher_rounds(session, make_mapped_case(session, slots, 8));
    curve.points.push_back(measure_point(session, std::to_string(slots), {8, 8, floor, ours, {}}));
  }
  return curve;
}

bench_curve fifo_slots_curve(bench_session &session) {
  bench_curve curve{"fifo_in_flight", "requests in flight: regular 1x32, FIFO, 8 B echo, full ring", "slots", true, {}};
  for (const std::uint32_t slots : {1u, 4u, 16u, 64u, 256u, 1024u}) {
    mapped_case c = make_mapped_case(session, slots, 8);
    c.how = drive::full_ring;
    const round_runner floor = floor_rounds(session, in_order_plan(slots, 64), 8, drive::full_ring);
    const round_runner ours = dispatcher_rounds(session, c);
    curve.points.push_back(measure_point(session, std::to_string(slots), {8, 8, floor, ours, {}}));
  }
  return curve;
}

bench_curve table_curve(bench_session &session) {
  bench_curve curve{"functions",
                    "functions in the table: regular 1x32, 8 B echo by the last one, closed loop",
                    "functions",
                    false,
                    {}};
  for (const std::uint32_t functions : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
    mapped_case c = make_mapped_case(session, kSlots, 8);
    c.service.functions = functions;
    const round_runner ours = dispatcher_rounds(session, c);
    curve.points.push_back(measure_point(session, std::to_string(functions), {8, 8, nullptr, ours, {}}));
  }
  return curve;
}

mapped_case any_order_case(const bench_session &session, std::uint32_t slots, std::uint32_t blocks) {
  mapped_case c = make_mapped_case(session, slots, 8);
  c.how = drive::any_order;
  c.service.options.ordering = CUDAQ_ORDERING_ANY;
  c.service.blocks = blocks;
  return c;
}

bench_curve any_slots_curve(bench_session &session) {
  bench_curve curve{"any_slots", "slots with ANY order, one lane per slot: regular Nx32, 8 B echo", "slots", true, {}};
  for (const std::uint32_t slots : {32u, 64u, 256u, 1024u}) {
    floor_plan plan = in_order_plan(slots, 64);
    plan.kind = floor_kind::lane_per_slot;
    plan.blocks = slots / kWarp;
    const round_runner floor = floor_rounds(session, plan, 8, drive::any_order);
    const round_runner ours = dispatcher_rounds(session, any_order_case(session, slots, slots / kWarp));
    curve.points.push_back(measure_point(session, std::to_string(slots), {8, 8, floor, ours, {}}));
  }
  return curve;
}

bench_curve blocks_curve(bench_session &session) {
  bench_curve curve{"any_blocks", "blocks of 32 threads with ANY order on 256 slots: 8 B echo", "blocks", true, {}};
  for (const std::uint32_t blocks : {1u, 2u, 4u, 8u, 16u}) {
    const round_runner ours = dispatcher_rounds(session, any_order_case(session, 256, blocks));
    curve.points.push_back(measure_point(session, std::to_string(blocks), {8, 8, nullptr, ours, {}}));
  }
  return curve;
}

bench_curve dispatchers_curve(bench_session &session) {
  bench_curve curve{"dispatchers",
                    "dispatchers on one GPU, each with a ring: regular 1x32, 8 B echo, one ring at a time",
                    "dispatchers",
                    false,
                    {}};
  for (const std::uint32_t dispatchers : {1u, 2u, 4u, 8u}) {
    const round_runner ours = many_dispatcher_rounds(session, make_mapped_case(session, kSlots, 8), dispatchers);
    curve.points.push_back(measure_point(session, std::to_string(dispatchers), {8, 8, nullptr, ours, {}}));
  }
  return curve;
}

} // namespace

std::vector<bench_curve> measure_curves(bench_session &session, bench_context &) {
  std::vector<bench_curve> curves;
  for (const auto measure : {&payload_curve, &slots_curve, &fifo_slots_curve, &table_curve, &any_slots_curve,
                             &blocks_curve, &dispatchers_curve})
    curves.push_back(measure(session));
  for (bench_curve &curve : measure_device_rx_curves(session))
    curves.push_back(std::move(curve));
  return curves;
}

} // namespace cudaq::realtime::tools

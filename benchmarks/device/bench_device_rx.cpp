// SPDX-License-Identifier: Apache-2.0
// Cases and curves of rings whose requests lie in device memory. Each has a floor on memory of the same kind, and the
// curves show the mapped ring beside it. Clients use the producer's handle.
#include "benchmarks/device/bench_rigs.h"
#include "tools/common/report.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kSlots = 64;
constexpr std::uint32_t kFrameBytes = 4096;

mapped_case device_rx_case(const bench_session &session, std::uint32_t slots, std::size_t payload_bytes) {
  mapped_case c = make_mapped_case(session, slots, payload_bytes);
  c.service.memory = CUDAQ_MEMORY_DEVICE_RX;
  return c;
}

round_runner device_rx_floor(bench_session &session, std::uint32_t slots, std::uint32_t frame_bytes,
                             std::size_t payload_bytes, drive how) {
  floor_plan plan = in_order_plan(slots, frame_bytes);
  // The client looks at tx alone. A late rx = 0 would wipe out its next signal if that came soon.
  plan.kind = how != drive::one_by_one || slots < 16 ? floor_kind::in_order_rx_first : floor_kind::in_order;
  return floor_rounds(session, plan, payload_bytes, how, CUDAQ_MEMORY_DEVICE_RX);
}

bench_rig echo_rig(bench_session &session, drive how) {
  mapped_case c = device_rx_case(session, kSlots, 8);
  c.how = how;
  if (how == drive::full_one_by_one)
    c.service.slot_bytes = kUserSlotBytes;
  bench_rig rig;
  rig.floor = device_rx_floor(session, kSlots, 64, 8, how);
  rig.ours = dispatcher_rounds(session, c);
  return rig;
}

bench_rig frame_rig(bench_session &session, bool cooperative) {
  mapped_case c = device_rx_case(session, kSlots, kFrameBytes);
  c.handler = cooperative ? bench_handler::add_bytes : bench_handler::last_word;
  c.rule = cooperative ? reply_rule::add_bytes : reply_rule::last_word;
  c.service.threads = cooperative ? 128 : 256;
  c.service.kernel = cooperative ? CUDAQ_KERNEL_COOPERATIVE : CUDAQ_KERNEL_REGULAR;
  bench_rig rig;
  rig.payload_bytes = kFrameBytes;
  rig.floor_payload_bytes = kFrameBytes - CUDAQ_RPC_HEADER_SIZE;
  rig.floor = device_rx_floor(session, kSlots, kFrameBytes, rig.floor_payload_bytes, drive::one_by_one);
  rig.ours = dispatcher_rounds(session, c);
  return rig;
}

bench_curve payload_curve(bench_session &session) {
  bench_curve curve{"device_rx_payload",
                    "payload, requests in GPU memory: regular 1x256, first word read, last written, closed loop",
                    "bytes",
                    false,
                    {}};
  for (const std::uint32_t bytes : {8u, 32u, 128u, 512u, 2048u, 4096u, 8192u, 16384u, 32768u, 65536u}) {
    mapped_case c = device_rx_case(session, kSlots, bytes);
    c.service.threads = 256;
    c.handler = bench_handler::last_word;
    c.rule = reply_rule::last_word;
    const std::uint32_t frame = (CUDAQ_RPC_HEADER_SIZE + bytes + 15) / 16 * 16;
    const round_runner floor = device_rx_floor(session, kSlots, frame, bytes, drive::one_by_one);
    curve.points.push_back(
        measure_point(session, std::to_string(bytes), {bytes, bytes, floor, dispatcher_rounds(session, c), {}}));
  }
  return curve;
}

bench_curve slots_curve(bench_session &session, bool full) {
  bench_curve curve{full ? "device_rx_in_flight" : "device_rx_slots",
                    full ? "requests in flight, in GPU memory: regular 1x32, FIFO, 8 B echo, full ring"
                         : "slots, requests in GPU memory: regular 1x32, 8 B echo, closed loop",
                    "slots",
                    full,
                    {}};
  const drive how = full ? drive::full_ring : drive::one_by_one;
  for (const std::uint32_t slots : {1u, 4u, 16u, 64u, 256u, 1024u}) {
    mapped_case c = device_rx_case(session, slots, 8);
    c.how = how;
    const round_runner floor = device_rx_floor(session, slots, 64, 8, how);
    curve.points.push_back(
        measure_point(session, std::to_string(slots), {8, 8, floor, dispatcher_rounds(session, c), {}}));
  }
  return curve;
}

} // namespace

detail::expected<> check_device_rx(int gpu) {
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  try {
    create_ring(gpu, kSlots, 64, CUDAQ_MEMORY_DEVICE_RX, false, &memory, &ring);
  } catch (const api_error &e) {
    return detail::reason(e.what());
  }
  cudaq_ringbuffer_destroy(memory);
  return {};
}

std::vector<bench_case> cases_with_memory(const bench_options &o, std::span<const bench_case> all,
                                          std::string_view in_gpu_memory) {
  std::vector<bench_case> cases = select_cases(o.cases, all);
  if (!o.cases.empty()) // a case that is named fails instead
    return cases;
  open_gpu(o.gpu);
  if (const detail::expected<> result = check_device_rx(o.gpu); result.failed()) {
    print_error("cudaq-realtime-bench: the cases {} are left out: {}\n", in_gpu_memory, result.text());
    std::erase_if(cases, [&](const bench_case &c) { return names_case(in_gpu_memory, c.name); });
  }
  return cases;
}

bench_rig make_device_rx_rig(bench_session &session, std::string_view name) {
  if (name == "gpu-memory-echo-8B")
    return echo_rig(session, drive::one_by_one);
  if (names_case("gpu-memory-fifo-64", name))
    return echo_rig(session, drive_of(name));
  return frame_rig(session, name == "gpu-memory-cooperative-4K");
}

std::vector<bench_curve> measure_device_rx_curves(bench_session &session) {
  if (check_device_rx(session.options().gpu).failed())
    return {};
  return {payload_curve(session), slots_curve(session, false), slots_curve(session, true)};
}

} // namespace cudaq::realtime::tools

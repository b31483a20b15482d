// SPDX-License-Identifier: Apache-2.0
// `bench graph`: graph workers of the host dispatcher, compared with the same graphs launched bare; and P8, graphs that
// a scheduler on the GPU launches.
#include "tools/bench/device/bench_rigs.h"
#include "tools/bench/graph/bench_device_graph.h"
#include "tools/bench/graph/bench_graph_floor.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kSlots = 256;
constexpr std::uint32_t kHeader = CUDAQ_RPC_HEADER_SIZE;
constexpr char kMethod[] =
    "floors and cases alternate in every round, histograms of all rounds are merged; a floor is the same captured "
    "graph, "
    "launched by the measuring thread, which then polls a word in mapped memory for the graph's end (a stream-memory "
    "write after the graph, or the graph's own store); closed loop: from just before the rx flag is set (floor: before "
    "the copy or launch call) to just after the tx flag (floor: the word) is seen, without the frame and the check of "
    "the reply; rates: exchanges divided by the wall time of the rounds, latency of every 16th; all payloads are "
    "random, "
    "every reply of the dispatcher is checked; P8: the floor is a scheduler of one thread on the GPU, written without "
    "the library, that relaunches itself after every 100 launches; other_floors: the same without frames";

graph_service_config one_worker(const bench_session &session, std::size_t payload_bytes) {
  graph_service_config c;
  c.device = session.options().gpu;
  c.num_slots = kSlots;
  c.slot_bytes = kHeader + static_cast<std::uint32_t>(payload_bytes);
  c.options = default_options();
  // The client has the first cores: one closed loop, or a sender and a collector.
  if (session.cores().size() >= 3)
    c.options.dispatcher_core = session.cores().back();
  return c;
}

client_config client_for(bench_session &session, const graph_service_config &c, unsigned threads) {
  client_config client = session.client(c.num_slots, threads);
  client.payload_bytes = c.slot_bytes - kHeader;
  client.function_id = kGraphFunctionId;
  client.rule = reply_rule::echo;
  return client;
}

round_runner service_rounds(bench_session &session, const graph_service_config &c, drive how) {
  const auto service = std::make_shared<graph_service>(c);
  return [&session, c, how, service] {
    return dispatcher_round(*service, [&] {
      return how == drive::full_ring
                 ? exchange_full_ring(service->ring(), c.num_slots, client_for(session, c, 3), session.scale(),
                                      session.cores())
                 : exchange_one_by_one(service->ring(), c.num_slots, client_for(session, c, 2), session.scale());
    });
  };
}

round_runner bare_rounds(bench_session &session, const graph_service_config &c, drive how) {
  const auto graphs = std::make_shared<bare_graphs>(c);
  return [&session, c, how, graphs] {
    const client_config client = client_for(session, c, 1);
    return how == drive::full_ring ? graphs->all_streams(client, session.scale())
                                   : graphs->one_by_one(client, session.scale());
  };
}

bench_rig rig_of(bench_session &session, const graph_service_config &c, drive how) {
  bench_rig rig;
  rig.floor_payload_bytes = rig.payload_bytes = c.slot_bytes - kHeader;
  rig.floor = bare_rounds(session, c, how);
  rig.ours = service_rounds(session, c, how);
  return rig;
}

bench_rig make_graph_rig(bench_session &session, const bench_case &of) {
  const std::string id = of.id;
  if (std::string_view(of.group) == "P8")
    return make_device_graph_rig(session, id == "P8b" || id == "P8d",
                                 id == "P8c" || id == "P8d" ? CUDAQ_MEMORY_DEVICE_RX : CUDAQ_MEMORY_MAPPED);
  graph_service_config c = one_worker(session, 8);
  if (id == "P7b")
    c.completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
  if (id == "P7c") {
    c = one_worker(session, 4096);
    c.staged = true;
  }
  if (of.metric == bench_metric::p50_ratio)
    return rig_of(session, c, drive::one_by_one);
  c.workers = id == "P12d" ? 8 : 64;
  c.busy_ns = id == "P12d" ? 70000 : 0;
  return rig_of(session, c, drive::full_ring);
}

bench_curve workers_curve(bench_session &session) {
  bench_curve curve{"workers", "graph workers, as fast as possible: library publishes, 8 B echo", "workers", true, {}};
  for (const std::uint32_t workers : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
    graph_service_config c = one_worker(session, 8);
    c.workers = workers;
    curve.points.push_back(measure_point(session, std::to_string(workers), rig_of(session, c, drive::full_ring)));
  }
  return curve;
}

bench_curve payload_curve(bench_session &session, bool staged) {
  bench_curve curve{staged ? "payload_dma" : "payload_mapped",
                    staged ? "payload copied by the DMA pre-launch hook, one worker, closed loop"
                           : "payload read from the mapped slot by the graph, one worker, closed loop",
                    "bytes",
                    false,
                    {}};
  for (const std::uint32_t bytes : {8u, 512u, 4096u, 16384u, 32768u, 65536u, 131072u, 262144u, 1048576u}) {
    graph_service_config c = one_worker(session, bytes);
    c.num_slots = 8;
    c.staged = staged;
    curve.points.push_back(measure_point(session, std::to_string(bytes), rig_of(session, c, drive::one_by_one)));
  }
  return curve;
}

/// The smallest size from which on the copy is not slower; "none" if there is no such size.
std::string crossover(const bench_curve &mapped, const bench_curve &dma) {
  std::string found = "none";
  for (std::size_t i = mapped.points.size(); i-- > 0;) {
    if (dma.points[i].ours.total.per_exchange.percentile(50) > mapped.points[i].ours.total.per_exchange.percentile(50))
      break;
    found = dma.points[i].x;
  }
  return found;
}

std::vector<bench_curve> measure_graph_curves(bench_session &session, bench_context &context) {
  std::vector<bench_curve> curves{workers_curve(session), payload_curve(session, false), payload_curve(session, true)};
  context.notes.push_back("payloads from which on the DMA hook is not slower than the mapped read: " +
                          crossover(curves[1], curves[2]) + " bytes");
  return curves;
}

} // namespace

int run_bench_graph(const bench_options &options, const output &out) {
  return run_suite(
      {kMethod, cases_with_memory(options, all_graph_cases(), {"P8c", "P8d"}), make_graph_rig, measure_graph_curves},
      options, out);
}

} // namespace cudaq::realtime::tools

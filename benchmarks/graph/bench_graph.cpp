// SPDX-License-Identifier: Apache-2.0
// `graph`: graph workers of the host dispatcher, compared with the same graphs launched bare; and graphs that a
// scheduler on the GPU launches.
#include "benchmarks/device/bench_rigs.h"
#include "benchmarks/graph/bench_device_graph.h"
#include "benchmarks/graph/bench_graph_floor.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kSlots = 256;
constexpr std::uint32_t kHeader = CUDAQ_RPC_HEADER_SIZE;
constexpr char kMethod[] =
    "floors and cases alternate in every round, histograms of all rounds are merged; a floor is the same captured "
    "graph, launched by the measuring thread, which then polls a word in mapped memory for the graph's end (a "
    "stream-memory write after the graph, or the graph's own store); closed loop: from just before the rx flag is set "
    "(floor: before the copy or launch call) to just after the tx flag (floor: the word) is seen, without the frame "
    "and the check of the reply; rates: exchanges divided by the wall time of the rounds, latency of every 16th; all "
    "payloads are random, every reply of the dispatcher is checked; scheduler: the floor is a scheduler of one thread "
    "on the GPU, written without the library, that relaunches itself after every 100 launches; other_floors: "
    "scheduler: the same without frames; worker-publishing: two graphs with a context each, launched in turn on one "
    "stream; workers-64: the launches divided among several threads; workers-8-of-70us: two graphs on each stream, so "
    "that one launch is queued while the other runs";

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

exchange_config client_for(bench_session &session, const graph_service_config &c, unsigned threads) {
  exchange_config client = session.client(c.num_slots, threads);
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

round_runner bare_rounds(bench_session &session, const graph_service_config &c, drive how,
                         std::uint32_t per_stream = 1) {
  const auto graphs = std::make_shared<bare_graphs>(c, per_stream);
  return [&session, c, how, graphs] {
    const exchange_config client = client_for(session, c, 1);
    return how == drive::full_ring ? graphs->all_graphs(client, session.scale())
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

/// Two graphs on each stream, each with its own context. drive::full_ring: one launch is queued while the other runs.
round_runner queued_rounds(bench_session &session, graph_service_config c, std::uint32_t streams, drive how) {
  c.workers = 2 * streams;
  return bare_rounds(session, c, how, 2);
}

/// How much of workers / kernel time a second launch in the queue would give.
void add_queued_floors(bench_session &session, graph_service_config c, bench_rig &rig) {
  const std::uint32_t streams = c.workers;
  rig.other_floors.emplace_back(fmt::format("{} streams, second launch queued", streams),
                                queued_rounds(session, c, streams, drive::full_ring));
  rig.other_floors.emplace_back("one stream, second launch queued", queued_rounds(session, c, 1, drive::full_ring));
  c.workers = 1;
  rig.other_floors.emplace_back("one stream, one launch at a time", bare_rounds(session, c, drive::full_ring));
}

/// The same launches by several threads.
void add_thread_floors(bench_session &session, const graph_service_config &c, bench_rig &rig) {
  const auto graphs = std::make_shared<bare_graphs>(c);
  for (const std::uint32_t threads : {2u, 4u, 8u})
    rig.other_floors.emplace_back(
        fmt::format("{} threads, {} streams", threads, c.workers), [&session, c, graphs, threads] {
          return graphs->all_graphs(client_for(session, c, threads), session.scale(), threads, session.cores());
        });
}

bench_rig make_graph_rig(bench_session &session, const bench_case &of) {
  const std::string_view name = of.name;
  if (names_case("scheduler", name))
    return make_device_graph_rig(session, name.find("publishing") != name.npos,
                                 names_case("scheduler-gpu-memory", name) ? CUDAQ_MEMORY_DEVICE_RX
                                                                          : CUDAQ_MEMORY_MAPPED);
  graph_service_config c = one_worker(session, 8);
  if (name == "worker-publishing-8B")
    c.completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
  if (name == "worker-copied-4K") {
    c = one_worker(session, 4096);
    c.staged = true;
  }
  if (of.metric == bench_metric::p50_ratio) {
    bench_rig rig = rig_of(session, c, drive::one_by_one);
    if (name == "worker-publishing-8B")
      rig.other_floors.emplace_back("two graphs in turn, one stream", queued_rounds(session, c, 1, drive::one_by_one));
    return rig;
  }
  const bool is_busy = name == "workers-8-of-70us";
  c.workers = is_busy ? 8 : 64;
  c.busy_ns = is_busy ? 70000 : 0;
  bench_rig rig = rig_of(session, c, drive::full_ring);
  if (is_busy)
    add_queued_floors(session, c, rig);
  else
    add_thread_floors(session, c, rig);
  return rig;
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
  return run_suite({kMethod, cases_with_memory(options, all_graph_cases(), "scheduler-gpu-memory"), make_graph_rig,
                    measure_graph_curves},
                   options, out);
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// `pipeline`: the time that the QEC pipeline adds to its engine and its matcher, also with resident workers, and with
// the staging of the specification.
#include "benchmarks/common/bench_plan.h"
#include "benchmarks/pipeline/bench_pipeline_cases.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/common/terminal.h"
#include "tools/html/html_page.h"
#include "tools/shots/config_shots.h"
#include "tools/shots/own_data.h"
#include "tools/shots/shot_plan.h"

#include "kernels/qec/gpu_worker.h"
#include "lib/qec/decoding/predecoder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;

constexpr int kWorkers = kPipelineWorkers;
constexpr char kNoise[] = "0.003";
constexpr char kMethod[] =
    "own ring in mapped memory; latency: from the clock read just before the accepted submission to the clock read in "
    "the completion handler; closed loop: one request at a time; passthrough: a graph copies random INT32 measurements "
    "of the configuration's size to mapped memory, the CPU stage answers with their first and last 8 bytes, and the "
    "client checks these; local: recorded shots, the CPU stage answers with the counts of the predecoder's output; "
    "decode-stage: from a predecoder's output to the framed answer, with a matcher that returns immediately; "
    "many-workers: a graph of one warp that copies 8 bytes of mapped memory, launched by its worker's thread; bare: "
    "the same graphs without a pipeline; staging: pre-launch hook copies the request to the device, the graph copies "
    "it out and signals by a kernel, the CPU stage polls the flag; its bare floor does the same from one thread, "
    "without the write of the request; buffers: a kernel waits 70 us, copies the request, which the worker has written "
    "to its input, and sets the flag, the buffers of a worker are on one stream; two-streams: each buffer has a "
    "stream, and its kernel waits for an event after that of the other buffer; external: an external ring in mapped "
    "memory, one thread writes the requests and takes the answers, a time ends when it sees the tx flag; resident: "
    "from the clock before the submission to the "
    "begin of the CPU stage, which then has the predecoder's output; its floor: one thread, the same block, no "
    "pipeline; host-predecoder: the same with the predecoder on the CPU, in a ring of plain memory; its floor: the "
    "predecoder alone; relay-bp: from the clock before the request is written until the answer is read, one shot after "
    "another; iteration: the time of the shots with 200 iterations or more, over their iterations";

std::vector<std::unique_ptr<gpu::gpu_worker>> copy_workers(const qec::decoding_config &c, std::uint64_t busy_ns) {
  std::vector<std::unique_ptr<gpu::gpu_worker>> workers;
  for (int id = 0; id < kWorkers; ++id)
    workers.push_back(
        std::make_unique<gpu::copy_gpu_worker>(c.int32_input_bytes(), busy_ns, gpu::staging::automatic, c.slot_size));
  return workers;
}

stage_factory stage_of(const std::vector<std::unique_ptr<gpu::gpu_worker>> &workers) {
  return
      [&workers](int id) { return workers[static_cast<std::size_t>(id)]->resources(kBenchPipelineFunction, nullptr); };
}

std::string staging_text(const std::vector<std::unique_ptr<gpu::gpu_worker>> &workers) {
  return workers.front()->has_staging() ? "dma" : "mapped";
}

class bench {
public:
  explicit bench(const bench_options &o) : options_(o), warm_up_(std::min<std::uint64_t>(2000, o.exchanges)) {}

  /// --cases names the case, or nothing.
  [[nodiscard]] bool wants(std::string_view name) const {
    return options_.cases.empty() ||
           std::ranges::any_of(options_.cases, [&](const std::string &given) { return names_case(given, name); });
  }

  void passthrough(const qec::decoding_config &c) {
    const auto workers = copy_workers(c, 0);
    traffic t(options_, kWorkers, c.slot_size, c.int32_input_bytes());
    t.start(stage_of(workers), &traffic::first_and_last);
    const std::string what =
        fmt::format("{}, passthrough, {} B, {}", c.name, c.int32_input_bytes(), staging_text(workers));
    t.run(traffic::drive::one_by_one, warm_up_);
    if (wants("passthrough-latency")) {
      t.run(traffic::drive::one_by_one, options_.exchanges);
      figures.add("passthrough-latency", what + ", closed loop p50", t.latency);
    }
    if (wants("passthrough-rate"))
      figures.add_rate("passthrough-rate", what + ", as fast as possible", options_.exchanges,
                       t.run(traffic::drive::full, options_.exchanges));
    t.stop();
  }

  void busy(const qec::decoding_config &c) {
    const auto workers = copy_workers(c, kBusyNs);
    traffic t(options_, kWorkers, c.slot_size, c.int32_input_bytes());
    t.start(stage_of(workers), &traffic::first_and_last);
    const std::uint64_t n = std::max<std::uint64_t>(1, options_.exchanges / 4);
    t.run(traffic::drive::periodic, warm_up_);
    if (wants("kernel-70us-latency")) {
      t.run(traffic::drive::periodic, n);
      figures.add("kernel-70us-latency", fmt::format("{}, 70 us kernel every 30 us, p50 without the kernel", c.name),
                  t.latency, 0, static_cast<double>(kBusyNs));
    }
    if (wants("kernel-70us-rate"))
      figures.add_fraction("kernel-70us-rate",
                           fmt::format("{}, 70 us kernel, {} workers: fraction of workers / 70 us", c.name, kWorkers),
                           n, t.run(traffic::drive::full, n));
    t.stop();
  }

  void local(const qec::decoding_config &c, const qec::shot_set &set) {
    const auto graph = qec::detector_graph::from_text(set.dem_text);
    if (graph.failed())
      throw std::runtime_error(graph.text());
    const auto on_device = std::make_shared<const gpu::device_graph>(*graph);
    const qec::predecoder_layout layout{static_cast<std::uint32_t>(set.num_detectors),
                                        static_cast<std::uint32_t>(set.num_observables)};
    std::vector<std::unique_ptr<gpu::gpu_worker>> workers;
    for (int id = 0; id < kWorkers; ++id)
      workers.push_back(
          std::make_unique<gpu::predecoding_worker>(layout, on_device, gpu::staging::automatic, c.slot_size));
    traffic t(options_, kWorkers, c.slot_size, set.detection_bytes());
    t.start(
        stage_of(workers),
        [](const pipe::cpu_stage_context &call) -> std::size_t {
          std::memcpy(call.response_buffer, call.gpu_output, sizeof(qec::predecoder_header));
          return sizeof(qec::predecoder_header);
        },
        &set);
    t.run(traffic::drive::one_by_one, warm_up_);
    if (wants("local-latency")) {
      t.run(traffic::drive::one_by_one, options_.exchanges);
      figures.add("local-latency",
                  fmt::format("{}, local predecoder, {} B, closed loop p50", c.name, set.detection_bytes()), t.latency);
    }
    if (wants("local-rate"))
      figures.add_rate("local-rate", fmt::format("{}, local predecoder, as fast as possible", c.name),
                       options_.exchanges, t.run(traffic::drive::full, options_.exchanges));
    t.stop();
  }

  /// On the calling thread, without a GPU.
  void decode_stage(const qec::decoding_config &c, const qec::shot_set &set) {
    qec::decode_stage stage(std::make_unique<no_matcher>(set));
    auto made = qec::make_predecoder("local", set.dem_text);
    if (made.failed())
      throw std::runtime_error(made.text());
    const std::uint64_t shots = std::min<std::uint64_t>(set.shots, 256);
    std::vector<std::vector<std::uint64_t>> outputs;
    for (std::uint64_t shot = 0; shot < shots; ++shot) {
      outputs.emplace_back((stage.layout().bytes() + 7) / 8);
      (void)(*made)->run(set.detection_row(shot), outputs.back());
    }
    std::vector<std::uint8_t> slot(c.slot_size);
    latency_histogram latency;
    for (std::uint64_t k = 0; k < options_.exchanges + warm_up_; ++k) {
      const std::uint64_t begin = now_ns();
      const std::size_t size = stage.answer(outputs[k % shots].data(), slot.data() + CUDAQ_RPC_HEADER_SIZE,
                                            slot.size() - CUDAQ_RPC_HEADER_SIZE);
      const std::uint64_t end = now_ns();
      if (size != stage.response_bytes())
        throw std::runtime_error("the decode stage refused a recorded shot");
      if (k >= warm_up_)
        latency.record(end - begin);
    }
    figures.add("decode-stage", fmt::format("{}, decode stage without the matcher, p50", c.name), latency);
  }

  figure_list figures;

private:
  const bench_options &options_;
  std::uint64_t warm_up_;
};

/// The measurements that --cases names and this machine can make, in their order, and why others are left out.
struct bench_steps {
  std::vector<std::function<void()>> all;
  std::vector<std::string> skipped;
};

void add_steps(bench_steps &steps, bench &b, const bench_options &o, const qec::decoding_config &c, bool has_gpu,
               const std::string &folder) {
  const auto on_gpu = [&](std::initializer_list<const char *> ids, std::function<void()> step) {
    if (has_gpu && std::ranges::any_of(ids, [&](const char *id) { return b.wants(id); }))
      steps.all.push_back(std::move(step));
  };
  on_gpu({"passthrough-latency", "passthrough-rate"}, [&b, &c] { b.passthrough(c); });
  if (c.name == "d13")
    on_gpu({"kernel-70us-latency", "kernel-70us-rate"}, [&b, &c] { b.busy(c); });
  if (c.name == "d13")
    on_gpu({"kernel-70us-buffers"}, [&b, &c, &o] { bench_buffers(o, c, b.figures); });
  if (c.name == "d7" || c.name == "d13")
    on_gpu({"staging"}, [&b, &c, &o] { bench_specified_staging(o, c, b.figures); });
  if (c.name == "d13") {
    on_gpu({"staging-buffers"}, [&b, &c, &o] { bench_staging_buffers(o, c, b.figures); });
    on_gpu({"two-streams"}, [&b, &c, &o] { bench_two_streams(o, c, b.figures); });
  }
  auto loaded = qec::load_shot_set(folder, c.shot_set_name(kNoise));
  if (loaded.failed()) {
    steps.skipped.push_back(fmt::format("{} with the local predecoder: {}", c.name, loaded.text()));
    return;
  }
  const auto set = std::make_shared<const qec::shot_set>(std::move(*loaded));
  on_gpu({"local-latency", "local-rate"}, [&b, &c, set] { b.local(c, *set); });
  on_gpu({"resident"}, [&b, &c, &o, set] { bench_resident(o, c, *set, b.figures); });
  if (b.wants("host-predecoder"))
    steps.all.emplace_back([&b, &c, &o, set] { bench_host_predecoder(o, c, *set, b.figures); });
  if (b.wants("decode-stage"))
    steps.all.emplace_back([&b, &c, set] { b.decode_stage(c, *set); });
}

void add_relay_bp(bench_steps &steps, bench &b, const bench_options &o, const std::string &folder) {
  for (const std::string name :
       {"bicycle_72_r6_p0.003", "bicycle_144_r12_p0.003", "bicycle_144_r12_both_p0.003", "bicycle_288_r18_p0.003"}) {
    const auto in = [&](const std::string &place) { return std::filesystem::path(place) / (name + ".dem"); };
    const auto file = std::filesystem::exists(in(folder)) ? in(folder) : in(folder + "/bp_osd");
    if (!std::filesystem::exists(file))
      steps.skipped.push_back(fmt::format("relay-bp with {}: {} does not exist", name, file.string()));
    else
      steps.all.emplace_back(
          [&, name, file] { bench_relay_bp(o, name, read_dem_file(file.string()), b.figures, steps.skipped); });
  }
}

void add_learned(bench_steps &steps, bench &b, const bench_options &o, const std::string &folder) {
  constexpr const char *kFile = "surface_128x6.safetensors";
  const auto beside = std::filesystem::path(folder) / ".." / ".." / "training" / "predecoder" / "weights";
  const auto file = std::filesystem::exists(std::filesystem::path(folder) / kFile)
                        ? std::filesystem::path(folder) / kFile
                        : beside / kFile;
  if (!std::filesystem::exists(file)) {
    steps.skipped.push_back(fmt::format("learned: {} does not exist", file.string()));
    return;
  }
  using measure = void (*)(const bench_options &, const std::string &, figure_list &, std::vector<std::string> &);
  for (const auto &[name, run] : {std::pair<const char *, measure>{"learned-shot", &bench_learned_shot},
                                  {"learned-rate", &bench_learned_rate},
                                  {"learned-pipeline", &bench_learned_pipeline}})
    if (b.wants(name))
      steps.all.emplace_back([&, file, run] { run(o, file.string(), b.figures, steps.skipped); });
}

/// "passthrough-latency.d13"
std::string histogram_name(const figure &f) {
  return fmt::format("{}.{}", f.name, f.what.substr(0, f.what.find_first_of(",: ")));
}

std::string pipeline_bench_html(const json &report, const std::vector<figure> &figures) {
  html_page page("The QEC pipeline without its engine and its matcher");
  page.add("Method", html_paragraph(report["method"].get<std::string>()));
  std::vector<std::vector<std::string>> rows{{"", "", "value"}};
  std::vector<plotted_latency> latencies;
  for (const figure &f : figures) {
    rows.push_back({f.name, f.what, fmt::format("{:.2f} {}", f.value, f.unit)});
    if (f.latency.count() != 0)
      latencies.push_back({f.name + " " + f.what, &f.latency});
  }
  page.add("Figures", html_table(rows));
  page.add("Latencies", latency_table(latencies));
  return page.text(report);
}

} // namespace

int run_bench_pipeline(const bench_options &options, const output &out) {
  check_pipeline_cases(options.cases);
  const bench_options o = effective(options);
  int devices = 0;
  const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess && o.gpu < devices;
  bench b(o);
  const std::string folder = find_data_folder(o.data_folder);
  bench_steps steps;
  if (has_gpu)
    gpu::require(cudaSetDevice(o.gpu), "cudaSetDevice");
  else
    steps.skipped.emplace_back("all cases but decode-stage and host-predecoder: no CUDA device");
  if (has_gpu && b.wants("many-workers"))
    steps.all.emplace_back([&] { bench_many_workers(o, b.figures); });
  if (has_gpu && b.wants("relay-bp"))
    add_relay_bp(steps, b, o, folder);
  if (has_gpu)
    add_learned(steps, b, o, folder);
  for (const char *name : {"d7", "d13", "d21", "d31"})
    add_steps(steps, b, o, *qec::find_decoding_config(name), has_gpu, folder);
  const interrupt_guard guard;
  std::size_t done = 0;
  {
    progress display({"pipeline", "measurements", steps.all.size()});
    for (; done < steps.all.size() && (done == 0 || !guard.interrupted()); ++done) {
      display.show(done, now_ns());
      steps.all[done]();
    }
  }
  json figures = json::array();
  out.text("{} workers, {} slots, {} cores, {} exchanges of each\n\n", kWorkers, kPipelineSlots, allowed_cores().size(),
           o.exchanges);
  for (const figure &f : b.figures.all()) {
    out.text("{:<38} {:>10.2f} {:<5}  {}\n", f.name, f.value, f.unit, f.what);
    json j = {{"name", f.name}, {"what", f.what}, {"unit", f.unit}, {"value", f.value}};
    if (f.floor != 0)
      j.update({{"floor", f.floor}, {"ratio", f.value / f.floor}});
    if (f.latency.count() != 0)
      j["latency_ns"] = latency_json(f.latency);
    figures.push_back(std::move(j));
  }
  for (const figure &f : b.figures.all())
    if (f.latency.count() != 0)
      out.write_hgrm(histogram_name(f), f.latency);
  for (const std::string &what : steps.skipped)
    out.text("skipped: {}\n", what);
  return out.finish({{"method", kMethod},
                     {"workers", kWorkers},
                     {"slots", kPipelineSlots},
                     {"exchanges", o.exchanges},
                     {"figures", figures},
                     {"skipped", steps.skipped}},
                    "", kExitCheckFailed, ended(guard.interrupted(), done, steps.all.size(), "measurements"),
                    [&](const json &all) { return pipeline_bench_html(all, b.figures.all()); });
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// `bench pipeline`: the time that the QEC pipeline adds to its engine and its matcher (P11, P12, P13).
#include "tools/bench/bench_plan.h"
#include "tools/common/clock.h"
#include "tools/common/machine.h"
#include "tools/common/shot_plan.h"
#include "tools/pipeline/pipeline_shots.h"

#include "kernels/qec/gpu_worker.h"

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;
namespace pipe = cudaq::qec::realtime::experimental;

constexpr std::uint32_t kFunctionId = fnv1a_hash("bench_pipeline");
constexpr std::uint64_t kBusyNs = 70000, kPeriodNs = 30000;
constexpr int kSlots = 64, kWorkers = 8;
constexpr char kNoise[] = "0.003";
constexpr char kMethod[] =
    "own ring in mapped memory; latency: from the clock read just before the accepted submission to the clock read in "
    "the completion handler; closed loop: one request at a time; passthrough: a graph copies random INT32 measurements "
    "of the configuration's size to mapped memory, the CPU stage answers with their first and last 8 bytes, and the "
    "client checks these; local: recorded shots, the CPU stage answers with the counts of the predecoder's output; "
    "P13: "
    "the decode stage from a predecoder's output to the framed answer, with a matcher that returns immediately";

/// A target; 0: no target. `higher`: a higher figure is better.
struct target {
  double good = 0, aim = 0;
  bool higher = false;
};

struct figure {
  std::string id, what, unit;
  double value = 0;
  target of;
  latency_histogram latency; ///< may be empty

  [[nodiscard]] const char *verdict() const {
    const auto meets = [&](double wanted) { return of.higher ? value >= wanted : value <= wanted; };
    return of.good == 0 ? "" : meets(of.aim) ? "aim" : meets(of.good) ? "good" : "MISSED";
  }
};

using stage_factory = std::function<pipe::gpu_worker_resources(int)>;

/// One pipeline, and a client that sends requests through it. The main thread sends; complete() runs on the pipeline's
/// consumer thread.
class traffic {
public:
  traffic(const bench_options &o, int workers, std::size_t slot_size, std::size_t request_bytes)
      : options_(o), request_bytes_(request_bytes), sent_(2 * kSlots), pipeline_(config(o, workers, slot_size)) {
    std::mt19937_64 random(o.seed);
    payload_.resize(request_bytes / 8 + kVariants);
    for (std::uint64_t &word : payload_)
      word = random();
    pipeline_.set_completion_handler([this](const pipe::completion &c) { complete(c); });
  }
  static std::size_t first_and_last(const pipe::cpu_stage_context &c) {
    const auto *words = static_cast<const std::uint64_t *>(c.gpu_output);
    const std::uint64_t answer[] = {words[0], words[c.gpu_output_size / 8 - 1]};
    std::memcpy(c.response_buffer, answer, sizeof(answer));
    return sizeof(answer);
  }
  void start(stage_factory stage, pipe::cpu_stage_callback cpu, const qec::shot_set *shots = nullptr) {
    shots_ = shots;
    pipeline_.set_gpu_stage(std::move(stage));
    pipeline_.set_cpu_stage(std::move(cpu));
    pipeline_.start();
  }
  void stop() {
    pipeline_.stop();
    if (wrong_ != 0 || !pipeline_.last_stop().drained)
      throw check_failed(fmt::format("FAILED: {} answers are wrong; {}", wrong_, pipeline_.last_stop().text));
  }

  enum class drive { one_by_one, periodic, full };
  /// Returns nanoseconds from the first submission to the last completion.
  std::uint64_t run(drive how, std::uint64_t requests) {
    pipe::ring_buffer_injector injector = pipeline_.create_injector();
    latency = {};
    const std::uint64_t base = next_, begin = now_ns();
    for (; next_ != base + requests; ++next_) {
      if (how == drive::periodic)
        while (now_ns() < begin + (next_ - base) * kPeriodNs)
          relax();
      await([&] { return try_submit(injector, next_); });
      if (how == drive::one_by_one)
        await([&] { return done_.load() == next_ + 1; });
    }
    await([&] { return done_.load() == next_; });
    return last_ns_.load() - begin;
  }
  latency_histogram latency; ///< of the last run

private:
  static constexpr std::size_t kVariants = 1024;

  static pipe::pipeline_stage_config config(const bench_options &o, int workers, std::size_t slot_size) {
    pipe::pipeline_stage_config c;
    c.num_workers = workers;
    c.num_slots = kSlots;
    c.slot_size = slot_size;
    c.memory = pipe::ring_memory::mapped;
    c.device_id = o.gpu;
    return c;
  }
  template <class Done>
  void await(Done &&done) {
    spin_then_yield idle(10000);
    for (std::uint64_t since = now_ns(); !done(); idle.idle())
      if (static_cast<double>(now_ns() - since) > options_.timeout_s * 1e9)
        throw check_failed("FAILED: no progress; state of the pipeline:\n" + pipeline_.dump());
  }
  bool try_submit(pipe::ring_buffer_injector &to, std::uint64_t k) {
    sent_[k % sent_.size()] = now_ns();
    if (shots_ == nullptr)
      return to.try_submit(kFunctionId, request(k), request_bytes_, k);
    const auto row = shots_->detection_row(k % shots_->shots);
    return to.try_submit(kFunctionId, row.data(), row.size(), k);
  }
  [[nodiscard]] const std::uint64_t *request(std::uint64_t k) const { return payload_.data() + k % kVariants; }
  void complete(const pipe::completion &c) {
    const std::uint64_t now = now_ns();
    latency.record(now - sent_[c.request_id % sent_.size()]);
    if (shots_ == nullptr) {
      const std::uint64_t *words = request(c.request_id);
      const std::uint64_t expected[] = {words[0], words[request_bytes_ / 8 - 1]};
      wrong_ +=
          !c.success || c.response_size != sizeof(expected) || std::memcmp(c.response, expected, sizeof(expected)) != 0;
    } else {
      wrong_ += !c.success || c.status != 0;
    }
    last_ns_.store(now);
    done_.store(done_.load() + 1);
  }

  const bench_options &options_;
  std::size_t request_bytes_;
  const qec::shot_set *shots_ = nullptr;
  std::vector<std::uint64_t> payload_, sent_;
  std::uint64_t next_ = 0, wrong_ = 0;
  std::atomic<std::uint64_t> done_{0}, last_ns_{0};
  pipe::realtime_pipeline pipeline_;
};

std::vector<std::unique_ptr<gpu::gpu_worker>> copy_workers(const qec::decoding_config &c, std::uint64_t busy_ns) {
  std::vector<std::unique_ptr<gpu::gpu_worker>> workers;
  for (int id = 0; id < kWorkers; ++id)
    workers.push_back(
        std::make_unique<gpu::copy_gpu_worker>(c.int32_input_bytes(), busy_ns, gpu::staging::automatic, c.slot_size));
  return workers;
}

stage_factory stage_of(const std::vector<std::unique_ptr<gpu::gpu_worker>> &workers) {
  return [&workers](int id) { return workers[static_cast<std::size_t>(id)]->resources(kFunctionId, nullptr); };
}

std::string staging_text(const std::vector<std::unique_ptr<gpu::gpu_worker>> &workers) {
  return workers.front()->has_staging() ? "dma" : "mapped";
}

class bench {
public:
  explicit bench(const bench_options &o) : options_(o), warm_up_(std::min<std::uint64_t>(2000, o.exchanges)) {}

  void passthrough(const qec::decoding_config &c) {
    const auto workers = copy_workers(c, 0);
    traffic t(options_, kWorkers, c.slot_size, c.int32_input_bytes());
    t.start(stage_of(workers), &traffic::first_and_last);
    const bool is_target = c.name == "d13";
    const std::string what =
        fmt::format("{}, passthrough, {} B, {}", c.name, c.int32_input_bytes(), staging_text(workers));
    t.run(traffic::drive::one_by_one, warm_up_);
    t.run(traffic::drive::one_by_one, options_.exchanges);
    add("P11a", what + ", closed loop p50", "us", t.latency, is_target ? target{12, 8} : target{});
    const std::uint64_t ns = t.run(traffic::drive::full, options_.exchanges);
    add_rate("P12a", what + ", as fast as possible", ns, is_target ? target{250e3, 400e3, true} : target{});
    t.stop();
  }

  void busy(const qec::decoding_config &c) {
    const auto workers = copy_workers(c, kBusyNs);
    traffic t(options_, kWorkers, c.slot_size, c.int32_input_bytes());
    t.start(stage_of(workers), &traffic::first_and_last);
    const std::uint64_t n = std::max<std::uint64_t>(1, options_.exchanges / 4);
    t.run(traffic::drive::periodic, warm_up_);
    t.run(traffic::drive::periodic, n);
    add("P11b", fmt::format("{}, 70 us kernel every 30 us, p50 without the kernel", c.name), "us", t.latency, {12, 8},
        static_cast<double>(kBusyNs));
    const std::uint64_t ns = t.run(traffic::drive::full, n);
    figure f{"P12b",
             fmt::format("{}, 70 us kernel, {} workers: fraction of workers / 70 us", c.name, kWorkers),
             "",
             0,
             {0.95, 0.99, true},
             {}};
    f.value = static_cast<double>(n * kBusyNs) / static_cast<double>(ns) / kWorkers;
    figures.push_back(std::move(f));
    t.stop();
  }

  void local(const qec::decoding_config &c, const qec::shot_set &set) {
    const auto graph = qec::detector_graph::from_text(set.dem_text, qec::local_rule::isolated);
    if (!graph)
      throw std::runtime_error(graph.error);
    const auto on_device = std::make_shared<const gpu::device_graph>(*graph);
    const qec::predecoder_layout layout{static_cast<std::uint32_t>(set.num_detectors),
                                        static_cast<std::uint32_t>(set.num_observables)};
    std::vector<std::unique_ptr<gpu::gpu_worker>> workers;
    for (int id = 0; id < kWorkers; ++id)
      workers.push_back(std::make_unique<gpu::predecoding_worker>(layout, on_device, qec::local_rule::isolated,
                                                                  gpu::staging::automatic, c.slot_size));
    traffic t(options_, kWorkers, c.slot_size, set.detection_bytes());
    t.start(
        stage_of(workers),
        [](const pipe::cpu_stage_context &call) -> std::size_t {
          std::memcpy(call.response_buffer, call.gpu_output, sizeof(qec::predecoder_header));
          return sizeof(qec::predecoder_header);
        },
        &set);
    t.run(traffic::drive::one_by_one, warm_up_);
    t.run(traffic::drive::one_by_one, options_.exchanges);
    add("P11c", fmt::format("{}, local predecoder, {} B, closed loop p50", c.name, set.detection_bytes()), "us",
        t.latency, {});
    const std::uint64_t ns = t.run(traffic::drive::full, options_.exchanges);
    add_rate("P12e", fmt::format("{}, local predecoder, as fast as possible", c.name), ns, {});
    t.stop();
  }

  /// Measures P13, on the calling thread, without a GPU.
  void decode_stage(const qec::decoding_config &c, const qec::shot_set &set) {
    class no_matcher final : public qec::decoder {
    public:
      no_matcher(std::uint64_t detectors, std::uint64_t observables) : decoder(detectors, observables) {}
      const char *name() const noexcept override { return "none"; }

    protected:
      qec::decode_status decode_checked(const std::vector<std::uint64_t> &, std::span<std::uint8_t>,
                                        qec::decode_details *) noexcept override {
        return qec::decode_status::ok;
      }
    };
    qec::decode_stage stage(std::make_unique<no_matcher>(set.num_detectors, set.num_observables));
    auto made = qec::make_predecoder("local", set.dem_text);
    if (!made)
      throw std::runtime_error(made.error);
    const std::uint64_t shots = std::min<std::uint64_t>(set.shots, 256);
    std::vector<std::vector<std::uint64_t>> outputs;
    for (std::uint64_t shot = 0; shot < shots; ++shot) {
      outputs.emplace_back((stage.layout().bytes() + 7) / 8);
      (void)made.instance->run(set.detection_row(shot), outputs.back());
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
    add("P13", fmt::format("{}, decode stage without the matcher, p50", c.name), "us", latency, {2, 0.5});
  }

  std::vector<figure> figures;

private:
  void add(std::string id, std::string what, std::string unit, const latency_histogram &latency, target of,
           double without_ns = 0) {
    const double us = (static_cast<double>(latency.percentile(50)) - without_ns) / 1000;
    figures.push_back({std::move(id), std::move(what), std::move(unit), us, of, latency});
  }
  void add_rate(std::string id, std::string what, std::uint64_t ns, target of) {
    const double rate = static_cast<double>(options_.exchanges) * 1e9 / static_cast<double>(ns);
    figures.push_back({std::move(id), std::move(what), "req/s", rate, of, {}});
  }
  const bench_options &options_;
  std::uint64_t warm_up_;
};

bool wanted(const bench_options &o, const char *group) {
  return o.cases.empty() || std::any_of(o.cases.begin(), o.cases.end(),
                                        [&](const std::string &named) { return named.substr(0, 3) == group; });
}

} // namespace

int run_bench_pipeline(const bench_options &options, const output &out) {
  check_pipeline_cases(options.cases);
  const bench_options o = effective(options);
  int devices = 0;
  const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess && o.gpu < devices;
  std::vector<std::string> skipped;
  bench b(o);
  const std::string folder = find_data_folder(o.data_folder);
  const bool on_gpu = has_gpu && (wanted(o, "P11") || wanted(o, "P12"));
  if (on_gpu)
    gpu::require(cudaSetDevice(o.gpu), "cudaSetDevice");
  else
    skipped.push_back(has_gpu ? "P11 and P12: not selected" : "P11 and P12: no CUDA device");
  for (const char *name : {"d7", "d13", "d21", "d31"}) {
    const qec::decoding_config &c = *qec::find_decoding_config(name);
    if (on_gpu) {
      b.passthrough(c);
      if (c.name == "d13")
        b.busy(c);
    }
    const auto set = qec::load_shot_set(folder, c.shot_set_name(kNoise));
    if (!set) {
      skipped.push_back(fmt::format("{} with the local predecoder: {}", name, set.error));
      continue;
    }
    if (on_gpu)
      b.local(c, *set);
    if (wanted(o, "P13"))
      b.decode_stage(c, *set);
  }
  json figures = json::array();
  out.text("{} workers, {} slots, {} cores, {} exchanges of each\n\n", kWorkers, kSlots, allowed_cores().size(),
           o.exchanges);
  for (const figure &f : b.figures) {
    out.text("{:<5} {:<66} {:>10.2f} {:<5} {}\n", f.id, f.what, f.value, f.unit, f.verdict());
    json j = {{"id", f.id}, {"what", f.what}, {"unit", f.unit}, {"value", f.value}};
    if (f.of.good != 0)
      j.update({{"good", f.of.good}, {"aim", f.of.aim}, {"verdict", f.verdict()}});
    if (f.latency.count() != 0)
      j["latency_ns"] = latency_json(f.latency);
    figures.push_back(std::move(j));
  }
  for (const std::string &what : skipped)
    out.text("skipped: {}\n", what);
  return out.finish({{"method", kMethod},
                     {"workers", kWorkers},
                     {"slots", kSlots},
                     {"exchanges", o.exchanges},
                     {"figures", figures},
                     {"skipped", skipped}});
}

} // namespace cudaq::realtime::tools

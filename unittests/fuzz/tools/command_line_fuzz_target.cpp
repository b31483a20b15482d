// SPDX-License-Identifier: Apache-2.0
// The input is a command line of a program, one argument per line. The subcommands' run functions are replaced: they
// check that each option is in its range. No file is opened and nothing is run. The sources of the command lines are
// included: in one unit with their headers, which are slow, they compile in a quarter of the time.
#include "benchmarks/bench_commands.cpp"
#include "benchmarks/common/bench.h"
#include "benchmarks/decoding/bench_decoding.h"
#include "benchmarks/stream/bench_stream.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "tools/command_line/commands.h"
#include "tools/decode/decode.h"
#include "tools/decode/decode_command.cpp"
#include "tools/demo/demo.h"
#include "tools/demo/demo_command.cpp"
#include "tools/info/info.h"
#include "tools/info/info_command.cpp"
#include "tools/latency/latency.h"
#include "tools/latency/latency_command.cpp"
#include "tools/pipeline/pipeline_command.cpp"
#include "tools/pipeline/pipeline_gpu.h"
#include "unittests/fuzz/fuzz_input.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

using test::require;

bool one_of(const std::string &value, std::initializer_list<const char *> words) {
  return std::find(words.begin(), words.end(), value) != words.end();
}
// A comparison with NaN is false, so NaN is out of every range.
template <class Number>
bool between(Number value, Number low, Number high) {
  return value >= low && value <= high;
}
bool good_cores(const thread_cores &c) {
  for (const int core : {c.producer, c.consumer, c.dispatcher, c.workers})
    if (!between(core, -1, 4095))
      return false;
  return true;
}

void check(const measuring_options &o, std::uint64_t max_exchanges) {
  require(between<std::uint64_t>(o.exchanges, 1, max_exchanges), "--exchanges");
  require(between<std::uint64_t>(o.rounds, 1, 10000), "--repeats");
  require(between(o.timeout_s, 0.01, 1e5), "--timeout");
  for (const int core : o.cores)
    require(between(core, 0, 4095), "--cores");
}

int check_bench(const bench_options &o) {
  check(o, std::uint64_t{1} << 32);
  require(between(o.gpu, 0, 255), "--gpu");
  return kExitOk;
}

int check_demo(const demo_options &o) {
  require(between<std::uint64_t>(o.shots, 1, std::uint64_t{1} << 48), "--shots");
  require(o.duration_s == 0 || between(o.duration_s, 0.001, 1e6), "--duration");
  require(!o.rate || between(*o.rate, 0.0, 1e9), "--rate");
  require(between(o.slots, 1u, 1u << 20), "--slots");
  require(between(o.workers, kAutoWorkers, 64) && o.client_threads <= 2, "--workers, --client-threads");
  require(good_cores(o.cores), "cores");
  require(one_of(o.wait, {"auto", "spin", "yield", "block"}), "--wait");
  require(qec::check_decoder_name(o.decoder).ok(), "--decoder");
  require(one_of(o.device, {"cpu", "gpu"}), "--device");
  require(between(o.gpu, 0, 255) && between(o.timeout_s, 0.01, 1e5), "--gpu, --timeout");
  return kExitOk;
}

} // namespace

int run_demo(const demo_options &o, const output &, const decode_place *) { return check_demo(o); }
int run_demo_on_gpu(const demo_options &o, const output &) { return check_demo(o); }
int run_bench_device(const bench_options &o, const output &) { return check_bench(o); }
int run_bench_graph(const bench_options &o, const output &) { return check_bench(o); }
int run_bench_pipeline(const bench_options &o, const output &) { return check_bench(o); }
int run_bench_idle(const bench_options &o, const output &) { return check_bench(o); }
int run_bench_decoding(const bench_decoding_options &, const output &) { return kExitOk; }
int run_bench_stream(const bench_stream_options &, const output &) { return kExitOk; }
int run_info(const output &) { return kExitOk; }
std::unique_ptr<gpu_stage> make_gpu_stage(const pipeline_options &, const pipeline_shots &, int, std::size_t) {
  return nullptr;
}

int run_latency(const latency_options &o, const output &) {
  check(o, std::uint64_t{1} << 40);
  require(between(o.slots, 1u, 1u << 20), "--slots");
  require(good_cores(o.where), "cores");
  return kExitOk;
}

int run_decode(const decode_options &o, const output &) {
  for (const shot_source *source : {&o.data.in, &o.data.obs_in, &o.data.predictions, &o.out})
    require(source->format.empty() || qec::find_shot_format(source->format), "a format");
  require(qec::check_decoder_name(o.decoder).ok(), "--decoder");
  require(one_of(o.predecoder, {"passthrough", "local", "auto"}) && o.threads <= 1024, "--predecoder, --threads");
  return kExitOk;
}

int run_pipeline(const pipeline_options &o, const output &, gpu_stage_maker) {
  require(one_of(o.config, {"d7", "d13", "d21", "d31", "d13_T104"}), "--config");
  require(one_of(o.engine, {"auto", "local", "passthrough", "resident"}), "--predecoder");
  require(one_of(o.device, {"cpu", "gpu"}) && between(o.gpu, 0, 255), "--device, --gpu");
  require(one_of(o.staging, {"auto", "mapped", "dma", "resident"}), "--staging");
  require(qec::check_decoder_name(o.decoder).ok(), "--decoder");
  require(one_of(o.wait, {"auto", "spin", "yield", "block"}), "--wait");
  require(between<std::uint64_t>(o.shots, 1, std::uint64_t{1} << 48), "--shots");
  require(between(o.workers, kAutoWorkers, 64) && o.workers != 0, "--workers");
  require(between(o.rate, 0.0, 1e9) && between(o.timeout_s, 0.01, 1e5), "--rate, --timeout");
  require(between(o.slots, 1u, 1u << 20) && good_cores(o.cores), "--slots, cores");
  return kExitOk;
}

output::output(output_options options) : options_(std::move(options)), quiet_(true) {}
output::~output() = default;

} // namespace cudaq::realtime::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  namespace tools = cudaq::realtime::tools;
  using cudaq::realtime::test::require;
  if (size > 4096)
    return 0; // longer than a command line that a person types
  cudaq::realtime::test::fuzz_input input(data, size);
  std::vector<std::string> words;
  while (!input.empty())
    words.emplace_back(input.text_until("\n"));
  std::reverse(words.begin(), words.end()); // the form that CLI::App::parse takes

  CLI::App app;
  app.set_version_flag("--version", "a version");
  app.require_subcommand(1);
  tools::chosen_command chosen;
  tools::add_demo(app, chosen);
  tools::add_pipeline(app, chosen);
  tools::add_latency(app, chosen);
  CLI::App &benchmarks = *app.add_subcommand("bench"); // both programs have a `pipeline`
  benchmarks.require_subcommand(1);
  tools::add_benchmarks(benchmarks, chosen);
  tools::add_info(app, chosen);
  try {
    app.parse(words);
  } catch (const CLI::ParseError &refused) {
    std::ostringstream out, error;
    const int code = app.exit(refused, out, error);
    require((code == 0) != out.str().empty() || (code != 0) != error.str().empty(), "a refusal or a help has a text");
    return 0;
  }
  require(bool(chosen.run), "an accepted command line names a subcommand");
  require(chosen.run(tools::output({})) == tools::kExitOk, "the subcommand runs");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/decoding/bench_decoding.h"

#include "lib/qec/decoders/offline_decoder.h"
#include "lib/qec/decoding/predecoding/model_sampler.h"
#include "lib/qec/decoding/thread_clock.h"
#include "tools/common/own_data.h"
#include "tools/pipeline/pipeline_shots.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kBatch = 256; ///< shots that every case decodes in turn

struct measured_decoder {
  std::string name;
  qec::offline_decoder with;
  paired_errors errors{}; ///< `without` is the reference
  std::uint64_t events = 0, refused = 0;
  double ns = 0;
};

std::vector<measured_decoder> make_cases(const bench_decoding_options &o, const std::string &dem) {
  std::vector<measured_decoder> cases;
  const auto add = [&](const std::string &name, const std::string &decoder, const char *predecoder,
                       qec::local_rule rule) {
    qec::predecoder_result first;
    if (predecoder != nullptr && !(first = qec::make_predecoder(predecoder, dem, rule)))
      throw usage_error(fmt::format("--dem {}: {}", o.dem_file, first.error));
    qec::decoder_result second = qec::make_decoder(decoder, dem);
    if (!second)
      throw usage_error(fmt::format("--dem {}: {}", o.dem_file, second.error));
    cases.push_back({name, {std::move(first.instance), std::move(second.instance)}});
  };
  for (const std::string &decoder : o.decoders)
    add(decoder, decoder, nullptr, qec::local_rule::isolated);
  for (const std::string &predecoder : o.predecoders) {
    if (predecoder == "passthrough")
      add("passthrough + " + o.decoders.front(), o.decoders.front(), "passthrough", qec::local_rule::isolated);
    else if (predecoder == "local")
      for (const std::string &rule : o.rules)
        add("local (" + rule + ") + " + o.decoders.front(), o.decoders.front(), "local", local_rule_named(rule));
  }
  return cases;
}

/// A batch of shots, and who got them wrong.
class batch {
public:
  explicit batch(const qec::model_sampler &sampler)
      : sampler_(sampler), shots_(kBatch * sampler.shot_bytes()), truth_(kBatch * sampler.observable_bytes()),
        reference_wrong_(kBatch) {}

  void sample(const bench_decoding_options &o, std::mt19937_64 &random, std::size_t n) {
    size_ = n;
    std::ranges::fill(shots_, std::uint8_t{0});
    std::ranges::fill(truth_, std::uint8_t{0});
    for (std::size_t i = 0; i < n; ++i) {
      if (o.errors == 0)
        sampler_.sample(random, shot(i), truth(i));
      else
        sampler_.sample_exactly(o.errors, random, shot(i), truth(i));
    }
  }
  void decode(measured_decoder &c, bool is_reference) {
    wrong_.assign(size_, false);
    const double begin = qec::thread_seconds();
    for (std::size_t i = 0; i < size_; ++i) {
      const qec::decode_status status = c.with.decode(shot(i));
      c.refused += status != qec::decode_status::ok;
      c.events += c.with.decoded_events();
      wrong_[i] = status != qec::decode_status::ok || !std::ranges::equal(c.with.observables(), truth(i));
    }
    c.ns += 1e9 * (qec::thread_seconds() - begin);
    if (is_reference)
      reference_wrong_ = wrong_;
    c.errors.shots += size_;
    for (std::size_t i = 0; i < size_; ++i) {
      c.errors.with += wrong_[i];
      c.errors.without += reference_wrong_[i];
      c.errors.only_with += wrong_[i] && !reference_wrong_[i];
      c.errors.only_without += !wrong_[i] && reference_wrong_[i];
    }
  }

private:
  std::span<std::uint8_t> shot(std::size_t i) {
    return std::span(shots_).subspan(i * sampler_.shot_bytes(), sampler_.shot_bytes());
  }
  std::span<std::uint8_t> truth(std::size_t i) {
    return std::span(truth_).subspan(i * sampler_.observable_bytes(), sampler_.observable_bytes());
  }
  const qec::model_sampler &sampler_;
  std::vector<std::uint8_t> shots_, truth_;
  std::vector<bool> reference_wrong_, wrong_;
  std::size_t size_ = 0;
};

std::string ratio_text(const paired_errors &e, bool is_reference) {
  if (is_reference)
    return "reference";
  if (e.with == e.without && e.only_with == 0)
    return "1 (all answers equally right)";
  if (e.with == 0 || e.without == 0)
    return fmt::format("{} / {} failures", e.with, e.without);
  return fmt::format("{:.3f} ({:.3f}-{:.3f})", e.ratio(), e.ratio_interval().low, e.ratio_interval().high);
}

json case_json(const measured_decoder &c, bool is_reference) {
  const auto shots = static_cast<double>(c.errors.shots);
  const error_rate failed{c.errors.with, c.errors.shots};
  json j{{"name", c.name},
         {"failures", c.errors.with},
         {"logical_error_rate", failed.rate()},
         {"interval_95", {failed.interval_95().low, failed.interval_95().high}},
         {"refused", c.refused},
         {"events_per_shot", static_cast<double>(c.events) / shots},
         {"cpu_ns_per_shot", c.ns / shots}};
  if (is_reference)
    return j;
  j["only_this_failed"] = c.errors.only_with;
  j["only_reference_failed"] = c.errors.only_without;
  if (c.errors.with != 0 && c.errors.without != 0) {
    const auto ratio = c.errors.ratio_interval();
    j["ratio"] = c.errors.ratio();
    j["ratio_interval_95"] = {ratio.low, ratio.high};
  }
  return j;
}

} // namespace

int run_bench_decoding(const bench_decoding_options &o, const output &out) {
  std::ifstream file(o.dem_file);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    throw usage_error(fmt::format("--dem {}: cannot be read", o.dem_file));
  const std::string dem = text.str();
  const auto model = qec::parse_dem(dem);
  if (!model)
    throw usage_error(fmt::format("--dem {}: {}", o.dem_file, model.error));
  const qec::model_sampler sampler(*model);
  if (o.errors != 0 && !sampler.can_sample(o.errors))
    throw usage_error(fmt::format("--errors {}: {} has too few errors for sets of so many", o.errors, o.dem_file));
  std::vector<measured_decoder> cases = make_cases(o, dem);
  std::mt19937_64 random(o.seed);
  batch shots(sampler);
  for (std::uint64_t done = 0; done < o.shots;) {
    const std::size_t n = std::min<std::uint64_t>(kBatch, o.shots - done);
    shots.sample(o, random, n);
    for (measured_decoder &c : cases)
      shots.decode(c, &c == &cases.front());
    done += n;
    if (o.failures != 0 && cases.front().errors.with >= o.failures)
      break;
  }

  const measured_decoder &reference = cases.front();
  out.text(
      "{}: {} detectors, {} observables, {:.3g} errors a shot expected{}\n{} shots, seed {}\n\n{:<32} {:>9}  {:<28}  "
      "{:<26} {:>8}  {:>10}\n",
      o.dem_file, model->num_detectors, model->num_observables, sampler.expected_errors(),
      o.errors == 0 ? "" : fmt::format("; sampled: exactly {}", o.errors), reference.errors.shots, o.seed, "",
      "failures", "per shot, 95 % interval", "ratio, paired", "events", "CPU a shot");
  json list = json::array();
  for (const measured_decoder &c : cases) {
    const error_rate failed{c.errors.with, c.errors.shots};
    const auto interval = failed.interval_95();
    const auto n = static_cast<double>(c.errors.shots);
    out.text("{:<32} {:>9}  {:<28}  {:<26} {:>8.2f}  {:>10}\n", c.name, c.errors.with,
             fmt::format("{:.3g} ({:.3g}-{:.3g})", failed.rate(), interval.low, interval.high),
             ratio_text(c.errors, &c == &reference), static_cast<double>(c.events) / n, format_ns(c.ns / n));
    if (c.refused != 0)
      out.text("  {} shots refused by {}: counted as failures\n", c.refused, c.name);
    list.push_back(case_json(c, &c == &reference));
  }
  return out.finish(json{{"method", "shots sampled from the model's error instructions; every case decodes the same "
                                    "shots; CPU time of the thread, with predecoder and unpacking, without sampling"},
                         {"dem", o.dem_file},
                         {"detectors", model->num_detectors},
                         {"observables", model->num_observables},
                         {"expected_errors", sampler.expected_errors()},
                         {"errors", o.errors},
                         {"shots", reference.errors.shots},
                         {"seed", o.seed},
                         {"cases", list}});
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/decoding/bench_decoding.h"

#include "lib/qec/decoders/offline_decoder.h"
#include "lib/qec/decoding/thread_clock.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/common/terminal.h"
#include "tools/html/html_page.h"
#include "tools/html/html_plots.h"
#include "tools/shots/config_shots.h"
#include "tools/shots/own_data.h"
#include "tools/shots/sampled_shots.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kBatch = kSampledBatch; ///< shots that every case decodes in turn

/// What a case did with some shots.
struct case_counts {
  paired_errors errors{}; ///< `without` is the reference
  std::uint64_t events = 0, refused = 0;
  qec::deadline_counts deadlines;
  double ns = 0;

  void operator+=(const case_counts &more) noexcept {
    errors.shots += more.errors.shots;
    errors.with += more.errors.with;
    errors.without += more.errors.without;
    errors.only_with += more.errors.only_with;
    errors.only_without += more.errors.only_without;
    events += more.events;
    refused += more.refused;
    deadlines.met += more.deadlines.met;
    deadlines.missed += more.deadlines.missed;
    deadlines.late += more.deadlines.late;
    ns += more.ns;
  }
};

struct named_decoder {
  std::string name;
  qec::offline_decoder with;
  std::string decoder;    ///< without the deadline
  double deadline_us = 0; ///< 0: none
};

std::vector<named_decoder> make_cases(const bench_decoding_options &o, const std::string &dem) {
  std::vector<named_decoder> cases;
  const auto add = [&](const std::string &name, const std::string &decoder, const std::string &predecoder,
                       double deadline_us = 0) {
    std::unique_ptr<qec::predecoder> first;
    qec::decoder_result second = qec::make_decoder(decoder, dem);
    if (!second)
      throw usage_error(fmt::format("--dem {}: {}", o.dem_file, second.error));
    if (deadline_us != 0) {
      if (!second.instance->obeys_deadline())
        throw usage_error(fmt::format("--deadlines: {} does not end at a deadline", second.instance->name()));
      second.instance->set_budget(static_cast<std::uint64_t>(deadline_us * 1000));
    }
    if (!predecoder.empty()) {
      if (const auto allowed = qec::check_predecoder_before(predecoder, second.instance->name()); allowed.failed())
        throw usage_error(fmt::format("--predecoder {}: {}", predecoder, allowed.text()));
      auto made = qec::make_predecoder(predecoder, dem);
      if (made.failed())
        throw usage_error(fmt::format("--dem {}: {}", o.dem_file, made.text()));
      first = std::move(*made);
    }
    cases.push_back({name, {std::move(first), std::move(second.instance)}, decoder, deadline_us});
  };
  for (const std::string &decoder : o.decoders)
    add(decoder, decoder, "");
  for (const std::string &decoder : o.decoders)
    for (const double deadline_us : o.deadlines_us)
      add(fmt::format("{} in {}", decoder, format_ns(deadline_us * 1000)), decoder, "", deadline_us);
  for (const std::string &predecoder : o.predecoders)
    if (predecoder != "none")
      add(predecoder + " + " + o.decoders.front(), o.decoders.front(), predecoder);
  return cases;
}

/// Batches of shots, and who got them wrong. One thread.
class batch_decoder {
public:
  batch_decoder(const bench_decoding_options &o, const qec::model_sampler &sampler, const std::string &dem)
      : options_(o), sampler_(sampler), cases_(make_cases(o, dem)), shots_(kBatch * sampler.shot_bytes()),
        truth_(kBatch * sampler.observable_bytes()) {}

  [[nodiscard]] const std::vector<named_decoder> &cases() const noexcept { return cases_; }

  /// Samples batch k and decodes it with every case. The shots depend on the seed and k alone.
  std::vector<case_counts> decode(std::uint64_t k) {
    const std::size_t shots =
        options_.duration_s != 0 ? kBatch : std::min<std::uint64_t>(kBatch, options_.shots - k * kBatch);
    sample(k, shots);
    std::vector<case_counts> counts;
    std::vector<bool> reference;
    for (named_decoder &c : cases_) {
      case_counts &count = counts.emplace_back();
      const std::vector<bool> wrong = decode(c.with, shots, count);
      if (&c == &cases_.front())
        reference = wrong;
      count.errors.shots = shots;
      for (std::size_t i = 0; i < shots; ++i) {
        count.errors.with += wrong[i];
        count.errors.without += reference[i];
        count.errors.only_with += wrong[i] && !reference[i];
        count.errors.only_without += !wrong[i] && reference[i];
      }
    }
    return counts;
  }

private:
  void sample(std::uint64_t k, std::size_t shots) {
    std::mt19937_64 random = random_of_batch(options_.seed, k);
    std::ranges::fill(shots_, std::uint8_t{0});
    std::ranges::fill(truth_, std::uint8_t{0});
    for (std::size_t i = 0; i < shots; ++i) {
      if (options_.errors == 0)
        sampler_.sample(random, shot(i), truth(i));
      else
        sampler_.sample_exactly(options_.errors, random, shot(i), truth(i));
    }
  }
  /// Returns which shots are wrong.
  std::vector<bool> decode(qec::offline_decoder &with, std::size_t shots, case_counts &count) {
    std::vector<bool> wrong(shots);
    const qec::deadline_counts before = with.inner().deadlines();
    const double begin = qec::thread_seconds();
    for (std::size_t i = 0; i < shots; ++i) {
      const qec::decode_status status = with.decode(shot(i));
      const bool at_deadline = status == qec::decode_status::deadline;
      count.refused += status != qec::decode_status::ok && !at_deadline;
      count.events += with.decoded_events();
      // At a deadline the best solution so far is the answer.
      wrong[i] = !with.has_solution() || !std::ranges::equal(with.observables(), truth(i));
    }
    const qec::deadline_counts &after = with.inner().deadlines();
    count.deadlines = {after.met - before.met, after.missed - before.missed, after.late - before.late};
    count.ns += 1e9 * (qec::thread_seconds() - begin);
    return wrong;
  }
  std::span<std::uint8_t> shot(std::size_t i) {
    return std::span(shots_).subspan(i * sampler_.shot_bytes(), sampler_.shot_bytes());
  }
  std::span<std::uint8_t> truth(std::size_t i) {
    return std::span(truth_).subspan(i * sampler_.observable_bytes(), sampler_.observable_bytes());
  }

  const bench_decoding_options &options_;
  const qec::model_sampler &sampler_;
  std::vector<named_decoder> cases_;
  std::vector<std::uint8_t> shots_, truth_;
};

/// The sums of batches 0, 1, ... until the reference has failed often enough, whichever thread is quick: the result
/// does not depend on the number of threads.
class ordered_sums {
public:
  ordered_sums(std::size_t cases, std::uint64_t failures) : sums_(cases), failures_(failures) {}

  /// For the progress display.
  [[nodiscard]] std::uint64_t shots() {
    const std::lock_guard lock(mutex_);
    return sums_.front().errors.shots;
  }

  [[nodiscard]] std::uint64_t next_batch() noexcept { return handed_out_.fetch_add(1); }
  [[nodiscard]] bool enough() const noexcept { return enough_.load(); }
  /// After all threads have ended.
  [[nodiscard]] const std::vector<case_counts> &sums() const noexcept { return sums_; }

  void add(std::uint64_t batch, std::vector<case_counts> counts) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(batch, std::move(counts));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == summed_ && !enough_;
         first = waiting_.erase(first), ++summed_) {
      for (std::size_t c = 0; c < sums_.size(); ++c)
        sums_[c] += first->second[c];
      enough_ = failures_ != 0 && sums_.front().errors.with >= failures_;
    }
  }

private:
  std::atomic<std::uint64_t> handed_out_{0};
  std::atomic<bool> enough_{false};
  std::mutex mutex_; ///< for the members below, until the threads have ended
  std::map<std::uint64_t, std::vector<case_counts>> waiting_;
  std::uint64_t summed_ = 0; ///< batches
  std::vector<case_counts> sums_;
  const std::uint64_t failures_;
};

/// What each case did with all shots. `first` works on the caller's thread; each other thread makes its own decoders.
std::vector<case_counts> decode_all(const bench_decoding_options &o, std::size_t threads,
                                    const qec::model_sampler &sampler, const std::string &dem, batch_decoder &first) {
  ordered_sums sums(first.cases().size(), o.failures);
  const std::uint64_t begin = now_ns(), duration_ns = static_cast<std::uint64_t>(o.duration_s * 1e9);
  const auto more = [&] {
    return !sums.enough() && !interrupt_guard::interrupted() && (duration_ns == 0 || now_ns() - begin < duration_ns);
  };
  const auto work = [&](batch_decoder &decoder) {
    const std::uint64_t batches = duration_ns != 0 ? UINT64_MAX : (o.shots + kBatch - 1) / kBatch;
    bool again = true; // each thread decodes a batch, so there is always something to report
    for (std::uint64_t k = 0; again && (k = sums.next_batch()) < batches; again = more())
      sums.add(k, decoder.decode(k));
  };
  const progress_thread display({"decoding", "shots", o.shots, duration_ns}, [&sums] { return sums.shots(); });
  std::vector<std::future<void>> others;
  for (std::size_t k = 1; k < threads; ++k)
    others.push_back(std::async(std::launch::async, [&] {
      batch_decoder decoder(o, sampler, dem);
      work(decoder);
    }));
  work(first);
  for (std::future<void> &other : others)
    other.get();
  return sums.sums();
}

std::string ratio_text(const paired_errors &e, bool is_reference) {
  if (is_reference)
    return "reference";
  if (e.with == e.without && e.only_with == 0)
    return "1 (all answers equally right)";
  if (e.with == 0 || e.without == 0)
    return fmt::format("{} / {} failures", e.with, e.without);
  return fmt::format("{:.3f} ({:.3f}-{:.3f})", e.ratio(), e.ratio_interval().low, e.ratio_interval().high);
}

json case_json(const named_decoder &one, const case_counts &c, bool is_reference) {
  const auto shots = static_cast<double>(c.errors.shots);
  const error_rate failed{c.errors.with, c.errors.shots};
  json j{{"name", one.name},
         {"failures", c.errors.with},
         {"logical_error_rate", failed.rate()},
         {"interval_95", {failed.interval_95().low, failed.interval_95().high}},
         {"refused", c.refused},
         {"events_per_shot", static_cast<double>(c.events) / shots},
         {"cpu_ns_per_shot", c.ns / shots}};
  if (one.deadline_us != 0) {
    j["decoder"] = one.decoder;
    j["deadline_us"] = one.deadline_us;
    j["deadline_met"] = c.deadlines.met;
    j["deadline_missed"] = c.deadlines.missed;
    j["deadline_late"] = c.deadlines.late;
  }
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

std::string decoding_html(const json &report) {
  html_page page("Decoders on shots of " + report["dem"].get<std::string>());
  page.add("Shots",
           html_paragraph(fmt::format("{} shots of {} detectors and {} observables, {:.3g} errors a shot "
                                      "expected; seed {}.",
                                      report["shots"].get<std::uint64_t>(), report["detectors"].get<int>(),
                                      report["observables"].get<int>(), report["expected_errors"].get<double>(),
                                      report["seed"].get<std::uint64_t>())));
  std::vector<std::vector<std::string>> rows{
      {"", "failures", "errors per shot", "95 % interval", "ratio", "95 % interval", "CPU a shot"}};
  const auto interval = [](const json &ends) {
    return fmt::format("{:.3g} to {:.3g}", ends[0].get<double>(), ends[1].get<double>());
  };
  for (const json &c : report["cases"]) {
    const bool has_ratio = c.contains("ratio");
    rows.push_back({c["name"].get<std::string>(), std::to_string(c["failures"].get<std::uint64_t>()),
                    fmt::format("{:.3g}", c["logical_error_rate"].get<double>()), interval(c["interval_95"]),
                    has_ratio ? fmt::format("{:.3f}", c["ratio"].get<double>()) : "",
                    has_ratio ? interval(c["ratio_interval_95"]) : "", format_ns(c["cpu_ns_per_shot"].get<double>())});
  }
  page.add("Logical errors and time", html_table(rows));
  std::vector<plotted_curve> curves;
  for (const json &c : report["cases"]) {
    if (!c.contains("deadline_us"))
      continue;
    if (curves.empty() || curves.back().name != c["decoder"])
      curves.push_back({c["decoder"].get<std::string>(), {}});
    curves.back().points.emplace_back(1000 * c["deadline_us"].get<double>(), c["logical_error_rate"].get<double>());
  }
  if (const std::string plot = curve_plot(curves, "deadline of a decode", "logical errors per shot"); !plot.empty())
    page.add("Logical errors under a deadline", plot);
  return page.text(report);
}

} // namespace

int run_bench_decoding(const bench_decoding_options &o, const output &out) {
  const std::string dem = read_dem_file(o.dem_file);
  const auto model = qec::parse_dem(dem);
  if (model.failed())
    throw usage_error(fmt::format("--dem {}: {}", o.dem_file, model.text()));
  const qec::model_sampler sampler(*model);
  if (o.errors != 0 && !sampler.can_sample(o.errors))
    throw usage_error(fmt::format("--errors {}: {} has too few errors for sets of so many", o.errors, o.dem_file));
  const std::size_t threads = o.threads != 0 ? o.threads : allowed_cores().size();
  batch_decoder first(o, sampler, dem);
  const interrupt_guard guard; // until here there is nothing to report
  const std::vector<case_counts> counts = decode_all(o, threads, sampler, dem, first);

  const case_counts &reference = counts.front();
  out.text(
      "{}: {} detectors, {} observables, {:.3g} errors a shot expected{}\n{} shots, seed {}\n\n{:<32} {:>9}  {:<28}  "
      "{:<26} {:>8}  {:>10}\n",
      o.dem_file, model->num_detectors, model->num_observables, sampler.expected_errors(),
      o.errors == 0 ? "" : fmt::format("; sampled: exactly {}", o.errors), reference.errors.shots, o.seed, "",
      "failures", "per shot, 95 % interval", "ratio, paired", "events", "CPU a shot");
  json list = json::array();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const std::string &name = first.cases()[k].name;
    const case_counts &c = counts[k];
    const error_rate failed{c.errors.with, c.errors.shots};
    const auto interval = failed.interval_95();
    const auto n = static_cast<double>(c.errors.shots);
    out.text("{:<32} {:>9}  {:<28}  {:<26} {:>8.2f}  {:>10}\n", name, c.errors.with,
             fmt::format("{:.3g} ({:.3g}-{:.3g})", failed.rate(), interval.low, interval.high),
             ratio_text(c.errors, k == 0), static_cast<double>(c.events) / n, format_ns(c.ns / n));
    if (c.refused != 0)
      out.text("  {} shots refused by {}: counted as failures\n", c.refused, name);
    list.push_back(case_json(first.cases()[k], c, k == 0));
  }
  json report{{"method",
               "shots sampled from the model's error instructions; every case decodes the same "
               "shots; CPU time of the thread, with predecoder and unpacking, without sampling. Deadlines are "
               "wall-clock times from the begin of each decode"},
              {"dem", o.dem_file},
              {"detectors", model->num_detectors},
              {"observables", model->num_observables},
              {"expected_errors", sampler.expected_errors()},
              {"errors", o.errors},
              {"shots", reference.errors.shots},
              {"seed", o.seed},
              {"threads", threads},
              {"cases", list}};
  return out.finish(
      std::move(report), "", kExitCheckFailed,
      ended(guard.interrupted(), reference.errors.shots, o.duration_s != 0 ? kNotKnown : o.shots, "shots"),
      &decoding_html);
}

} // namespace cudaq::realtime::tools

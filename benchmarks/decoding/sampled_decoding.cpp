// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/decoding/sampled_decoding.h"

#include "lib/qec/decoding/thread_clock.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/common/terminal.h"
#include "tools/html/html_page.h"
#include "tools/shots/own_data.h"
#include "tools/shots/sampled_shots.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kBatch = kSampledBatch; ///< shots that every case decodes in turn
constexpr std::uint64_t kBetweenSaves_ns = 5'000'000'000;

/// `known`: null, or what shots know.
std::vector<qec::offline_decoder> make_decoders(const sampled_task &task, const qec::detector_error_model &model,
                                                const bench_readout *known) {
  std::vector<qec::offline_decoder> made;
  for (const decoding_case &c : task.cases) {
    std::unique_ptr<qec::predecoder> first;
    qec::decoder_result second =
        qec::make_decoder(c.decoder, known == nullptr || c.knows ? task.dem : known->average_dem());
    if (!second)
      refuse(second.machine_lacks, fmt::format("--dem {}: {}", task.dem_file, second.error));
    if (const auto detectors = static_cast<std::uint64_t>(second.instance->num_detectors());
        detectors != static_cast<std::uint64_t>(model.num_detectors))
      throw usage_error(fmt::format("--decoder {}: it decodes shots of {} detectors, those sampled from {} have {}",
                                    c.decoder, detectors, task.dem_file, model.num_detectors));
    if (c.deadline_us != 0) {
      if (!second.instance->obeys_deadline())
        throw usage_error(fmt::format("--deadlines: {} does not end at a deadline", second.instance->name()));
      second.instance->set_budget(static_cast<std::uint64_t>(c.deadline_us * 1000));
    }
    if (const char *const refusal = second.instance->refuses_probabilities(); c.flagged != 0 && refusal != nullptr)
      throw usage_error(fmt::format("--flagged: {}", refusal));
    if (c.knows)
      if (const std::string refusal = qec::refuses_readout(*second.instance, known->table()); !refusal.empty())
        throw usage_error(fmt::format("--decoder {}: what the shots know: {}", c.decoder, refusal));
    if (!c.predecoder.empty()) {
      if (const auto allowed = qec::check_predecoder_before(c.predecoder, second.instance->name()); allowed.failed())
        throw usage_error(fmt::format("--predecoder {}: {}", c.predecoder, allowed.text()));
      auto found = qec::make_predecoder(c.predecoder, task.dem);
      if (found.failed())
        throw usage_error(fmt::format("--dem {}: {}", task.dem_file, found.text()));
      first = std::move(*found);
    }
    made.emplace_back(std::move(first), std::move(second.instance));
  }
  return made;
}

/// What each case did with a batch.
struct batch_counts {
  std::vector<case_counts> cases;
  bool is_cut = false; ///< not with all its shots: some time after a signal
};

/// The sums of batches 0, 1, ... until one is cut, or the reference has failed often enough, whichever thread is quick:
/// the result does not depend on the number of threads.
class ordered_sums {
public:
  /// The batches from `first` on. `failures`: of the reference; 0: any number.
  ordered_sums(std::size_t cases, std::uint64_t first, std::uint64_t failures)
      : handed_out_(first), summed_(first), sums_(cases), failures_(failures) {}

  /// For the progress display.
  [[nodiscard]] std::uint64_t shots() {
    const std::lock_guard lock(mutex_);
    return sums_.front().errors.shots;
  }

  [[nodiscard]] std::uint64_t next_batch() noexcept { return handed_out_.fetch_add(1); }
  [[nodiscard]] bool enough() const noexcept { return enough_.load(); }
  void stop() noexcept { enough_ = true; }
  [[nodiscard]] std::vector<case_counts> sums() {
    const std::lock_guard lock(mutex_);
    return sums_;
  }

  void add(std::uint64_t batch, batch_counts counts) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(batch, std::move(counts));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == summed_ && !enough_;
         first = waiting_.erase(first), ++summed_) {
      for (std::size_t c = 0; c < sums_.size(); ++c)
        sums_[c] += first->second.cases[c];
      if (first->second.is_cut || (failures_ != 0 && sums_.front().errors.with >= failures_))
        enough_ = true;
    }
  }

private:
  std::atomic<std::uint64_t> handed_out_;
  std::atomic<bool> enough_{false};
  std::mutex mutex_; ///< for the members below
  std::map<std::uint64_t, batch_counts> waiting_;
  std::uint64_t summed_; ///< batches
  std::vector<case_counts> sums_;
  const std::uint64_t failures_;
};

} // namespace

void unanswered_counts::add(qec::decode_status status) noexcept {
  if (!unanswered_shots::add(status))
    ++(status == qec::decode_status::internal_error ? failed : refused);
}

void unanswered_counts::operator+=(const unanswered_counts &more) noexcept {
  unanswered_shots::operator+=(more);
  refused += more.refused;
  failed += more.failed;
}

namespace {

/// The parts of the shots without an answer in time: the names of their fields, and what people read.
constexpr struct {
  const char *field, *text;
  std::uint64_t (*count)(const case_counts &);
} kUnansweredParts[] = {
    {"not_converged", "not converged", [](const case_counts &c) { return c.unanswered.not_converged; }},
    {"deadline_without_solution", "at the deadline without a solution",
     [](const case_counts &c) { return c.unanswered.at_deadline; }},
    {"refused", "refused by the decoder", [](const case_counts &c) { return c.unanswered.refused; }},
    {"decoder_failures", "in which the decoder failed", [](const case_counts &c) { return c.unanswered.failed; }},
    {"late", "answered late", [](const case_counts &c) { return c.late; }},
};

} // namespace

std::string case_text(const case_counts &counts) {
  std::string text = fmt::format("  time of a shot  {}\n", latency_line(counts.shot_ns));
  const qec::deadline_counts &deadlines = counts.deadlines;
  if (deadlines.met + deadlines.missed != 0)
    text += fmt::format("  deadlines       {} met, {} missed\n", deadlines.met, deadlines.missed);
  std::string parts;
  for (const auto &part : kUnansweredParts)
    if (const std::uint64_t count = part.count(counts); count != 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, part.text);
  if (!parts.empty())
    text += fmt::format("  failures        among them {}\n", parts);
  return counts.first_fault.empty() ? text : text + fmt::format("  first fault     {}\n", counts.first_fault);
}

json case_fields(const case_counts &counts) {
  json fields{{"unanswered", counts.unanswered.total()}};
  for (const auto &part : kUnansweredParts)
    fields[part.field] = part.count(counts);
  if (counts.deadlines.met + counts.deadlines.missed != 0) {
    fields["deadline_met"] = counts.deadlines.met;
    fields["deadline_missed"] = counts.deadlines.missed;
    fields["deadline_late"] = counts.deadlines.late;
  }
  if (!counts.first_fault.empty())
    fields["first_fault"] = counts.first_fault;
  fields["shot_ns"] = latency_json(counts.shot_ns);
  return fields;
}

std::string case_tables(const json &cases, const std::function<std::string(const json &)> &name_of) {
  std::vector<std::vector<std::string>> times{{"time of a shot", "shots", "p50", "p90", "p99", "p99.9", "max"}},
      unanswered{{"shots without an answer in time"}};
  for (const auto &part : kUnansweredParts)
    unanswered[0].emplace_back(part.text);
  unanswered[0].emplace_back("deadlines missed");
  std::uint64_t any = 0;
  for (const json &c : cases) {
    if (!c.contains("shot_ns")) // of an earlier run
      continue;
    const json &ns = c["shot_ns"];
    std::vector<std::string> row{name_of(c), ns["count"].dump()}, counts{row[0]};
    for (const char *const percentile : {"p50", "p90", "p99", "p99.9", "max"})
      row.push_back(format_ns(ns[percentile].get<double>()));
    for (const auto &part : kUnansweredParts) {
      any += c[part.field].get<std::uint64_t>();
      counts.push_back(c[part.field].dump());
    }
    counts.push_back(c.contains("deadline_missed") ? c["deadline_missed"].dump() : "-");
    any += c.value("deadline_missed", std::uint64_t{0});
    times.push_back(std::move(row));
    unanswered.push_back(std::move(counts));
  }
  return (times.size() == 1 ? "" : html_table(times)) + (any == 0 ? "" : html_table(unanswered));
}

void case_counts::add_unanswered(qec::decode_status status, const char *fault) {
  unanswered.add(status);
  if (first_fault.empty() && unanswered.refused + unanswered.failed != 0)
    first_fault = qec::decode_status_text(status, fault);
}

void case_counts::operator+=(const case_counts &more) {
  errors.shots += more.errors.shots;
  errors.with += more.errors.with;
  errors.without += more.errors.without;
  errors.only_with += more.errors.only_with;
  errors.only_without += more.errors.only_without;
  events += more.events;
  unanswered += more.unanswered;
  if (first_fault.empty())
    first_fault = more.first_fault;
  deadlines += more.deadlines;
  late += more.late;
  ns += more.ns;
  shot_ns.merge(more.shot_ns);
}

std::vector<decoding_case> cases_of(const bench_decoding_options &o) {
  std::vector<decoding_case> cases;
  for (const std::string &decoder : o.decoders)
    cases.push_back({decoder, decoder, "", 0});
  for (const std::string &decoder : o.decoders)
    for (const double deadline_us : o.deadlines_us)
      cases.push_back({fmt::format("{} in {}", decoder, format_ns(deadline_us * 1000)), decoder, "", deadline_us});
  for (const std::string &decoder : o.decoders)
    for (const double share : o.flagged)
      cases.push_back({fmt::format("{}, {:g} % flagged", decoder, 100 * share), decoder, "", 0, share});
  for (const std::string &decoder : o.decoders)
    if (o.known.any())
      cases.push_back(
          {decoder + (o.known.heralds.empty() ? " with the readout" : " with heralds"), decoder, "", 0, 0, true});
  for (const std::string &predecoder : o.predecoders)
    if (predecoder != "none")
      cases.push_back({predecoder + " + " + o.decoders.front(), o.decoders.front(), predecoder, 0});
  return cases;
}

/// Batches of shots, and who got them wrong. One thread.
class sampled_decoding::batch_decoder {
public:
  explicit batch_decoder(const sampled_decoding &of)
      : options_(of.options_), sampler_(*of.sampler_), done_(of.task_.done), known_(of.known()),
        decoders_(make_decoders(of.task_, of.model_, known_)), cases_(of.task_.cases), errors_(errors_of(of.model_)),
        flags_(kBatch), shots_(kBatch * sampler_.shot_bytes()), truth_(kBatch * sampler_.observable_bytes()) {
    if (known_ == nullptr)
      return;
    drawn_.emplace(known_->sampler());
    soft_.resize(kBatch * known_->soft_bytes());
    leakage_.resize(kBatch * known_->table().leakage_bytes());
  }

  /// Samples batch k and decodes it with every case, without the shots that are done. A cut batch has the shots that
  /// the one case decoded; none of several cases, since these decode one after another.
  batch_counts decode(std::uint64_t k) {
    const std::size_t shots =
        options_.duration_s != 0 ? kBatch : std::min<std::uint64_t>(kBatch, options_.shots - k * kBatch);
    const std::size_t begin = std::min<std::uint64_t>(shots, done_ - std::min(done_, k * kBatch));
    sample(k, shots);
    batch_counts counts;
    std::vector<bool> reference;
    for (qec::offline_decoder &with : decoders_) {
      case_counts &count = counts.cases.emplace_back();
      const decoding_case &which = cases_[counts.cases.size() - 1];
      draw_flags(k, which.flagged, shots);
      const std::vector<bool> wrong = decode(with, which.knows, begin, shots, count);
      counts.is_cut = wrong.size() != shots;
      if (counts.is_cut && decoders_.size() != 1)
        return {std::vector<case_counts>(decoders_.size()), true};
      if (&with == &decoders_.front())
        reference = wrong;
      count.errors.shots = wrong.size() - begin;
      for (std::size_t i = begin; i < wrong.size(); ++i) {
        count.errors.with += wrong[i];
        count.errors.without += reference[i];
        count.errors.only_with += wrong[i] && !reference[i];
        count.errors.only_without += !wrong[i] && reference[i];
      }
    }
    return counts;
  }

private:
  /// Each error of the model that has an effect, with its probability.
  static std::vector<qec::error_probability> errors_of(const qec::detector_error_model &model) {
    std::vector<qec::error_probability> errors;
    for (const qec::dem_component &c : model.components)
      if (errors.empty() || errors.back().error != c.mechanism)
        errors.push_back({c.mechanism, c.probability});
    return errors;
  }
  /// Replaces probabilities by what they are, so that every case has the same answers to find.
  void draw_flags(std::uint64_t k, double share, std::size_t shots) {
    std::mt19937_64 random = random_of_batch(options_.seed + 1, k);
    std::geometric_distribution<std::size_t> skipped(share == 0 || share >= 1 ? 0.5 : share);
    for (std::size_t i = 0; i < shots; ++i) {
      flags_[i].clear();
      const auto next = [&](std::size_t from) { return from + (share >= 1 ? 0 : skipped(random)); };
      for (std::size_t e = next(0); share != 0 && e < errors_.size(); e = next(e + 1))
        flags_[i].push_back(errors_[e]);
    }
  }
  void sample(std::uint64_t k, std::size_t shots) {
    std::mt19937_64 random = random_of_batch(options_.seed, k);
    std::ranges::fill(shots_, std::uint8_t{0});
    std::ranges::fill(truth_, std::uint8_t{0});
    std::ranges::fill(soft_, std::uint8_t{0});
    for (std::size_t i = 0; i < shots; ++i) {
      if (known_ != nullptr)
        known_->sample(*drawn_, random, {shot(i), truth(i), soft(i)}, leakage(i));
      else if (options_.errors == 0)
        sampler_.sample(random, shot(i), truth(i));
      else
        sampler_.sample_exactly(options_.errors, random, shot(i), truth(i));
    }
  }
  /// Returns which shots are wrong: of all, or of those before the one at which the batch was cut.
  std::vector<bool> decode(qec::offline_decoder &with, bool knows, std::size_t first, std::size_t shots,
                           case_counts &count) {
    std::vector<bool> wrong(first);
    const qec::deadline_counts before = with.inner().deadlines();
    const double begin = qec::thread_seconds();
    std::uint64_t shot_begin = now_ns(); // as `decode`: one reading of the clock for each shot
    for (std::size_t i = first; i < shots && !interrupt_guard::is_grace_over(); ++i) {
      if (knows) // the list is a part of what it costs
        known_->list_of(soft(i), leakage(i), flags_[i]);
      const qec::decode_status status = with.decode(shot(i), nullptr, flags_[i]);
      const std::uint64_t shot_end = now_ns();
      count.shot_ns.record(shot_end - std::exchange(shot_begin, shot_end));
      count.events += with.decoded_events();
      if (!with.has_solution())
        count.add_unanswered(status, with.inner().fault());
      count.late += with.has_solution() && with.is_late(); // without a solution it is counted already
      // At a deadline the best solution so far is the answer. One after it is too late.
      wrong.push_back(!with.has_solution() || with.is_late() || !std::ranges::equal(with.observables(), truth(i)));
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
  std::span<std::uint8_t> soft(std::size_t i) {
    return std::span(soft_).subspan(i * known_->soft_bytes(), known_->soft_bytes());
  }
  std::span<std::uint8_t> leakage(std::size_t i) {
    return std::span(leakage_).subspan(i * known_->table().leakage_bytes(), known_->table().leakage_bytes());
  }

  const bench_decoding_options &options_;
  const qec::model_sampler &sampler_;
  const std::uint64_t done_;
  const bench_readout *const known_; ///< null: shots know nothing
  std::optional<qec::readout_sampler> drawn_;
  std::vector<qec::offline_decoder> decoders_;
  const std::vector<decoding_case> cases_; ///< of decoders_
  const std::vector<qec::error_probability> errors_;
  std::vector<std::vector<qec::error_probability>> flags_; ///< of each shot of a batch
  std::vector<std::uint8_t> shots_, truth_, soft_, leakage_;
};

sampled_decoding::sampled_decoding(const bench_decoding_options &o, sampled_task task)
    : options_(o), task_(std::move(task)), threads_(o.threads != 0 ? o.threads : allowed_cores().size()) {
  auto model = qec::parse_dem(task_.dem);
  if (model.failed())
    throw usage_error(fmt::format("--dem {}: {}", task_.dem_file, model.text()));
  model_ = std::move(*model);
  sampler_ = std::make_unique<const qec::model_sampler>(model_);
  if (o.errors != 0 && !sampler_->can_sample(o.errors))
    throw usage_error(fmt::format("--errors {}: {} has too few errors for sets of so many", o.errors, task_.dem_file));
  if (o.known.any())
    known_ = std::make_unique<const bench_readout>(o.known, task_.dem, model_);
  first_ = std::make_unique<batch_decoder>(*this);
}

sampled_decoding::~sampled_decoding() = default;

/// The caller's thread decodes with first_; each other thread makes its own decoders.
sampled_decoding::sums_of_cases sampled_decoding::run(const std::function<void(const sums_of_cases &)> &save) {
  const std::uint64_t failures = options_.failures == 0 ? 0 : options_.failures - task_.done_failures;
  ordered_sums sums(task_.cases.size(), task_.done / kBatch, failures);
  const std::uint64_t begin = now_ns(), duration_ns = static_cast<std::uint64_t>(options_.duration_s * 1e9);
  const auto more = [&] {
    return !sums.enough() && !interrupt_guard::interrupted() && (duration_ns == 0 || now_ns() - begin < duration_ns);
  };
  const auto work = [&](batch_decoder &decoder, const auto &after_each) {
    const std::uint64_t batches = duration_ns != 0 ? UINT64_MAX : (options_.shots + kBatch - 1) / kBatch;
    bool again = true; // each thread decodes a batch, so there is something to report, unless it is cut
    for (std::uint64_t k = 0; again && (k = sums.next_batch()) < batches; again = more()) {
      sums.add(k, decoder.decode(k));
      after_each();
    }
  };
  const progress_thread display(
      {"decoding", "shots", options_.shots - std::min(options_.shots, task_.done), duration_ns},
      [&sums] { return sums.shots(); });
  std::vector<std::future<void>> others;
  for (std::size_t k = 1; k < threads_; ++k)
    others.push_back(std::async(std::launch::async, [&] {
      batch_decoder decoder(*this);
      work(decoder, [] {});
    }));
  try {
    std::uint64_t saved_ns = begin;
    work(*first_, [&] {
      if (!save || now_ns() - saved_ns < kBetweenSaves_ns)
        return;
      save(sums.sums());
      saved_ns = now_ns();
    });
  } catch (...) {
    sums.stop();
    throw;
  }
  for (std::future<void> &other : others)
    other.get();
  return sums.sums();
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/learning/live_learning.h"

#include "lib/base/condition.h"
#include "lib/qec/server/model_detectors.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <sched.h>
#include <thread>
#include <utility>

namespace cudaq::qec::realtime {

namespace rt = cudaq::realtime::detail;

namespace {

using namespace std::chrono_literals;

/// For the ends of shots. After it the candidate is dropped, and a later round finds another one.
constexpr std::uint64_t kSwapLimitNs = 5'000'000'000;
constexpr std::size_t kMaxLines = 1000; ///< of a program that does not read them
constexpr std::size_t kShotsOfATurn = 256;
constexpr auto kIdle = 2ms; ///< at 10^6 shots/s half of a tap

/// `config` with another model.
decoder_config with_model(decoder_config config, decoder_learner::shared_model model) {
  config.model = std::move(model);
  config.dem.clear();
  config.dem_file.clear();
  config.stim_dem_path.clear();
  config.has_checks = config.has_observables = false;
  config.checks.clear();
  config.observables.clear();
  config.block_size = 0;
  config.error_rate = -1;
  config.error_rates.clear();
  return config;
}

/// The decoder alone; with rates of its detectors and a tap only if the configuration says so.
expected<std::unique_ptr<decoding_unit>> made_of(const decoder_config &config, const std::string &folder) {
  server_config alone;
  alone.decoders.push_back(config);
  auto setups = build_decoders(alone, folder);
  if (setups.failed())
    return setups.reason();
  return std::move(setups->front().unit);
}

std::string text_of(const learn_verdict &verdict) {
  if (verdict.what == learn_verdict::kind::refused) {
    std::string text = "data refused: ";
    for (const std::string &reason : verdict.reasons)
      text += (&reason == &verdict.reasons.front() ? "" : "; ") + reason;
    return verdict.more_reasons == 0 ? text : text + "; and " + std::to_string(verdict.more_reasons) + " more";
  }
  const score_difference &score = verdict.score;
  char numbers[200];
  std::snprintf(numbers, sizeof numbers,
                "score of the learned model less that of the served one, on %.0f held-out shots: %+.3g +- %.2g nats a "
                "shot, %+.1f sigma; %" PRIu64 " of %" PRIu64 " shadow decodes differ",
                score.shots, score.per_shot, score.sigma, score.better_by_sigmas, verdict.shadow_differ,
                verdict.shadow_shots);
  return numbers;
}

} // namespace

expected<> live_learning::start(const server_config &config, const std::string &folder) {
  stop();
  folder_ = folder;
  std::vector<std::unique_ptr<learning_decoder>> decoders;
  for (std::size_t k = 0; k < config.decoders.size(); ++k) {
    const auto tap = server_.decoders()[k]->identity()->tap;
    if (tap == nullptr)
      continue;
    auto one = std::make_unique<learning_decoder>();
    one->place = k;
    one->tap = tap;
    one->config = with_model(config.decoders[k], tap->source().model);
    one->report.id = config.decoders[k].limits.id;
    decoder_config alone = one->config;
    alone.learn.is_on = false; // a candidate is not counted before it is served
    alone.detector_rates = 0;
    one->learner = std::make_unique<decoder_learner>(tap->source(), config.decoders[k].learn,
                                                     [this, alone](const decoder_learner::shared_model &model) {
                                                       return made_by_swap_thread(with_model(alone, model));
                                                     });
    decoders.push_back(std::move(one));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    decoders_ = std::move(decoders);
  }
  went_back_ = false;
  return resume();
}

expected<> live_learning::resume() {
  if (decoders_.empty() || went_back_)
    return {};
  ending_.store(0);
  if (expected<> result = swap_thread_.start("qec-swap", {}, [this] { swap(); }); result.failed())
    return result;
  expected<> result = learn_thread_.start("qec-learn", {}, [this] { learn(); });
  if (result.failed())
    stop();
  return result;
}

void live_learning::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_.store(1);
  }
  offered_.notify_all();
  learn_thread_.join_until(rt::steady_clock::time_point::max());
  swap_thread_.join_until(rt::steady_clock::time_point::max());
}

reload_result live_learning::go_back(std::uint64_t limit_ns, earlier_model to) {
  stop();
  went_back_ = true;
  for (const auto &decoder : decoders_) {
    if (!decoder->report.uses_learned)
      continue;
    const decoder_learner::shared_model model = to == earlier_model::before_swap ? decoder->before_model : nullptr;
    decoder_config config = model == nullptr ? decoder->config : with_model(decoder->config, model);
    config.learn.is_on = false;
    auto unit = made_of(config, folder_);
    if (unit.failed())
      return {reload_outcome::rejected, unit.text(), unit.status()};
    ending_.store(0); // no thread of this object runs; exchange() would give up
    reload_result result = exchange(decoder->place, std::move(*unit), limit_ns);
    if (result.outcome != reload_outcome::applied)
      return result;
    const std::lock_guard<std::mutex> lock(mutex_);
    decoder->report.uses_learned = model != nullptr;
    decoder->served_model = model;
    decoder->before_model = nullptr;
  }
  return {};
}

std::vector<learning_report> live_learning::reports() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<learning_report> all;
  for (const auto &decoder : decoders_) {
    all.push_back(decoder->report);
    all.back().lost = decoder->tap->lost();
  }
  return all;
}

std::vector<std::string> live_learning::take_lines() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> lines(lines_.begin(), lines_.end());
  lines_.clear();
  return lines;
}

void live_learning::log(std::string line) {
  if (lines_.size() < kMaxLines)
    lines_.push_back(std::move(line));
}

void live_learning::learn() noexcept {
  const sched_param none{};
  if (std::ranges::all_of(decoders_, [](const auto &decoder) { return decoder->config.learn.is_idle; }))
    (void)sched_setscheduler(0, SCHED_IDLE, &none); // refused: it learns at the priority of the program
  while (ending_.load() == 0) {
    bool any = false;
    for (const auto &decoder : decoders_)
      try {
        any = learn_from(*decoder) || any;
      } catch (const std::bad_alloc &) { // the round is lost
        decoder->learner->restart();
        std::this_thread::sleep_for(100ms);
      }
    if (!any)
      std::this_thread::sleep_for(kIdle);
  }
}

/// True: there were shots.
bool live_learning::learn_from(learning_decoder &decoder) {
  bool ended = false;
  const std::size_t shots =
      decoder.tap->use_shots(kShotsOfATurn, [&](std::span<const std::uint8_t> events,
                                                std::span<const std::uint8_t> observables, bool answered) {
        if (decoder.learner->add(events, observables, answered)) {
          ended = true;
          end_round(decoder);
        }
      });
  return shots != 0 || ended;
}

void live_learning::end_round(learning_decoder &decoder) {
  const learn_verdict &verdict = decoder.learner->verdict();
  std::unique_ptr<decoding_unit> candidate = decoder.learner->take_candidate();
  const bool is_better = verdict.what == learn_verdict::kind::better;
  if (is_better && decoder.config.learn.swaps) {
    candidate->identity()->tap = decoder.tap;
    if (decoder.config.detector_rates != 0) { // of the model that is served from now on
      auto detectors = detectors_of(*decoder.learner->candidate(), "");
      if (detectors.ok() && detectors->body == candidate->num_detectors())
        candidate->identity()->rates =
            std::make_unique<detector_rates>(std::move(*detectors), decoder.config.detector_rates);
    }
  } else {
    candidate.reset();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  learning_report &report = decoder.report;
  ++(verdict.what == learn_verdict::kind::refused      ? report.refused
     : verdict.what == learn_verdict::kind::not_better ? report.not_better
                                                       : report.better);
  report.last = verdict;
  log("decoder " + std::to_string(report.id) + ": learn: " + text_of(verdict) +
      (verdict.what == learn_verdict::kind::refused ? "; the served model stays"
       : !is_better                                 ? "; not better by enough, the served model stays"
       : candidate == nullptr                       ? "; better, and swap is false: the served model stays"
                                                    : "; better, it is swapped in"));
  if (candidate == nullptr)
    return;
  const std::uint64_t swaps = report.swaps;
  if (ending_.load() != 0) // qec-swap may have ended
    return;
  decoder.offered_model = decoder.learner->candidate();
  decoder.offered = std::move(candidate);
  decoder.is_swapping = true;
  offered_.notify_one();
  cudaq::realtime::detail::wait_on(answered_, lock, [&] { return !decoder.is_swapping; });
  if (report.swaps != swaps)
    decoder.learner->serve_candidate();
}

expected<std::unique_ptr<decoding_unit>> live_learning::made_by_swap_thread(const decoder_config &config) {
  wanted_unit wanted{config, std::nullopt, false};
  std::unique_lock<std::mutex> lock(mutex_);
  if (ending_.load() != 0) // qec-swap may have ended
    return reason("the server learns no more");
  wanted_ = &wanted;
  offered_.notify_one();
  cudaq::realtime::detail::wait_on(answered_, lock, [&] { return wanted.made || wanted.lacks_memory; });
  if (wanted.lacks_memory)
    throw std::bad_alloc();
  return std::move(*wanted.made);
}

void live_learning::make_wanted(std::unique_lock<std::mutex> &lock) noexcept {
  wanted_unit &wanted = *std::exchange(wanted_, nullptr);
  lock.unlock();
  std::optional<expected<std::unique_ptr<decoding_unit>>> made;
  try {
    made = made_of(wanted.config, folder_);
  } catch (const std::bad_alloc &) { // qec-learn throws it
  }
  lock.lock();
  wanted.lacks_memory = !made;
  wanted.made = std::move(made);
  answered_.notify_all();
}

void live_learning::swap() noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (wanted_ != nullptr) {
      make_wanted(lock);
      continue;
    }
    const auto found = std::ranges::find_if(decoders_, [](const auto &decoder) { return decoder->offered != nullptr; });
    if (found == decoders_.end()) {
      if (ending_.load() != 0)
        return;
      cudaq::realtime::detail::wait_on(offered_, lock);
      continue;
    }
    learning_decoder &decoder = **found;
    std::unique_ptr<decoding_unit> unit = std::move(decoder.offered);
    lock.unlock();
    reload_result result;
    std::string line;
    try {
      result = exchange(decoder.place, std::move(unit), kSwapLimitNs);
      line =
          "decoder " + std::to_string(decoder.report.id) +
          (result.outcome == reload_outcome::applied ? ": learn: swapped" : ": learn: not swapped: " + result.reason);
    } catch (const std::bad_alloc &) {
      result.outcome = reload_outcome::rejected;
    }
    lock.lock();
    if (result.outcome == reload_outcome::applied) {
      ++decoder.report.swaps;
      decoder.report.uses_learned = true;
      decoder.before_model = std::exchange(decoder.served_model, std::move(decoder.offered_model));
    }
    try {
      if (!line.empty())
        log(std::move(line));
    } catch (const std::bad_alloc &) { // the counts say it, too
    }
    decoder.is_swapping = false;
    answered_.notify_all();
  }
}

reload_result live_learning::exchange(std::size_t place, std::unique_ptr<decoding_unit> unit, std::uint64_t limit_ns) {
  std::vector<std::unique_ptr<decoding_unit>> units(server_.decoders().size());
  units[place] = std::move(unit);
  return server_.exchange(std::move(units), rt::deadline_after(limit_ns),
                          [this] { return server_.is_closed() || ending_.load() != 0; });
}

} // namespace cudaq::qec::realtime

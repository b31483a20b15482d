// SPDX-License-Identifier: Apache-2.0
// Several decoders on the same shot, each on a thread of its own. Example with mode=first: shot 7 of
// `race:relay-bp|bp-osd`, whose caller waits in decode().
//
//   time    caller                             relay-bp                  bp-osd
//   0 us    opens shot 7, wakes the members    still ends shot 6         takes shot 7
//   20 us                                      takes shot 7
//   300 us                                                               has a solution
//   310 us  closes shot 7: bp-osd has won;     (its word is set)
//           cancels relay-bp, returns
//   330 us                                     ends its iteration        waits for shot 8
//
// A member that is late takes the present shot as soon as it can, and never one that is closed. So no shot waits for
// a loser of the shot before.
#include "lib/base/condition.h"
#include "lib/base/runner.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/heralds/list_trial.h"
#include "lib/qec/decoders/stop_check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

namespace rt = cudaq::realtime::detail;

constexpr std::size_t kMaxMembers = 16;
/// After the deadline of a shot its members have this time to give their best solution; a step takes some tens of
/// microseconds.
constexpr std::chrono::milliseconds kGrace{1};
/// Between two looks at the caller's cancel word.
constexpr std::chrono::microseconds kCancelPoll{100};

/// A decoder with its thread. All members but `with`, `cancel` and what a decode uses are guarded by the race's mutex;
/// the thread uses the rest alone while is_busy, the caller while not.
struct member {
  std::string name; ///< with settings
  std::unique_ptr<decoder> with;
  std::vector<std::uint64_t> events; ///< room for all detectors
  std::vector<std::uint8_t> observables;
  std::vector<std::uint64_t> errors;                          ///< room for all errors of the model
  std::shared_ptr<const std::vector<error_probability>> list; ///< that the shot replaces, may be null
  decode_details details;
  decode_status status = decode_status::ok; ///< of shot `shot`, if not is_busy
  std::uint64_t shot = 0;                   ///< the last one that it took
  std::uint64_t ended = 0;                  ///< ascends with the ends of all members
  bool is_busy = false;
  std::uint32_t cancel = 0;
  std::uint64_t won = 0;
  rt::loop_thread thread;
};

class race_decoder final : public decoder, public list_trial {
public:
  race_decoder(std::vector<std::pair<std::string, std::unique_ptr<decoder>>> members, bool takes_first)
      : decoder(members.front().second->num_detectors(), members.front().second->num_observables()),
        takes_first_(takes_first) {
    num_errors_ = members.front().second->num_errors();
    for (auto &[name, with] : members) {
      member &m = members_.emplace_back();
      m.name = std::move(name);
      m.with = std::move(with);
      m.events.reserve(static_cast<std::size_t>(num_detectors()));
      m.observables.resize(observable_bytes());
      num_errors_ = std::min(num_errors_, m.with->num_errors());
    }
    for (member &m : members_)
      m.errors.resize(static_cast<std::size_t>(num_errors_));
  }

  /// Starts the threads.
  expected<> start() {
    for (std::size_t k = 0; k < members_.size(); ++k)
      if (expected<> result =
              members_[k].thread.start("qec-race-" + std::to_string(k), {}, [this, k] { serve(members_[k]); });
          result.failed())
        return result;
    return {};
  }

  ~race_decoder() override {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
      for (member &m : members_)
        cancel_decode(m.cancel);
    }
    wake_.notify_all();
    for (member &m : members_)
      m.thread.join_until(rt::steady_clock::time_point::max());
  }

  const char *name() const noexcept override { return "race"; }
  bool obeys_deadline() const noexcept override { return true; }
  const char *fault() const noexcept override { return fault_.data(); }
  std::uint64_t num_errors() const noexcept override { return num_errors_; }
  std::vector<std::pair<std::string, std::uint64_t>> wins() const override {
    std::vector<std::pair<std::string, std::uint64_t>> all;
    for (const member &m : members_)
      all.emplace_back(m.name, m.won);
    return all;
  }
  const char *refuses_probabilities() const noexcept override {
    for (const member &m : members_)
      if (const char *const why = m.with->refuses_probabilities())
        return why;
    return nullptr;
  }
  /// Before the first shot, when the threads of the members use none of them. It counts as no answer of a member.
  decode_status try_list(shot_probabilities probabilities) noexcept override {
    for (member &m : members_) {
      const decode_status status = realtime::try_list(*m.with, m.observables, probabilities);
      if (!takes_list(status)) {
        std::snprintf(fault_.data(), fault_.size(), "member %s: %s", m.name.c_str(), m.with->fault());
        return status;
      }
    }
    return decode_status::ok;
  }
  double smallest_probability() const noexcept override {
    const auto of = [](const member &m) { return m.with->smallest_probability(); };
    return of(*std::ranges::max_element(members_, {}, of));
  }
  std::uint64_t member_faults() const noexcept override {
    const std::lock_guard lock(mutex_);
    fault_ = last_fault_; // of a member that has ended since the last decode, too
    return faults_;
  }

protected:
  /// The members check it. A member that is late still reads the list of its shot, so each shot has its own.
  decode_status replace_probabilities(shot_probabilities probabilities) noexcept override {
    try {
      auto list = std::make_shared<const std::vector<error_probability>>(probabilities.begin(), probabilities.end());
      const std::lock_guard lock(mutex_);
      list_ = std::move(list);
      return decode_status::ok;
    } catch (const std::exception &) {
      std::snprintf(fault_.data(), fault_.size(), "no memory for the probabilities of the shot");
      return decode_status::internal_error;
    }
  }
  void restore_probabilities() noexcept override {
    const std::lock_guard lock(mutex_);
    list_.reset();
  }

  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    const decode_control control = details != nullptr ? details->control : decode_control{};
    std::unique_lock lock(mutex_);
    ++shot_;
    is_open_ = true;
    events_ = &events;
    deadline_ns_ = control.deadline_ns;
    wants_errors_ = details != nullptr && !details->errors.empty();
    wake_.notify_all();
    const bool cancelled = !wait(lock, control);
    is_open_ = false;
    for (member &m : members_)
      if (m.is_busy)
        cancel_decode(m.cancel);
    fault_ = last_fault_;
    return cancelled ? decode_status::cancelled : answer(observables, details);
  }

private:
  /// The thread of a member.
  void serve(member &m) noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      cudaq::realtime::detail::wait_on(wake_, lock, [&] { return is_stopped_ || (is_open_ && m.shot != shot_); });
      if (is_stopped_)
        return;
      m.shot = shot_;
      m.is_busy = true;
      rt::store_relaxed(m.cancel, 0U);
      m.events.assign(events_->begin(), events_->end());
      m.details = {.control = {.deadline_ns = deadline_ns_, .cancel = &m.cancel}};
      m.details.errors = wants_errors_ ? std::span(m.errors) : std::span<std::uint64_t>{};
      m.list = list_;
      lock.unlock();
      const shot_probabilities list = m.list != nullptr ? shot_probabilities(*m.list) : shot_probabilities{};
      const decode_status status = m.with->decode(m.events, m.observables, list, &m.details);
      m.list.reset();
      lock.lock();
      m.status = status;
      if (status == decode_status::internal_error || status == decode_status::bad_probability) {
        faults_ += status == decode_status::internal_error;
        std::snprintf(last_fault_.data(), last_fault_.size(), "member %s: %s", m.name.c_str(), m.with->fault());
      }
      m.ended = ++num_ended_;
      m.is_busy = false;
      if (is_open_ && m.shot == shot_)
        done_.notify_one();
    }
  }

  /// What one member returns, all would. Not bad_probability: another member may take this list.
  static bool ends_race(decode_status status) noexcept { return status == decode_status::no_solution; }
  [[nodiscard]] bool has_ended(const member &m) const noexcept { return m.shot == shot_ && !m.is_busy; }
  /// No member can change the answer any more.
  [[nodiscard]] bool is_decided() const noexcept {
    return std::ranges::all_of(members_, [this](const member &m) { return has_ended(m); }) ||
           std::ranges::any_of(members_, [this](const member &m) {
             return has_ended(m) && (ends_race(m.status) || (m.status == decode_status::ok && takes_first_));
           });
  }

  /// False: the caller's word is set. True: decided, or the deadline and the grace are over.
  bool wait(std::unique_lock<std::mutex> &lock, const decode_control &control) {
    using std::chrono::nanoseconds;
    constexpr auto kLast = static_cast<std::uint64_t>((nanoseconds::max() - nanoseconds(kGrace)).count());
    const auto end = control.deadline_ns >= kLast
                         ? rt::steady_clock::time_point::max()
                         : rt::steady_clock::time_point(nanoseconds(control.deadline_ns)) + kGrace;
    while (!is_decided()) {
      if (control.cancel != nullptr && rt::load_relaxed(*control.cancel) != 0)
        return false;
      const auto now = rt::steady_clock::now();
      if (now >= end)
        return true;
      if (control.cancel != nullptr)
        done_.wait_until(lock, std::min(end, now + kCancelPoll));
      else if (end == rt::steady_clock::time_point::max())
        cudaq::realtime::detail::wait_on(done_, lock);
      else
        done_.wait_until(lock, end);
    }
    return true;
  }

  /// Whether a is the better answer of two members with a solution.
  [[nodiscard]] bool is_better(const member &a, const member &b) const noexcept {
    if ((a.status == decode_status::ok) != (b.status == decode_status::ok))
      return a.status == decode_status::ok;
    if (takes_first_ && a.status == decode_status::ok)
      return a.ended < b.ended;
    const auto weight = [](const member &m) { return std::isnan(m.details.weight) ? HUGE_VAL : m.details.weight; };
    return weight(a) < weight(b);
  }

  decode_status answer(std::span<std::uint8_t> observables, decode_details *details) noexcept {
    member *winner = nullptr;
    bool at_deadline = false, any_unconverged = false, any_refused = false;
    for (member &m : members_) {
      at_deadline |= !has_ended(m) || m.status == decode_status::deadline; // wait() leaves no other reason
      if (!has_ended(m))
        continue;
      if (ends_race(m.status))
        return m.status;
      any_unconverged |= m.status == decode_status::not_converged;
      any_refused |= m.status == decode_status::bad_probability;
      if (m.details.has_solution && (winner == nullptr || is_better(m, *winner)))
        winner = &m;
    }
    if (winner == nullptr && any_refused)
      return decode_status::bad_probability;
    if (winner == nullptr)
      return at_deadline ? decode_status::deadline
                         : (any_unconverged ? decode_status::not_converged : decode_status::internal_error);
    ++winner->won;
    std::ranges::copy(winner->observables, observables.begin());
    if (details == nullptr)
      return winner->status;
    details->weight = winner->details.weight;
    details->has_solution = true;
    details->winner = winner->name.c_str();
    const std::size_t count = winner->details.num_errors;
    if (count > details->errors.size())
      return decode_status::buffer_too_small;
    std::copy_n(winner->errors.begin(), count, details->errors.begin());
    details->num_errors = count;
    return winner->status;
  }

  const bool takes_first_;
  std::uint64_t num_errors_ = 0;
  mutable std::mutex mutex_; ///< for the members below, and what `member` says
  std::condition_variable wake_, done_;
  std::uint64_t shot_ = 0, num_ended_ = 0;
  bool is_open_ = false, is_stopped_ = false;
  const std::vector<std::uint64_t> *events_ = nullptr;         ///< of the open shot
  std::shared_ptr<const std::vector<error_probability>> list_; ///< the same
  std::uint64_t deadline_ns_ = kNoDeadline;
  bool wants_errors_ = false;
  std::deque<member> members_;
  std::uint64_t faults_ = 0; ///< decodes of members that were internal errors
  std::array<char, 512> last_fault_{};
  mutable std::array<char, 512> fault_{}; ///< a copy for the caller's thread, which reads it without the mutex
};

/// "relay-bp(num_sets=60,seed=1)|bp-osd" as names for make_decoder.
expected<std::vector<std::string>> member_names(std::string_view text) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : text) {
    depth += (c == '(' ? 1 : 0) - (c == ')' ? 1 : 0);
    if (c == '|' && depth == 0)
      names.emplace_back();
    else
      names.back() += c;
  }
  for (std::string &name : names) {
    const std::size_t open = name.find('(');
    if (name.empty() || depth != 0 || (open != std::string::npos && (open == 0 || !name.ends_with(')'))))
      return reason("\"" + std::string(text) + "\" is not a list of members: NAME|NAME(key=value,...)|...");
    name = without_parentheses(name);
  }
  if (names.size() < 2 || names.size() > kMaxMembers)
    return reason("a race has 2 to " + std::to_string(kMaxMembers) + " members, this one has " +
                  std::to_string(names.size()) + ": race:NAME|NAME(key=value,...),mode=first");
  return names;
}

} // namespace

expected<error_form> error_form_of_race(std::string_view members) {
  const auto names = member_names(members);
  if (names.failed())
    return names.reason();
  const auto first = error_form_of(names->front());
  for (const std::string &name : *names) {
    const auto form = error_form_of(name);
    if (form.failed())
      return reason("member " + name + ": " + form.text());
    if (*form != *first)
      return error_form::joined;
  }
  return first;
}

bool race_takes_edges_only(std::string_view members) {
  const auto names = member_names(members);
  return names.ok() && std::ranges::any_of(*names, takes_edges_only);
}

decoder_result make_race_decoder(const decoder_model &model, decoder_settings &settings) {
  const auto failed = [](const std::string &why) { return decoder_result{nullptr, "race decoder: " + why}; };
  try {
    const std::string text = settings.text("members", "");
    const bool takes_first = settings.choice("mode", "first", {"first", "best"}) == "first";
    if (const expected<> result = settings.check(); result.failed())
      return failed(result.text());
    const auto names = member_names(text);
    if (names.failed())
      return failed(names.text());
    std::vector<std::pair<std::string, std::unique_ptr<decoder>>> members;
    for (const std::string &name : *names) {
      if (auto parsed = decoder_name::parse(name); parsed.ok() && !parsed->settings.text("heralds", "").empty())
        return failed("member " + name + ": heralds=FILE is a setting of the race, after all members");
      chosen_decoder made = choose_decoder(name, model);
      if (!made) {
        decoder_result refused = failed("member " + name + ": " + made.error);
        refused.machine_lacks = made.machine_lacks;
        return refused;
      }
      if (!made.instance->obeys_deadline())
        return failed("member " + name + ": " + made.instance->name() +
                      " cannot be cancelled; bp-osd, relay-bp and plug-ins with decode_until can");
      members.emplace_back(name, std::move(made.instance));
    }
    auto race = std::make_unique<race_decoder>(std::move(members), takes_first);
    if (expected<> result = race->start(); result.failed()) { // a thread
      decoder_result refused = failed(result.text());
      refused.machine_lacks = true;
      return refused;
    }
    return {std::move(race), {}};
  } catch (const std::exception &failure) { // out of memory
    return failed(failure.what());
  }
}

} // namespace cudaq::qec::realtime

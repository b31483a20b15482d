// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder/decoder_pool.h"

#include "lib/qec/server/decoder/decoder_turn.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace rt = cudaq::realtime::detail;

namespace {

/// How long a thread sleeps after a while without requests, if it may sleep.
constexpr std::uint64_t kSleepNs = 50'000;

} // namespace

expected<> decoder_pool::start(std::uint32_t threads, cudaq_wait_policy_t wait, std::function<bool()> all_idle) {
  all_idle_ = std::move(all_idle);
  for (std::uint32_t k = 0; k < threads; ++k) {
    expected<> result = threads_.emplace_back().start("qec-decode-" + std::to_string(k), {}, [this, wait] {
      rt::run_loop([this] { return turn(); }, [this] { return stop_requested_.load() != 0 && all_idle_(); },
                   rt::idle_strategy(wait, kSleepNs));
    });
    if (result.failed())
      return result;
  }
  return {};
}

bool decoder_pool::stop(rt::steady_clock::time_point deadline) {
  stop_requested_.store(1);
  bool all = true;
  for (rt::loop_thread &thread : threads_)
    all = thread.join_until(deadline) && all;
  return all;
}

void decoder_pool::wake_at(decoder_turn &decoder, std::int64_t time_ns) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::ranges::find(sleepers_, &decoder, &sleeper::decoder);
  if (found != sleepers_.end())
    found->time_ns = time_ns;
  else
    sleepers_.push_back({&decoder, time_ns}); // there is room for all decoders
  next_wake_ns_.store(std::ranges::min(sleepers_, {}, &sleeper::time_ns).time_ns);
}

void decoder_pool::wake_sleepers() noexcept {
  const std::int64_t now = rt::steady_clock::now().time_since_epoch().count();
  if (now < next_wake_ns_.load())
    return;
  decoder_turn *due = nullptr; // one for each call: wake() needs the list's mutex
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::ranges::find_if(sleepers_, [now](const sleeper &s) { return s.time_ns <= now; });
    if (found != sleepers_.end()) {
      due = found->decoder;
      sleepers_.erase(found);
    }
    next_wake_ns_.store(sleepers_.empty() ? kNever : std::ranges::min(sleepers_, {}, &sleeper::time_ns).time_ns);
  }
  if (due != nullptr)
    due->wake();
}

void decoder_pool::push(decoder_turn &decoder) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t count = count_.peek();
  ready_[(first_ + count) % ready_.size()] = &decoder;
  count_.store(count + 1);
}

decoder_turn *decoder_pool::pop() noexcept {
  if (count_.load() == 0)
    return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t count = count_.peek();
  if (count == 0)
    return nullptr;
  decoder_turn *const decoder = ready_[first_];
  first_ = (first_ + 1) % ready_.size();
  count_.store(count - 1);
  return decoder;
}

std::uint32_t decoder_pool::turn() noexcept {
  if (next_wake_ns_.load() != kNever)
    wake_sleepers();
  decoder_turn *const decoder = pop();
  if (decoder == nullptr)
    return 0;
  std::uint32_t served = 0;
  do // as long as no other decoder waits for a thread
    served += decoder->turn();
  while (decoder->can_go_on() && count_.load() == 0);
  if (decoder->unschedule())
    push(*decoder);
  return served;
}

} // namespace cudaq::qec::realtime

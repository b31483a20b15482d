// SPDX-License-Identifier: Apache-2.0
#include "tools/ring/ring_exchange.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

std::uint32_t next_slot(std::uint32_t slot, std::uint32_t slots) { return slot + 1 == slots ? 0 : slot + 1; }

template <timed_part Timed>
loop_result one_by_one(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                       const tick_scale &scale) {
  constexpr bool kFrames = Timed == timed_part::frames;
  loop_result result;
  poll_deadline deadline("closed loop: no answer", config.timeout_ns, config.share_core);
  checked_payload payload(config);
  lap_timer laps(result.laps, scale);
  std::uint32_t slot = 0;
  std::uint64_t begin = now_ns();
  for (std::uint64_t n = 0; n < config.warm_up + config.exchanges; ++n) {
    if (n == config.warm_up)
      begin = now_ns();
    payload.make(n);
    deadline.restart();
    // Before the clock is read: a control system knows that its next slot is free before its data arrive.
    while (!port.take(slot))
      deadline.check();
    if (!kFrames)
      payload.write(port, slot, n);
    const std::uint64_t t0 = ticks();
    if (kFrames)
      payload.write(port, slot, n);
    port.signal(slot);
    while (!port.is_answered(slot))
      deadline.check();
    bool good = kFrames && payload.read(port, slot, n);
    const std::uint64_t t1 = ticks();
    if (!kFrames)
      good = payload.read(port, slot, n);
    port.give_back(slot);
    if (n >= config.warm_up)
      result.per_exchange.record(scale.whole_ns(t1 - t0));
    if (kFrames)
      laps.exchanged(n + 1, t1);
    result.wrong += good && payload.is_right() ? 0 : 1;
    slot = next_slot(slot, slots);
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

} // namespace

bool reply_follows(reply_rule rule, std::span<const std::uint64_t> request, std::span<const std::uint64_t> reply) {
  constexpr std::uint64_t kHigh = 0x8080808080808080u, kByteOnes = 0x0101010101010101u;
  if (request.size() != reply.size())
    return false;
  const auto each_is = [&](auto expected) { // a loop for each rule: the check is part of a lap
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < request.size(); ++i)
      wrong |= reply[i] ^ expected(request[i]);
    return wrong == 0;
  };
  switch (rule) {
  case reply_rule::echo:
    return each_is([](std::uint64_t word) { return word; });
  case reply_rule::transform:
    return each_is(transform);
  case reply_rule::add_words:
    return each_is([](std::uint64_t word) { return ((word >> 32) + 1) << 32 | static_cast<std::uint32_t>(word + 1); });
  case reply_rule::add_bytes: // the high bits are added separately: no carry into the next byte
    return each_is([](std::uint64_t word) { return ((word & ~kHigh) + kByteOnes) ^ (word & kHigh); });
  case reply_rule::last_word:
    break;
  }
  return !request.empty() &&
         static_cast<std::uint32_t>(reply.back() >> 32) == ~static_cast<std::uint32_t>(request.front());
}

loop_result exchange_one_by_one(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                                const tick_scale &scale) {
  return config.timed == timed_part::flags ? one_by_one<timed_part::flags>(port, slots, config, scale)
                                           : one_by_one<timed_part::frames>(port, slots, config, scale);
}

loop_result exchange_pipelined(const ring_port &port, std::uint32_t slots, const exchange_config &config,
                               const tick_scale &scale) {
  loop_result result;
  poll_deadline deadline("pipelined: no answer", config.timeout_ns, config.share_core);
  checked_payload sending(config), collecting(config);
  std::vector<std::uint64_t> sent_ticks(slots);
  std::uint64_t sent = 0, collected = 0;
  std::uint32_t send_slot = 0, collect_slot = 0;
  lap_timer laps(result.laps, scale);
  const std::uint64_t begin = now_ns();
  while (collected < config.exchanges) {
    bool moved = false;
    const std::uint64_t max_count =
        std::min({std::uint64_t{config.batch}, config.exchanges - sent, slots - (sent - collected)});
    if (const std::uint32_t count = max_count == 0 ? 0 : port.take(send_slot, static_cast<std::uint32_t>(max_count));
        count != 0) {
      const std::uint32_t first = send_slot;
      for (std::uint32_t k = 0; k < count; ++k, send_slot = next_slot(send_slot, slots)) {
        if (sent % kTimedEvery == 0)
          sent_ticks[send_slot] = ticks();
        sending.make(sent);
        sending.write(port, send_slot, sent);
        ++sent;
      }
      port.signal(first, count);
      moved = true;
    }
    for (std::uint32_t k = 0; k < config.batch && collected < sent && port.is_answered(collect_slot); ++k) {
      const bool good = collecting.read(port, collect_slot, collected);
      if (collected % kTimedEvery == 0)
        result.per_exchange.record(scale.whole_ns(ticks() - sent_ticks[collect_slot]));
      port.give_back(collect_slot);
      collecting.make(collected);
      result.wrong += good && collecting.is_right() ? 0 : 1;
      ++collected;
      if (collected % kLap == 0)
        laps.exchanged(collected, ticks());
      collect_slot = next_slot(collect_slot, slots);
      moved = true;
    }
    if (moved)
      deadline.restart();
    else
      deadline.check();
  }
  result.wall_ns = now_ns() - begin;
  result.exchanges = config.exchanges;
  return result;
}

} // namespace cudaq::realtime::tools

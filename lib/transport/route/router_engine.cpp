// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/route/router_engine.h"

#include <cstring>
#include <exception>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kSleepNs = 50000; // between turns without work, where the thread may sleep
constexpr std::uint64_t kFlushNs = 100000000;

request_router::time now() { return steady_clock::now().time_since_epoch(); }

} // namespace

router_engine::router_engine(route_table table, const router_limits &limits, std::uint32_t entry_bytes, node_link &link,
                             events receiver)
    : entries_(limits.num_entries), entry_bytes_(entry_bytes), link_(link), events_(std::move(receiver)),
      router_(std::move(table), limits, *this), payloads_(std::size_t{entries_} * entry_bytes), requests_(entries_),
      inbox_(entries_) {
  on_message_ = [this](std::optional<std::uint32_t> from, std::span<const std::uint8_t> message) {
    router_.received(from, message, now_);
  };
  on_failure_ = [this](std::uint32_t node) { router_.connection_failed(node, now_); };
}

bool router_engine::submit(std::uint32_t entry, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                           std::uint64_t timestamp, std::uint32_t request_id) {
  if (payload.size() > entry_bytes_ || entry >= entries_)
    return false;
  if (!payload.empty())
    std::memcpy(payloads_.data() + std::size_t{entry} * entry_bytes_, payload.data(), payload.size());
  requests_[entry] = {function_id, static_cast<std::uint32_t>(payload.size()), timestamp, request_id};
  const std::uint64_t at = written_.peek();
  inbox_[at % entries_] = entry;
  submitted_.bump(); // before the router's thread can answer
  written_.store(at + 1);
  return true;
}

std::uint32_t router_engine::turn(request_router::time at) {
  now_ = at;
  std::uint32_t work = link_.progress(on_message_, on_failure_);
  if (closed_.load() != 0)
    router_.close();
  if (const std::uint64_t drained = drained_.load(); drained != drained_before_) {
    for (std::uint32_t node = 0; node < 64 && (drained | drained_before_) >> node != 0; ++node)
      if (((drained ^ drained_before_) >> node & 1) != 0)
        router_.drain(node, (drained >> node & 1) != 0);
    drained_before_ = drained;
  }
  for (const std::uint64_t end = written_.load(); read_ != end; ++work) {
    const std::uint32_t entry = inbox_[read_++ % entries_]; // once, also if an exception leaves submit
    const inbox_entry &request = requests_[entry];
    router_.submit(entry, request.function_id, {payloads_.data() + std::size_t{entry} * entry_bytes_, request.length},
                   request.timestamp, at, request.request_id);
  }
  router_.tick(at);
  if (leave_.load() != 0 && !left_)
    end_sessions();
  return work;
}

void router_engine::end_sessions() {
  router_.send_bye();
  link_.flush(kFlushNs);
  router_.leave(now_);
  left_ = true;
}

void router_engine::answer(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result) {
  events_.answer(entry, status, result);
  answered_.bump(); // after it: idle() means that nothing of a request is used any more
}

void router_engine::state_changed(std::uint32_t node, node_state state) {
  events_.state_changed(node, state, state == node_state::joined ? link_.carrier(node) : std::string());
}

expected<> router_engine::start(cudaq_wait_policy_t wait) {
  return thread_.start("cudaq-router", {}, [this, wait] { run(wait); });
}

std::uint32_t router_engine::turn_on_thread() {
  try {
    return turn(now());
  } catch (const std::exception &) { // no memory, or no random number: the next turn goes on
    return 0;
  }
}

void router_engine::run(cudaq_wait_policy_t wait) {
  run_loop([this] { return turn_on_thread(); }, [this] { return stop_.load() != 0; }, idle_strategy(wait, kSleepNs));
  leave_.store(1);
  turn_on_thread(); // answers the last requests that were submitted
}

bool router_engine::stop(steady_clock::time_point deadline) {
  stop_.store(1);
  return thread_.join_until(deadline);
}

} // namespace cudaq::realtime::detail

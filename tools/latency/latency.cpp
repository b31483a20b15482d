// SPDX-License-Identifier: Apache-2.0
#include "tools/latency/latency.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/common/terminal.h"
#include "tools/latency/latency_floor.h"
#include "tools/latency/latency_report.h"
#include "tools/ring/ring_exchange.h"
#include "tools/services/host_service.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kTransformId = fnv1a_hash("latency_transform");
constexpr std::uint64_t kWarmUpExchanges = 4096; ///< before each loop, not counted

constexpr std::size_t kLineSets = 64;

/// HOST_CALL handler: transforms the payload word by word.
std::int32_t transform_handler(cudaq_host_call_t *call, void *) noexcept {
  payload_words words;
  const std::uint32_t bytes = std::min<std::uint32_t>({call->payload_len, call->max_result_len, sizeof words});
  std::memcpy(words.data(), call->payload, bytes);
  for (std::size_t i = 0; i < bytes / sizeof words[0]; ++i)
    words[i] = transform(words[i]);
  std::memcpy(call->result, words.data(), bytes);
  call->result_len = bytes;
  return CUDAQ_RPC_OK;
}

/// Client and server of every case, on fixed cores. The number of exchanges of each loop is a multiple of the ring's
/// slots. So the next loop's first request is in slot 0: a bare server begins there, and the dispatcher's cursor is
/// there again.
class bench {
public:
  bench(const latency_options &o, int client_core, int server_core, bool share_core)
      : slots_(o.slots), server_core_(server_core), share_core_(share_core),
        service_(service_config(o, server_core, share_core), kTransformId, &transform_handler, nullptr, nullptr),
        timeout_ns_(static_cast<std::uint64_t>(o.timeout_s * 1e9)), seed_(o.seed) {
    if (const std::string why = pin_this_thread(client_core); !why.empty())
      throw usage_error("--core-producer: cannot pin the client to " + why);
  }

  loop_result floor_two_flags(std::size_t words, std::uint64_t exchanges) {
    // Other cache lines in each round. The cost of a line depends on the cache slice of its address (one exchange took
    // 250 to 350 ns on our machine), and a ring's slots are spread over all slices.
    exchange_lines &lines = lines_[next_lines_++ % lines_.size()];
    const auto server = server_thread::two_flags(lines, words, server_core_, share_core_);
    return warm_then_measure(words, exchanges,
                             [&](const exchange_config &c) { return exchange_two_flags(lines, c, scale_); });
  }
  loop_result floor_ring(std::size_t words, std::uint64_t exchanges, bool pipelined) {
    const auto server = server_thread::bare_ring(service_.ring(), slots_, words, server_core_, share_core_);
    return exchange(words, exchanges, pipelined);
  }
  loop_result dispatcher(std::size_t words, std::uint64_t exchanges, bool pipelined, bool records_times = false) {
    service_.record_handler_times(records_times);
    service_.start();
    loop_result result = exchange(words, exchanges, pipelined);
    service_.stop();
    return result;
  }

  [[nodiscard]] const tick_scale &scale() const noexcept { return scale_; }
  [[nodiscard]] const host_service &service() const noexcept { return service_; }

private:
  static ring_service_config service_config(const latency_options &o, int server_core, bool share_core) {
    ring_service_config c;
    c.num_slots = o.slots;
    c.slot_bytes = CUDAQ_RPC_HEADER_SIZE + static_cast<std::uint32_t>(sizeof(payload_words));
    c.in_place = o.in_place;
    c.options = default_options();
    c.options.wait_policy = share_core ? CUDAQ_WAIT_SPIN_YIELD : CUDAQ_WAIT_SPIN;
    c.options.dispatcher_core = server_core;
    return c;
  }

  loop_result exchange(std::size_t words, std::uint64_t exchanges, bool pipelined) {
    return warm_then_measure(words, exchanges, [&](const exchange_config &c) {
      return pipelined ? exchange_pipelined(service_.ring(), slots_, c, scale_)
                       : exchange_one_by_one(service_.ring(), slots_, c, scale_);
    });
  }

  template <typename Loop>
  loop_result warm_then_measure(std::size_t words, std::uint64_t exchanges, Loop loop) {
    const auto whole_laps = [this](std::uint64_t n) { return (n + slots_ - 1) / slots_ * slots_; };
    exchange_config c;
    c.exchanges = whole_laps(std::min(kWarmUpExchanges, exchanges));
    c.payload_bytes = words * sizeof(std::uint64_t);
    c.function_id = kTransformId;
    c.rule = reply_rule::transform;
    c.timed = timed_part::frames;
    c.seed = seed_;
    c.timeout_ns = timeout_ns_;
    c.share_core = share_core_;
    const loop_result warm = loop(c);
    c.exchanges = whole_laps(exchanges);
    c.seed = ++seed_;
    loop_result result = loop(c);
    result.wrong += warm.wrong;
    return result;
  }

  std::uint32_t slots_;
  int server_core_;
  bool share_core_;
  tick_scale scale_;
  host_service service_;
  std::vector<exchange_lines> lines_{kLineSets};
  std::size_t next_lines_ = 0;
  std::uint64_t timeout_ns_;
  std::uint64_t seed_;
};

std::vector<latency_case> run_rounds(bench &b, const latency_options &o) {
  struct planned {
    const char *name;
    const char *what;
    std::size_t words;
    std::function<loop_result(std::size_t, std::uint64_t)> run;
  };
  const auto two_flags = [&b](std::size_t w, std::uint64_t n) { return b.floor_two_flags(w, n); };
  const auto ring_closed = [&b](std::size_t w, std::uint64_t n) { return b.floor_ring(w, n, false); };
  const auto host_closed = [&b](std::size_t w, std::uint64_t n) { return b.dispatcher(w, n, false); };
  const auto ring_piped = [&b](std::size_t w, std::uint64_t n) { return b.floor_ring(w, n, true); };
  const auto host_piped = [&b](std::size_t w, std::uint64_t n) { return b.dispatcher(w, n, true); };
  const auto timed_closed = [&b](std::size_t w, std::uint64_t n) { return b.dispatcher(w, n, false, true); };
  const auto timed_piped = [&b](std::size_t w, std::uint64_t n) { return b.dispatcher(w, n, true, true); };
  std::vector<planned> plan = {
      {kTwoFlags0, "floor (a): two flags, no payload", 0, two_flags},
      {kHostClosed0, "HOST_CALL, closed loop, empty", 0, host_closed},
      {kTwoFlags32, "floor (a): two flags + one line each way", kMaxWords, two_flags},
      {kRingClosed32, "ring without dispatch, closed loop, 32 B", kMaxWords, ring_closed},
      {kHostClosed32, "HOST_CALL, closed loop, 32 B", kMaxWords, host_closed},
      {kRingPiped0, "floor (b): ring without dispatch, pipelined, empty", 0, ring_piped},
      {kHostPiped0, "HOST_CALL, pipelined, empty", 0, host_piped},
      {kRingPiped32, "floor (b): ring without dispatch, pipelined, 32 B", kMaxWords, ring_piped},
      {kHostPiped32, "HOST_CALL, pipelined, 32 B", kMaxWords, host_piped}};
  if (o.handler_times) {
    plan.push_back({kTimedClosed0, "HOST_CALL, closed loop, empty, handler times", 0, timed_closed});
    plan.push_back({kTimedPiped0, "HOST_CALL, pipelined, empty, handler times", 0, timed_piped});
  }
  std::vector<latency_case> cases;
  for (const planned &p : plan)
    cases.push_back({p.name, p.what, p.words * sizeof(std::uint64_t), {}, {}, {}});
  const std::uint64_t per_round = (o.exchanges + o.rounds - 1) / o.rounds;
  // After Ctrl-C the round is completed: each case and its floor have been measured as often.
  progress display({"latency", "repetitions", o.rounds});
  for (std::uint32_t round = 0; round < o.rounds && !(round != 0 && interrupt_guard::interrupted()); ++round) {
    display.show(round, now_ns()); // nothing is measured meanwhile
    for (std::size_t i = 0; i < plan.size(); ++i)
      cases[i].add_round(plan[i].run(plan[i].words, per_round));
  }
  return cases;
}

/// The cores of client and server: those that are chosen, else two different physical ones.
std::pair<int, int> two_cores(const thread_cores &chosen) {
  auto [client, server] = pick_two_cores(allowed_cores());
  if (chosen.producer < 0 && client == chosen.dispatcher)
    std::swap(client, server);
  if (chosen.producer >= 0 && chosen.producer == server)
    std::swap(client, server);
  return {chosen.producer >= 0 ? chosen.producer : client, chosen.dispatcher >= 0 ? chosen.dispatcher : server};
}

} // namespace

int run_latency(const latency_options &options, const output &out) {
  const interrupt_guard guard;
  const latency_options o = effective(options);
  require_cores(o.where, 0);
  std::vector<std::string> names{std::begin(kCaseNames), std::end(kCaseNames)};
  if (o.handler_times)
    names.insert(names.end(), {kTimedClosed0, kTimedPiped0});
  out.open_hgrm(names);
  const auto [client, server] = two_cores(o.where);
  latency_context context;
  context.client_core = client;
  context.server_core = server;
  context.share_core = client == server;
  std::unique_ptr<bench> b = std::make_unique<bench>(o, client, server, context.share_core);
  context.ns_per_tick = b->scale().ns_per_tick();
  context.timer_overhead_ns = b->scale().overhead_ns();
  const std::uint64_t switches = involuntary_switches();
  std::vector<latency_case> cases;
  try {
    cases = run_rounds(*b, o);
  } catch (const exchange_stalled &e) {
    throw check_failed(fmt::format("FAILED: {} within {} s\n{}", e.what(), o.timeout_s, b->service().dump()));
  }
  context.involuntary_switches = involuntary_switches() - switches;
  print_latency(out, o, context, cases);
  for (const latency_case &c : cases)
    out.write_hgrm(c.name, c.total.per_exchange);
  std::uint64_t wrong = 0;
  for (const latency_case &c : cases)
    wrong += c.total.wrong;
  return out.finish(latency_json_body(o, context, cases), wrong == 0 ? "" : fmt::format("{} wrong replies", wrong),
                    kExitCheckFailed,
                    ended(guard.interrupted(), cases.front().round_p50.size(), o.rounds, "repetitions"),
                    [&](const json &all) { return latency_html(all, cases); });
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// What a host dispatcher reports about itself while it runs: its counters and the text of dump_state.
#include "lib/host_dispatcher/diagnostics.h"

#include "lib/host_dispatcher/host_dispatcher.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace cudaq::realtime::detail {
namespace {

const char *phase_name(job_phase phase) {
  static constexpr const char *names[] = {"open",           "queued",           "running",        "deferred",
                                          "answered early", "answered early",   "answered early", "completing",
                                          "parked",         "given to a device"};
  return names[static_cast<std::uint32_t>(phase)];
}

} // namespace

void append(std::string &text, const char *format, ...) {
  char line[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  text += line;
}

std::uint64_t host_dispatcher::processed() const {
  std::uint64_t sum = 0;
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l)
    sum += counters_[l].responded.value() + counters_[l].dropped();
  return sum;
}

void host_dispatcher::read_stats(cudaq_dispatcher_stats_t &out) const {
  // `responded` is read before `dispatched` and `refused`, so that in_flight is never negative.
  std::uint64_t refused = 0;
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l)
    out.responded += counters_[l].responded.value();
  for (std::uint32_t l = 0; l < counters_used_.peek(); ++l) {
    const thread_counters &from = counters_[l];
    out.dispatched += from.dispatched.value();
    refused += from.refused.value();
    out.dropped_bad_magic += from.dropped_bad_magic.value();
    out.dropped_unknown_function += from.dropped_unknown_function.value();
    out.dropped_flag_value += from.dropped_flag_value.value();
    out.unexpected_flag_values += from.unexpected_flag_values.value();
    out.handler_errors += from.handler_errors.value();
    for (int e = 0; e < CUDAQ_RPC_ERROR_COUNT; ++e)
      out.protocol_errors[e] += from.protocol_errors[e].value();
    out.tx_busy_waits += from.tx_busy_waits.value();
    out.cursor_jumps += from.cursor_jumps.value();
    out.heartbeat += from.heartbeat.value();
    out.launches += from.launches.value();
    out.hook_failures += from.hook_failures.value();
    out.dataplane_errors += from.dataplane_errors.value();
    out.busy_slots += from.busy.peek() != 0;
  }
  out.received =
      out.dispatched + refused + out.dropped_bad_magic + out.dropped_unknown_function + out.dropped_flag_value;
  out.in_flight = out.dispatched + refused - out.responded;
  if (const used_jobs::use jobs(jobs_); jobs) {
    out.cursor = jobs->cursor.peek();
    // Requests that came and were answered between the sums count as in flight, too: limit the value.
    out.in_flight = out.in_flight < jobs->num_slots ? out.in_flight : jobs->num_slots;
  }
}

std::string describe_rules(const cudaq_dispatcher_options_t &o) {
  std::string text;
  append(text, "options: ordering %s, unknown functions %s, default owner %s, schema check %s, strict flag values %s\n",
         o.ordering == CUDAQ_ORDERING_ANY ? "any" : "FIFO",
         o.unknown_function == CUDAQ_UNKNOWN_FUNCTION_ANSWER ? "answered" : "dropped", o.default_owner ? "yes" : "no",
         o.check_schema ? "on" : "off", o.strict_flag_values ? "on" : "off");
  return text;
}

std::string host_dispatcher::describe_options() const {
  static constexpr const char *waits[] = {"spin", "spin then yield", "block"};
  const cudaq_dispatcher_options_t &o = setup_.options;
  std::string text = describe_rules(o);
  append(text, "options: wait policy %s, block interval %" PRIu64 " ns, grace period %" PRIu64 " ns, handler pool %u\n",
         waits[o.wait_policy], o.block_interval_ns, o.grace_period_ns, o.handler_pool_size);
  append(text, "options: dispatcher core %d, handler core base %d, NUMA node %d, real-time priority %d (-1: any)\n",
         o.dispatcher_core, o.handler_core_base, o.numa_node, o.realtime_priority);
  static constexpr const char *busy[] = {"hold up the ring", "hold up their function", "hold up their routing key"};
  if (!graphs_.none())
    append(text, "options: busy graph workers %s\n", busy[o.busy_workers]);
  append(text, "ring: %s, markers %s\n",
         has_dataplane() ? "slots of a dataplane"
         : shared()      ? "shared"
                         : "not shared",
         setup_.markers ? "on" : "off");
  return text;
}

std::string describe_counters(const cudaq_dispatcher_stats_t &s) {
  std::string text;
  append(text, "counters: received %" PRIu64 ", dispatched %" PRIu64 ", responded %" PRIu64 ", in flight %" PRIu64 "\n",
         s.received, s.dispatched, s.responded, s.in_flight);
  append(text,
         "counters: dropped for magic %" PRIu64 ", unknown function %" PRIu64 ", flag value %" PRIu64
         "; unexpected flag values %" PRIu64 "\n",
         s.dropped_bad_magic, s.dropped_unknown_function, s.dropped_flag_value, s.unexpected_flag_values);
  append(text, "counters: handler errors %" PRIu64 ", tx busy waits %" PRIu64 ", cursor jumps %" PRIu64 "\n",
         s.handler_errors, s.tx_busy_waits, s.cursor_jumps);
  if (s.hook_failures != 0)
    append(text, "counters: launch hooks that threw %" PRIu64 "\n", s.hook_failures);
  if (s.dataplane_errors != 0)
    append(text, "counters: errors of the dataplane %" PRIu64 "\n", s.dataplane_errors);
  for (int e = 0; e < CUDAQ_RPC_ERROR_COUNT; ++e)
    if (s.protocol_errors[e] != 0)
      append(text, "counters: answered with status %d: %" PRIu64 "\n", -1000 - e, s.protocol_errors[e]);
  return text;
}

std::string host_dispatcher::describe() const {
  std::string text;
  if (setup_.stats != nullptr)
    text += describe_options();
  cudaq_dispatcher_stats_t stats{};
  read_stats(stats);
  text += describe_counters(stats);
  for (std::uint32_t l = kLoopCounters; l < counters_used_.peek(); ++l) {
    const std::uint64_t busy = counters_[l].busy.peek();
    append(text, "thread %s: heartbeat %" PRIu64 ", ",
           l == kLoopCounters ? "dispatcher" : ("pool " + std::to_string(l - kFirstPoolCounters)).c_str(),
           counters_[l].heartbeat.value());
    if (busy == 0)
      text += "no handler running\n";
    else
      append(text, "in handler of function 0x%08x for slot %u\n", static_cast<std::uint32_t>(busy >> 32),
             static_cast<std::uint32_t>(busy) - 1);
  }
  text += times_.describe(counters_);
  text += graphs_.describe();
  const used_jobs::use jobs(jobs_);
  if (!jobs)
    return text;
  const slot_ring &ring = jobs->ring;
  append(text, "cursor: slot %u of %u\n", jobs->cursor.peek(), ring.num_slots);
  for (std::uint32_t i = 0; i < ring.num_slots; ++i) {
    const std::uint64_t rx = ring.ready(i), tx = ring.answer(i);
    const job_state &state = (*jobs)[i].state;
    job_phase phase = state.phase();
    if (phase == job_phase::given && rx == 0) // answered; the router closes the job when the slot is used again
      phase = job_phase::open;
    if (rx != 0 || tx != 0 || phase != job_phase::open)
      append(text, "slot %u: rx 0x%016" PRIx64 " tx 0x%016" PRIx64 " job %s, generation %" PRIu64 "\n", i, rx, tx,
             phase_name(phase), state.generation());
  }
  return text;
}

} // namespace cudaq::realtime::detail

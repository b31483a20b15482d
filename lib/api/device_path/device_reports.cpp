// SPDX-License-Identifier: Apache-2.0
#include "lib/api/device_path/device_reports.h"

#include "lib/base/cuda_device.h"
#include "lib/host_dispatcher/diagnostics.h"

#include <cinttypes>
#include <memory>

namespace cudaq::realtime::detail {

device_reports::~device_reports() {
  if (reports_ != nullptr)
    manager_.give_back_mapped_block(reports_);
}

expected<> device_reports::renew(std::uint32_t loops, std::uint32_t first_slot) {
  void *larger = nullptr;
  static_assert(sizeof(graph_report) <= sizeof(loop_report));
  if (loops > capacity_)
    if (expected<> result = manager_.take_mapped_block((loops + 1) * sizeof(loop_report), larger); result.failed())
      return result;
  const std::lock_guard lock(mutex_);
  before_ = sum();
  if (larger != nullptr) {
    if (reports_ != nullptr)
      manager_.give_back_mapped_block(reports_);
    reports_ = static_cast<loop_report *>(larger);
    capacity_ = loops;
  }
  loops_ = loops;
  std::uninitialized_value_construct_n(reports_, loops);
  std::construct_at(reinterpret_cast<graph_report *>(reports_ + loops));
  for (std::uint32_t l = 0; l < loops; ++l)
    reports_[l].cursor = first_slot;
  return {};
}

expected<> device_reports::device_address(loop_report *&out) const {
  void *address = nullptr;
  if (const cudaError_t error = cudaHostGetDevicePointer(&address, reports_, 0))
    return cuda_failed("cudaHostGetDevicePointer", error);
  out = static_cast<loop_report *>(address);
  return {};
}

bool device_reports::has_heartbeat() const { return load_acquire(reports_[0].heartbeat) != 0; }

// `responded` is read before `dispatched` and `refused`, so that in_flight is never negative.
void device_reports::add(const loop_report &from, counts &to) {
  cudaq_dispatcher_stats_t &s = to.stats;
  s.responded += load_acquire(from.responded);
  s.dispatched += load_acquire(from.dispatched);
  to.refused += load_acquire(from.refused);
  s.dropped_bad_magic += load_acquire(from.dropped_bad_magic);
  s.dropped_unknown_function += load_acquire(from.dropped_unknown_function);
  s.dropped_flag_value += load_acquire(from.dropped_flag_value);
  s.unexpected_flag_values += load_acquire(from.unexpected_flag_values);
  s.handler_errors += load_acquire(from.handler_errors);
  for (int e = 0; e < CUDAQ_RPC_ERROR_COUNT; ++e)
    s.protocol_errors[e] += load_acquire(from.protocol_errors[e]);
  s.cursor_jumps += load_acquire(from.cursor_jumps);
  s.launches += load_acquire(from.launches);
  s.relaunches += load_acquire(from.relaunches);
  to.unrelieved += load_acquire(from.unrelieved);
  s.heartbeat += load_acquire(from.heartbeat);
  s.polls += load_acquire(from.polls);
}

device_reports::counts device_reports::sum() const {
  counts all = before_;
  for (std::uint32_t l = 0; l < loops_; ++l)
    add(reports_[l], all);
  return all;
}

cudaError_t device_reports::fault() const {
  const std::lock_guard lock(mutex_);
  return loops_ == 0 ? cudaSuccess : static_cast<cudaError_t>(load_acquire(reports_[0].fault));
}

std::uint32_t device_reports::cursor() const {
  const std::lock_guard lock(mutex_);
  return loops_ == 0 ? 0 : load_acquire(reports_[0].cursor);
}

void device_reports::read(cudaq_dispatcher_stats_t &out) const {
  const std::lock_guard lock(mutex_);
  const counts all = sum();
  out = all.stats;
  const std::uint64_t taken = out.dispatched + all.refused;
  out.received = taken + out.dropped_bad_magic + out.dropped_unknown_function + out.dropped_flag_value;
  out.in_flight = taken > out.responded ? taken - out.responded : 0;
  for (std::uint32_t l = 0; l < loops_; ++l)
    out.busy_slots += load_acquire(reports_[l].busy) != 0;
  if (loops_ != 0)
    out.cursor = load_acquire(reports_[0].cursor);
}

graph_report device_reports::graphs() const {
  const std::lock_guard lock(mutex_);
  if (loops_ == 0)
    return {};
  const auto &posted = *reinterpret_cast<const graph_report *>(reports_ + loops_);
  graph_report seen{};
  seen.silent = load_acquire(posted.silent);
  seen.silent_graph = load_acquire(posted.silent_graph);
  seen.late_graph = load_acquire(posted.late_graph);
  return seen;
}

std::uint64_t device_reports::unrelieved() const {
  const std::lock_guard lock(mutex_);
  return sum().unrelieved;
}

std::uint64_t device_reports::processed() const {
  const std::lock_guard lock(mutex_);
  const cudaq_dispatcher_stats_t s = sum().stats;
  return s.responded + s.dropped_bad_magic + s.dropped_unknown_function + s.dropped_flag_value;
}

std::string device_reports::describe_loops() const {
  constexpr std::uint32_t kMaxLines = 64;
  const std::lock_guard lock(mutex_);
  std::string text;
  std::uint32_t lines = 0, left_out = 0;
  for (std::uint32_t l = 0; l < loops_; ++l) {
    counts of;
    add(reports_[l], of);
    const std::uint64_t busy = load_acquire(reports_[l].busy);
    const cudaq_dispatcher_stats_t &s = of.stats;
    if (l != 0 && busy == 0 &&
        s.dispatched + of.refused + s.dropped_bad_magic + s.dropped_unknown_function + s.dropped_flag_value == 0)
      continue;
    if (++lines > kMaxLines) {
      ++left_out;
      continue;
    }
    append(text, "loop %u: heartbeat %" PRIu64 ", cursor: slot %u, dispatched %" PRIu64 ", ", l, s.heartbeat,
           load_acquire(reports_[l].cursor), s.dispatched);
    if (busy == 0)
      text += "no handler running\n";
    else
      append(text, "in a handler for slot %" PRIu64 "\n", busy - 1);
  }
  if (left_out != 0)
    append(text, "... and %u more loops\n", left_out);
  return text;
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/run_trace.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

// Numbers of the tracks of a run. Viewers sort tracks by them.
constexpr std::uint32_t kSenderTrack = 1, kCollectorTrack = 2, kFirstWorkerTrack = 10, kFirstSlotTrack = 1000;

struct event {
  std::uint64_t begin, end;
  std::size_t run;
  std::uint32_t track;
  std::uint64_t request;
  const std::string *name;
};

std::string quoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// "12.345": ns as us, exactly.
std::string microseconds(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

class trace_text {
public:
  explicit trace_text(const std::vector<traced_run> &runs) : runs_(runs) {
    for (std::size_t run = 0; run < runs_.size(); ++run)
      add_run(run);
    std::ranges::stable_sort(
        events_, [](const event &a, const event &b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  }

  void write(std::ostream &file) const {
    file << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (const std::string &line : names_)
      file << line << ",\n";
    const std::uint64_t first = events_.empty() ? 0 : events_.front().begin;
    for (const event &e : events_)
      file << fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{"request":{}}}}})",
                          e.run + 1, e.track, microseconds(e.begin - first), microseconds(e.end - e.begin),
                          quoted(*e.name), e.request)
           << ",\n";
    // The last element, so that each of the others ends with a comma.
    file << R"({"ph":"M","pid":0,"tid":0,"name":"process_labels","args":{"labels":"cudaq-realtime"}})"
         << "\n]}\n";
  }

private:
  void add_run(std::size_t run) {
    const trace_names &names = runs_[run].names;
    name("process_name", run, 0, names.run);
    name("thread_name", run, kSenderTrack, names.sender);
    const std::uint32_t collector = names.collector == names.sender ? kSenderTrack : kCollectorTrack;
    if (collector != kSenderTrack)
      name("thread_name", run, collector, names.collector);
    std::map<std::uint32_t, bool> workers;
    std::map<std::uint32_t, std::uint64_t> slots; ///< with the end of the last request
    const auto &requests = runs_[run].trace->requests();
    for (std::size_t k = 0; k < requests.size(); ++k) {
      const traced_request &r = requests[k];
      if (r.seen == 0)
        continue;
      // The clock may have been read before the last request of the slot was collected.
      const std::uint64_t sent = std::max(r.sent, slots[r.slot]);
      slots[r.slot] = r.seen;
      const auto add = [&](std::uint32_t track, std::uint64_t begin, std::uint64_t end, const std::string &what) {
        events_.push_back({begin, std::max(begin, end), run, track, k, &what});
      };
      add(kFirstSlotTrack + r.slot, sent, r.seen, request_);
      add(kSenderTrack, r.sent, r.accepted, send_);
      add(collector, r.seen, r.collected, collect_);
      if (r.begin == 0)
        continue; // a GPU did the work: its times are not known
      workers[r.worker] = true;
      add(kFirstWorkerTrack + r.worker, r.begin, r.end, names.parts[1]);
      add(kFirstSlotTrack + r.slot, sent, r.begin, names.parts[0]);
      add(kFirstSlotTrack + r.slot, r.begin, r.end, names.parts[1]);
      add(kFirstSlotTrack + r.slot, r.end, r.seen, names.parts[2]);
    }
    for (const auto &[worker, used] : workers)
      name("thread_name", run, kFirstWorkerTrack + worker,
           workers.size() == 1 ? names.worker : fmt::format("{} {}", names.worker, worker));
    for (const auto &[slot, last] : slots)
      name("thread_name", run, kFirstSlotTrack + slot, fmt::format("slot {}", slot));
  }
  void name(const char *what, std::size_t run, std::uint32_t track, const std::string &text) {
    names_.push_back(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", run + 1, track,
                                 what, quoted(text)));
  }

  const std::string request_ = "request", send_ = "send", collect_ = "collect";
  const std::vector<traced_run> &runs_;
  std::vector<std::string> names_;
  std::vector<event> events_;
};

} // namespace

void write_trace(std::ostream &file, const std::vector<traced_run> &runs) { trace_text(runs).write(file); }

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// Reads a trace, and checks what each must have.
#pragma once

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace cudaq::realtime::tools::test {

struct trace_event {
  int run = 0, track = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string name;
  std::uint64_t request = 0;
};

class checked_trace {
public:
  /// Fails the test if `text` is no trace: JSON with events in the order of their times; ranges of a track are one
  /// after the other or in each other; each track has a name.
  explicit checked_trace(const std::string &text) {
    const auto all = nlohmann::json::parse(text, nullptr, false);
    if (all.is_discarded()) {
      ADD_FAILURE() << "no JSON";
      return;
    }
    for (const auto &e : all.at("traceEvents"))
      read(e);
    std::int64_t before = 0;
    std::map<std::pair<int, int>, std::vector<std::int64_t>> open; // ends of the ranges that are open, outermost first
    for (const trace_event &e : events_) {
      EXPECT_GE(e.begin_ns, before) << "the times go back";
      before = e.begin_ns;
      EXPECT_GE(e.end_ns, e.begin_ns) << e.name;
      EXPECT_TRUE(tracks_.contains({e.run, e.track})) << "track " << e.track << " has no name";
      auto &ends = open[{e.run, e.track}];
      while (!ends.empty() && ends.back() <= e.begin_ns)
        ends.pop_back();
      if (!ends.empty()) {
        EXPECT_LE(e.end_ns, ends.back()) << e.name << " of request " << e.request << " is half in another range";
      }
      ends.push_back(e.end_ns);
    }
  }

  [[nodiscard]] const std::vector<trace_event> &events() const { return events_; }
  /// Requests of a run that have an event with this name on a track whose name begins like this.
  [[nodiscard]] std::set<std::uint64_t> requests(int run, const std::string &name, const std::string &track) const {
    std::set<std::uint64_t> found;
    for (const trace_event &e : events_)
      if (e.run == run && e.name == name && track_name(e).starts_with(track)) {
        EXPECT_TRUE(found.insert(e.request).second) << name << " of request " << e.request << " is there twice";
      }
    return found;
  }
  [[nodiscard]] std::set<std::string> track_names(int run) const {
    std::set<std::string> names;
    for (const auto &[track, name] : tracks_)
      if (track.first == run)
        names.insert(name);
    return names;
  }
  [[nodiscard]] const std::map<int, std::string> &runs() const { return runs_; }

private:
  [[nodiscard]] std::string track_name(const trace_event &e) const {
    const auto found = tracks_.find({e.run, e.track});
    return found == tracks_.end() ? "" : found->second;
  }
  void read(const nlohmann::json &e) {
    const int run = e.at("pid"), track = e.at("tid");
    if (e.at("ph") == "M") {
      if (e.at("name") == "thread_name")
        tracks_[{run, track}] = e.at("args").at("name");
      if (e.at("name") == "process_name")
        runs_[run] = e.at("args").at("name");
      return;
    }
    EXPECT_EQ(e.at("ph"), "X");
    const auto ns = [](const nlohmann::json &us) { return std::llround(us.get<double>() * 1000); };
    const std::int64_t begin = ns(e.at("ts"));
    events_.push_back({run, track, begin, begin + ns(e.at("dur")), e.at("name"), e.at("args").at("request")});
  }

  std::vector<trace_event> events_;
  std::map<std::pair<int, int>, std::string> tracks_;
  std::map<int, std::string> runs_;
};

} // namespace cudaq::realtime::tools::test

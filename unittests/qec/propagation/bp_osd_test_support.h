// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/bp_osd/bp_osd_decoder.h"
#include "unittests/qec/qec_test_support.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

namespace cudaq::qec::realtime::test {

inline tanner_graph graph_or_throw(std::string_view dem) {
  const auto model = parse_dem(dem);
  if (model.failed())
    throw std::runtime_error(model.text());
  auto graph = tanner_graph::from_dem(*model);
  if (graph.failed())
    throw std::runtime_error(graph.text());
  return std::move(*graph);
}

/// The detectors that the correction of the last solve() flips, together with the certain errors; ascending.
inline std::vector<std::uint64_t> events_of(const bp_osd &solver) {
  const tanner_graph &graph = solver.graph();
  std::vector<int> flipped(graph.num_checks);
  for (const std::uint32_t check : graph.certain_checks)
    flipped[check] ^= 1;
  for (const std::uint32_t column : solver.correction())
    for (const std::uint32_t check : graph.checks_of(column))
      flipped[check] ^= 1;
  std::vector<std::uint64_t> events;
  for (std::uint64_t d = 0; d < graph.num_detectors; ++d)
    if (graph.check_of[d] != kNoCheck && flipped[graph.check_of[d]] != 0)
      events.push_back(d);
  return events;
}

/// The first 64 observables that the correction flips, together with the certain errors.
inline std::uint64_t observables_of(const bp_osd &solver) {
  std::uint64_t flipped = 0;
  for (const std::uint64_t k : solver.graph().certain_observables)
    flipped ^= std::uint64_t{1} << k;
  for (const std::uint32_t column : solver.correction())
    for (const std::uint64_t k : solver.graph().observables_of(column))
      flipped ^= std::uint64_t{1} << k;
  return flipped;
}

inline double weight_of(const bp_osd &solver) {
  double weight = 0;
  for (const std::uint32_t column : solver.correction()) {
    const double p = solver.graph().probability[column];
    weight += std::log((1 - p) / p);
  }
  return weight;
}

inline std::string read_file(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A set that tools/data/bp_osd/make_bp_osd_data.py wrote.
struct oracle_set {
  explicit oracle_set(const std::string &name) {
    const auto folder = data_folder() / "bp_osd";
    dem_text = read_file(folder / (name + ".dem"));
    const std::uint64_t detectors = parse_dem(dem_text)->num_detectors;
    const std::string packed = read_file(folder / (name + ".dets.b8"));
    const std::vector<std::uint8_t> bytes(packed.begin(), packed.end());
    const std::size_t row = (detectors + 7) / 8;
    for (std::size_t at = 0; at < bytes.size(); at += row) {
      std::vector<std::uint64_t> events(detectors);
      const unpack_result unpacked = unpack_events(std::span(bytes).subspan(at, row), detectors, events);
      if (unpacked.status != decode_status::ok)
        throw std::runtime_error("a row of " + name + " is damaged");
      events.resize(unpacked.count);
      shots.push_back(std::move(events));
    }
    std::ifstream meta(folder / (name + ".meta"));
    for (std::string line; std::getline(meta, line);)
      values[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  }

  std::string dem_text;
  std::vector<std::vector<std::uint64_t>> shots; ///< events
  std::map<std::string, std::string> values;     ///< of the .meta file
};

} // namespace cudaq::qec::realtime::test

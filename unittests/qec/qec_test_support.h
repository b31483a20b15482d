// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/shot_file.h"
#include "unittests/support/program_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime::test {

inline std::filesystem::path data_folder() { return CUDAQ_TEST_DATA_DIR; }

/// The names of all committed sets; a set's files have its name.
inline std::vector<std::string> committed_sets() {
  std::vector<std::string> names;
  for (const int distance : {3, 5, 7, 13})
    for (const char *noise : {"0.003", "0.005"})
      names.push_back(shot_set_name(static_cast<std::uint64_t>(distance), noise));
  return names;
}

inline shot_set load_committed(std::string_view name) {
  auto set = load_shot_set(data_folder(), name);
  if (set.failed())
    throw std::runtime_error(set.text());
  return std::move(*set);
}

/// A decoder. If the factory fails, throws its reason, and the test fails.
inline std::unique_ptr<decoder> make_or_throw(std::string_view kind, std::string_view dem) {
  decoder_result made = make_decoder(kind, dem);
  if (!made)
    throw std::runtime_error(made.error);
  return std::move(made.instance);
}

struct answer {
  decode_status status;
  std::vector<std::uint8_t> observables;
  bool operator==(const answer &) const = default;
};

inline void PrintTo(const answer &a, std::ostream *out) {
  *out << "\"" << decode_status_text(a.status) << "\" " << testing::PrintToString(a.observables);
}

inline answer decode(decoder &with, const std::vector<std::uint64_t> &events, shot_probabilities list = {}) {
  std::vector<std::uint8_t> out(with.observable_bytes(), 0xEE);
  const decode_status status = with.decode(events, out, list);
  return {status, out};
}

/// Observable bytes with the given bits set.
inline std::vector<std::uint8_t> bits(std::uint64_t num_observables, const std::vector<std::uint64_t> &set) {
  std::vector<std::uint8_t> out((num_observables + 7) / 8);
  EXPECT_EQ(pack_events(set, num_observables, out), decode_status::ok);
  return out;
}

/// The kinds of decoders with exact answers that were built in; tests of both run once per kind. If PyMatching was not
/// built in, matching_golden_test reports it with a skip.
inline std::vector<std::string> decoder_kinds() {
  if (pymatching_available())
    return {"pymatching", "lookup"};
  return {"lookup"};
}

/// All kinds that were built in.
inline std::vector<std::string> all_decoder_kinds() {
  std::vector<std::string> kinds = decoder_kinds();
  kinds.insert(kinds.end(), {"bp-osd", "relay-bp"});
  return kinds;
}

/// Name of a parameterised test: the parameter, with '_' for each character that a name cannot contain.
inline std::string kind_name(const testing::TestParamInfo<std::string> &tested) {
  std::string name = tested.param;
  std::ranges::replace_if(
      name, [](char c) { return std::string_view(".-:=").find(c) != std::string_view::npos; }, '_');
  return name;
}

} // namespace cudaq::qec::realtime::test

#define CUDAQ_SKIP_WITHOUT_PYMATCHING()                                                                                \
  if (!::cudaq::qec::realtime::pymatching_available())                                                                 \
  GTEST_SKIP() << "PyMatching was not built in"

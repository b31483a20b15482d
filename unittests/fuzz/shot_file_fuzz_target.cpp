// SPDX-License-Identifier: Apache-2.0
// The input is the five files of a set of recorded shots, with a line "%%" between two of them. A set that is accepted
// has a row of the right size for each shot, and its rows convert to events and back.
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/shot_file.h"
#include "unittests/fuzz/fuzz_input.h"

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

void check_row(std::span<const std::uint8_t> row, std::uint64_t bits) {
  std::vector<std::uint64_t> events(static_cast<std::size_t>(bits));
  const unpack_result unpacked = unpack_events(row, bits, events);
  require(unpacked.status == decode_status::ok, "a row of an accepted set has no bits past its end");
  std::vector<std::uint8_t> packed(row.size(), 0xEE);
  require(pack_events(std::span(events).first(unpacked.count), bits, packed) == decode_status::ok, "events fit again");
  require(std::ranges::equal(packed, row), "a row survives the conversion to events and back");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  cudaq::realtime::test::fuzz_input input(data, size);
  const auto text = [&] { return input.text_until("%%\n"); };
  const auto bytes = [&] {
    const std::string_view part = text();
    return std::vector<std::uint8_t>(part.begin(), part.end());
  };
  shot_files files;
  files.meta = text();
  files.dem = text();
  files.detections = bytes();
  files.observables = bytes();
  files.predictions = bytes();
  const auto set = make_shot_set("folder/set", std::move(files));
  if (set.failed()) {
    require(set.text().starts_with("folder/set."), "a refusal names the file: " + set.text());
    return 0;
  }
  require(set->noise >= 0 && set->noise <= 1, "noise is a probability");
  require(set->num_detectors != 0 && set->shots <= set->detections.size(), "each shot has bytes");
  for (std::uint64_t shot = 0; shot < set->shots; ++shot) {
    check_row(set->detection_row(shot), set->num_detectors);
    check_row(set->observable_row(shot), set->num_observables);
    check_row(set->prediction_row(shot), set->num_observables);
  }
  return 0;
}

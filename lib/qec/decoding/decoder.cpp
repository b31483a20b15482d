// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/decoder.h"

#include <algorithm>

namespace cudaq::qec::realtime {

const char *decode_status_text(decode_status status) noexcept {
  switch (status) {
  case decode_status::ok:
    return "ok";
  case decode_status::bad_detector_index:
    return "a detection event names a detector outside the model";
  case decode_status::duplicate_detector_index:
    return "a detection event is listed twice";
  case decode_status::no_solution:
    return "no error of the model causes these detection events (odd parity without a boundary?)";
  case decode_status::buffer_too_small:
    return "a buffer is too small for the model";
  case decode_status::internal_error:
    return "internal error of the decoder";
  }
  return "unknown decode status";
}

decoder::decoder(std::uint64_t num_detectors, std::uint64_t num_observables)
    : num_detectors_(num_detectors), num_observables_(num_observables) {
  events_.reserve(static_cast<std::size_t>(num_detectors));
}

decode_status decoder::take_events(std::span<const std::uint64_t> events) noexcept {
  // All indices are checked before a matcher gets them: a bad index inside PyMatching would spoil every later decode.
  // More events than detectors contain a duplicate and would make events_ grow. The first check that fails decides
  // the error.
  events_.clear();
  bool ascending = true;
  for (const std::uint64_t event : events) {
    if (event >= num_detectors_)
      return decode_status::bad_detector_index;
    if (events_.size() == num_detectors_)
      return decode_status::duplicate_detector_index;
    ascending = ascending && (events_.empty() || events_.back() < event);
    events_.push_back(event);
  }
  if (ascending)
    return decode_status::ok;
  std::sort(events_.begin(), events_.end());
  if (std::adjacent_find(events_.begin(), events_.end()) != events_.end())
    return decode_status::duplicate_detector_index;
  return decode_status::ok;
}

decode_status decoder::decode(std::span<const std::uint64_t> events, std::span<std::uint8_t> observables) noexcept {
  if (observables.size() < observable_bytes())
    return decode_status::buffer_too_small;
  const auto out = observables.first(observable_bytes());
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  decode_status status = take_events(events);
  if (status == decode_status::ok)
    status = decode_checked(events_, out);
  if (status != decode_status::ok)
    std::fill(out.begin(), out.end(), std::uint8_t{0});
  return status;
}

decoder_result make_decoder(std::string_view name, std::string_view dem_text) {
  if (name == "auto")
    name = pymatching_available() ? "pymatching" : "lookup";
  if (name == "pymatching")
    return make_pymatching_decoder(dem_text);
  if (name == "lookup")
    return make_lookup_decoder(dem_text);
  return {nullptr, "unknown decoder \"" + std::string(name) + "\": known are pymatching, lookup, auto"};
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// How to use a decoder; docs/decoding.md quotes this.
#include "lib/qec/decoding/decoder.h"
#include "lib/qec/decoding/event_bits.h"

#include <gtest/gtest.h>

namespace cudaq::qec::realtime {
namespace {

TEST(Decoder, IsUsedAsTheManualShows) {
  const char *dem_text = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
  const std::vector<std::uint8_t> packed{0x01};
  std::vector<std::uint8_t> observables(1);
  const auto report = [](const std::string &error) { ADD_FAILURE() << error; };
  decode_status status = decode_status::internal_error;

  auto made = make_decoder("auto", dem_text); // or "pymatching", "lookup"
  if (!made)
    return report(made.error); // text: what is wrong, with the line of the model
  decoder &with = *made.instance;

  std::vector<std::uint64_t> events(with.num_detectors()); // once, before the loop
  const auto unpacked = unpack_events(packed, with.num_detectors(), events);
  if (unpacked.status == decode_status::ok)
    status = with.decode(std::span(events).first(unpacked.count), observables);

  EXPECT_EQ(status, decode_status::ok);
  EXPECT_EQ(observables[0], 1);
}

} // namespace
} // namespace cudaq::qec::realtime

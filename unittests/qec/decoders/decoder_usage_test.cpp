// SPDX-License-Identifier: Apache-2.0
// How to use a decoder; docs/decoding.md quotes this.
#include "cudaq/qec/decoding/decoder.h"

#include <gtest/gtest.h>

namespace cudaq::qec::realtime {
namespace {

TEST(Decoder, IsUsedAsTheManualShows) {
  const char *dem_text = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
  const std::vector<std::uint8_t> events{0x01};
  const auto report = [](const std::string &error) { ADD_FAILURE() << error; };

  auto made = make_decoder("auto", dem_text); // or "pymatching", "lookup"
  if (!made)
    return report(made.error); // text: what is wrong, with the line of the model
  decoder &with = *made.instance;

  std::vector<std::uint8_t> observables(with.observable_bytes()); // once, before the loop
  decode_status status = with.decode_bits(events, observables);   // one bit per detector

  EXPECT_EQ(status, decode_status::ok);
  EXPECT_EQ(observables[0], 1);
}

} // namespace
} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// A library that was built without PyMatching: this program is linked with the file that takes its place.
#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoders/decoder_factories.h"

#include <gtest/gtest.h>

namespace {

using namespace cudaq::qec::realtime;

constexpr const char *kDem = "error(0.1) D0 L0\nerror(0.2) D0\n";

TEST(WithoutMatching, AutoTakesATableUnlessItMustGiveGaps) {
  ASSERT_FALSE(pymatching_available());
  const struct { const char *name, *taken; } cases[] = {{"auto", "lookup"}, {"auto:confidence=1", "bp-osd"}};
  for (const auto &[name, taken] : cases) {
    const decoder_result made = make_decoder(name, kDem);
    ASSERT_TRUE(made) << name << ": " << made.error;
    EXPECT_STREQ(made.instance->name(), taken) << name;
    EXPECT_EQ(made.instance->refuses_gaps() == nullptr, taken == std::string("bp-osd")) << name;
  }
  const chosen_decoder chosen = choose_decoder("auto:confidence=1", decoder_model(kDem));
  EXPECT_NE(chosen.auto_reason.find("lookup, gives no gaps"), std::string::npos) << chosen.auto_reason;
  EXPECT_NE(make_decoder("auto:confidence=2", kDem).error.find("confidence"), std::string::npos);
  EXPECT_EQ(*error_form_of("auto:confidence=1"), *error_form_of("bp-osd"));
}

TEST(WithoutMatching, ARaceTakesAutoWithGapsAsAMemberAndGivesNone) {
  const decoder_result race = make_decoder("race:auto(confidence=1)|relay-bp", kDem);
  ASSERT_TRUE(race) << race.error;
  EXPECT_NE(race.instance->refuses_gaps(), nullptr);
  EXPECT_NE(make_decoder("race:pymatching|relay-bp", kDem).error.find("built without PyMatching"), std::string::npos);
}

} // namespace

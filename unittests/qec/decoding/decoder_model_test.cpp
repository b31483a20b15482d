// SPDX-License-Identifier: Apache-2.0
// A model as a text and as a value.
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/decoder_model.h"
#include "unittests/qec/equal_models.h"
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

constexpr const char *kText = "error(0.1) D0 L2 ^ D1\n"
                              "error(1e-09) D3\n"
                              "error(0.30000000000000004) L0\n"
                              "error(0.25) D1 D2 D3\n"
                              "error(5e-324) D2 L0 L1\n"
                              "detector D5\n"
                              "logical_observable L7\n";

TEST(DecoderModel, OfATextAndOfAValueAreTheSameBitByBit) {
  const decoder_model of_text(kText);
  ASSERT_TRUE(of_text.errors().ok()) << of_text.errors().text();
  const detector_error_model &errors = **of_text.errors();
  EXPECT_EQ(of_text.text(), kText);
  const decoder_model of_errors(errors);
  EXPECT_EQ(of_errors.text(), kText);
  expect_equal(*parse_dem(of_errors.text()), errors);
  expect_equal(*parse_dem(text_of({})), {});
}

TEST(DecoderModel, IsMadeFromTheOtherFormOnce) {
  const decoder_model of_text(kText);
  EXPECT_EQ(*of_text.errors(), *of_text.errors());
  const decoder_model of_errors(**of_text.errors());
  EXPECT_EQ(of_errors.text().data(), of_errors.text().data());
  EXPECT_EQ(*of_errors.errors(), *of_text.errors());
}

TEST(DecoderModel, SaysWhereATextIsWrong) {
  EXPECT_EQ(decoder_model("error(0.1) D0\nerror(2) D0\n").errors().text().substr(0, 8), "line 2: ");
}

TEST(DecoderModel, GivesTheSameDecodersInBothForms) {
  const shot_set set = load_committed("surface_z_d3_p0.003");
  const decoder_model of_text(set.dem_text), of_errors(**of_text.errors());
  for (const std::string &name : decoder_names()) {
    const chosen_decoder a = choose_decoder(name, of_text), b = choose_decoder(name, of_errors);
    ASSERT_TRUE(a && b) << name << ": " << a.error << b.error;
    for (std::uint64_t shot = 0; shot < 200; ++shot) {
      std::vector<std::uint8_t> one(a.instance->observable_bytes()), other(one);
      EXPECT_EQ(a.instance->decode_bits(set.detection_row(shot), one),
                b.instance->decode_bits(set.detection_row(shot), other));
      EXPECT_EQ(one, other) << name << ", shot " << shot;
    }
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

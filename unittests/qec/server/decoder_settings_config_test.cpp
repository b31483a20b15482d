// SPDX-License-Identifier: Apache-2.0
// The setting confidence of a decoder's configuration.
#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/server/hosted_server.h"
#include "lib/qec/server/server_config.h"
#include "unittests/qec/server/confidence/server_gaps_support.h"

#include <gtest/gtest.h>

namespace cudaq::qec::realtime::test {
namespace {

// The setting confidence of a decoder's configuration.

const std::string kDem = "dem: \"error(0.1) D0 L0\\nerror(0.05) D0 D1\\nerror(0.01) D1\\n\"";

std::string yaml_with(const std::string &type, const std::string &settings, const std::string &fields = kDem) {
  return "decoders: [{id: 6, type: " + type + ", queue_length: 0, " + fields + ", decoder_custom_args: {" + settings +
         "}}]\n";
}

expected<std::vector<decoder_setup>> built(const std::string &type, const std::string &settings,
                                           const std::string &fields = kDem) {
  const auto config = read_server_config(yaml_with(type, settings, fields));
  if (config.failed())
    return config.reason();
  return build_decoders(*config, "");
}

TEST(ServerGapsConfig, GivesADecoderItsGaps) {
  const std::string with_deadline = "deadline_us: 1000000, " + kDem;
  const struct {
    std::string type, settings, fields;
    std::size_t gap_bytes;
  } cases[] = {
      {"pymatching", "confidence: 1", kDem, 4},
      {"bp-osd", "confidence: 1", kDem, 4},
      {"bp-osd", "confidence: 1", with_deadline, 4},
      {"relay-bp", "confidence: 1", kDem, 4},
      {"auto", "confidence: 1", kDem, 4},
      {"pymatching", "", kDem, 0},
      {"pymatching", "confidence: 0", kDem, 0},
  };
  for (const auto &[type, settings, fields, gap_bytes] : cases) {
    auto setups = built(type, settings, fields);
    ASSERT_TRUE(setups.ok()) << setups.text();
    decoding_server server(std::move(*setups));
    EXPECT_EQ(server.decoders().front()->gap_bytes(), gap_bytes) << type;
    EXPECT_EQ(call(server, kOneShotFunctionId, packed("10")).result.size(), 1 + gap_bytes) << type;
  }
}

TEST(ServerGapsConfig, RefusesDecodersWithoutGaps) {
  const std::string stream = "stream: true, " + kDem;
  const std::string torus = "dem: \"error(0.1) D0 D1 L0\\nerror(0.1) D0 D1\\n\"";
  const struct {
    std::string type, settings, fields, text;
  } cases[] = {
      {"sliding-window", "confidence: 1", stream,
       "decoder_custom_args.confidence: a stream gives no gaps; only decoders of shots do"},
      {"lookup", "confidence: 1", kDem, "confidence"},
      {"pymatching-correlated", "confidence: 1", kDem, "confidence"},
      {"race:pymatching|bp-osd", "confidence: 1", kDem, "confidence"},
      {"pymatching", "confidence: 2", kDem, "confidence"},
      {"pymatching", "confidence: 1", torus, "confidence=1: L0: line "},
  };
  for (const auto &[type, settings, fields, text] : cases) {
    const std::string refusal = built(type, settings, fields).text();
    EXPECT_NE(refusal.find(text), std::string::npos) << type << ": " << refusal;
    EXPECT_NE(refusal.find("decoders[0] (id 6): "), std::string::npos) << type << ": " << refusal;
  }
}

/// A model with so many observables, each with a detector of its own.
std::string wide_fields(unsigned observables) {
  std::string text;
  for (unsigned k = 0; k < observables; ++k)
    text += "error(0.1) D" + std::to_string(k) + " L" + std::to_string(k) + "\\n";
  return "dem: \"" + text + "\"";
}

TEST(ServerGapsConfig, GivesASlotRoomForTheGaps) {
  const struct {
    unsigned observables;
    const char *settings;
    std::uint32_t slot_bytes;
  } cases[] = {{48, "", 256}, {48, "confidence: 1", 256}, {64, "", 256}, {64, "confidence: 1", 384}};
  for (const auto &[observables, settings, slot_bytes] : cases) {
    auto loaded = load_config(yaml_with("pymatching", settings, wide_fields(observables)), "");
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    const hosted_server host(std::move(*loaded));
    EXPECT_EQ(host.slot_bytes(), slot_bytes) << observables << settings;
    EXPECT_TRUE(host.check_slots(slot_bytes).ok());
    const bool has_gaps = *settings != '\0';
    const std::uint32_t answer = (observables + 7) / 8 + (has_gaps ? 4 * observables : 0);
    EXPECT_TRUE(host.check_slots(24 + answer).ok());
    EXPECT_EQ(host.check_slots(24 + answer - 1).text(), "an answer of decoder 6 has " + std::to_string(answer) +
                                                            " bytes and a header of 24, a slot of the " + "transport " +
                                                            std::to_string(24 + answer - 1));
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

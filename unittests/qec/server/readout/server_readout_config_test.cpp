// SPDX-License-Identifier: Apache-2.0
// The setting readout of a decoder's configuration.
#include "lib/qec/server/hosted_server.h"
#include "lib/qec/server/slot_size.h"
#include "lib/qec/server/stream_builder.h"
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/stream/stream_readout_support.h"
#include "unittests/support/scratch_folder.h"

#include <fstream>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

const std::string kDem = "dem: \"error(0.1) D0 D1\\nerror(0.05) D0 L0\\nerror(0.1) D1\\n\"";

/// A folder with a table `r.txt`, and what a configuration with decoders makes of it.
struct configured {
  cudaq::realtime::test::scratch_folder folder;

  explicit configured(const std::string &text = readout_text()) { std::ofstream(folder.path() / "r.txt") << text; }

  expected<std::vector<decoder_setup>> built(const std::string &settings = "readout: r.txt",
                                             const std::string &type = "bp-osd",
                                             const std::string &fields = "queue_length: 0, " + kDem) const {
    const auto config = read_server_config("decoders: [{id: 6, type: " + type + ", " + fields +
                                           ", decoder_custom_args: {" + settings + "}}]\n");
    if (config.failed())
      return config.reason();
    return build_decoders(*config, folder.path());
  }
  bytes digest(const std::string &settings = "readout: r.txt") const {
    decoding_server server(std::move(*built(settings)));
    const bytes all = call(server, kDescribeFunctionId, {}).result;
    return {all.begin() + 24, all.end()};
  }
};

TEST(ServerReadoutConfig, GivesADecoderItsTable) {
  const configured one;
  auto setups = one.built();
  ASSERT_TRUE(setups.ok()) << setups.text();
  decoding_server server(std::move(*setups));
  EXPECT_EQ(server.decoders().front()->readout(), (readout_facts{3, 5, 0b111}));
  const readout_shot sure{"10", {12, 12, 3}, {0, 0, 0, 0, 0}}, unsure{"10", {3, 7, 8}, {0, 0, 0, 0, 0}};
  EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload(sure, soft_kind::u8)), answered(server_status::ok, "1"));
  EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload(unsure, soft_kind::u8)),
            answered(server_status::ok, "0"));
  const full_answer name = call(server, kNameFunctionId, {});
  EXPECT_EQ(std::string(name.result.begin(), name.result.end()), "bp-osd") << "a name that make_decoder takes";
}

TEST(ServerReadoutConfig, NamesOnlyTheKindsThatSuitTheTable) {
  const configured volts(readout_text("measurements 3\ngaussian 0 1 -1 0.5 0.5\nmisread 0 0.01 1 0\n"));
  decoding_server server(std::move(*volts.built()));
  EXPECT_EQ(server.decoders().front()->readout(), (readout_facts{3, 0, 0b001})) << "f32";
  EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload({"10", {1, 1, 0}, {}}, soft_kind::u8)).status,
            static_cast<int>(decode_status::buffer_too_small))
      << "the length says the kind";
}

TEST(ServerReadoutConfig, CountsTheTableInTheDigest) {
  const configured one, other(readout_text("measurements 3\nflags 5\ngaussian 0 12 3 2 0.5\nmisread 0 0.02 1 0\n"));
  EXPECT_EQ(one.digest(), one.digest());
  EXPECT_NE(one.digest(), one.digest("osd_order: 0")) << "without a table";
  EXPECT_NE(one.digest(), other.digest());
}

TEST(ServerReadoutConfig, RefusesATableThatCannotBeUsed) {
  std::string other_model = readout_text();
  other_model.replace(other_model.find("model "), 14, "model 00000000");
  const auto levels = [](int count) {
    std::string numbers;
    for (int k = 0; k < count; ++k)
      numbers += " " + std::to_string(k - count / 2);
    return numbers + "\n";
  };
  const configured good, of_other(other_model), broken(readout_text("measurements 3\nmisread 7 0.1 0 0\n")),
      no_kind(readout_text("measurements 2\nlevels 0" + levels(16) + "levels 1" + levels(256) +
                           "misread 0 0.02 0 0\nmisread 2 0.02 1 1\n"));
  const struct {
    const configured &in;
    std::string settings, type, fields, text;
  } cases[] = {
      {good, "readout: none.txt", "bp-osd", kDem, "none.txt"},
      {good, "readout: ''", "bp-osd", kDem, "readout: "},
      {of_other, "readout: r.txt", "bp-osd", kDem, "r.txt: line 2: "},
      {broken, "readout: r.txt", "bp-osd", kDem, "r.txt: line 4: error 7 is not one of the model, which has 3"},
      {no_kind, "readout: r.txt", "bp-osd", kDem, "r.txt: no kind of soft values suits all measurements"},
      {good, "readout: r.txt", "lookup", kDem, "readout: lookup"},
  };
  for (const auto &[in, settings, type, fields, text] : cases) {
    const std::string refusal = in.built(settings, type, fields).text();
    EXPECT_NE(refusal.find(text), std::string::npos) << type << ", " << settings << ": " << refusal;
    EXPECT_NE(refusal.find("decoders[0] (id 6): "), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find("a line of the field dem"), std::string::npos) << refusal;
  }
}

TEST(ServerReadoutConfig, GivesAStreamItsTable) {
  const std::string dem = chain_dem(), table = chain_table(dem);
  const configured one(table);
  std::ofstream(one.folder.path() / "m.dem") << dem;
  const std::string fields = "queue_length: 0, stream: true, dem_file: m.dem", windows = "commit: 2, buffer: 2";
  auto setups = one.built("readout: r.txt, inner: bp-osd, " + windows, "sliding-window", fields);
  ASSERT_TRUE(setups.ok()) << setups.text();
  const std::string name = setups->front().unit->identity()->name;
  EXPECT_EQ(name.find("readout"), std::string::npos) << "a client may not have this file: " << name;
  const auto source = read_stream(dem, {.decoder = name, .readout = table});
  ASSERT_TRUE(source.ok()) << source.text();
  EXPECT_EQ(setups->front().unit->digest(), stream_facts(*source, table)->digest);
  EXPECT_NE(setups->front().unit->digest(), stream_facts(*source)->digest);
  decoding_server server(std::move(*setups));
  EXPECT_EQ(server.decoders().front()->readout(), (readout_facts{1, 1, 0b111}));
  const readout_shot rounds{"1100", {8, 12, 12, 12}, {0, 0, 0, 0}};
  EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, readout_payload(6, 0, rounds, soft_kind::u8)),
            answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCommittedFunctionId, committed_payload(6, 1)), committed(2, 4, "0"));
  const std::pair<std::string, std::string> refusals[] = {
      {"readout: none.txt, inner: bp-osd, ", "none.txt"},
      {"readout: m.dem, inner: bp-osd, ", "m.dem: line 1"},
      {"readout: r.txt, inner: lookup, ", "readout: lookup does not take probabilities"}};
  for (const auto &[settings, text] : refusals) {
    const std::string refusal = one.built(settings + windows, "sliding-window", fields).text();
    EXPECT_NE(refusal.find(text), std::string::npos) << settings << refusal;
    EXPECT_NE(refusal.find("readout: "), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find("a line of m.dem"), std::string::npos) << refusal;
  }
}

TEST(ServerReadoutConfig, RefusesAQueueThatNeedsTooMuchMemoryForItsValues) {
  const configured large(readout_text("measurements 1048576\ngaussian 0 12 3 2 0.5\nmisread 0 0.02 1 0\n"));
  const std::string refusal = large.built("readout: r.txt", "bp-osd", "queue_length: 2000, " + kDem).text();
  EXPECT_NE(refusal.find("MiB, at most 4096 are accepted"), std::string::npos) << refusal;
}

TEST(ServerReadoutConfig, GivesASlotRoomForAShotWithItsValues) {
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {})), 256u);
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {3, 5, 0b111})), 256u);
  // 24 bytes of a header, 48 of fields, 1 of bits, and the values.
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {80, 0, 0b010})), 256u);
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {80, 0, 0b001})), 512u);
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {183, 0, 0b010})), 256u);
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {184, 0, 0b010})), 384u);
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {183, 1, 0b010})), 384u);
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {20000, 0, 0b001})), 0u) << "no slot is so large";
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {20000, 0, 0b111})), 20096u) << "in u8 it is";
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {80000, 0, 0b111})), 40192u) << "in u4";
  EXPECT_EQ(usual_slot_size(bits_with_readout(2, {800000, 0, 0b111})), 0u);
}

TEST(ServerReadoutConfig, KeepsWhatAShotNeedsWhenItIsReloaded) {
  const configured one, other(readout_text("measurements 2\nflags 5\ngaussian 0 12 3 2 0.5\nmisread 0 0.02 1 0\n")),
      same(readout_text("measurements 3\nflags 5\ngaussian 0 12 3 2 0.5\nmisread 0 0.3 1 0\nmisread 2 0.3 2 0\n"));
  decoding_server server(std::move(*one.built()));
  const auto later = [] { return cudaq::realtime::detail::steady_clock::now() + std::chrono::seconds(20); };
  const reload_result refused = server.reload(std::move(*other.built()), later());
  EXPECT_EQ(refused.outcome, reload_outcome::rejected);
  EXPECT_NE(refused.reason.find("2 soft values (f32, u8, u4) and 5 flags, 2 detectors"), std::string::npos)
      << refused.reason;
  EXPECT_EQ(server.reload(std::move(*one.built("osd_order: 0")), later()).outcome, reload_outcome::rejected);
  const readout_shot shot{"10", {12, 12, 12}, {0, 0, 0, 0, 0}};
  EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload(shot, soft_kind::u8)), answered(server_status::ok, "1"));
  EXPECT_EQ(server.reload(std::move(*same.built()), later()).outcome, reload_outcome::applied);
  EXPECT_EQ(call(server, kOneShotFunctionId, one_shot_payload(shot, soft_kind::u8)), answered(server_status::ok, "0"))
      << "of the new table";
}

} // namespace

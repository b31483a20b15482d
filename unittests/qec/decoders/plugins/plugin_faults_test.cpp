// SPDX-License-Identifier: Apache-2.0
// A plug-in that breaks a promise of decoder_plugin.h: the text says which one, with the values.
#include "unittests/qec/qec_test_support.h"

#include "lib/qec/decoders/stop_check.h"

namespace cudaq::qec::realtime::test {
namespace {

const std::string kPlugin = CUDAQ_TEST_BREAKING_PLUGIN;
constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.1) D1 L1\nerror(0.1) D2 L0 L2\n";
const std::vector<std::uint64_t> kEvents{0, 2};

/// The status and the fault of a decode of kEvents.
std::string decoded(decoder &with, bool edges = false, bool errors = false, bool deadline = false) {
  std::vector<correction_edge> edge_room(edges ? 8 : 0);
  std::vector<std::uint64_t> error_room(errors ? with.num_errors() : 0);
  decode_details details{.edges = edge_room, .errors = error_room};
  if (deadline)
    details.control.deadline_ns = monotonic_ns() + 3'600'000'000'000;
  std::vector<std::uint8_t> out(with.observable_bytes(), 0xEE);
  const decode_status status = with.decode(kEvents, out, details);
  if (status != decode_status::ok) {
    EXPECT_EQ(out, std::vector<std::uint8_t>(out.size()));
    EXPECT_EQ(details.num_edges + details.num_errors, 0U);
  }
  return decode_status_text(status, with.fault());
}

struct promise {
  const char *broken, *text;
  bool edges = false, errors = false, deadline = false;
};

TEST(PluginFaults, NameTheBrokenPromiseAndItsValues) {
  const std::string begin = "internal error of the decoder: plug-in breaking: ";
  for (const promise &p : std::initializer_list<promise>{
           {"status", "decode returned 17, accepted: 0, 3, 5, 7"},
           {"internal", "decode returned 5, its own internal error"},
           {"deadline", "decode returned 9, accepted: 0, 3, 5, 7"},
           {"until", "decode_until returned 6, accepted: 0, 3, 5, 7, 9 (deadline)", false, false, true},
           {"bits", "decode set the observable 3, the model has 3"},
           {"edge_range", "edges: edge 0 has the ends 0 and 12345, the model has 3 detectors", true},
           {"edge_cause", "edges: its errors (1) do not flip detector 2, which is an event of the shot", true},
           {"column_count", "columns returned 1000 errors, the model has 3", false, true},
           {"column_range", "columns: number 0 is error 1000, the model has 3", false, true},
           {"column_order", "columns: error 0 comes after error 2; they must ascend", false, true},
           {"column_cause", "columns: its errors (1) do not flip detector 2, which is an event of the shot", false,
            true},
           {"answer", "columns: its errors (2, the first is 0) do not flip observable 0; the answer has it as 1", false,
            true}}) {
    const auto with = make_or_throw(kPlugin + ":break=" + p.broken, kModel);
    EXPECT_EQ(decoded(*with, p.edges, p.errors, p.deadline), begin + p.text) << p.broken;
  }
  const auto good = make_or_throw(kPlugin, kModel);
  EXPECT_EQ(decoded(*good, true, true, true), "ok");
  EXPECT_STREQ(good->fault(), "");
}

TEST(PluginFaults, LeaveNoShotWithTheProbabilitiesOfAnother) {
  const std::vector<error_probability> list{{0, 0.4}};
  const std::vector<std::uint64_t> events{1};
  std::vector<std::uint8_t> out(1);
  for (const char *broken : {"none", "replace", "restore"}) {
    const auto with = make_or_throw(kPlugin + ":break=" + broken, kModel);
    for (int k = 0; k < 2; ++k) {
      decode_details replaced, fixed;
      const decode_status status = with->decode(events, out, list, &replaced);
      if (std::string_view(broken) == "replace") {
        EXPECT_EQ(decode_status_text(status, with->fault()),
                  "internal error of the decoder: plug-in breaking: replace_probabilities returned 17 for 1 errors, "
                  "accepted: 0, 5, 6");
      } else {
        EXPECT_EQ(status, decode_status::ok) << broken;
        EXPECT_EQ(replaced.weight, -7) << broken;
      }
      EXPECT_EQ(with->decode(events, out, fixed), decode_status::ok) << broken; // "restore" is asked again
      EXPECT_NEAR(fixed.weight, 2.1972, 1e-3) << broken;
    }
  }
}

TEST(PluginFaults, NameAnExceptionAndItsFunction) {
  const auto with = make_or_throw(std::string(CUDAQ_TEST_THROWING_PLUGIN) + ":in=decode,what=std", kModel);
  std::uint8_t out = 0;
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0}, {&out, 1}), decode_status::internal_error);
  EXPECT_NE(std::string(with->fault()).find(": decode threw an exception: no more beans"), std::string::npos)
      << with->fault();
}

TEST(PluginFaults, OfColumnsThatAreNotWantedAreFoundUntilAHundredSolutionsInARowAreRight) {
  const std::string wrong = "do not flip observable 0";
  const auto always = make_or_throw(kPlugin + ":break=answer", kModel);
  for (int shot = 0; shot < 150; ++shot)
    EXPECT_NE(decoded(*always).find(wrong), std::string::npos) << shot;

  const auto at_detector_2 = make_or_throw(kPlugin + ":break=answer_of_2", kModel); // kEvents has it
  const std::vector<std::uint64_t> others{0};
  std::uint8_t out = 0;
  const auto decode_right_ones = [&](int count) {
    for (int shot = 0; shot < count; ++shot)
      EXPECT_EQ(at_detector_2->decode(others, {&out, 1}), decode_status::ok);
  };
  decode_right_ones(99);
  EXPECT_NE(decoded(*at_detector_2).find(wrong), std::string::npos);
  decode_right_ones(99);
  EXPECT_NE(decoded(*at_detector_2).find(wrong), std::string::npos) << "it was wrong before";
  decode_right_ones(100);
  EXPECT_EQ(decoded(*at_detector_2), "ok") << "to check each shot would take time";
  EXPECT_NE(decoded(*at_detector_2, false, true).find(wrong), std::string::npos) << "they are wanted";
}

TEST(PluginFaults, AreGivenByTheDecodersAroundThePlugin) {
  const std::string inner = kPlugin + ":break=status", text = "plug-in breaking: decode returned 17";
  const auto predecoded = make_or_throw(inner + ",predecoder=passthrough", kModel);
  EXPECT_EQ(decoded(*predecoded), "internal error of the decoder: " + text + ", accepted: 0, 3, 5, 7");
  const std::string member = kPlugin + "(break=status)";
  const auto race = make_or_throw("race:" + member + "|" + member, kModel);
  EXPECT_NE(decoded(*race).find("member " + kPlugin + ":break=status: plug-in breaking: decode_until returned 17"),
            std::string::npos)
      << race->fault();
  const std::string loop = "error(0.1) D0 L0\nshift_detectors(1) 1\nrepeat 9 {\nerror(0.1) D0 L0\ndetector(0) D0\n"
                           "shift_detectors(1) 1\n}\nerror(0.1) D0\n";
  const auto windows =
      make_or_throw("sliding-window:inner=" + kPlugin + "(break=status),rounds=index:1,commit=2,buffer=2", loop);
  EXPECT_NE(decoded(*windows).find("window 0: " + text), std::string::npos) << windows->fault();
}

TEST(PluginFaults, OfATableThatEndsInsideAMemberOrIsTooLarge) {
  const auto refusal = [](int fault) {
    return make_decoder(std::string(CUDAQ_TEST_PLUGIN_FOLDER) + "/libfaulty_plugin_" + std::to_string(fault) + ".so",
                        kModel)
        .error;
  };
  EXPECT_NE(refusal(12).find("its table has 50 bytes (struct_size), where no member ends"), std::string::npos);
  EXPECT_NE(refusal(13).find("its table has 1000 bytes (struct_size), this library knows 88"), std::string::npos);
}

} // namespace
} // namespace cudaq::qec::realtime::test

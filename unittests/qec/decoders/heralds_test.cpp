// SPDX-License-Identifier: Apache-2.0
// Heralds: detectors of a shot that say which errors it may have. The oracle is a decoder that is made for one shot
// alone, or every set of errors.
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/heralds/heralded_decoder.h"
#include "unittests/qec/every_error_set.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/shot_lists.h"
#include "unittests/support/scratch_folder.h"

#include <cmath>
#include <cstdio>

namespace cudaq::qec::realtime::test {
namespace {

// Detectors 0, 2 and 4 of a shot are those of the model, 1 and 3 are heralds.
constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.01) D0 D1\nerror(0.15) D1\nerror(1e-9) D0 D1\n"
                               "error(1e-9) D1 D2\nerror(0.02) D2\n";
constexpr const char *kLines = "detectors 5\n# the first\nherald 1 3 0.5\nherald 3 4 0.5 1 0.25\n";

std::unique_ptr<decoder> make_heralded(const std::string &kind, const std::string &model, const std::string &lines) {
  auto heralds = parse_heralds(heralds_text(model, lines), decoder_model(model));
  if (heralds.failed())
    throw std::runtime_error(heralds.text());
  decoder_result made = make_heralded_decoder(std::move(*heralds), make_or_throw(kind, model), decoder_model(model));
  if (!made)
    throw std::runtime_error(made.error);
  return std::move(made.instance);
}

std::vector<std::string> kinds_that_take_lists() {
  std::vector<std::string> kinds{"bp-osd", "relay-bp"};
  if (pymatching_available())
    kinds.insert(kinds.end(), {"pymatching", "pymatching-correlated"});
  return kinds;
}

class Heralds : public testing::TestWithParam<std::string> {};

TEST_P(Heralds, GiveTheGapsOfTheListThatTheySay) {
  if (GetParam() == "pymatching-correlated")
    GTEST_SKIP() << "it gives no gaps";
  const std::string kind = GetParam() + ":confidence=1";
  const auto tested = make_heralded(kind, kModel, kLines), of_model = make_or_throw(kind, kModel);
  const auto gap_of = [](decoder &with, const std::vector<std::uint64_t> &events, const shot_list &list) {
    double gap = -1;
    std::uint8_t out = 0;
    decode_details details{.gaps = {&gap, 1}};
    EXPECT_EQ(with.decode(events, {&out, 1}, list, &details), decode_status::ok);
    return gap;
  };
  ASSERT_EQ(tested->refuses_gaps(), nullptr);
  EXPECT_EQ(gap_of(*tested, {0, 1}, {}), gap_of(*of_model, {0}, {{3, 0.5}}));
  EXPECT_NE(gap_of(*tested, {0, 1}, {}), gap_of(*tested, {0}, {}));
  EXPECT_EQ(gap_of(*tested, {0}, {}), gap_of(*of_model, {0}, {}));
}

TEST_P(Heralds, GiveTheAnswersOfTheListThatTheySay) {
  const auto tested = make_heralded(GetParam(), kModel, kLines), of_model = make_or_throw(GetParam(), kModel);
  ASSERT_EQ(tested->num_detectors(), 5);
  const std::uint64_t meaning[] = {0, 9, 1, 9, 2};
  for (std::uint64_t mask = 0; mask < 32; ++mask) {
    std::vector<std::uint64_t> events;
    shot_list list;
    for (const std::uint64_t event : indices_of(mask))
      if (event == 1)
        list.push_back({3, 0.5});
      else if (event == 3)
        list.insert(list.end(), {{4, 0.5}, {1, 0.25}});
      else
        events.push_back(meaning[event]);
    const weighed_answer got = weigh(*tested, indices_of(mask)), expected = weigh(*of_model, events, list);
    EXPECT_EQ(got.found, expected.found) << mask;
    EXPECT_EQ(got.weight, expected.weight) << mask;
    EXPECT_EQ(decode(*tested, indices_of(mask)), expected.found) << mask;
  }
}

TEST_P(Heralds, ComeWithAListOfTheShot) {
  const auto tested = make_heralded(GetParam(), kModel, kLines), of_model = make_or_throw(GetParam(), kModel);
  ASSERT_EQ(tested->refuses_probabilities(), nullptr);
  EXPECT_EQ(weigh(*tested, {0, 1}, {{0, 0.001}}).weight, weigh(*of_model, {0}, {{0, 0.001}, {3, 0.5}}).weight);
  EXPECT_EQ(decode(*tested, {0, 1}, shot_list{{3, 0.2}}).status, decode_status::bad_probability);
  EXPECT_NE(std::string(tested->fault()).find("listed twice"), std::string::npos) << tested->fault();
  EXPECT_EQ(decode(*tested, {0}, shot_list(7, {0, 0.2})).status, decode_status::bad_probability);
  EXPECT_NE(std::string(tested->fault()).find("more errors than the model"), std::string::npos) << tested->fault();
  EXPECT_EQ(weigh(*tested, {0, 1}).weight, weigh(*of_model, {0}, {{3, 0.5}}).weight);
  EXPECT_STREQ(tested->fault(), "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, Heralds, testing::ValuesIn(kinds_that_take_lists()), kind_name);

// The model of the shot alone: of a surface code, whose every fifth error belongs to a herald.
TEST(HeraldsOfMatching, AnswerAsADecoderThatIsMadeForTheShotAlone) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  for (const char *name : {"surface_z_d3_p0.005", "surface_z_d5_p0.005"}) {
    const shot_set set = load_committed(name);
    detector_error_model model = parse_or_throw(set.dem_text);
    std::vector<std::uint64_t> lost;
    for (dem_component &c : model.components)
      if (c.mechanism % 5 == 0) {
        c.probability = 1e-9;
        if (lost.empty() || lost.back() != c.mechanism)
          lost.push_back(c.mechanism);
      }
    const std::string text = text_of(model);
    const std::uint64_t first = model.num_detectors;
    std::string lines = "detectors " + std::to_string(first + lost.size()) + "\n";
    for (std::size_t k = 0; k < lost.size(); ++k)
      lines += "herald " + std::to_string(first + k) + " " + std::to_string(lost[k]) + " 0.5\n";
    const auto tested = make_heralded("pymatching", text, lines);
    std::mt19937 random(7);
    for (std::uint64_t shot = 0; shot < 24; ++shot) {
      std::vector<std::uint64_t> events;
      for (std::uint64_t d = 0; d < first; ++d)
        if ((set.detection_row(shot * 7)[d / 8] >> d % 8 & 1) != 0)
          events.push_back(d);
      std::vector<std::uint64_t> with_heralds = events;
      shot_list list;
      for (std::size_t k = 0; k < lost.size(); ++k)
        if (random() % 10 == 0) {
          with_heralds.push_back(first + k);
          list.push_back({lost[k], 0.5});
        }
      // One error more gives its weights the same scale.
      const auto alone =
          make_or_throw("pymatching", model_of_shot(model, list, 1e-9) + "error(9.999999717180685e-10) D" +
                                          std::to_string(first) + " D" + std::to_string(first + 1) + "\n");
      const weighed_answer got = weigh(*tested, with_heralds), expected = weigh(*alone, events);
      EXPECT_EQ(got.found, expected.found) << name << " shot " << shot;
      EXPECT_NEAR(got.weight, expected.weight, 1e-9) << name << " shot " << shot;
    }
  }
}

TEST(HeraldsOfMatching, HaveEdgesBetweenTheDetectorsOfTheShot) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto tested = make_heralded("pymatching:edges=1", kModel, kLines);
  std::vector<correction_edge> edges(5);
  decode_details details{.edges = edges};
  std::vector<std::uint8_t> out(1);
  ASSERT_EQ(tested->decode(std::vector<std::uint64_t>{2, 3, 4}, out, details), decode_status::ok);
  ASSERT_EQ(details.num_edges, 1U);
  EXPECT_EQ(std::min(edges[0].first, edges[0].second), 2U);
  EXPECT_EQ(std::max(edges[0].first, edges[0].second), 4U);
}

TEST(HeraldsOfARace, AreNoAnswersOfItsMembersBeforeTheFirstShot) {
  const auto tested = make_heralded("race:bp-osd|relay-bp", kModel, kLines);
  for (const auto &[member, wins] : tested->wins())
    EXPECT_EQ(wins, 0U) << member;
  EXPECT_EQ(decode(*tested, {0, 1, 2}), (answer{decode_status::ok, {0}}));
}

TEST(HeraldsOfARace, AreRefusedIfAMemberCannotReplaceTheirErrors) {
  const char *const model = "error(1) D0 L0\nerror(0.1) D0\nerror(0.1) D1\n";
  for (const char *race : {"race:bp-osd|relay-bp", "race:relay-bp|bp-osd"})
    try {
      (void)make_heralded(race, model, "detectors 3\nherald 1 0 0.5\n");
      FAIL() << "it was made";
    } catch (const std::runtime_error &refusal) {
      EXPECT_NE(std::string(refusal.what()).find("member "), std::string::npos) << refusal.what();
    }
}

class HeraldFile : public testing::Test {
protected:
  static void expect_refusal(const std::string &text, const std::string &why) {
    const auto list = parse_heralds(text, decoder_model(kModel));
    ASSERT_TRUE(list.failed()) << text;
    EXPECT_NE(list.text().find(why), std::string::npos) << list.text();
  }
  static void expect_refused_lines(const std::string &lines, const std::string &why) {
    expect_refusal(heralds_text(kModel, lines), why);
  }
};

TEST_F(HeraldFile, IsRefusedWithTheLineThatIsWrong) {
  expect_refusal("", "line 1: the file has no line \"cudaq-realtime-heralds 1\"");
  expect_refusal("cudaq-realtime-flags 1\n", "line 1: the first line is \"cudaq-realtime-flags 1\"");
  expect_refusal("cudaq-realtime-heralds 1\nmodel 00000001\n", "line 2: the file is for the model 00000001");
  expect_refused_lines("", "line 2: the file has no line detectors");
  expect_refused_lines("herald 1 3 0.5\n", "line 3: the line is \"herald 1 3 0.5\", accepted: detectors");
  expect_refused_lines("detectors 5 6\n", "line 3: the line is");
  expect_refused_lines("detectors 2\n", "line 3: a shot has 2 detectors, accepted: from 3");
  expect_refused_lines("detectors 99999999999\n", "accepted: from 3, as many as the model has, to 1048576");
  expect_refused_lines("detectors 5\nherald 1 3 0.5\n", "5 detectors, and 1 of them are heralds, but the model has 3");
  expect_refused_lines("detectors 5\nherald x 3 0.5\n", "line 4: the line begins with \"herald x\"");
  expect_refused_lines("detectors 5\nherald 5 3 0.5\n", "line 4: herald 5 is no detector of a shot, which has 5");
  expect_refused_lines("detectors 5\nherald 3 3 0.5\nherald 3\n", "line 5: herald 3 comes after herald 3");
  expect_refused_lines("detectors 4\nherald 3 6 0.5\n", "error 6 is not one of the model, which has 6");
  expect_refused_lines("detectors 4\nherald 3 1 0.5 1 0.5\n", "error 1 is listed twice");
  expect_refused_lines("detectors 5\nherald 3 1 0.5\nherald 4 1 0.5\n", "error 1 is listed by herald 3 too");
  expect_refused_lines("detectors 4\nherald 3 1 1.5\n", "the probability of error 1 is \"1.5\"");
  expect_refused_lines("detectors 4\nherald 3 1\n", "the probability of error 1 is \"\"");
  const char *const with_zero = "error(0) D0\nerror(0.1) D0\n";
  const auto list = parse_heralds(heralds_text(with_zero, "detectors 2\nherald 0 0 0.5\n"), decoder_model(with_zero));
  ASSERT_TRUE(list.failed());
  EXPECT_NE(list.text().find("error 0 has the probability 0 in the model"), std::string::npos) << list.text();
}

TEST_F(HeraldFile, IsASettingOfEachDecoder) {
  const cudaq::realtime::test::scratch_folder folder;
  const std::string path = folder.path() / "heralds.txt", none = folder.path() / "none.txt";
  std::ofstream(path) << heralds_text(kModel, kLines);
  for (const std::string &kind : kinds_that_take_lists()) {
    const auto made = make_decoder(with_setting(kind, "heralds", path), kModel);
    ASSERT_TRUE(made) << made.error;
    EXPECT_EQ(made.instance->name(), "heralds+" + kind);
    EXPECT_EQ(made.instance->num_detectors(), 5U);
    EXPECT_EQ(decode(*made.instance, {0, 1, 2}), (answer{decode_status::ok, {0}})) << kind;
    EXPECT_EQ(decode(*made.instance, {0, 2}), (answer{decode_status::ok, {1}})) << kind;
  }
  const struct {
    std::string name, why;
  } refused[] = {{"race:bp-osd(heralds=" + path + ")|relay-bp", "heralds=FILE is a setting of the race"},
                 {"race:bp-osd(heralds=" + path + ")|relay-bp(heralds=" + path + ")", "is a setting of the race"},
                 {"lookup:heralds=" + path, "lookup does not take probabilities"},
                 {"bp-osd:heralds=" + none, "none.txt: "},
                 {"bp-osd:heralds=/dev/zero", "it is not a regular file"},
                 {"bp-osd:heralds=" + folder.path().string(), "Is a directory"},
                 {"auto:heralds=" + none, "none.txt: "}};
  for (const auto &[name, why] : refused) {
    const auto made = make_decoder(name, kModel);
    ASSERT_FALSE(made) << name;
    EXPECT_NE(made.error.find(why), std::string::npos) << made.error;
  }
}

TEST_F(HeraldFile, ThatACallerHasReadIsNotReadAgain) {
  const std::string lines = heralds_text(kModel, kLines);
  const auto made = choose_decoder("bp-osd:heralds=/nowhere", kModel, lines);
  ASSERT_TRUE(made) << made.error;
  EXPECT_EQ(decode(*made.instance, {0, 1, 2}), (answer{decode_status::ok, {0}}));
  const auto wrong = choose_decoder("bp-osd:heralds=/nowhere", kModel, "x\n");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error.find("heralds: /nowhere: line 1: "), std::string::npos) << wrong.error;
}

TEST_F(HeraldFile, ThatACallerHasReadIsNotReadAgainByWindows) {
  const std::string model = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.01) D0\nrepeat 3 {\nerror(1e-9) D2 L0\n"
                            "error(0.01) D2\ndetector(0,1) D2\ndetector(1,1) D3\nshift_detectors(0,1) 2\n}\n";
  std::string lines = "detectors 8\n";
  for (int k = 0; k < 3; ++k)
    lines += "herald " + std::to_string(2 * k + 3) + " " + std::to_string(2 * k + 1) + " 0.4\n";
  const std::string name = "sliding-window:inner=bp-osd,commit=2,buffer=1,heralds=/nowhere";
  const auto made = choose_decoder(name, model, heralds_text(model, lines));
  ASSERT_TRUE(made) << made.error;
  EXPECT_EQ(decode(*made.instance, {4}), (answer{decode_status::ok, {0}}));
  EXPECT_EQ(decode(*made.instance, {4, 5}), (answer{decode_status::ok, {1}})) << "herald 5 has fired";
  const auto wrong = choose_decoder(name, model, "x\n");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error.find("heralds: /nowhere: line 1: "), std::string::npos) << wrong.error;
}

TEST_F(HeraldFile, IsRefusedIfADecoderCannotReplaceItsErrors) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const char *const model = "error(0.001) D0 L0 ^ D1 L0\nerror(0.01) D0\nerror(0.01) D1\n";
  try {
    (void)make_heralded("pymatching", model, "detectors 3\nherald 1 0 0.5\n");
    FAIL() << "it was made";
  } catch (const std::runtime_error &refusal) {
    EXPECT_NE(std::string(refusal.what()).find("a component of a split error"), std::string::npos) << refusal.what();
  }
}

TEST(DecoderNameWithASetting, HasItAfterTheOthers) {
  EXPECT_EQ(with_setting("auto", "heralds", "a.txt"), "auto:heralds=a.txt");
  EXPECT_EQ(with_setting("bp-osd:osd_order=7", "heralds", "a.txt"), "bp-osd:osd_order=7,heralds=a.txt");
  EXPECT_EQ(with_setting("/a:b/c.so", "heralds", "a.txt"), "/a:b/c.so:heralds=a.txt");
  EXPECT_EQ(with_setting("/a/c.so:x=1", "heralds", "a.txt"), "/a/c.so:x=1,heralds=a.txt");
  EXPECT_EQ(with_setting("race:a|b", "heralds", "a.txt"), "race:a|b,heralds=a.txt");
  EXPECT_EQ(with_setting("race:a|./p.so", "heralds", "a.txt"), "race:a|./p.so,heralds=a.txt");
  EXPECT_EQ(with_setting("sliding-window:inner=./p.so", "heralds", "a.txt"),
            "sliding-window:inner=./p.so,heralds=a.txt");
}

} // namespace
} // namespace cudaq::qec::realtime::test

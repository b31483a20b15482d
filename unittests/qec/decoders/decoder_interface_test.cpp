// SPDX-License-Identifier: Apache-2.0
// The public interface of decoders: bits and batches, weights, edges, names with settings.
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/stream_settings.h"
#include "lib/qec/decoding/dem.h"
#include "unittests/qec/qec_test_support.h"

#include <cmath>
#include <map>
#include <set>

namespace cudaq::qec::realtime::test {
namespace {

class my_decoder final : public decoder {
public:
  explicit my_decoder(std::uint64_t detectors) : decoder(detectors, 1) {}
  const char *name() const noexcept override { return "my-decoder"; }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override;
};

decode_status my_decoder::decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                                         decode_details *details) noexcept {
  if (details != nullptr)
    details->weight = static_cast<double>(events.size());
  if (events.size() > 2)
    return decode_status::no_solution;
  observables[0] = static_cast<std::uint8_t>(events.size() % 2);
  return decode_status::ok;
}

// Known failure 67.
TEST(DecoderClass, OfAProgramGetsCheckedEvents) {
  my_decoder with(3);
  EXPECT_EQ(decode(with, {2, 0}), (answer{decode_status::ok, {0}}));
  EXPECT_EQ(decode(with, {3}).status, decode_status::bad_detector_index);
  EXPECT_EQ(decode(with, {1, 1}).status, decode_status::duplicate_detector_index);
  EXPECT_EQ(decode(with, {0, 1, 2}), (answer{decode_status::no_solution, {0}}));
  decode_details details;
  std::vector<std::uint8_t> out(1);
  EXPECT_EQ(with.decode(std::vector<std::uint64_t>{1}, out, details), decode_status::ok);
  EXPECT_EQ(details.weight, 1.0);
}

TEST(DecoderClass, SaysOfEachShotWhetherItsAnswerIsLate) {
  my_decoder with(3);
  std::vector<std::uint8_t> out(1);
  const std::vector<std::uint64_t> event{1};
  decode_details details{.control = {.deadline_ns = 1}}; // long ago
  EXPECT_EQ(with.decode(event, out, details), decode_status::ok);
  EXPECT_TRUE(details.is_late && with.is_late() && details.has_solution);
  details.control = {};
  EXPECT_EQ(with.decode(event, out, details), decode_status::ok);
  EXPECT_FALSE(details.is_late || with.is_late()) << "the next one has no deadline";
  with.set_budget(1);
  EXPECT_EQ(with.decode(event, out), decode_status::ok);
  EXPECT_TRUE(with.is_late()) << "a nanosecond";
  EXPECT_EQ(with.decode(std::vector<std::uint64_t>{3}, out), decode_status::bad_detector_index);
  EXPECT_FALSE(with.is_late());
}

class DecoderForms : public testing::TestWithParam<std::string> {};

// Known failure 67.
TEST_P(DecoderForms, BitsIndicesAndBatchesGiveTheSameAnswers) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto with = make_or_throw(GetParam(), set.dem_text);
  ASSERT_EQ(with->event_bytes(), set.detection_bytes());
  std::vector<std::uint8_t> batch(set.shots * with->observable_bytes(), 0xEE), one(with->observable_bytes());
  std::vector<decode_status> statuses(set.shots, decode_status::internal_error);
  EXPECT_EQ(with->decode_batch(set.shots, set.detections, batch, statuses), decode_status::ok);
  std::vector<std::uint64_t> events(set.num_detectors);
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const auto row = std::span(batch).subspan(shot * one.size(), one.size());
    EXPECT_EQ(statuses[shot], decode_status::ok);
    ASSERT_EQ(with->decode_bits(set.detection_row(shot), one), decode_status::ok);
    ASSERT_TRUE(std::ranges::equal(one, row)) << "shot " << shot;
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
    ASSERT_EQ(with->decode(std::span(events).first(count), one), decode_status::ok);
    ASSERT_TRUE(std::ranges::equal(one, row)) << "shot " << shot;
  }
}

TEST_P(DecoderForms, TheAnswerMayTakeThePlaceOfTheEvents) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n");
  std::vector<std::uint8_t> slot{0x01};
  EXPECT_EQ(with->decode_bits(slot, slot), decode_status::ok);
  EXPECT_EQ(slot[0], 1);
  std::vector<std::uint64_t> words{0};
  const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t *>(words.data()), 1);
  EXPECT_EQ(with->decode(words, bytes), decode_status::ok);
  EXPECT_EQ(bytes[0], 1);
}

TEST_P(DecoderForms, ABadShotDoesNotStopItsBatch) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\nerror(0.1) D2 D3");
  const std::vector<std::uint8_t> shots{0x01, 0x04, 0x10, 0x01}; // D0; D2 alone; bit 4; D0
  std::vector<std::uint8_t> out(4, 0xEE);
  std::vector<decode_status> statuses(4);
  EXPECT_EQ(with->decode_batch(4, shots, out, statuses), decode_status::no_solution);
  EXPECT_EQ(statuses, (std::vector{decode_status::ok, decode_status::no_solution, decode_status::bad_detector_index,
                                   decode_status::ok}));
  EXPECT_EQ(out, (std::vector<std::uint8_t>{1, 0, 0, 1}));
  EXPECT_EQ(with->decode_batch(0, {}, {}), decode_status::ok);
}

TEST_P(DecoderForms, RefusesABatchWhoseMemoryIsShortAndWritesNothing) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\n");
  std::vector<std::uint8_t> shots(2, 1), out(2, 0xEE);
  std::vector<decode_status> statuses(1);
  constexpr std::size_t kHuge = SIZE_MAX;
  EXPECT_EQ(with->decode_batch(3, shots, out), decode_status::buffer_too_small);
  EXPECT_EQ(with->decode_batch(kHuge, shots, out), decode_status::buffer_too_small);
  EXPECT_EQ(with->decode_batch(2, shots, std::span(out).first(1)), decode_status::buffer_too_small);
  EXPECT_EQ(with->decode_batch(2, shots, out, statuses), decode_status::buffer_too_small);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0xEE, 0xEE}));
}

TEST_P(DecoderForms, SaysWhetherItGivesEdges) {
  const auto with = make_or_throw(GetParam(), "error(0.1) D0 L0\n");
  ASSERT_FALSE(with->gives_edges());
  std::vector<correction_edge> room(4);
  decode_details details{.edges = room};
  std::vector<std::uint8_t> out(1, 0xEE);
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0}, out, details), decode_status::not_supported);
  EXPECT_EQ(out[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderForms, testing::ValuesIn(decoder_kinds()), kind_name);

class MatchingEdges : public testing::TestWithParam<std::string> {};

/// The events that a correction causes, and whether an edge is listed twice.
std::set<std::uint64_t> events_of(std::span<const correction_edge> edges, bool &twice) {
  std::set<std::uint64_t> events;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (const correction_edge &edge : edges) {
    twice = !seen.insert(std::minmax(edge.first, edge.second)).second || twice;
    for (const std::uint64_t end : {edge.first, edge.second})
      if (end != kBoundary && !events.erase(end))
        events.insert(end);
  }
  return events;
}

// Known failure 67.
TEST_P(MatchingEdges, CauseTheEventsAndHaveTheWeightOfTheAnswer) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const shot_set set = load_committed(shot_set_name(5, "0.005"));
  const auto plain = make_or_throw(GetParam(), set.dem_text),
             with = make_or_throw(GetParam() + ":edges=1", set.dem_text);
  ASSERT_TRUE(with->gives_edges());
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> weights; // of the model's edges
  const auto model = parse_dem(set.dem_text);
  for (const dem_component &c : model->components) {
    const auto ends = model->detectors_of(c);
    double &p = weights[{ends.front(), c.detectors == 2 ? ends.back() : kBoundary}];
    p = p * (1 - c.probability) + c.probability * (1 - p);
  }
  for (auto &[ends, p] : weights)
    p = std::log((1 - p) / p);
  std::vector<correction_edge> room(set.num_detectors);
  std::vector<std::uint64_t> events(set.num_detectors);
  std::vector<std::uint8_t> out(1), expected(1);
  for (std::uint64_t shot = 0; shot < 300; ++shot) {
    const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
    const auto fired = std::span(events).first(count);
    decode_details weighed, details{.edges = room};
    ASSERT_EQ(plain->decode(fired, expected, weighed), decode_status::ok);
    ASSERT_EQ(with->decode(fired, out, details), decode_status::ok);
    bool twice = false;
    EXPECT_EQ(events_of(std::span(room).first(details.num_edges), twice),
              (std::set<std::uint64_t>(fired.begin(), fired.end())));
    EXPECT_FALSE(twice);
    double weight = 0;
    for (const correction_edge &edge : std::span(room).first(details.num_edges))
      weight += weights.at(std::minmax(edge.first, edge.second));
    EXPECT_NEAR(details.weight, weight, 1e-5 * (1 + weight)) << "shot " << shot;
    EXPECT_NEAR(details.weight, weighed.weight, 1e-6 * (1 + weighed.weight)) << "shot " << shot;
    EXPECT_EQ(weighed.num_edges, 0U);
    EXPECT_EQ(count == 0, details.num_edges == 0);
  }
}

TEST_P(MatchingEdges, SayWhenTheRoomIsTooSmall) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto with = make_or_throw(GetParam() + ":edges=1", "error(0.1) D0 L0\nerror(0.1) D1\nerror(0.01) D0 D1\n");
  std::vector<correction_edge> room(1);
  decode_details details{.edges = room};
  std::vector<std::uint8_t> out(1, 0xEE);
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0, 1}, out, details), decode_status::buffer_too_small);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0}, out, details), decode_status::ok);
  EXPECT_EQ(details.num_edges, 1U);
  EXPECT_EQ(room[0].second, kBoundary);
  EXPECT_NEAR(details.weight, std::log(9), 1e-6);
  EXPECT_EQ(out[0], 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MatchingEdges, testing::Values("pymatching", "pymatching-correlated"),
                         [](const auto &tested) { return tested.index == 0 ? "Plain" : "Correlated"; });

// Known failure 67.
TEST(MatchingWeight, IsNegativeWhereErrorsAreLikelierThanNot) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto with = make_or_throw("pymatching:edges=1", "error(0.9) D0 D1 L0\nerror(0.2) D0\nerror(0.4) D1\n");
  std::vector<correction_edge> room(3);
  decode_details details{.edges = room};
  std::vector<std::uint8_t> out(1);
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{}, out, details), decode_status::ok);
  EXPECT_EQ(details.num_edges, 3U);
  EXPECT_NEAR(details.weight, std::log(0.1 / 0.9) + std::log(4.0) + std::log(1.5), 1e-5);
  EXPECT_EQ(out[0], 1);
}

TEST(MatchingWeight, CountsErrorsWithEqualDetectorsInBothForms) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const char *const model = "error(0.9) D0 D1 L0\nerror(0.7) D0 D1 L1\nerror(0.2) D0\nerror(0.3) D1\nerror(0.6) L2\n";
  const auto plain = make_or_throw("pymatching", model), with = make_or_throw("pymatching:edges=1", model);
  for (const std::vector<std::uint64_t> &events : {std::vector<std::uint64_t>{}, {0}, {1}, {0, 1}}) {
    std::vector<correction_edge> room(3);
    decode_details weighed, details{.edges = room};
    std::vector<std::uint8_t> expected(1), out(1);
    EXPECT_EQ(plain->decode(events, expected, weighed), decode_status::ok);
    EXPECT_EQ(with->decode(events, out, details), decode_status::ok);
    EXPECT_EQ(out, expected);
    EXPECT_NEAR(details.weight, weighed.weight, 1e-5);
    if (events.empty()) { // the first two errors and the last: no detector fires
      EXPECT_EQ(out[0], 0b111);
      EXPECT_NEAR(weighed.weight, std::log(0.1 / 0.9) + std::log(0.3 / 0.7) + std::log(0.4 / 0.6), 1e-5);
    }
  }
}

// Known failure 67.
TEST(DecoderNames, ASettingReachesItsDecoderAndAnUnknownOneIsRefused) {
  const std::map<std::string, std::string> wrong{
      {"lookup:edges=1", "lookup decoder: unknown setting \"edges\": known are predecoder"},
      {"lookup:edges", "\"edges\" is not a setting key=value"},
      {"lookup:=1", "\"=1\" is not a setting key=value"},
      {"lookup:", "\"\" is not a setting key=value"},
      {"lookup:predecoder=a,predecoder=b", "the setting predecoder is listed twice"},
      {"lookup:predecoder=", "unknown predecoder \"\""},
      {"lookup:predecoder=magic", "unknown predecoder \"magic\""},
      {"relay_bp", "plug-in. Did you mean relay-bp"},
      {"bposd", "plug-in. Did you mean bp-osd?"},
      {"relay-bp:num_set=3", ". Did you mean num_sets?"},
      {"", "unknown decoder \"\""}};
  for (const auto &[name, text] : wrong) {
    const decoder_result made = make_decoder(name, "error(0.1) D0");
    EXPECT_FALSE(made) << name;
    EXPECT_NE(made.error.find(text), std::string::npos) << made.error;
  }
  if (pymatching_available()) {
    EXPECT_NE(
        make_decoder("pymatching:edges=2", "error(0.1) D0").error.find("edges=2: expected a whole number from 0 to 1"),
        std::string::npos);
  }
}

TEST(DecoderNames, ListWhatCanBeMade) {
  for (const std::string &name : decoder_names())
    EXPECT_EQ(make_or_throw(name, "error(0.1) D0")->name(), name);
}

TEST(PredecodedDecoder, IsAPredecoderAndADecoderInOne) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto alone = make_or_throw("auto", set.dem_text);
  const auto both = make_or_throw("auto:predecoder=passthrough", set.dem_text);
  EXPECT_EQ(both->name(), std::string("passthrough+") + alone->name());
  std::vector<std::uint8_t> expected(set.shots * alone->observable_bytes()), out(expected.size(), 0xEE);
  ASSERT_EQ(alone->decode_batch(set.shots, set.detections, expected), decode_status::ok);
  ASSERT_EQ(both->decode_batch(set.shots, set.detections, out), decode_status::ok);
  EXPECT_EQ(out, expected);
  if (!pymatching_available())
    return;
  const auto local = make_or_throw("auto:predecoder=local", set.dem_text);
  ASSERT_EQ(local->decode_batch(set.shots, set.detections, out), decode_status::ok);
  std::size_t different = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    different += out[i] != expected[i];
  EXPECT_LT(different, set.shots / 50);
}

// Names of decoders in names of decoders: which level has a setting, and where a relative plug-in is.

stream_options options_of(const std::string &name) {
  const auto made = with_settings_of_name({.decoder = name});
  if (made.failed())
    throw std::runtime_error(made.text());
  return *made;
}

TEST(NestedNames, GiveAModeToTheRaceOrToTheWindows) {
  const stream_options both = options_of("sliding-window:inner=race(bp-osd|relay-bp(seed=1),mode=best),mode=parallel");
  EXPECT_EQ(both.decoder, "race:bp-osd|relay-bp(seed=1),mode=best");
  EXPECT_EQ(both.mode, stream_mode::parallel);
  const stream_options one = options_of("sliding-window:inner=race(bp-osd|relay-bp),mode=sequential,deadline_us=50");
  EXPECT_EQ(one.decoder, "race:bp-osd|relay-bp,deadline_us=50");
  EXPECT_EQ(one.mode, stream_mode::sequential);
  EXPECT_EQ(options_of("sliding-window:inner=bp-osd(osd_order=3),commit=4").decoder, "bp-osd:osd_order=3");
  EXPECT_EQ(options_of("sliding-window:inner=bp-osd,osd_order=3,commit=4").decoder, "bp-osd:osd_order=3");
  EXPECT_EQ(options_of("sliding-window:inner=./a.so:x=1,commit=4").decoder, "./a.so:x=1");
}

TEST(NestedNames, RefuseAModeThatNoLevelAtThisPlaceHas) {
  const auto refused = with_settings_of_name({.decoder = "sliding-window:inner=race:bp-osd|relay-bp,mode=best"});
  ASSERT_TRUE(refused.failed());
  EXPECT_EQ(refused.text(), "sliding-window: mode=best: expected one of auto, sequential, parallel; the mode of a race "
                            "stands in its parentheses: inner=race(NAME|NAME,mode=best)");
  EXPECT_TRUE(with_settings_of_name({.decoder = "sliding-window:inner=sliding-window(commit=3)"}).failed());
}

TEST(NestedNames, OfARaceInWindowsMakeADecoder) {
  const std::string loop = "error(0.1) D0 L0\nrepeat 9 {\nerror(0.1) D0 D1\nshift_detectors 1\n}\nerror(0.1) D0\n";
  const auto with =
      make_or_throw("sliding-window:inner=race(bp-osd|relay-bp,mode=best),rounds=index:1,commit=2,buffer=2", loop);
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, {1}}));
  EXPECT_NE(make_decoder("sliding-window:inner=race(bp-osd|relay-bp,mode=worst),rounds=index:1,commit=2,buffer=2", loop)
                .error.find("mode=worst: expected one of first, best"),
            std::string::npos);
}

TEST(NestedNames, HaveAFolderBeforeEachRelativePath) {
  for (const auto &[name, full] : std::initializer_list<std::pair<const char *, const char *>>{
           {"lookup", "lookup"},
           {"./x.so", "/f/x.so"},
           {"x.so", "/f/x.so"},
           {".//./x.so", "/f/x.so"},
           {"a/x.so:file=b/c,y=1", "/f/a/x.so:file=b/c,y=1"},
           {"/a/x.so", "/a/x.so"},
           {"bp-osd:osd_order=3", "bp-osd:osd_order=3"},
           {"race:./a.so(k=v/w)|/b.so|c.so:deadline_us=3,mode=best",
            "race:/f/a.so(k=v/w)|/b.so|/f/c.so:deadline_us=3,mode=best"},
           {"sliding-window:commit=3,inner=./a.so,buffer=2", "sliding-window:commit=3,inner=/f/a.so,buffer=2"},
           {"sliding-window:inner=race(./a.so|lookup)", "sliding-window:inner=race(/f/a.so|lookup)"},
           {"bp-osd:heralds=h.txt,osd_order=3", "bp-osd:heralds=/f/h.txt,osd_order=3"},
           {"bp-osd:osd_order=3,heralds=./a/h(1).txt", "bp-osd:osd_order=3,heralds=/f/a/h(1).txt"},
           {"bp-osd:heralds=/h.txt", "bp-osd:heralds=/h.txt"},
           {"model-gpu:weights=n.safetensors,device=1", "model-gpu:weights=/f/n.safetensors,device=1"},
           {"x.so:weights=n", "/f/x.so:weights=n"},
           {"pymatching:predecoder=model=n.safetensors,edges=1",
            "pymatching:predecoder=model=/f/n.safetensors,edges=1"},
           {"pymatching:predecoder=local", "pymatching:predecoder=local"},
           {"auto:heralds=,predecoder=local", "auto:heralds=,predecoder=local"},
           {"./x.so:heralds=h.txt", "/f/x.so:heralds=/f/h.txt"},
           {"race:bp-osd(heralds=h.txt)|x.so,heralds=./h.txt",
            "race:bp-osd(heralds=/f/h.txt)|/f/x.so,heralds=/f/h.txt"}})
    EXPECT_EQ(with_folder(name, "/f"), full);
}

} // namespace
} // namespace cudaq::qec::realtime::test

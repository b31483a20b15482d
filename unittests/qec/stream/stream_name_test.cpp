// SPDX-License-Identifier: Apache-2.0
// The name of a stream's decoder: that of each window, or the whole form.
#include "cudaq/qec/decoding/stream_c.h"
#include "unittests/qec/stream/stream_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

const std::string kText = repetition_dem(2, 0.01, 1, 100); // a detector a round

std::string description_of(const stream_options &options, const std::string &text = kText) {
  stream_result made = make_stream_decoder(text, options);
  return made ? made.instance->description() : made.error;
}

TEST(StreamName, MayBeTheWholeForm) {
  const std::string same = description_of({.decoder = "lookup", .commit = 4, .buffer = 2});
  EXPECT_EQ(same, "commit 4 and buffer 2 rounds; a repetition has 1 detector in 1 round; lookup; sequential");
  EXPECT_EQ(description_of({.decoder = "sliding-window:inner=lookup,commit=4,buffer=2"}), same);
  EXPECT_EQ(description_of({.decoder = "sliding-window:inner=lookup,commit=4", .commit = 4, .buffer = 2}), same);
  EXPECT_EQ(description_of({.decoder = "sliding-window:inner=lookup,mode=parallel", .commit = 4, .buffer = 2}),
            "commit 4 and buffer 2 rounds; a repetition has 1 detector in 1 round; lookup; parallel");
  EXPECT_EQ(description_of({.decoder = "sliding-window:rounds=index:1,inner=bp-osd", .commit = 4, .buffer = 4},
                           repetition_dem(3, 0.01, 1, 100)),
            "commit 4 and buffer 4 rounds; a repetition has 2 detectors in 2 rounds; bp-osd; sequential");
  EXPECT_EQ(description_of({.decoder = "sliding-window"}), description_of({}));
  EXPECT_EQ(description_of({.decoder = "sliding-window:inner=bp-osd,osd_order=3,commit=4,buffer=2"}),
            description_of({.decoder = "bp-osd:osd_order=3", .commit = 4, .buffer = 2}));
}

TEST(StreamName, RefusesASettingWithTwoValues) {
  const std::string commit = "sliding-window:inner=lookup,commit=4", outside = " is also given outside of the name";
  for (const auto &[what, options] : std::initializer_list<std::pair<std::string, stream_options>>{
           {"commit", {.decoder = commit, .commit = 5}},
           {"buffer", {.decoder = commit + ",buffer=3", .buffer = 4}},
           {"rounds", {.decoder = commit + ",rounds=index:2", .rounds = "index:1"}},
           {"rounds", {.decoder = commit + ",rounds=time", .rounds = "index:1"}},
           {"mode", {.decoder = commit + ",mode=auto", .mode = stream_mode::sequential}},
           {"mode", {.decoder = commit + ",mode=parallel", .mode = stream_mode::sequential}}})
    EXPECT_NE(description_of(options).find(what + outside), std::string::npos) << description_of(options);
  EXPECT_EQ(description_of({.decoder = "sliding-window:mode=fast"}),
            "stream decoder: sliding-window: mode=fast: expected one of auto, sequential, parallel");
  EXPECT_NE(description_of({.decoder = "sliding-window:inner=sliding-window"}).find("has no windows itself"),
            std::string::npos);
}

TEST(StreamName, NamesTheSettingsOfTheWindowsBesideThoseOfTheirDecoder) {
  const auto refused = [](const std::string &settings) {
    return description_of({.decoder = "sliding-window:inner=lookup,commit=4,buffer=2," + settings});
  };
  const std::string own = "; of the windows: inner, commit, buffer, rounds, mode, heralds";
  const std::string wrong = refused("commits=3");
  EXPECT_NE(wrong.find("unknown setting \"commits\": known are predecoder"), std::string::npos) << wrong;
  EXPECT_TRUE(wrong.ends_with(own + ". Did you mean commit?")) << wrong;
  EXPECT_TRUE(refused("buffers=3").ends_with(own + ". Did you mean buffer?")) << refused("buffers=3");
  EXPECT_TRUE(refused("dept=3").ends_with(own + ". Did you mean depth?")) << refused("dept=3");
  EXPECT_TRUE(refused("speed=3").ends_with(own)) << refused("speed=3");
  const std::string shots = make_decoder("sliding-window:inner=lookup,commit=4,buffer=2,commits=3", kText).error;
  EXPECT_TRUE(shots.ends_with(own + ". Did you mean commit?")) << shots;
  const std::string without = description_of({.decoder = "lookup:commit=3"});
  EXPECT_TRUE(without.ends_with(own + ", which need the decoder sliding-window (type: sliding-window in the file of "
                                      "serve) with this one as its inner"))
      << without;
  for (const std::string name :
       {"sliding-window:inner=lookup(commit=3)", "sliding-window:inner=lookup(commit=3),buffer=2"})
    for (const std::string &inside : {description_of({.decoder = name}), make_decoder(name, kText).error})
      EXPECT_TRUE(inside.ends_with(own + ", which stand outside of the parentheses of inner")) << inside;
  EXPECT_EQ(make_decoder("lookup:commits=3", kText).error.find("Did you mean"), std::string::npos)
      << "it has no windows";
}

TEST(StreamName, IsTheSameInC) {
  cudaq_qec_stream_options_t options{};
  options.struct_size = sizeof options;
  for (const char *name : {"lookup", "sliding-window:inner=lookup,commit=4,buffer=2"}) {
    options.decoder = name;
    options.commit = 4;
    options.buffer = 2;
    cudaq_qec_stream_t *stream = nullptr;
    char error[256] = "";
    ASSERT_EQ(cudaq_qec_stream_create(kText.data(), kText.size(), &options, &stream, error, sizeof error),
              CUDAQ_QEC_STREAM_OK)
        << error;
    cudaq_qec_stream_info_t info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(cudaq_qec_stream_get_info(stream, &info), CUDAQ_QEC_STREAM_OK);
    EXPECT_EQ(info.description, description_of({.decoder = "lookup", .commit = 4, .buffer = 2})) << name;
    cudaq_qec_stream_destroy(stream);
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Decoders of streams in a configuration.
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/stream_settings.h"
#include "lib/qec/server/server_config.h"
#include "lib/qec/server/stream_builder.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/support/scratch_folder.h"
#include "unittests/support/threads_named.h"

#include <cstdio>
#include <fstream>
#include <unistd.h>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

/// Head, repetition and tail have one round of 2 detectors.
const std::string kDem = rotated_stream_model(2);

std::string config_of(const std::string &lines, const std::string &model) {
  std::string text = "decoders:\n  - id: 1\n    queue_length: 0\n" + lines + "    dem: |\n      ";
  for (const char c : model)
    text += c == '\n' ? std::string("\n      ") : std::string(1, c);
  return text + "\n";
}

expected<std::vector<decoder_setup>> built(const std::string &text, const std::string &folder = ".") {
  const auto config = read_server_config(text);
  if (config.failed())
    return config.reason();
  return build_decoders(*config, folder);
}

std::string error_of(const std::string &lines, const std::string &model = kDem) {
  return built(config_of(lines, model)).text();
}

/// What 6 pushed rounds make final.
full_answer after_six_rounds(const std::string &text, const std::string &folder = ".",
                             const char *bits = "100001000000") {
  auto setups = built(text, folder);
  if (setups.failed())
    throw std::runtime_error(setups.text());
  decoding_server server(std::move(*setups));
  EXPECT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(1, 0, bits)), answered(server_status::ok));
  return call(server, kGetCommittedFunctionId, committed_payload(1, 2));
}

const std::string kType = "    type: sliding-window\n    stream: true\n";

TEST(ServerStreamConfig, MakesAStreamWithTheWindowsOfItsSettings) {
  EXPECT_EQ(after_six_rounds(config_of(
                kType + "    decoder_custom_args: {inner: lookup, commit: 3, buffer: 2, rounds: time}\n", kDem)),
            committed(3, 6, "11"));
  EXPECT_EQ(after_six_rounds(config_of("    type: sliding-window:inner=lookup,rounds=index:4\n    stream: true\n"
                                       "    decoder_custom_args: {commit: 1, buffer: 1}\n",
                                       rotated_stream_model(4))),
            committed(2, 3, "11"));
}

const std::string kChain = repetition_dem(2, 0.01, 1, 100);

TEST(ServerStreamConfig, TakesTheDecoderOfEachWindowAsTheNameOfAStream) {
  const auto setups = built(config_of("    type: lookup\n    stream: true\n", kChain));
  ASSERT_TRUE(setups.ok()) << setups.text();
  EXPECT_EQ(setups->front().unit->stream()->description(),
            "commit 2 and buffer 2 rounds (distance 2); a repetition has 1 detector in 1 round; lookup; sequential");
}

TEST(ServerStreamConfig, NamesTheSettingsOfAPlugInApartFromThoseOfTheWindows) {
  const stream_result made = make_stream_decoder(kDem, {.decoder = "lookup", .commit = 3, .buffer = 2});
  ASSERT_TRUE(made) << made.error;
  const std::string plugin = "./my.so:mode=fast,commit=7";
  const std::string name = stream_name({.decoder = plugin, .commit = 3, .buffer = 2}, *made.instance);
  const auto read = with_settings_of_name({.decoder = name});
  ASSERT_TRUE(read.ok()) << name << ": " << read.text();
  EXPECT_EQ(read->decoder, plugin);
  EXPECT_EQ(read->commit, 3U);
  EXPECT_EQ(read->mode, stream_mode::sequential);
}

TEST(ServerStreamConfig, TakesHeraldsOfTheModelOfAStream) {
  // Detector 1 of a round is a herald. It means an error of the next round that flips the observable.
  const std::string round = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.01) D0\n";
  const std::string later = "error(1e-9) D2 L1\nshift_detectors(0,1) 2\n";
  const std::string dem = round + later + "repeat 9 {\n" + round + later + "}\n" + round;
  const cudaq::realtime::test::scratch_folder folder;
  std::vector<std::uint64_t> digests;
  for (const char *probability : {"0.4", "0.3"}) {
    std::string lines = "detectors 22\n";
    for (int k = 0; k < 10; ++k)
      lines += "herald " + std::to_string(2 * k + 1) + " " + std::to_string(2 * k + 1) + " " + probability + "\n";
    std::ofstream(folder.path() / "h.txt") << heralds_text(dem, lines);
    const std::string config =
        config_of(kType + "    decoder_custom_args: {inner: bp-osd, commit: 2, buffer: 2, heralds: h.txt}\n", dem);
    EXPECT_EQ(after_six_rounds(config, folder.path(), "011000000000"), committed(4, 6, "01"))
        << "round 0 has a herald, round 1 an event";
    const auto setups = built(config, folder.path());
    ASSERT_TRUE(setups.ok()) << setups.text();
    digests.push_back(setups->front().unit->digest());
    const std::string name = setups->front().unit->identity()->name;
    EXPECT_NE(name.find(",heralds=" + path_in(folder.path(), "h.txt")), std::string::npos) << name;
    const auto source = read_stream(dem, {.decoder = name});
    ASSERT_TRUE(source.ok()) << source.text();
    const auto facts = stream_facts(*source);
    ASSERT_TRUE(facts.ok()) << facts.text();
    EXPECT_EQ(facts->digest, digests.back()) << "a client that has the file has the digest of the server";
  }
  EXPECT_NE(digests.front(), digests.back()) << "other heralds, other answers";
  std::ofstream(folder.path() / "h.txt") << heralds_text(dem, "detectors 22\nherald 3 3 0.5\n");
  const std::string refusal =
      built(config_of(kType + "    decoder_custom_args: {heralds: h.txt}\n", dem), folder.path()).text();
  EXPECT_NE(refusal.find("the heralds of repetition 2 of the loop are not those of the first one"), std::string::npos)
      << refusal;
}

TEST(ServerStreamConfig, GivesAllStreamsTheSameWorkers) {
  const std::pair<std::string, std::string> modes[] = {{"", "; parallel, 2 workers"},
                                                       {", mode: auto", "; parallel, 2 workers"},
                                                       {", mode: parallel", "; parallel, 2 workers"},
                                                       {", mode: sequential", "; sequential, 2 workers"}};
  std::string text = "stream_workers: 2\ndecoders:\n";
  for (std::size_t id = 0; id < std::size(modes); ++id) {
    std::string one = config_of(
        kType + "    decoder_custom_args: {inner: lookup, commit: 3, buffer: 2" + modes[id].first + "}\n", kDem);
    one.replace(one.find("id: 1"), 5, "id: " + std::to_string(id));
    text += one.substr(std::string("decoders:\n").size());
  }
  auto setups = built(text);
  ASSERT_TRUE(setups.ok()) << setups.text();
  for (std::size_t id = 0; id < std::size(modes); ++id) {
    const std::string &description = (*setups)[id].unit->stream()->description();
    EXPECT_NE(description.find(modes[id].second), std::string::npos) << description;
  }
  EXPECT_EQ(cudaq::realtime::test::threads_named("stream").size(), 2U);
  EXPECT_EQ(built("stream_workers: 1025\n" + config_of(kType, kDem)).text(),
            "line 1, column 17: stream_workers: \"1025\" is not a whole number from 0 to 1024");
}

TEST(ServerStreamConfig, TakesTheModelFromTheFieldOfTheExistingServer) {
  const std::string folder = testing::TempDir(); // other builds may run this test at the same time
  const std::string file = "stream_" + std::to_string(getpid()) + ".dem";
  std::ofstream(folder + "/" + file) << kDem;
  EXPECT_EQ(after_six_rounds("decoders:\n  - id: 1\n    queue_length: 0\n    stim_dem_path: " + file + "\n" + kType +
                                 "    decoder_custom_args: {inner: lookup, commit: 2, buffer: 1}\n",
                             folder),
            committed(4, 6, "11"));
  std::remove((folder + "/" + file).c_str());
}

TEST(ServerStreamConfig, MapsTheWindowsOfTheExistingServer) {
  const std::string sizes = "window_size: 5, step_size: 3, num_syndromes_per_round: 2";
  for (const char *stream : {"true", "false"}) {
    const auto error_with = [&](const std::string &settings) {
      return error_of("    type: sliding_window\n    stream: " + std::string(stream) + "\n    decoder_custom_args: {" +
                      settings + "}\n");
    };
    EXPECT_EQ(error_with(sizes), "");
    EXPECT_EQ(error_with(sizes + ", inner_decoder_name: multi_error_lut").find("use lookup") == std::string::npos,
              false);
    EXPECT_NE(error_with(sizes + ", inner_decoder_name: nv-qldpc-decoder").find("use relay-bp"), std::string::npos);
    EXPECT_EQ(error_with(sizes + ", inner_decoder_name: lookup, straddle_start_round: false"), "");
    EXPECT_NE(error_with(sizes + ", straddle_start_round: true").find("is not available for sliding_window"),
              std::string::npos);
    EXPECT_NE(error_with(sizes + ", straddle_end_round: false").find("is not available for sliding_window"),
              std::string::npos);
    EXPECT_NE(error_with("window_size: 5, step_size: 3").find("num_syndromes_per_round: sliding_window needs it"),
              std::string::npos);
    EXPECT_NE(error_with("window_size: 3, step_size: 3, num_syndromes_per_round: 2").find("is not below window_size"),
              std::string::npos);
  }
  EXPECT_EQ(after_six_rounds(config_of("    type: sliding_window\n    stream: true\n    decoder_custom_args: {" +
                                           sizes + ", inner_decoder_name: lookup}\n",
                                       kDem)),
            committed(3, 6, "11"));
}

TEST(ServerStreamConfig, NamesWhatAStreamDoesNotHave) {
  const std::string at = "line 2, column 5: decoders[0] (id 1): ";
  const std::pair<std::string, std::string> cases[] = {
      {"    type: lookup\n    stream: true\n",
       at + "stream decoder: the distance of the code is not known (no error chain of at most two detectors an error "
            "flips an observable): give commit and buffer in rounds"},
      {kType + "    D_sparse: [0, -1]\n",
       at + "D_sparse and measurements are for shots: the bits of a stream are detection events"},
      {kType + "    syndrome_size: 4\n", at + "syndrome_size is for shots; a stream has no such size"},
      {kType + "    decoder_custom_args: {commit: many}\n",
       at + "sliding-window: commit=many: expected a whole number from 0 to 1000000"},
      {kType + "    decoder_custom_args: {rounds: index}\n",
       at + "rounds=index: expected time, or index:N with N detectors a round"},
      {"    type: sliding-window\n    stream: maybe\n",
       "line 5, column 13: decoders[0].stream: \"maybe\" is not true or false"},
  };
  for (const auto &[lines, error] : cases)
    EXPECT_EQ(error_of(lines), error) << lines;
  EXPECT_NE(error_of(kType, "error(0.1) D0 L0").find("the model has no loop (repeat)"), std::string::npos);
  EXPECT_NE(error_of(kType + "    decoder_custom_args: {inner: lookup, commit: 2, buffer: 1, speed: 3}\n")
                .find("unknown setting \"speed\""),
            std::string::npos);
  const std::string matrices =
      "    block_size: 1\n    syndrome_size: 1\n    H_sparse: [0, -1]\n    O_sparse: [0, -1]\n";
  EXPECT_NE(built("decoders:\n  - id: 1\n" + kType + matrices).text().find("H_sparse has no loop"), std::string::npos);
}

TEST(ServerStreamConfig, EstimatesTheMemoryOfTheWindowsBeforeItBuildsThem) {
  std::string wide;
  for (unsigned k = 0; k < 400; ++k)
    wide += "detector(0) D" + std::to_string(k) + "\nerror(0.1) D" + std::to_string(k) + " D" +
            std::to_string((k + 1) % 400) + " L0\n";
  const std::string next = "shift_detectors(1) 400\n",
                    model = wide + next + "repeat 100 {\n" + wide + next + "}\n" + wide;
  std::string text = "decoders:\n";
  for (int id = 0; id < 16; ++id)
    text += config_of(kType + "    decoder_custom_args: {inner: pymatching, commit: 1000, buffer: 1000}\n", model)
                .substr(std::string("decoders:\n").size());
  for (std::size_t at = 0, id = 0; (at = text.find("- id: 1\n", at)) != std::string::npos; at += 8)
    text.replace(at, 8, "- id: " + std::to_string(id++) + "\n");
  const std::string error = built(text).text();
  EXPECT_NE(error.find("the decoders up to this one need about"), std::string::npos) << error;
}

} // namespace

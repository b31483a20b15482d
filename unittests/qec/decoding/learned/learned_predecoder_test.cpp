// SPDX-License-Identifier: Apache-2.0
// The network on the CPU against PyTorch: make_golden.py has written the expected values.
#include "lib/qec/decoding/learned/memory_lattice.h"
#include "lib/qec/decoding/learned/predecoder_network.h"
#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/decoding/shot_file.h"
#include "unittests/qec/qec_test_support.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

namespace cudaq::qec::realtime::test {
namespace {

using bytes = std::vector<std::uint8_t>;

const std::string kGolden = CUDAQ_TEST_GOLDEN;
const std::string kNetwork = kGolden + "/tiny.safetensors";

bytes file_bytes(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  bytes read((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  EXPECT_FALSE(read.empty()) << path;
  return read;
}

bool event(std::span<const std::uint8_t> row, std::size_t k) { return (row[k / 8] >> (k % 8) & 1) != 0; }

testing::AssertionResult has(const std::string &text, const std::string &part) {
  return text.find(part) == std::string::npos ? testing::AssertionFailure() << '"' << text << '"'
                                              : testing::AssertionSuccess();
}

std::size_t num_events(std::span<const std::uint8_t> row) {
  std::size_t count = 0;
  for (const std::uint8_t byte : row)
    count += static_cast<std::size_t>(std::popcount(byte));
  return count;
}

class LearnedPredecoder : public testing::TestWithParam<std::string> {
protected:
  const shot_set set = load_committed(GetParam());
};

TEST_P(LearnedPredecoder, HasTheOutputsOfPyTorch) {
  const auto network = predecoder_network::parse(file_bytes(kNetwork));
  const auto lattice = read_memory_lattice(decoder_model(set.dem_text));
  ASSERT_TRUE(network.ok() && lattice.ok()) << network.text() << lattice.text();
  std::uint64_t shot = 0;
  while (num_events(set.detection_row(shot)) < 4)
    ++shot;
  std::vector<float> input(lattice->grid.cells() * predecoder_network::kInputs);
  for (std::size_t k = 0; k < lattice->places.size(); ++k) {
    const auto [cell, what] = lattice->places[k];
    input[cell * 4 + what] = event(set.detection_row(shot), k) ? 1 : 0;
    input[cell * 4 + 2 + what] = 1;
  }
  std::vector<float> output(lattice->grid.cells() * predecoder_network::kOutputs), again(output.size());
  std::vector<float> memory(network->memory_floats(lattice->grid));
  network->run(lattice->grid, input, output, memory);
  network->run(lattice->grid, input, again, memory);
  EXPECT_EQ(std::memcmp(output.data(), again.data(), 4 * output.size()), 0) << "the same input, the same bits";

  const bytes golden = file_bytes(kGolden + "/" + GetParam() + ".logits.f32");
  ASSERT_EQ(golden.size(), 4 * output.size());
  for (std::size_t k = 0; k < output.size(); ++k) {
    float expected = 0;
    std::memcpy(&expected, golden.data() + 4 * k, 4);
    ASSERT_NEAR(output[k], expected, 1e-4f) << k;
  }
  predecoder_network::parse(file_bytes(kGolden + "/tiny_half.safetensors"))->run(lattice->grid, input, again, memory);
  for (std::size_t k = 0; k < output.size(); ++k)
    ASSERT_NEAR(again[k], output[k], 0.05f) << k << ", with weights of 16 bits";
}

TEST_P(LearnedPredecoder, LeavesTheEventsAndTogglesTheObservablesThatTheTrainingProgramSays) {
  const decoder_model model(set.dem_text);
  auto made = make_predecoder("model=" + kNetwork, model);
  ASSERT_TRUE(made.ok()) << made.text();
  predecoder &one = **made;
  EXPECT_STREQ(one.name(), "model");
  const bytes golden = file_bytes(kGolden + "/" + GetParam() + ".residual.b8");
  const std::size_t row_bytes = one.layout().input_bytes();
  ASSERT_EQ(golden.size(), set.shots * (row_bytes + 1));
  std::vector<std::uint64_t> output((one.layout().bytes() + 7) / 8);
  std::size_t toggled = 0;
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    ASSERT_EQ(one.run(set.detection_row(shot), output), decode_status::ok);
    const auto *const base = reinterpret_cast<const std::uint8_t *>(output.data());
    ASSERT_EQ(std::memcmp(base + one.layout().dense_offset(), golden.data() + shot * row_bytes, row_bytes), 0) << shot;
    const std::uint64_t frame = output[one.layout().frame_offset() / 8];
    ASSERT_EQ(frame, golden[set.shots * row_bytes + shot]) << shot;
    toggled += static_cast<std::size_t>(frame);
  }
  EXPECT_GT(toggled, 0u);
}

INSTANTIATE_TEST_SUITE_P(Sets, LearnedPredecoder, testing::Values("surface_z_d3_p0.003", "surface_z_d5_p0.003"),
                         [](const auto &set) { return set.index == 0 ? "DistanceThree" : "DistanceFive"; });

TEST(LearnedPredecoderRefuses, ModelsThatAreNoMemoryOfTheRotatedSurfaceCode) {
  const auto refused = [](const std::string &dem) {
    return make_predecoder("model=" + kNetwork, decoder_model(dem)).text();
  };
  EXPECT_TRUE(has(refused("error(0.1) D0 D1 L0"), "detector 0 has not the coordinates"));
  EXPECT_TRUE(has(refused("error(0.1) D0\ndetector(2, 0, 0) D0"), "no memory of the rotated"));
  EXPECT_TRUE(has(refused("detector(2, 1, 0) D0"), "x and y even"));
  EXPECT_TRUE(has(refused("detector(2, 1e300, 0) D0"), "coordinates"));
  EXPECT_TRUE(has(refused("detector(60000, 60000, 60000) D0"), "cells"));
  EXPECT_TRUE(has(refused("detector(6, 6, 3) D0\ndetector(6, 6, 3) D1"), "two detectors have"));
  EXPECT_TRUE(has(refused("detector(6, 6, 3) D0"), "no detector at (2, 0, 1)"));
  EXPECT_TRUE(has(refused("error(2) D0"), "line 1"));
}

/// The model with its detectors at other places, and the reason why it is refused.
template <class Place>
std::string refused_elsewhere(const std::string &dem, const Place &place) {
  std::istringstream lines(dem);
  std::string moved;
  for (std::string line; std::getline(lines, line); moved += line + "\n")
    if (int x = 0, y = 0, rest = 0; std::sscanf(line.c_str(), "detector(%d, %d%n", &x, &y, &rest) == 2) {
      const auto [to_x, to_y] = place(x, y);
      line = "detector(" + std::to_string(to_x) + ", " + std::to_string(to_y) + (line.c_str() + rest);
    }
  return make_predecoder("model=" + kNetwork, decoder_model(moved)).text();
}

TEST(LearnedPredecoderRefuses, ACodeInAnotherOrientation) {
  const std::string dem = load_committed("surface_z_d3_p0.003").dem_text;
  using xy = std::pair<int, int>;
  EXPECT_EQ(refused_elsewhere(dem, [](int x, int y) { return xy(x, y); }), "");
  for (const auto &reason : {refused_elsewhere(dem, [](int x, int y) { return xy(y, x); }),
                             refused_elsewhere(dem, [](int x, int y) { return xy(6 - x, y); }),
                             refused_elsewhere(dem, [](int x, int y) { return xy(x, 6 - y); })})
    EXPECT_TRUE(has(reason, "unlike Stim's memory of the rotated surface code"));
  // The places of the stabilizers are those of Stim, but not the order of the gates.
  for (const auto &reason : {refused_elsewhere(dem, [](int x, int y) { return xy(6 - y, x); }),
                             refused_elsewhere(dem, [](int x, int y) { return xy(6 - x, 6 - y); }),
                             refused_elsewhere(dem, [](int x, int y) { return xy(y, 6 - x); })})
    EXPECT_TRUE(has(reason, "order of gates of Stim's circuit"));
}

TEST(LearnedPredecoderRefuses, AMemoryThatLacksDetectorsOrErrors) {
  const std::string dem = load_committed("surface_z_d3_p0.003").dem_text;
  std::string detectors, errors;
  std::istringstream lines(dem);
  for (std::string line; std::getline(lines, line);)
    (line.find("error") == std::string::npos ? detectors : errors) += line + "\n";
  const auto refused = [](const std::string &text) {
    return make_predecoder("model=" + kNetwork, decoder_model(text)).text();
  };
  EXPECT_EQ(refused(errors + detectors), "");
  EXPECT_TRUE(has(refused(detectors), "flips data qubit (1, 1) alone"));
  const std::string one = "detector(2, 0, 0) D4\n";
  ASSERT_NE(detectors.find(one), std::string::npos);
  EXPECT_TRUE(has(refused(std::string(detectors).replace(detectors.find(one), one.size(), "detector(4, 0, 0) D4\n")),
                  "no detector at (2, 0, 1)"));
}

TEST(LearnedPredecoderRefuses, FilesThatAreNoNetwork) {
  const auto refused = [](const std::string &file) {
    return make_predecoder("model=" + file, decoder_model("error(0.1) D0")).text();
  };
  EXPECT_TRUE(has(refused(kGolden + "/absent"), "absent: No such file"));
  EXPECT_TRUE(has(refused(kGolden), "Is a directory"));
  EXPECT_TRUE(has(refused("/dev/zero"), "not a regular file")) << "it would never end";
  EXPECT_TRUE(has(refused(kGolden + "/surface_z_d3_p0.003.residual.b8"), "not a file of safetensors"));
}

/// The golden network with one text of its header replaced by another of the same length.
std::string parse_changed(const std::string &from, const std::string &to) {
  EXPECT_EQ(from.size(), to.size());
  bytes file = file_bytes(kNetwork);
  const auto at = std::search(file.begin(), file.end(), from.begin(), from.end());
  EXPECT_NE(at, file.end()) << from;
  std::copy(to.begin(), to.end(), at);
  return predecoder_network::parse(file).text();
}

TEST(PredecoderNetworkFile, IsRefusedWithWhatIsWrongWithIt) {
  const bytes whole = file_bytes(kNetwork);
  ASSERT_TRUE(predecoder_network::parse(whole).ok()) << predecoder_network::parse(whole).text();
  EXPECT_EQ(parse_changed("predecoder 1", "predecoder 2"), "its format is not \"cudaq-realtime predecoder 1\"");
  EXPECT_TRUE(has(parse_changed("\"F32\"", "\"F16\""), "another type, shape or size"));
  EXPECT_TRUE(has(parse_changed("[6, 4, 3, 3, 3]", "[9, 4, 3, 3, 3]"), "another type, shape or size"));
  EXPECT_TRUE(has(parse_changed("[6, 4, 3, 3, 3]", "[0, 4, 3, 3, 3]"), "no channels"));
  EXPECT_TRUE(has(parse_changed("[6, 4, 3, 3, 3]", "[-6,4, 3, 3, 3]"), "than numbers"));
  EXPECT_TRUE(has(parse_changed("weights.2", "weights.1"), "two tensors have the name weights.1"));
  EXPECT_TRUE(has(parse_changed("weights.3", "weights.4"), "no tensor weights.3"));
  EXPECT_TRUE(has(parse_changed("dtype", "dtypo"), "unknown member"));
  EXPECT_TRUE(has(parse_changed("[0, 24]", "[1, 25]"), "two tensors have the same bytes"));
  EXPECT_TRUE(has(parse_changed("\"seed\"", "\"\\u01\""), "\\u without four digits"));
  for (std::size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 97)
    EXPECT_TRUE(predecoder_network::parse(std::span(whole).first(size)).failed()) << size;
  bytes infinite = whole;
  const float value = std::numeric_limits<float>::infinity();
  std::memcpy(infinite.data() + infinite.size() - 4, &value, 4);
  EXPECT_TRUE(has(predecoder_network::parse(infinite).text(), "not finite"));
}

TEST(PredecoderNetworkFile, NamesTheThresholdOfItsCorrections) {
  const std::string seed = "\"seed\": \"1\"", word = "threshold";
  bytes file = file_bytes(kNetwork);
  EXPECT_EQ(predecoder_network::parse(file)->threshold(), 0);
  const auto with = [&](const std::string &value) {
    const std::string card = "\"threshold\": \"" + value + "\", ";
    bytes longer = file;
    const auto at = std::search(longer.begin(), longer.end(), seed.begin(), seed.end());
    longer.insert(at, card.begin(), card.end());
    for (std::size_t k = 0, size = std::size_t{file[0]} + 256 * std::size_t{file[1]} + card.size(); k < 8; ++k)
      longer[k] = static_cast<std::uint8_t>(size >> (8 * k));
    return predecoder_network::parse(longer);
  };
  EXPECT_NEAR(with("0.9")->threshold(), 2.197225f, 1e-5f);
  for (const char *value : {"0", "1", "2", "-0.5", "nan", "x", "", "0.9 "})
    EXPECT_TRUE(has(with(value).text(), "between 0 and 1")) << value;
}

} // namespace
} // namespace cudaq::qec::realtime::test

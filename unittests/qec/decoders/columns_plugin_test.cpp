// SPDX-License-Identifier: Apache-2.0
// The plug-ins for ldpc and for Tesseract, one program each. The plug-in's path and the settings to test come from
// CMake.
#include "unittests/qec/propagation/bp_osd_test_support.h"
#include "unittests/support/program_paths.h"

#include <sstream>

namespace cudaq::qec::realtime::test {
namespace {

const std::string kPlugin = CUDAQ_TEST_COLUMNS_PLUGIN;
const std::string kName = CUDAQ_TEST_COLUMNS_NAME;

std::vector<std::string> words(const std::string &text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class ColumnsPlugin : public testing::TestWithParam<std::string> {
protected:
  std::string name_ = kPlugin + (GetParam() == "default" ? "" : ":" + GetParam());
};

TEST_P(ColumnsPlugin, CorrectsSingleErrors) {
  for (const char *set : {"repetition_d5_p0.02", "surface_d3_p0.01", "color_d5_p0.003"}) {
    const std::string dem = read_file(data_folder() / "bp_osd" / (std::string(set) + ".dem"));
    const tanner_graph graph = graph_or_throw(dem);
    const auto with = make_or_throw(name_, dem);
    EXPECT_EQ(with->name(), kName);
    std::size_t wrong = 0;
    for (std::uint32_t column = 0; column < graph.probability.size(); ++column) {
      std::vector<std::uint64_t> events, observables;
      for (std::uint64_t d = 0; d < graph.num_detectors; ++d)
        if (std::ranges::find(graph.checks_of(column), graph.check_of[d]) != graph.checks_of(column).end())
          events.push_back(d);
      for (const std::uint64_t k : graph.observables_of(column))
        observables.push_back(k);
      const answer got = decode(*with, events);
      ASSERT_EQ(got.status, decode_status::ok) << set << ", error " << column;
      wrong += got.observables != bits(with->num_observables(), observables);
    }
    // BP+OSD of a low order does not always find a single error of a colour code.
    const bool exact = kName == "tesseract" || std::string_view(set) != "color_d5_p0.003";
    EXPECT_LE(wrong, exact ? 0 : graph.probability.size() / 50) << set;
  }
}

TEST_P(ColumnsPlugin, DecodesRecordedShotsOfAColourCode) {
  const std::filesystem::path folder = CUDAQ_TEST_CHROMOBIUS_DATA;
  const std::string shots = read_file(folder / "color_d5.dets.b8"), truth = read_file(folder / "color_d5.obs.b8");
  const auto with = make_or_throw(name_, read_file(folder / "color_d5.dem"));
  std::vector<std::uint8_t> out(truth.size(), 0xEE);
  ASSERT_EQ(with->decode_batch(out.size(), {reinterpret_cast<const std::uint8_t *>(shots.data()), shots.size()}, out),
            decode_status::ok);
  std::size_t wrong = 0;
  for (std::size_t shot = 0; shot < truth.size(); ++shot)
    wrong += out[shot] != static_cast<std::uint8_t>(truth[shot]);
  EXPECT_LT(wrong, truth.size() / 10);
}

TEST_P(ColumnsPlugin, ReadsRepeatsComponentsAndErrorsAboveOneHalfAsBpOsdDoes) {
  const std::string dem = "error(0.9) D0 L0\nerror(0.1) D0 D1 ^ D1 D2 L9\nerror(1) D1 L1\nerror(0.2) D1 L1\n"
                          "repeat 2 {\nerror(0.2) D2 L0\nshift_detectors 1\n}\nerror(0.5) L0\nerror(0) D0 L3\n";
  const auto with = make_or_throw(name_, dem), reference = make_or_throw("bp-osd", dem);
  for (unsigned set = 0; set < 16; ++set) {
    std::vector<std::uint64_t> events;
    for (unsigned d = 0; d < 4; ++d)
      if ((set >> d & 1) != 0)
        events.push_back(d);
    EXPECT_EQ(decode(*with, events), decode(*reference, events)) << set;
  }
}

TEST_P(ColumnsPlugin, SaysThatThereIsNoSolutionAndDecodesTheNextShot) {
  // A cycle, columns of four detectors that leave a parity, an end with a boundary, a detector without errors.
  const auto with = make_or_throw(name_, "error(0.1) D0 D1 L0\nerror(0.1) D1 D2\nerror(0.1) D2 D0\n"
                                         "error(0.1) D3 D4 D5 D6\nerror(0.1) D5 D6 D7 D8\nerror(0.1) D3 D5 D7 D8 L1\n"
                                         "error(0.1) D9 L1\ndetector D10\n");
  for (const std::vector<std::uint64_t> &bad :
       {std::vector<std::uint64_t>{0}, {0, 1, 2}, {3}, {3, 4}, {3, 4, 5, 7}, {10}, {9, 10}}) {
    EXPECT_EQ(decode(*with, bad), (answer{decode_status::no_solution, bits(2, {})}));
    EXPECT_EQ(decode(*with, {0, 1, 9}), (answer{decode_status::ok, bits(2, {0, 1})}));
    EXPECT_EQ(decode(*with, {3, 4, 7, 8}), (answer{decode_status::ok, bits(2, {})}));
  }
  EXPECT_EQ(decode(*make_or_throw(name_, "detector D0\n"), {0}).status, decode_status::no_solution);
}

std::string settings_name(const testing::TestParamInfo<std::string> &tested) {
  std::string name = tested.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Settings, ColumnsPlugin, testing::ValuesIn(words(CUDAQ_TEST_COLUMNS_SETTINGS)), settings_name);

TEST(ColumnsPluginSettings, AreRefusedWithTheReason) {
  for (const std::string &setting : words(CUDAQ_TEST_COLUMNS_REFUSED)) {
    const decoder_result made = make_decoder(kPlugin + ":" + setting, "error(0.1) D0\n");
    EXPECT_FALSE(made) << setting;
    EXPECT_NE(made.error.find(setting.substr(0, setting.find('='))), std::string::npos) << made.error;
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

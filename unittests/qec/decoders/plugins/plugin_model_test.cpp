// SPDX-License-Identifier: Apache-2.0
// The arrays that a plug-in gets beside the text of its model.
#include "lib/qec/decoders/plugin_model.h"
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

using numbers = std::vector<std::uint64_t>;

/// "D0 D1 L0" of a row.
std::string row(const cudaq_qec_decoder_flips_t &of, std::uint64_t k) {
  std::string text;
  for (std::uint64_t at = of.first_detector[k]; at < of.first_detector[k + 1]; ++at)
    text += "D" + std::to_string(of.detectors[at]) + " ";
  for (std::uint64_t at = of.first_observable[k]; at < of.first_observable[k + 1]; ++at)
    text += "L" + std::to_string(of.observables[at]) + " ";
  return text;
}

std::vector<std::string> rows(const cudaq_qec_decoder_flips_t &of) {
  std::vector<std::string> all;
  for (std::uint64_t k = 0; k < of.num_rows; ++k)
    all.push_back(row(of, k));
  return all;
}

TEST(PluginModel, HasEachErrorInstructionWithItsComponentsAndLoopsUnrolled) {
  const auto model = plugin_model::of("error(0.1) D1 D0 ^ D1 D2 L1\n"
                                      "error(0) D0\n"
                                      "error(0.2) L0 L0\n"
                                      "repeat 2 {\n  error(0.3) D0 D0 D3 L0\n  shift_detectors 1\n}\n");
  ASSERT_TRUE(model.ok()) << model.text();
  const cudaq_qec_decoder_errors_t e = model->view();
  EXPECT_EQ(e.struct_size, sizeof e);
  EXPECT_EQ(rows(e.errors), (std::vector<std::string>{"D0 D2 L1 ", "", "", "D3 L0 ", "D4 L0 "}));
  EXPECT_EQ(std::vector<double>(e.probabilities, e.probabilities + 5), (std::vector<double>{0.1, 0, 0, 0.3, 0.3}));
  EXPECT_EQ(rows(e.components), (std::vector<std::string>{"D0 D1 ", "D1 D2 L1 ", "D3 L0 ", "D4 L0 "}));
  EXPECT_EQ(numbers(e.first_component, e.first_component + 6), (numbers{0, 2, 2, 2, 3, 4}));
  EXPECT_EQ(model->num_detectors, 5U);
  EXPECT_EQ(model->num_observables, 2U);
}

TEST(PluginModel, HasTheCoordinatesWithTheirShifts) {
  const auto model = plugin_model::of("detector(1, 2) D0\nrepeat 2 {\n shift_detectors(0, 0, 5) 1\n"
                                      " detector(3, 4, 0.5) D0\n}\ndetector D1\n");
  ASSERT_TRUE(model.ok()) << model.text();
  const cudaq_qec_decoder_errors_t e = model->view();
  EXPECT_EQ(numbers(e.first_coordinate, e.first_coordinate + 5), (numbers{0, 2, 5, 8, 8}));
  EXPECT_EQ(std::vector<double>(e.coordinates, e.coordinates + 8), (std::vector<double>{1, 2, 3, 4, 5.5, 3, 4, 10.5}));
}

TEST(PluginModel, HasNoNullPointerWithoutErrors) {
  const auto model = plugin_model::of("");
  ASSERT_TRUE(model.ok());
  const cudaq_qec_decoder_errors_t e = model->view();
  for (const void *one : std::initializer_list<const void *>{
           e.errors.first_detector, e.errors.detectors, e.errors.first_observable, e.errors.observables,
           e.components.first_detector, e.components.detectors, e.components.first_observable, e.components.observables,
           e.probabilities, e.first_component, e.first_coordinate, e.coordinates})
    EXPECT_NE(one, nullptr);
  EXPECT_EQ(e.errors.num_rows, 0U);
}

TEST(PluginModel, GivesTheLineOfATextThatIsNone) {
  EXPECT_EQ(plugin_model::of("error(0.1) D0\nerror(2) D1").text().substr(0, 8), "line 2: ");
}

/// The example of the manual knows the model by these arrays only.
TEST(PluginModel, LetsTheExampleTakeLoops) {
  const auto with = make_or_throw(CUDAQ_TEST_PLUGIN, "repeat 3 {\n error(0.1) D0 L0\n error(0.2) D0 D1\n"
                                                     " shift_detectors 1\n}\nerror(0.1) D0 L1\n");
  EXPECT_EQ(with->num_detectors(), 4U);
  EXPECT_EQ(decode(*with, {2}), (answer{decode_status::ok, {1}}));
  EXPECT_EQ(decode(*with, {3}), (answer{decode_status::ok, {2}}));
  EXPECT_EQ(decode(*with, {2, 3}), (answer{decode_status::ok, {0}}));
  EXPECT_EQ(decode(*with, {0, 3}), (answer{decode_status::not_converged, {0}}));
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The weight that a plug-in gives: what it can be, and that a wrong one is found.
#include "lib/qec/decoders/plugin_model.h"
#include "unittests/qec/qec_test_support.h"

#include <cmath>

namespace cudaq::qec::realtime::test {
namespace {

const std::string kPlugin = CUDAQ_TEST_BREAKING_PLUGIN;
constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.2) D1 L1\n";

/// The fault of a decode of both events, or its weight; without `errors` the errors are not wanted.
std::string fault_or_weight(const std::string &name, const char *model, bool errors = true) {
  const auto with = make_or_throw(name, model);
  std::vector<std::uint64_t> room(errors ? with->num_errors() : 0);
  decode_details details{.errors = room};
  std::vector<std::uint8_t> out(1);
  const decode_status status = with->decode(std::vector<std::uint64_t>{0, 1}, out, details);
  return status == decode_status::ok ? std::to_string(details.weight) : with->fault();
}

TEST(PluginWeight, ThatIsWrongIsAnInternalErrorThatNamesIt) {
  for (const auto &[broken, text] : std::initializer_list<std::pair<std::string, std::string>>{
           {"sign", "plug-in breaking: decode gave the weight -1; without an error above 1/2 it is not below 0"},
           {"infinite", "plug-in breaking: decode gave the weight inf; it is a number, or NaN for none"},
           {"sum", "plug-in breaking: the weight is 0.2; its errors (2) have 3.53"}})
    for (const bool errors : {false, true})
      EXPECT_EQ(fault_or_weight(kPlugin + ":break=weight_" + broken, kModel, errors).substr(0, text.size()), text);
  EXPECT_EQ(fault_or_weight(kPlugin, kModel), std::to_string(std::log(9.0) + std::log(4.0)));
}

TEST(PluginWeight, MayBeNegativeIfAnErrorIsLikelierThanNot) {
  const std::string sum = std::to_string(std::log(0.1 / 0.9) + std::log(0.6 / 0.4));
  EXPECT_EQ(fault_or_weight(kPlugin, "error(0.9) D0 L0\nerror(0.4) D1 L1\n"), sum);
  EXPECT_EQ(fault_or_weight(kPlugin + ":break=weight_sign", "error(0.9) D0 L0\nerror(0.4) D1 L1\nerror(0.1) D0 L0\n"),
            "-1.000000")
      << "error 0 has an equal one, so the sum is not known";
}

TEST(PluginWeight, OfEqualErrorsCountsThemAloneOrTogether) {
  const auto model = plugin_model::of("error(0.1) D0 D1\nerror(0.2) D2\nerror(0.1) D1 D0\nerror(0.1) D0 D1 L0\n");
  ASSERT_TRUE(model.ok()) << model.text();
  const plugin_weights weights(*model, true);
  ASSERT_TRUE(weights.are_compared());
  const auto [low, high] = weights.sums(std::vector<std::uint64_t>{1, 2});
  const double rounding = 0.01 * (std::log(9.0) + std::log(4.0) + 1);
  EXPECT_NEAR(low, std::log(0.82 / 0.18) + std::log(4.0) - rounding, 1e-5);
  EXPECT_NEAR(high, std::log(9.0) + std::log(4.0) + rounding, 1e-5);
  const auto different = weights.sums(std::vector<std::uint64_t>{3});
  EXPECT_NEAR(different.low, std::log(9.0) * 0.99 - 0.01, 1e-5) << "its observables differ";
}

TEST(PluginWeight, IsNotComparedWhereItCanBeCountedInManyWays) {
  const auto compared = [](const char *text, bool wanted = true) {
    const auto model = plugin_model::of(text);
    return plugin_weights(*model, wanted).are_compared();
  };
  EXPECT_FALSE(compared("error(0.9) D0\nerror(0.1) D0\n"));
  EXPECT_TRUE(compared("error(0.9) D0\nerror(0.1) D0 L0\n"));
  EXPECT_FALSE(compared("error(0.1) D0\n", false));
  EXPECT_FALSE(compared("detector D0\n"));
}

TEST(PluginWeight, OfTheDecodersOfThisProjectIsInItsBounds) {
  const shot_set set = load_committed(shot_set_name(3, "0.005"));
  const auto model = plugin_model::of(set.dem_text);
  ASSERT_TRUE(model.ok()) << model.text();
  const plugin_weights weights(*model, true);
  for (const char *name : {"bp-osd", "relay-bp", "relay-bp:mode=in_step"}) {
    const auto with = make_or_throw(name, set.dem_text);
    std::vector<std::uint64_t> events(set.num_detectors), errors(with->num_errors());
    std::uint8_t out = 0;
    for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
      decode_details details{.errors = errors};
      const std::size_t count = unpack_events(set.detection_row(shot), set.num_detectors, events).count;
      if (with->decode(std::span(events).first(count), {&out, 1}, details) != decode_status::ok)
        continue;
      const auto [low, high] = weights.sums(std::span(errors).first(details.num_errors));
      EXPECT_GE(details.weight, low) << name << " shot " << shot;
      EXPECT_LE(details.weight, high) << name << " shot " << shot;
    }
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test

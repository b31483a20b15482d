// SPDX-License-Identifier: Apache-2.0
// The arrays that a plug-in gets beside the text of its model.
#include "lib/qec/decoders/plugin_model.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/scratch_folder.h"

#include <cmath>
#include <cstring>
#include <elf.h>
#include <fstream>

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

// The weight that a plug-in gives: what it can be, and that a wrong one is found.

const std::string kPlugin = CUDAQ_TEST_BREAKING_PLUGIN;
constexpr const char *kWeighedModel = "error(0.1) D0 L0\nerror(0.2) D1 L1\n";

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
      EXPECT_EQ(fault_or_weight(kPlugin + ":break=weight_" + broken, kWeighedModel, errors).substr(0, text.size()),
                text);
  EXPECT_EQ(fault_or_weight(kPlugin, kWeighedModel), std::to_string(std::log(9.0) + std::log(4.0)));
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

// The file of a plug-in is absent, or a copy of it has not ended.

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.1) D1 L1\n";

class PluginFile : public ::testing::Test {
protected:
  ~PluginFile() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  void put(const std::string &bytes) const {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  [[nodiscard]] decoder_result made() const { return make_decoder(path_.string(), kModel); }

  const std::string whole_ = cudaq::realtime::test::read_file(CUDAQ_TEST_PLUGIN);
  const std::filesystem::path path_ = testing::TempDir() + "file_" + std::to_string(getpid()) + ".so";
};

// A page that is mapped and not in the file is a SIGBUS: this process would end.
TEST_F(PluginFile, IsRefusedWhereverACopyHasStopped) {
  for (std::size_t length = 0; length < whole_.size(); length += length < 256 ? 31 : 509) {
    put(whole_.substr(0, length));
    const decoder_result cut = made();
    ASSERT_FALSE(cut) << length;
    const bool is_header = length < sizeof(Elf64_Ehdr);
    EXPECT_NE(cut.error.find(is_header ? "file too short" : "the file is not whole: it has " + std::to_string(length)),
              std::string::npos)
        << length << ": " << cut.error;
  }
  put(whole_.substr(0, whole_.size() - 1));
  EXPECT_NE(made().error.find(" bytes of at least " + std::to_string(whole_.size())), std::string::npos)
      << made().error;
  put(whole_);
  EXPECT_TRUE(made()) << made().error;
}

TEST_F(PluginFile, IsRefusedIfItHasItsLengthBeforeItsBytes) {
  for (std::size_t length = 1024; length < whole_.size() - 512; length += 1021) {
    std::string bytes = whole_.substr(0, length);
    bytes.resize(whole_.size());
    put(bytes);
    EXPECT_NE(made().error.find("a part of it is empty"), std::string::npos) << length << ": " << made().error;
  }
}

TEST_F(PluginFile, MayHaveNoSectionTable) {
  Elf64_Ehdr head{};
  std::memcpy(&head, whole_.data(), sizeof head);
  std::string bytes = whole_.substr(0, head.e_shoff);
  head.e_shoff = 0;
  head.e_shnum = head.e_shstrndx = 0;
  std::memcpy(bytes.data(), &head, sizeof head);
  put(bytes);
  EXPECT_TRUE(made()) << made().error;
  put(bytes.substr(0, 1500));
  EXPECT_NE(made().error.find("the file is not whole: it has 1500 bytes"), std::string::npos) << made().error;
}

TEST_F(PluginFile, IsNeededAlsoWhileItsLibraryIsLoaded) {
  put(whole_);
  const decoder_result first = made();
  ASSERT_TRUE(first) << first.error;
  std::filesystem::remove(path_);
  EXPECT_NE(made().error.find("No such file or directory"), std::string::npos) << made().error;
  EXPECT_EQ(decode(*first.instance, {0}), (answer{decode_status::ok, {1}})) << "it keeps the code of its file";
  put(whole_);
  EXPECT_TRUE(made()) << made().error;
}

// $ORIGIN is the folder of who calls dlopen; with a sanitizer that is its library. From each folder so many parents
// lead to the root.
TEST_F(PluginFile, MayHaveAPathThatOnlyTheLoaderKnows) {
  put(whole_);
  std::string root = "$ORIGIN";
  for (int n = 0; n < 64; ++n)
    root += "/..";
  const std::string file = std::filesystem::absolute(path_).string();
  const decoder_result known = make_decoder(root + file, kModel);
  EXPECT_TRUE(known) << known.error;
  const decoder_result absent = make_decoder(root + "/absent" + file, kModel);
  EXPECT_NE(absent.error.find("cannot open shared object file"), std::string::npos) << absent.error;
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The plug-in for Chromobius against the answers of its Python package (chromobius/make_chromobius_data.py).
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/program_paths.h"

#include <fstream>
#include <iterator>

namespace cudaq::qec::realtime::test {
namespace {

const std::string kPlugin = CUDAQ_TEST_CHROMOBIUS;

std::string bytes_of(const std::string &file) {
  std::ifstream in(std::filesystem::path(CUDAQ_TEST_CHROMOBIUS_DATA) / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::uint8_t> as_bytes_of(const std::string &text) {
  return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

// Known failure 67.
TEST(ChromobiusPlugin, EqualsThePackagesAnswersAndIsBetterThanGuessing) {
  const std::string model = bytes_of("color_d5.dem"), shots = bytes_of("color_d5.dets.b8"),
                    truth = bytes_of("color_d5.obs.b8"), golden = bytes_of("color_d5.pred.b8");
  const auto with = make_or_throw(kPlugin, model);
  EXPECT_STREQ(with->name(), "chromobius");
  std::vector<std::uint8_t> out(golden.size(), 0xEE);
  ASSERT_EQ(with->decode_batch(golden.size(), as_bytes_of(shots), out), decode_status::ok);
  EXPECT_TRUE(std::ranges::equal(out, as_bytes_of(golden)));
  std::size_t wrong = 0;
  for (std::size_t shot = 0; shot < truth.size(); ++shot)
    wrong += out[shot] != static_cast<std::uint8_t>(truth[shot]);
  EXPECT_LT(wrong, truth.size() / 10);
}

TEST(ChromobiusPlugin, DecodesAfterAShotWithoutASolution) {
  const std::string model = bytes_of("color_d5.dem");
  const auto with = make_or_throw(kPlugin, model + "error(0.1) D100 D101\ndetector(0, 0, 0, 3) D100\n"
                                                   "detector(0, 0, 1, 3) D101\n");
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(decode(*with, {100}).status, decode_status::ok);
    EXPECT_EQ(decode(*with, {0}).status, decode_status::ok);
  }
}

TEST(ChromobiusPlugin, RefusesAModelWithoutColoursWithTheReason) {
  for (const char *model : {"error(0.1) D0 L0\n", "error(0.1) D0 L70\ndetector(0, 0, 0, 3) D0\n"}) {
    const decoder_result made = make_decoder(kPlugin, model);
    EXPECT_FALSE(made);
    EXPECT_GT(made.error.size(), kPlugin.size() + 20) << made.error;
  }
  EXPECT_NE(make_decoder(kPlugin + ":a=1", "error(0.1) D0\n").error.find("no settings"), std::string::npos);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// How often a server reads the text of a model: the linker puts a count before the parser of this program.
#include "lib/qec/server/server_config.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/support/program_paths.h"
#include "unittests/support/scratch_folder.h"

#include <fstream>

namespace cudaq::qec::realtime::dem_text {

static int reads = 0;

#define CUDAQ_READ_PROGRAM                                                                                             \
  "_ZN5cudaq3qec8realtime8dem_text12read_programESt17basic_string_viewIcSt11char_traitsIcEERKNS1_10dem_limitsE"
program real_read(std::string_view text, const dem_limits &limits) __asm__("__real_" CUDAQ_READ_PROGRAM);
program counted_read(std::string_view text, const dem_limits &limits) __asm__("__wrap_" CUDAQ_READ_PROGRAM);
program counted_read(std::string_view text, const dem_limits &limits) {
  ++reads;
  return real_read(text, limits);
}

} // namespace cudaq::qec::realtime::dem_text

namespace cudaq::qec::realtime::test {
namespace {

class ServerModel : public testing::Test {
protected:
  std::string file(const char *name, const std::string &contents) const {
    const std::string path = folder_.path() / name;
    std::ofstream(path) << contents;
    return path;
  }

private:
  cudaq::realtime::test::scratch_folder folder_;
};

decoder_config config_of(const std::string &type, const std::string &dem,
                         std::vector<std::pair<std::string, std::string>> settings = {}) {
  decoder_config one;
  one.limits.id = 1;
  one.type = type;
  one.dem = dem;
  one.settings = std::move(settings);
  return one;
}

expected<std::vector<decoder_setup>> built(std::vector<decoder_config> decoders) {
  server_config config;
  config.decoders = std::move(decoders);
  return build_decoders(config, ".");
}

TEST_F(ServerModel, IsReadOnceForAllWhoNeedIt) {
  const std::string surface = load_committed("surface_z_d3_p0.003").dem_text;
  const std::string loop = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.01) D0\nrepeat 3 {\nerror(1e-9) D2 L0\n"
                           "error(0.01) D2\ndetector(0,1) D2\ndetector(1,1) D3\nshift_detectors(0,1) 2\n}\n";
  const std::string heralds = file("heralds", heralds_text(kReadoutModel, "detectors 3\nherald 2 0 0.4\n"));
  const std::string of_loop =
      file("of_loop", heralds_text(loop, "detectors 8\nherald 3 1 0.4\nherald 5 3 0.4\nherald 7 5 0.4\n"));
  const std::string readout = file("readout", readout_text());
  decoder_config learns = config_of("lookup", kReadoutModel),
                 stream = config_of("sliding-window", loop, {{"inner", "bp-osd"}, {"commit", "2"}, {"buffer", "1"}});
  const decoder_config windows = stream;
  learns.learn.is_on = true;
  stream.stream = true;
  decoder_config heralded_stream = stream;
  heralded_stream.settings.emplace_back("heralds", of_loop);
  const struct {
    const char *name;
    decoder_config config;
  } cases[] = {
      {"rates of detectors", config_of("lookup", kReadoutModel)},
      {"heralds", config_of("bp-osd", kReadoutModel, {{"heralds", heralds}})},
      {"a readout", config_of("bp-osd", kReadoutModel, {{"readout", readout}})},
      {"a race", config_of("race:bp-osd|relay-bp", kReadoutModel)},
      {"a network", config_of("pymatching", surface, {{"predecoder", std::string("model=") + CUDAQ_TEST_NETWORK}})},
      {"windows", windows},
      {"a stream", stream},
      {"a stream with heralds", heralded_stream},
      {"a decoder that learns", learns},
  };
  for (const auto &[name, config] : cases) {
    if (config.type == "pymatching" && !pymatching_available())
      continue;
    dem_text::reads = 0;
    const auto setups = built({config});
    EXPECT_TRUE(setups.ok()) << name << ": " << setups.text();
    EXPECT_EQ(dem_text::reads, 1) << name;
  }
}

TEST_F(ServerModel, ThatIsLearnedNeedsMemoryForItsCountsAndACandidate) {
  std::string error = "error(0.01)", dem;
  for (int d = 0; d < 60; ++d)
    error += " D" + std::to_string(d);
  for (int k = 0; k < 2400; ++k) // more pairs of detectors than the estimate counts one by one
    dem += error + " L0\n";
  std::vector<decoder_config> decoders;
  for (std::uint64_t id = 0; id < 12; ++id) {
    decoders.push_back(config_of("bp-osd", dem));
    decoders.back().limits.id = id;
  }
  const auto plain = built(decoders);
  EXPECT_TRUE(plain.ok()) << plain.text();
  for (decoder_config &one : decoders)
    one.learn.is_on = true;
  const std::string text = built(decoders).text();
  EXPECT_NE(text.find("the decoders up to this one need about 4"), std::string::npos) << text;
}

TEST_F(ServerModel, HasAReadoutReadOnlyIfThereIsRoomForIt) {
  decoder_config fills = config_of("lookup", "error(0.1) D0 L0\n");
  fills.limits.queue_length = 33'000; // of 128 KiB each, above 4 GiB
  fills.measurements = kMaxEnqueuedBits;
  fills.has_measurements = true;
  fills.from_measurements = {0, -1};
  while (built({fills}).failed())
    fills.limits.queue_length -= 16;
  fills.limits.queue_length -= 16; // leaves 2 to 4 MiB
  const auto text_with = [&](const std::string &lines) {
    decoder_config one = config_of("bp-osd", kReadoutModel, {{"readout", file("readout", readout_text(lines))}});
    one.limits.id = 2;
    one.limits.queue_length = 0;
    return built({fills, one}).text();
  };
  EXPECT_EQ(text_with(kReadoutLines), "");
  EXPECT_NE(text_with("x\n").find("line 3: "), std::string::npos);
  const std::string large = text_with("x\n" + std::string(std::size_t{1} << 20, '\n'));
  EXPECT_NE(large.find(" MiB, at most 4096 are accepted"), std::string::npos) << large;
}

} // namespace
} // namespace cudaq::qec::realtime::test

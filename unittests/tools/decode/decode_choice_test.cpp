// SPDX-License-Identifier: Apache-2.0
// What `--decoder auto` takes: the reports name it, and the reason comes before the work.
#include "unittests/tools/decode/decode_test_support.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(DecodeChoice, IsReportedBeforeTheFirstShotComes) {
  SKIP_WITHOUT_PYMATCHING();
  const scratch_folder scratch;
  const std::string fifo = (scratch.path() / "shots").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int shots = open(fifo.c_str(), O_RDWR | O_CLOEXEC); // a writer, so that the program can open it
  ASSERT_GE(shots, 0);
  const std::string command = "timeout -k 2 60 '" + std::string(CUDAQ_TOOL_PATH) +
                              "' decode --out /dev/null --in_format dets --dem '" + kColorCode.file("dem") +
                              "' --in '" + fifo + "'";
  std::FILE *const out = popen(command.c_str(), "r");
  ASSERT_NE(out, nullptr);
  std::array<char, 4096> line{};
  ASSERT_NE(std::fgets(line.data(), line.size(), out), nullptr);
  EXPECT_TRUE(contains(line.data(), "decoder         auto took bp-osd, because its first choice refuses"))
      << line.data();
  const std::string text = read_file(kColorCode.file("dets"));
  EXPECT_EQ(write(shots, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(shots);
  std::string rest;
  while (std::fgets(line.data(), line.size(), out) != nullptr)
    rest += line.data();
  EXPECT_EQ(pclose(out), 0);
  EXPECT_TRUE(contains(rest, "decoded         128 shots")) << rest;
  EXPECT_FALSE(contains(rest, "auto took")) << "once";
}

TEST(DecodeChoice, AStreamNamesTheDecoderOfItsWindowsAndTheReason) {
  SKIP_WITHOUT_PYMATCHING();
  const scratch_folder scratch;
  const auto decoded = [&](const std::string &round, const std::string &errors, const std::string &bits) {
    std::ofstream(scratch.path() / "m.dem") << "repeat 9 {\n" + round + errors + "shift_detectors(1) " +
                                                   std::to_string(bits.size()) + "\n}\n" + round + "error(0.1) D0\n";
    std::ofstream shots(scratch.path() / "s.01");
    for (int k = 0; k < 10; ++k)
      shots << bits << "\n";
    shots.close();
    return "decode --stream --commit 2 --buffer 2 --out /dev/null --dem " + (scratch.path() / "m.dem").string() +
           " --in " + (scratch.path() / "s.01").string();
  };
  const std::string graph = decoded("detector(0) D0\n", "error(0.1) D0 D1 L0\nerror(0.1) D0\n", "0");
  auto j = run_good_program(graph + " --json");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("decoder"), "pymatching");
  EXPECT_FALSE(j.contains("decoder_choice"));
  EXPECT_TRUE(contains(j.at("stream"), "a repetition has 1 detector in 1 round; pymatching; sequential"));
  const std::string hyper = decoded("detector(0) D0\ndetector(0) D1\ndetector(0) D2\n",
                                    "error(0.1) D0 D1 D2 L0\nerror(0.1) D0\nerror(0.1) D1\nerror(0.1) D2\n", "000");
  j = run_good_program(hyper + " --json");
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("decoder"), "bp-osd");
  EXPECT_TRUE(contains(j.at("decoder_choice"), "auto took bp-osd, because its first choice refuses "));
  const std::string text = run_program(hyper).out;
  EXPECT_TRUE(text.starts_with("decoder         auto took bp-osd, because")) << text;
  EXPECT_TRUE(contains(text, "; bp-osd; sequential")) << text;
}

} // namespace
} // namespace cudaq::realtime::tools::test

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

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
#include "unittests/tools/common/run_program.h"

#include "cudaq/realtime/version.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(Info, WritesOnlyJsonToStdoutWithTheOption) {
  const program_result r = run_program("info --json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto j = r.json();
  ASSERT_FALSE(j.is_discarded()) << r.out;
  EXPECT_EQ(j.at("header_version"), j.at("library_version"));
  EXPECT_EQ(j.at("features").at("host_path"), true);
  EXPECT_FALSE(j.at("machine").at("cpu_model").get<std::string>().empty());
}

TEST(Info, SaysWhatEachMissingPieceGivesAndHowToGetIt) {
  const auto j = run_program("info --json").json();
  ASSERT_FALSE(j.is_discarded());
  for (const char *name :
       {"PyMatching", "CUDA driver", "CUDA devices", "device kernels", "requests in GPU memory", "NUMA placement"}) {
    const auto &piece = j.at("pieces").at(name);
    if (piece.at("present") == true)
      continue;
    EXPECT_FALSE(piece.at("gives").get<std::string>().empty()) << name;
    EXPECT_FALSE(piece.at("get").get<std::string>().empty()) << name;
  }
}

TEST(Info, WritesTextAndAFileTogether) {
  const scratch_folder scratch;
  const auto file = scratch.path() / "info.json";
  const program_result r = run_program("info --json '" + file.string() + "'");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "cudaq-realtime ")) << r.out;
  const auto j = nlohmann::json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(j.is_discarded());
  EXPECT_EQ(j.at("command"), "info");
}

} // namespace
} // namespace cudaq::realtime::tools::test

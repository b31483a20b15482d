// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/html/written_pages.h"

namespace cudaq::realtime::tools::test {

std::vector<written_page> pages_to_write(const std::filesystem::path &folder) {
  const std::string base = (folder / "base.json").string(), now = (folder / "now.json").string();
  for (const std::string &report : {base, now})
    EXPECT_EQ(run_program("latency --quick --json " + report, CUDAQ_USERS_PROGRAM_PATH).exit_code, 0);
  std::vector<written_page> all = {
      {"idle --quick", {"Method", "Time of one request", "Time of a stop", "Percentiles of a request"}},
      {"compare --tolerance 1000 " + base + " " + now + " " + now, {"Base", now + ": 0 worse, 0 better"}}};
  if (run_program("decoding --help").exit_code == 0) // a build with decoders
    all.push_back(
        {"decoding --shots 2000 --decoder lookup --dem " + std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003.dem",
         {"Shots", "Logical errors and time"},
         false});
  return all;
}

} // namespace cudaq::realtime::tools::test

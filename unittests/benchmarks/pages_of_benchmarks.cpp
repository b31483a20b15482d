// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/html/written_pages.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools::test {

std::vector<written_page> pages_to_write(const std::filesystem::path &folder) {
  const std::string base = (folder / "base.json").string(), now = (folder / "now.json").string();
  for (const std::string &report : {base, now})
    EXPECT_EQ(run_program("latency --quick --json " + report, CUDAQ_USERS_PROGRAM_PATH).exit_code, 0);
  std::vector<written_page> all = {
      {"idle --quick", {"Method", "Time of one request", "Time of a stop", "Percentiles of a request"}},
      {"compare --tolerance 1000 " + base + " " + now + " " + now, {"Base", now + ": 0 worse, 0 better"}}};
  if (run_program("decoding --help").exit_code == 0) { // a build with decoders
    const std::string decoding = "decoding --shots 2000 --decoder lookup --dem " + std::string(CUDAQ_TEST_DATA);
    all.push_back({decoding + "/surface_z_d3_p0.003.dem", {"Shots", "Logical errors and time"}, false});
    for (const char *const p : {"0.003", "0.005"})
      std::filesystem::copy_file(std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p" + p + ".dem",
                                 folder / fmt::format("d=3,p={},r=3.dem", p));
    all.push_back({fmt::format("decoding --shots 2000 --decoder lookup --dem {0}/d=3,p=0.003,r=3.dem "
                               "{0}/d=3,p=0.005,r=3.dem --csv {0}/counts.csv",
                               folder.string()),
                   {"Per shot", "Per round", "Points"}});
  }
  return all;
}

} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/html/written_pages.h"

namespace cudaq::realtime::tools::test {

std::vector<written_page> pages_to_write(const std::filesystem::path &folder) {
  std::vector<written_page> all = {
      {"latency --quick", {"All cases", "Ratios to the floors", "Closed loop, 32 B: histogram", "Pipelined"}}};
  if (run_program("demo --help").exit_code != 0)
    return all; // no decoders in this build
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  all.push_back(
      {"demo --config d3 --shots 2000 --decoder lookup",
       {"Logical errors", "Latency histogram", "Latency percentiles", "Timeline of pass 1", "Timeline of pass 2"}});
  all.push_back({"pipeline --shots 500 --decoder lookup --dem " + model + ".dem --in " + model + ".dets.b8 --obs_in " +
                     model + ".obs.b8",
                 {"Latency histogram", "Stages of the mean latency", "Timeline"}});
  const std::string decode =
      "decode --dem " + model + ".dem --in " + model + ".dets.b8 --obs_in " + model + ".obs.b8 --out /dev/null ";
  all.push_back({decode + "--decoder lookup", {"Shots", "Model", "Logical errors"}, false});
  all.push_back({decode + "--decoder bp-osd --confidence " + (folder / "gaps.txt").string(),
                 {"Logical errors", "Wrong and discarded shots"}});
  return all;
}

} // namespace cudaq::realtime::tools::test

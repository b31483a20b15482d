// SPDX-License-Identifier: Apache-2.0
// One allocation of a program is refused, at many places of its start: it ends with its status for a refusal and a
// text, also where the place is in a library that allocates in functions which must not throw.
#include "unittests/support/program_paths.h"
#include "unittests/support/test_scale.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

TEST(RefusedMemory, EndsAProgramWithAStatusAndAText) {
  const scratch_folder scratch;
  const auto run_without = [&](const std::string &variable, const std::string &arguments) {
    const std::filesystem::path script = scratch.path() / "run"; // only the program gets the variables
    std::ofstream(script) << "#!/bin/sh\nexec env LD_PRELOAD='" << CUDAQ_TEST_REFUSED_MEMORY << "' " << variable << " '"
                          << CUDAQ_TOOL_PATH << "' \"$@\"\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    return run_program(arguments, script);
  };
  const std::string counted = scratch.path() / "count", config = scratch.path() / "config.yaml";
  std::ofstream(config) << "decoders:\n  - {id: 0, type: auto, dem: \"error(0.1) D0 D1 L0\\nerror(0.1) D0\"}\n";
  const std::string model = scratch.path() / "model.dem", shots = scratch.path() / "shots.01";
  std::ofstream(model) << "error(0.1) D0 D1 L0\nerror(0.1) D0\n";
  std::ofstream(shots) << "10\n11\n";
  const std::string decode = "decode --dem " + model + " --in " + shots + " --out /dev/null";
  const struct {
    std::string arguments;
    long samples; // of the start, and of the report
  } rows[] = {
      {"serve --check " + config, 40},
      {"serve --config " + config + " --transport udp --timeout 0.01 -- --unified", 20}, // a provider is loaded
      {decode + " --decoder 'race:relay-bp|bp-osd' --json " + scratch.path().string() + "/report.json", 30},
  };
  for (const auto &[arguments, samples] : rows) {
    SCOPED_TRACE(arguments);
    ASSERT_EQ(run_without("COUNT_ALLOCATIONS=" + counted, arguments).exit_code, 0);
    const long all = std::stol(read_file(counted)), step = realtime::test::whole_or_sample<long>(1, all / samples);
    ASSERT_GT(all, 1000);
    int refusals = 0;
    // The first ones are those of the constructors before main, the last ones those of the report.
    for (long number = 0; number < all; number += number < 24 || number > all - samples / 2 ? 1 : step) {
      const program_result r = run_without("REFUSED_ALLOCATION=" + std::to_string(number), arguments);
      EXPECT_TRUE(r.exit_code == 0 || r.exit_code == 3) << "allocation " << number << ": " << r.exit_code << r.err;
      if (r.exit_code == 3) {
        ++refusals;
        EXPECT_FALSE(r.err.empty()) << number;
      }
    }
    EXPECT_GT(refusals, samples / 2);
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test

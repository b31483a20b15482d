// SPDX-License-Identifier: Apache-2.0
// Command lines that the program refuses before the work: the status is 2, stderr begins with the program's name and
// has this text, and stdout is empty. Refusals that need files of their own are beside the tests of their subcommand.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

struct refused_line {
  std::string arguments, text;
};
/// Command lines for one reason.
struct refusals {
  const char *name;
  bool needs_decoders;
  std::vector<refused_line> lines;
};
void PrintTo(const refusals &r, std::ostream *out) { *out << r.name; }

class Refusals : public ::testing::TestWithParam<refusals> {};

// Known failure 69.
TEST_P(Refusals, NameWhatIsWrongBeforeTheWork) {
  if (GetParam().needs_decoders && !has_decoders())
    GTEST_SKIP() << "this build has no decoders, so no demo and no pipeline";
  for (const auto &[arguments, text] : GetParam().lines) {
    const program_result r = run_program(arguments);
    EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.err;
    EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
    EXPECT_TRUE(r.err.starts_with("cudaq-realtime")) << arguments << "\n" << r.err;
    EXPECT_EQ(r.out, "") << arguments << ": something was done";
  }
}

const std::string kNowhere = "/nonexistent/report";

const refusals kRefusals[] = {
    {"Subcommands",
     false,
     {{"decodes", "decodes"},
      {"latenci", "there is no subcommand \"latenci\". Did you mean latency?"},
      {"zzzzzzzz", ", latency, doctor, info"},
      {"help docter", "Did you mean doctor?"},
      {"completion tcsh", "tcsh"},
      {"completion", "shell is required"}}},
    {"Options",
     false,
     {{"latency --turbo", "--turbo"},
      {"info --distance 3", "--distance"},
      {"latency --exchange 5", "there is no option --exchange. Did you mean --exchanges?"},
      {"latency --exchnages=5", "there is no option --exchnages. Did you mean --exchanges?"},
      {"--versoin", "Did you mean --version?"},
      {"latency --jsn", "cudaq-realtime latency: there is no option --jsn."},
      {"latency --frobnicate", "there is no option --frobnicate.\nOptions and examples: cudaq-realtime latency --help"},
      {"info --exchanges 3", "there is no option --exchanges. It is an option of latency."},
      {"latency more words", "\"more\" is not an option"}}},
    {"Values",
     false,
     {{"latency --slots 0", "--slots"},
      {"latency --cores 0", "--cores"},
      {"latency --cores 0,99999", "--cores"},
      {"latency --exchanges -5", "--exchanges"},
      {"latency --rounds 0", "--rounds"},
      {"doctor --transport pigeon", "--transport"},
      {"doctor --port 5000", "--port"},
      {"doctor --transport udp --port 70000", "--port"},
      {"doctor --transport shm --port 5000", "--port"}}},
    {"ValuesOfDemoAndPipeline",
     true,
     {{"demo --workers 65", "--workers"},
      {"demo --wait sometimes", "--wait"},
      {"demo --decoder guess", "--decoder"},
      {"demo --shots 0", "--shots"},
      {"demo --shots 5 --duration 1", "--shots"},
      {"demo --rate nan", "--rate"},
      {"demo --core-producer -3", "--core-producer"},
      {"demo --device tpu", "--device"},
      {"demo --gpu -1", "--gpu: Value -1 not in range 0 to 255"},
      {"demo --gpu 3", "--gpu: it has no effect without --device gpu"},
      {"demo --data /nonexistent/shots", "/nonexistent/shots"},
      {std::string("demo --decoder lookup --config d13 --data '") + CUDAQ_TEST_DATA + "'", "--decoder lookup"},
      {"pipeline --shots 5 --duration 1", "--shots"},
      {"emulate --shots 5 --duration 1", "--shots"},
      {"pipeline --workers 65", "--workers"},
      {"pipeline --config d8", "--config"},
      {std::string("pipeline --config d31 --data '") + CUDAQ_TEST_DATA + "'", "make_data.py --pipeline"},
      {"pipeline --gpu -1", "--gpu: Value -1 not in range 0 to 255"},
      {"pipeline --gpu 3", "--gpu: it has no effect without --device gpu"},
      {"pipeline --staging dma", "--staging: it has no effect without --device gpu"},
      {"pipeline --staging resident", "--staging: it has no effect without --device gpu"},
      {"pipeline --predecoder resident --device cpu", "--device: the blocks of --predecoder resident are on a GPU"},
      {"pipeline --predecoder model=x --plan rate", "--plan: it has no effect without --device gpu and"},
      {"pipeline --device gpu --predecoder local --plan rate", "--plan: it has no effect without --device gpu and"},
      {"pipeline --predecoder resident --staging dma", "--staging: requests reach --predecoder resident"},
      {"pipeline --device gpu --staging resident --predecoder model=x", "--staging: the network of --predecoder model"},
      {"pipeline --predecoder model= --shots 1", "--predecoder: model="}}},
    {"OldNamesBesideNewOnes",
     false,
     {{"latency --rounds 2 --repeats 2", "excludes"}, {"latency --cores 0,1 --core-dispatcher 0", "excludes"}}},
    {"OldNamesBesideNewOnesOfDemoAndPipeline",
     true,
     {{"demo --distance 3 --config d3", "excludes"},
      {"demo --cadence-us 5 --rate 5", "excludes"},
      {"pipeline --engine local --predecoder local", "excludes"},
      {"demo --dem a.dem --in a.b8 --distance 3", "excludes"}}},
    {"Cores",
     false,
     {{"latency --quick --core-producer 4000", "--core-producer: a thread cannot run on core 4000"},
      {"latency --quick --core-dispatcher 4000", "--core-dispatcher: a thread cannot run on core 4000"},
      {"latency --quick --cores 4000,4001", "core 4000"}}},
    {"CoresOfDemoAndPipeline",
     true,
     {{"demo --config d3 --workers 2 --core-producer 4000", "--core-producer: a thread cannot run on core 4000"},
      {"demo --config d3 --workers 2 --core-consumer 4000", "--core-consumer: a thread cannot run on core 4000"},
      {"demo --config d3 --workers 2 --core-dispatcher 4000", "--core-dispatcher: a thread cannot run on core 4000"},
      {"demo --config d3 --workers 2 --core-workers 4000", "--core-workers: a thread cannot run on core 4000"},
      {"pipeline --core-producer 4000", "--core-producer: a thread cannot run on core 4000"},
      {"pipeline --core-consumer 4000", "--core-consumer: a thread cannot run on core 4000"},
      {"pipeline --core-dispatcher 4000", "--core-dispatcher: a thread cannot run on core 4000"},
      {"pipeline --core-workers 4000", "--core-workers: a thread cannot run on core 4000"}}},
    {"OutputFiles",
     false,
     {{"info --json " + kNowhere, "cannot write " + kNowhere},
      {"latency --quick --json " + kNowhere, "--json: cannot write " + kNowhere},
      {"latency --quick --html " + kNowhere, "--html: cannot write " + kNowhere},
      {"latency --quick --hgrm " + kNowhere, "--hgrm: cannot write " + kNowhere}}},
    {"OutputFilesOfDemo", true, {{"demo --config d3 --trace " + kNowhere, "--trace: cannot write " + kNowhere}}},
};
INSTANTIATE_TEST_SUITE_P(Program, Refusals, ::testing::ValuesIn(kRefusals),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// Output files are opened before the work, and cores are looked at: what cannot be used wastes no run.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/closed_streams.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

/// The program is refused before it has printed anything.
void expect_refused_before_the_work(const std::string &arguments, const std::string &text) {
  const program_result r = run_program(arguments);
  EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.err;
  EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
  EXPECT_EQ(r.out, "") << arguments << ": something was done";
}

// Known failure 69.
TEST(OutputFiles, OfAHistogramAreOpenedBeforeTheWork) {
  // The histogram's own file, not only its folder.
  const scratch_folder folder;
  std::filesystem::create_directory(folder.path() / "x.two_flags_0.hgrm");
  expect_refused_before_the_work("latency --quick --hgrm " + (folder.path() / "x").string(), "it is a folder");
  std::size_t left = 0;
  for ([[maybe_unused]] const auto &file : std::filesystem::directory_iterator(folder.path()))
    ++left;
  EXPECT_EQ(left, 1u) << "a run that is refused leaves no new file";
}

TEST(OutputFiles, AFullDiskIsNoticedBeforeTheWork) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "this system has no /dev/full";
  for (const std::string option : {"--json", "--html"})
    expect_refused_before_the_work("latency --quick " + option + " /dev/full", option + ": cannot write /dev/full: No");
}

TEST(OutputFiles, AFullFileSystemIsNoticedBeforeTheWork) {
  const scratch_folder folder;
  const std::string inside = (folder.path() / "small").string(), out = (folder.path() / "out").string();
  std::filesystem::create_directory(inside);
  // In a mount namespace of its own: nothing is left afterwards.
  const std::string mount = "unshare -rm sh -c 'mount -t tmpfs -o size=64k none " + inside + " && ";
  if (std::system((mount + "true' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "no file system can be mounted here";
  const std::string run =
      mount + CUDAQ_TOOL_PATH + " latency --quick --json " + inside + "/report.json' >" + out + " 2>&1 </dev/null";
  const int status = std::system(run.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  const std::string text = read_file(out);
  EXPECT_EQ(WEXITSTATUS(status), 2) << text;
  EXPECT_TRUE(contains(text, "No space left on device")) << text;
  EXPECT_FALSE(contains(text, "HOST_CALL")) << "it has measured: " << text;
}

TEST(OutputFiles, KeepTheirContentUntilTheReportIsWritten) {
  const scratch_folder folder;
  const std::string file = (folder.path() / "report.html").string();
  std::ofstream(file) << "kept";
  EXPECT_EQ(run_program("latency --quick --core-producer 4000 --html " + file).exit_code, 2);
  EXPECT_EQ(read_file(file), "kept");
  EXPECT_EQ(run_program("latency --quick --html " + file).exit_code, 0);
  EXPECT_TRUE(read_file(file).starts_with("<!DOCTYPE html>"));
  // A shorter report leaves nothing of a longer one.
  const std::string json = (folder.path() / "report.json").string();
  EXPECT_EQ(run_program("latency --quick --json " + json).exit_code, 0);
  EXPECT_EQ(run_program("info --json " + json).exit_code, 0);
  EXPECT_FALSE(nlohmann::json::parse(read_file(json), nullptr, false).is_discarded());
}

TEST(OutputFiles, AreNotTheSameFile) {
  const scratch_folder folder;
  const std::string file = (folder.path() / "report").string();
  expect_refused_before_the_work("latency --quick --html " + file + " --json " + file, "this is the file of --json");
  std::filesystem::remove(file);                                   // the report of the refusal
  std::filesystem::create_symlink(file, folder.path() / "to_new"); // a file that does not exist yet, by two names
  expect_refused_before_the_work("latency --quick --json " + (folder.path() / "to_new").string() + " --html " + file,
                                 "this is the file of --json");
  const std::string link = (folder.path() / "to_new").string();
  expect_refused_before_the_work("latency --quick --json " + file + " --html " + link, "this is the file of --json");
  std::filesystem::remove(file); // the report of the refusal
  expect_refused_before_the_work("latency --quick --json " + link + " --html " + link, "this is the file of --json");
  std::filesystem::remove(file);
  EXPECT_TRUE(std::filesystem::is_symlink(link)) << "removed";
  const auto here = std::filesystem::current_path(); // names without a folder
  std::filesystem::current_path(folder.path());
  expect_refused_before_the_work("latency --quick --json new --html new", "this is the file of --json");
  std::filesystem::remove("new");
  expect_refused_before_the_work("latency --quick --json ./new --html new", "this is the file of --json");
  std::filesystem::remove("new");
  EXPECT_EQ(run_program("info --json to_new").exit_code, 0);
  std::filesystem::current_path(here);
  EXPECT_FALSE(nlohmann::json::parse(read_file(file), nullptr, false).is_discarded()) << "through the link";
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::ofstream(file) << "kept"; // by another name, too
  std::filesystem::create_symlink(file, folder.path() / "link");
  expect_refused_before_the_work("latency --quick --json " + file + " --html " + (folder.path() / "link").string(),
                                 "this is the file of --json");
  EXPECT_EQ(read_file(file), "kept");
  if (has_decoders()) {
    expect_refused_before_the_work("demo --dem " + file + " --in x --json " + file, "--dem " + file + ": this is");
    EXPECT_EQ(read_file(file), "kept") << "not even the refusal is written to a file that is read";
  }
}

// Known failure 69.
TEST(Cores, OfTheLastWorkerCountToo) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const auto cores = run_good_program("info --json").at("machine").at("allowed_cores");
  const int last = cores.back();
  expect_refused_before_the_work("demo --config d3 --workers 64 --core-workers " + std::to_string(last),
                                 "--core-workers: a thread cannot run on core");
}

// Known failure 69.
TEST(Duration, ReplacesTheShotsOfEachSubcommand) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string own = " --dem " + model + ".dem --in " + model + ".dets.b8 --decoder lookup";
  const auto pipeline = run_good_program("pipeline --json --duration 0.3 --rate 100 --workers 1" + own);
  EXPECT_GE(pipeline.at("submitted").get<int>(), 1);
  EXPECT_LE(pipeline.at("submitted").get<int>(), 31);
  const auto demo = run_good_program("demo --json --duration 0.3 --rate 100" + own).at("passes").at(0);
  EXPECT_GE(demo.at("shots_sent").get<int>(), 1);
  EXPECT_LE(demo.at("shots_sent").get<int>(), 31);
}

// Known failure 69.
TEST(OwnShots, MayHaveTheirObservablesAppended) {
  if (!has_decoders())
    GTEST_SKIP() << "this build has no decoders";
  // 24 detectors and an observable: a shot of the file has 4 bytes, of which the last has one bit.
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string detectors = read_file(model + ".dets.b8"), observables = read_file(model + ".obs.b8");
  ASSERT_EQ(detectors.size(), 3 * observables.size());
  const scratch_folder folder;
  const std::string file = (folder.path() / "shots.b8").string();
  std::ofstream shots(file, std::ios::binary);
  for (std::size_t shot = 0; shot < observables.size(); ++shot)
    shots << detectors.substr(3 * shot, 3) << observables[shot];
  shots.close();
  const std::string own = " --json --decoder lookup --shots 800 --dem " + model + ".dem --in ";
  const std::string appended = file + " --in_includes_appended_observables";
  const std::string apart = model + ".dets.b8 --obs_in " + model + ".obs.b8";
  const auto errors = [&](const std::string &command, const std::string &files, const std::string &pointer) {
    return run_good_program(command + own + files).at(nlohmann::json::json_pointer(pointer));
  };
  EXPECT_EQ(errors("demo --rate 0", appended, "/passes/0/logical_errors"),
            errors("demo --rate 0", apart, "/passes/0/logical_errors"));
  EXPECT_EQ(errors("pipeline", appended, "/logical_errors"), errors("pipeline", apart, "/logical_errors"));
  EXPECT_GT(errors("pipeline", appended, "/logical_errors/shots").get<int>(), 0);
  EXPECT_EQ(run_program("demo" + own + appended + " --obs_in " + model + ".obs.b8").exit_code, 2);
}

// Every subcommand with each combination of closed standard streams, as daemons start programs.

int status_of(const std::string &arguments, unsigned streams) {
  const std::string command =
      std::string(kWithLimit) + "'" + CUDAQ_TOOL_PATH + "' " + arguments + " </dev/null >/dev/null 2>/dev/null";
  const int status = std::system((command + closed(streams)).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Its report goes to a file, and is that of a run with all streams, however many are closed.
void expect_same_report(const std::string &arguments) {
  const scratch_folder scratch;
  const auto file = scratch.path() / "report.json";
  const int expected = status_of(arguments + " --json " + file.string(), 0);
  for (unsigned streams = 1; streams < 8; ++streams) {
    std::filesystem::remove(file);
    EXPECT_EQ(status_of(arguments + " --json " + file.string(), streams), expected) << arguments << closed(streams);
    const auto report = nlohmann::json::parse(read_file(file), nullptr, false);
    ASSERT_FALSE(report.is_discarded()) << arguments << closed(streams) << "\n" << read_file(file);
    EXPECT_EQ(report.at("exit_status"), expected) << arguments << closed(streams);
  }
}

bool cannot_decode() { return run_program("demo --help").exit_code != 0; }

TEST(ClosedStreams, ChangeNoReport) {
  for (const char *arguments : {"info", "help latency", "completion bash", "doctor"})
    expect_same_report(arguments);
}

TEST(ClosedStreams, ChangeNoReportOfADecoder) {
  if (cannot_decode())
    GTEST_SKIP() << "this build has no decoders";
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  const std::string own = " --dem " + model + ".dem --in " + model + ".dets.b8 --decoder lookup";
  const scratch_folder scratch;
  const std::string loop = scratch.path() / "loop.dem", rounds = scratch.path() / "rounds.01";
  std::ofstream(loop) << "repeat 5 {\ndetector(0) D0\nerror(0.1) D0 L0\nshift_detectors(1) 1\n}\n";
  std::ofstream(rounds) << "0\n1\n0\n";
  for (const std::string &arguments :
       {"demo --shots 20" + own, "pipeline --shots 20 --workers 1" + own, "emulate --transport ring --shots 20" + own,
        "decode --out /dev/null --out_format b8" + own,
        "decode --stream --commit 2 --buffer 1 --decoder lookup --out /dev/null --dem " + loop + " --in " + rounds})
    expect_same_report(arguments);
}

TEST(ClosedStreams, ChangeNoReportOfAMeasurement) {
  const scratch_folder scratch;
  const auto file = (scratch.path() / "report.json").string();
  EXPECT_EQ(status_of("latency --quick --json " + file, 7), 0);
  EXPECT_EQ(nlohmann::json::parse(read_file(file), nullptr, false).value("ok", false), true);
}

TEST(ClosedStreams, AreRefusedIfTheResultOrTheInputIsThere) {
  if (cannot_decode())
    GTEST_SKIP() << "this build has no decoders";
  const std::string dem = " --dem " + std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003.dem --decoder lookup";
  const scratch_folder scratch;
  const auto refusal = [&](const std::string &arguments, unsigned streams) {
    const auto err = scratch.path() / "err";
    const std::string command = std::string("'") + CUDAQ_TOOL_PATH + "' " + arguments + " </dev/null >/dev/null 2>'" +
                                err.string() + "'" + closed(streams);
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << arguments << "\n" << read_file(err);
    return read_file(err);
  };
  EXPECT_TRUE(contains(refusal("info --json", 2), "--json writes to stdout, which is closed"));
  EXPECT_TRUE(contains(refusal("decode" + dem, 2), "--out is stdout, which is closed"));
  EXPECT_TRUE(contains(refusal("decode" + dem, 1), "--in is stdin, which is closed"));
  EXPECT_TRUE(contains(refusal("decode --stream" + dem, 2), "--out is stdout, which is closed"));
  EXPECT_TRUE(contains(refusal("decode --stream" + dem, 1), "--in is stdin, which is closed"));
}

TEST(FullStdout, IsTheStatusOfTheReportToo) {
  if (!std::filesystem::exists("/dev/full"))
    GTEST_SKIP() << "this system has no /dev/full";
  const scratch_folder scratch;
  const auto file = scratch.path() / "report.json";
  const std::string command = std::string("'") + CUDAQ_TOOL_PATH + "' info --json " + file.string() + " >/dev/full";
  const int status = std::system((command + " 2>/dev/null").c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  const auto report = nlohmann::json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("exit_status"), 3);
  EXPECT_TRUE(contains(report.at("error"), "stdout cannot be written"));
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// Output files are opened before the work, and cores are looked at: what cannot be used wastes no run.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

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

TEST(Cores, ARefusalIsInTheReport) {
  const scratch_folder folder;
  const std::string file = (folder.path() / "report.json").string();
  EXPECT_EQ(run_program("latency --quick --core-producer 4000 --json " + file).exit_code, 2);
  const auto report = nlohmann::json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("exit_status"), 2);
  EXPECT_TRUE(contains(report.at("error").get<std::string>(), "core 4000"));
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

} // namespace
} // namespace cudaq::realtime::tools::test

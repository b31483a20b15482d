// SPDX-License-Identifier: Apache-2.0
// The demo must detect and report wrong golden answers and unreadable data.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools::test {
namespace {

namespace fs = std::filesystem;
constexpr char kSet[] = "surface_z_d3_p0.005";

class DemoFailures : public ::testing::Test {
protected:
  DemoFailures() {
    for (const auto &entry : fs::directory_iterator(CUDAQ_TEST_DATA))
      if (entry.path().filename().string().rfind(kSet, 0) == 0)
        fs::copy_file(entry.path(), scratch_.path() / entry.path().filename());
  }
  [[nodiscard]] fs::path file(const std::string &suffix) const { return scratch_.path() / (kSet + suffix); }
  void flip_bit(const std::string &suffix, std::size_t byte) {
    std::string content = read_file(file(suffix));
    content.at(byte) = static_cast<char>(content.at(byte) ^ 1);
    std::ofstream(file(suffix), std::ios::binary) << content;
  }
  [[nodiscard]] program_result run(const std::string &options) const {
    return run_program("demo --config d3 --noise 0.005 --shots 1000 --rate 0 --data '" + scratch_.path().string() +
                       "' " + options);
  }
  [[nodiscard]] static bool has_pymatching() {
    return run_program("info --json").json().at("pieces").at("PyMatching").at("present") == true;
  }
  scratch_folder scratch_;
};

TEST_F(DemoFailures, PassesOnAnUntouchedCopy) { EXPECT_EQ(run("").exit_code, 0); }

TEST_F(DemoFailures, FailsWhenOneGoldenAnswerIsWrongAndNamesTheShot) {
  if (!has_pymatching())
    GTEST_SKIP() << "PyMatching is not built in: the lookup decoder is judged by its own offline answers";
  flip_bit(".pred.b8", 123);
  const program_result r = run("--json");
  EXPECT_EQ(r.exit_code, 1) << r.out;
  EXPECT_TRUE(contains(r.err, "shot 123 of the set")) << r.err;
  const auto j = r.json();
  ASSERT_FALSE(j.is_discarded()) << "a failed run must print its report too";
  EXPECT_EQ(j.at("ok"), false);
  EXPECT_EQ(j.at("passes").at(0).at("mismatches"), 1);
}

TEST_F(DemoFailures, WarnsIfTheDecoderMakesMoreLogicalErrorsThanTheReferenceBeyondChance) {
  const auto reference = [this] {
    const program_result r = run("--decoder lookup --json --html '" + (scratch_.path() / "page.html").string() + "'");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.json().at("reference");
  };
  const auto equal = reference();
  EXPECT_EQ(equal.at("beyond_chance"), false) << equal;
  EXPECT_EQ(equal.at("warning"), "");
  EXPECT_GT(equal.at("decoder_logical_errors"), 8);
  EXPECT_FALSE(contains(read_file(scratch_.path() / "page.html"), "Warning: "));

  fs::copy_file(file(".obs.b8"), file(".pred.b8"), fs::copy_options::overwrite_existing); // a reference without errors
  const auto worse = reference();
  EXPECT_EQ(worse.at("beyond_chance"), true) << worse;
  EXPECT_EQ(worse.at("decoder_logical_errors"), equal.at("decoder_logical_errors"));
  EXPECT_EQ(worse.at("reference_logical_errors"), 0);
  EXPECT_TRUE(contains(read_file(scratch_.path() / "page.html"), "Warning: lookup makes more logical errors than"));
  const program_result text = run("--decoder lookup");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "warning: lookup makes more logical errors than PyMatching's published predictions"))
      << text.out;
  EXPECT_TRUE(contains(text.out, "ok: every shot answered once, every answer as the same decoder offline"));
}

TEST_F(DemoFailures, CountsADifferenceFromPyMatchingBesideTheLookupDecodersOwnAnswers) {
  const auto count = [this] {
    const program_result r = run("--decoder lookup --json");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.json().at("passes").at(0).at("differences_from_pymatching").get<int>();
  };
  const int before = count();
  flip_bit(".pred.b8", 123);
  EXPECT_EQ(std::abs(count() - before), 1);
}

TEST_F(DemoFailures, RefusesTruncatedDataAndNamesTheFile) {
  fs::resize_file(file(".dets.b8"), fs::file_size(file(".dets.b8")) - 1);
  const program_result r = run("");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "dets.b8")) << r.err;
}

TEST_F(DemoFailures, RefusesAMissingFileAndNamesIt) {
  fs::remove(file(".dem"));
  const program_result r = run("");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, ".dem")) << r.err;
}

TEST_F(DemoFailures, ListsTheSetsWhenTheRequestedOneIsMissing) {
  const program_result r = run_program("demo --config d4 --data '" + scratch_.path().string() + "'");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, kSet)) << r.err;
}

// The C library reserves 64 MiB of addresses for each thread that allocates, and tries it again at each allocation.
TEST(Demo, IsNotSlowIfAddressesAreLimited) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer needs more addresses than this test allows";
#endif
  if (run_program("demo --decoder pymatching --config d3 --shots 1").exit_code != 0)
    GTEST_SKIP() << "this build has no PyMatching";
  const scratch_folder scratch;
  const auto err = scratch.path() / "err";
  const auto time_with = [&](const std::string &limit) {
    const std::string command = limit + kWithLimit + "'" + CUDAQ_TOOL_PATH +
                                "' demo --config d13 --shots 1500 --data '" + CUDAQ_TEST_DATA + "' >/dev/null 2>'" +
                                err.string() + "'";
    const auto begin = std::chrono::steady_clock::now();
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << limit << status << read_file(err);
    return std::chrono::steady_clock::now() - begin;
  };
  const auto unlimited = time_with("");
  EXPECT_LT(time_with("ulimit -v 60000 && "), 10 * unlimited + std::chrono::seconds(20)) << "it took minutes";
}

// Too few even for the threads: an allocation that fails ends it with a text.
TEST(Demo, EndsWithATextIfMemoryIsMissing) {
  const scratch_folder scratch;
  const auto err = scratch.path() / "err";
  for (const char *kib : {"26000", "29000", "31000", "33000"}) {
    const std::string command = std::string("ulimit -v ") + kib + " && " + kWithLimit + "'" + CUDAQ_TOOL_PATH +
                                "' demo --config d13 --shots 20 --data '" + CUDAQ_TEST_DATA + "' >/dev/null 2>'" +
                                err.string() + "'";
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status)) << kib << ": " << status;
    EXPECT_NE(WEXITSTATUS(status), 124) << kib << " KiB: it does not end";
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || !read_file(err).empty()) << kib << " KiB";
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test

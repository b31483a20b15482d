// SPDX-License-Identifier: Apache-2.0
// Decoder plug-ins: the example of the documentation, and plug-ins that break their contract.
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/program_paths.h"

#include <atomic>
#include <cmath>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace cudaq::qec::realtime::test {
namespace {

const std::string kExample = CUDAQ_TEST_PLUGIN;
constexpr const char *kChain = "error(0.1) D0 L0\nerror(0.2) D0 D1\nerror(0.1) D1 L9\n";

std::string faulty(int fault) {
  return std::string(CUDAQ_TEST_PLUGIN_FOLDER) + "/libfaulty_plugin_" + std::to_string(fault) + ".so";
}

// Known failure 67.
TEST(DecoderPlugin, DecodesThroughTheSameInterface) {
  const auto with = make_or_throw(kExample, kChain);
  EXPECT_STREQ(with->name(), "single-fault");
  EXPECT_EQ(with->num_detectors(), 2U);
  EXPECT_EQ(with->num_observables(), 10U);
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(10, {0})}));
  EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, bits(10, {9})}));
  EXPECT_EQ(decode(*with, {1, 0}), (answer{decode_status::ok, bits(10, {})}));
  EXPECT_EQ(decode(*with, {}), (answer{decode_status::ok, bits(10, {})}));
  EXPECT_EQ(decode(*with, {2}).status, decode_status::bad_detector_index);
  decode_details details;
  std::vector<std::uint8_t> out(2);
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0, 1}, out, details), decode_status::ok);
  EXPECT_NEAR(details.weight, std::log(4.0), 1e-12);
}

TEST(DecoderPlugin, OfTheManualHasNotConvergedWhereNoSingleErrorFits) {
  const auto with = make_or_throw(kExample, "error(0.1) D0 L0\nerror(0.1) D1 L0\nerror(0) D0 D1 L1\n"
                                            "error(0.2) D2 D2 D3 ^ D4 L1 \r\nerror(0.01) D3 D4\n");
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::not_converged, {0}}));
  EXPECT_EQ(decode(*with, {}), (answer{decode_status::ok, {0}}));
  EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, {1}}));
  EXPECT_EQ(decode(*with, {3, 4}), (answer{decode_status::ok, {2}}));
}

TEST(DecoderPlugin, TakesAPredecoderBeforeIt) {
  const auto with = make_or_throw(kExample + ":predecoder=passthrough", kChain);
  EXPECT_STREQ(with->name(), "passthrough+single-fault");
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, bits(10, {0})}));
}

TEST(DecoderPlugin, HasTextsThatAreUtf8) {
  EXPECT_STREQ(make_or_throw(faulty(14), "error(0.1) D0 L0\n")->name(), "caf?");
  const std::string refused = make_decoder(faulty(14), "error(0.1) D0 D1 L0\n").error;
  EXPECT_TRUE(refused.ends_with(": caf?")) << refused;
}

TEST(DecoderPlugin, PassesTheTextOfItsRefusal) {
  EXPECT_NE(make_decoder(kExample, "error(2) D0").error.find("line 1"), std::string::npos);
  EXPECT_NE(make_decoder(kExample + ":size=3", kChain).error.find("this decoder has none"), std::string::npos);
  EXPECT_NE(make_decoder(kExample + ":file=/etc/x", kChain).error.find("this decoder has none"), std::string::npos)
      << "a value may have a /";
}

TEST(DecoderPlugin, ServesManyThreadsWithADecoderEach) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        wrong += decode(*make_or_throw(kExample, kChain), {0}) != answer{decode_status::ok, bits(10, {0})};
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(DecoderPlugin, RefusesAFileThatIsNoPlugin) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"./absent.so", "absent.so"},
      {"absent.so", "absent.so"},
      {faulty(1), "exports no function cudaq_qec_decoder_plugin_get"},
      {faulty(2), "version 2 of the plug-in interface, this library has version 1"},
      {faulty(3), "does not serve version 1"},
      {faulty(4), "its table has 24 bytes"},
      {faulty(5), "is NULL in its table"},
      {faulty(6), "returned no decoder"},
      {faulty(11), "error_form 3 of its table"}};
  for (const auto &[path, text] : wrong) {
    const decoder_result made = make_decoder(path, kChain);
    EXPECT_FALSE(made) << path;
    EXPECT_NE(made.error.find(text), std::string::npos) << path << ": " << made.error;
    EXPECT_NE(made.error.find("plug-in"), std::string::npos) << made.error;
  }
}

TEST(DecoderPlugin, CutsATextWithoutAnEnd) {
  const decoder_result made = make_decoder(faulty(7), kChain);
  EXPECT_FALSE(made);
  EXPECT_LT(made.error.size(), 2000U);
  EXPECT_NE(made.error.find("xxx"), std::string::npos);
}

TEST(DecoderPlugin, TurnsAnswersThatBreakTheContractIntoInternalErrors) {
  const auto with = make_or_throw(faulty(8), "error(0.1) D0 D1 D2 D3 D4 D5 D6 D7 L0\n");
  for (const std::uint64_t status : {1U, 2U, 4U, 5U, 6U})
    EXPECT_EQ(decode(*with, {status}), (answer{decode_status::internal_error, {0}})) << status;
  EXPECT_EQ(decode(*with, {3}).status, decode_status::no_solution);
  EXPECT_EQ(decode(*with, {7}), (answer{decode_status::not_converged, {0}}));
  EXPECT_EQ(decode(*with, {0, 1}), (answer{decode_status::internal_error, {0}})) << "bits after the last observable";
  std::vector<correction_edge> room(2);
  decode_details details{.edges = room};
  std::vector<std::uint8_t> out(1);
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{}, out, details), decode_status::internal_error);
  EXPECT_EQ(details.num_edges, 0U);
}

TEST(DecoderPlugin, CatchesExceptionsOfAnyTypeInEachFunction) {
  const std::string model = "error(0.1) D0 L0\nerror(0.1) D1 L0\n", plugin = CUDAQ_TEST_THROWING_PLUGIN;
  for (const std::string what : {"std", "int", "own"}) {
    SCOPED_TRACE(what);
    const std::string refusal = make_decoder(plugin + ":in=create,what=" + what, model).error;
    EXPECT_NE(refusal.find("create threw an exception"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find("no more beans") != std::string::npos, what == "std") << refusal;
    for (const std::string in : {"decode", "edges", "destroy"}) {
      SCOPED_TRACE(in);
      const auto with = make_or_throw(plugin + ":in=" + in + ",what=" + what, model);
      std::vector<correction_edge> room(2);
      decode_details details{.edges = room};
      std::vector<std::uint8_t> out(1);
      EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0}, out, details),
                in == "destroy" ? decode_status::ok : decode_status::internal_error);
      EXPECT_EQ(with->decode(std::vector<std::uint64_t>{1}, out, details), decode_status::ok);
      EXPECT_EQ(out, std::vector<std::uint8_t>{1});
    }
  }
}

TEST(DecoderPlugin, IsARegularFile) {
  const std::string fifo = testing::TempDir() + "plugin_" + std::to_string(getpid()) + ".so";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string &path : {fifo, testing::TempDir(), std::string("/dev/null")})
    EXPECT_NE(make_decoder(path, kChain).error.find("it is not a regular file"), std::string::npos) << path;
  unlink(fifo.c_str());
}

TEST(DecoderPlugin, ServesATableOfAnOlderHeader) {
  const auto with = make_or_throw(faulty(9), "error(0.1) D0 L0\n");
  EXPECT_FALSE(with->gives_edges());
  EXPECT_EQ(decode(*with, {0}).status, decode_status::ok);
}

} // namespace
} // namespace cudaq::qec::realtime::test

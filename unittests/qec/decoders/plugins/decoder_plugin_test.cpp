// SPDX-License-Identifier: Apache-2.0
// Decoder plug-ins: the example of the documentation, and plug-ins that break their contract.
#include "lib/qec/decoders/stop_check.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/program_paths.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <dlfcn.h>
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
      {faulty(11), "error_form 3 of its table"},
      {faulty(12), "its table has 50 bytes (struct_size), where no member ends"},
      {faulty(13), "its table has 1000 bytes (struct_size), this library knows 88"}};
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
      if (in == "decode" && what == "std") {
        EXPECT_NE(std::string(with->fault()).find(": decode threw an exception: no more beans"), std::string::npos)
            << with->fault();
      }
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

// A plug-in that breaks a promise of decoder_plugin.h: the text says which one, with the values.

const std::string kPlugin = CUDAQ_TEST_BREAKING_PLUGIN;
constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.1) D1 L1\nerror(0.1) D2 L0 L2\n";
const std::vector<std::uint64_t> kEvents{0, 2};

/// The status and the fault of a decode of kEvents.
std::string decoded(decoder &with, bool edges = false, bool errors = false, bool deadline = false) {
  std::vector<correction_edge> edge_room(edges ? 8 : 0);
  std::vector<std::uint64_t> error_room(errors ? with.num_errors() : 0);
  decode_details details{.edges = edge_room, .errors = error_room};
  if (deadline)
    details.control.deadline_ns = monotonic_ns() + 3'600'000'000'000;
  std::vector<std::uint8_t> out(with.observable_bytes(), 0xEE);
  const decode_status status = with.decode(kEvents, out, details);
  if (status != decode_status::ok) {
    EXPECT_EQ(out, std::vector<std::uint8_t>(out.size()));
    EXPECT_EQ(details.num_edges + details.num_errors, 0U);
  }
  return decode_status_text(status, with.fault());
}

struct promise {
  const char *broken, *text;
  bool edges = false, errors = false, deadline = false;
};

TEST(PluginFaults, NameTheBrokenPromiseAndItsValues) {
  const std::string begin = "internal error of the decoder: plug-in breaking: ";
  for (const promise &p : std::initializer_list<promise>{
           {"status", "decode returned 17, accepted: 0, 3, 5, 7"},
           {"internal", "decode returned 5, its own internal error"},
           {"deadline", "decode returned 9, accepted: 0, 3, 5, 7"},
           {"until", "decode_until returned 6, accepted: 0, 3, 5, 7, 9 (deadline)", false, false, true},
           {"bits", "decode set the observable 3, the model has 3"},
           {"edge_range", "edges: edge 0 has the ends 0 and 12345, the model has 3 detectors", true},
           {"edge_cause", "edges: its errors (1) do not flip detector 2, which is an event of the shot", true},
           {"column_count", "columns returned 1000 errors, the model has 3", false, true},
           {"column_range", "columns: number 0 is error 1000, the model has 3", false, true},
           {"column_order", "columns: error 0 comes after error 2; they must ascend", false, true},
           {"column_cause", "columns: its errors (1) do not flip detector 2, which is an event of the shot", false,
            true},
           {"answer", "columns: its errors (2, the first is 0) do not flip observable 0; the answer has it as 1", false,
            true}}) {
    const auto with = make_or_throw(kPlugin + ":break=" + p.broken, kModel);
    EXPECT_EQ(decoded(*with, p.edges, p.errors, p.deadline), begin + p.text) << p.broken;
  }
  const auto good = make_or_throw(kPlugin, kModel);
  EXPECT_EQ(decoded(*good, true, true, true), "ok");
  EXPECT_STREQ(good->fault(), "");
}

TEST(PluginFaults, LeaveNoShotWithTheProbabilitiesOfAnother) {
  const std::vector<error_probability> list{{0, 0.4}};
  const std::vector<std::uint64_t> events{1};
  std::vector<std::uint8_t> out(1);
  for (const char *broken : {"none", "replace", "restore"}) {
    const auto with = make_or_throw(kPlugin + ":break=" + broken, kModel);
    for (int k = 0; k < 2; ++k) {
      decode_details replaced, fixed;
      const decode_status status = with->decode(events, out, list, &replaced);
      if (std::string_view(broken) == "replace") {
        EXPECT_EQ(decode_status_text(status, with->fault()),
                  "internal error of the decoder: plug-in breaking: replace_probabilities returned 17 for 1 errors, "
                  "accepted: 0, 5, 6");
      } else {
        EXPECT_EQ(status, decode_status::ok) << broken;
        EXPECT_EQ(replaced.weight, -7) << broken;
      }
      EXPECT_EQ(with->decode(events, out, fixed), decode_status::ok) << broken; // "restore" is asked again
      EXPECT_NEAR(fixed.weight, 2.1972, 1e-3) << broken;
    }
  }
}

TEST(PluginFaults, OfColumnsThatAreNotWantedAreFoundUntilAHundredSolutionsInARowAreRight) {
  const std::string wrong = "do not flip observable 0";
  const auto always = make_or_throw(kPlugin + ":break=answer", kModel);
  for (int shot = 0; shot < 150; ++shot)
    EXPECT_NE(decoded(*always).find(wrong), std::string::npos) << shot;

  const auto at_detector_2 = make_or_throw(kPlugin + ":break=answer_of_2", kModel); // kEvents has it
  const std::vector<std::uint64_t> others{0};
  std::uint8_t out = 0;
  const auto decode_right_ones = [&](int count) {
    for (int shot = 0; shot < count; ++shot)
      EXPECT_EQ(at_detector_2->decode(others, {&out, 1}), decode_status::ok);
  };
  decode_right_ones(99);
  EXPECT_NE(decoded(*at_detector_2).find(wrong), std::string::npos);
  decode_right_ones(99);
  EXPECT_NE(decoded(*at_detector_2).find(wrong), std::string::npos) << "it was wrong before";
  decode_right_ones(100);
  EXPECT_EQ(decoded(*at_detector_2), "ok") << "to check each shot would take time";
  EXPECT_NE(decoded(*at_detector_2, false, true).find(wrong), std::string::npos) << "they are wanted";
}

TEST(PluginFaults, AreGivenByTheDecodersAroundThePlugin) {
  const std::string inner = kPlugin + ":break=status", text = "plug-in breaking: decode returned 17";
  const auto predecoded = make_or_throw(inner + ",predecoder=passthrough", kModel);
  EXPECT_EQ(decoded(*predecoded), "internal error of the decoder: " + text + ", accepted: 0, 3, 5, 7");
  const std::string member = kPlugin + "(break=status)";
  const auto race = make_or_throw("race:" + member + "|" + member, kModel);
  EXPECT_NE(decoded(*race).find("member " + kPlugin + ":break=status: plug-in breaking: decode_until returned 17"),
            std::string::npos)
      << race->fault();
  const std::string loop = "error(0.1) D0 L0\nshift_detectors(1) 1\nrepeat 9 {\nerror(0.1) D0 L0\ndetector(0) D0\n"
                           "shift_detectors(1) 1\n}\nerror(0.1) D0\n";
  const auto windows =
      make_or_throw("sliding-window:inner=" + kPlugin + "(break=status),rounds=index:1,commit=2,buffer=2", loop);
  EXPECT_NE(decoded(*windows).find("window 0: " + text), std::string::npos) << windows->fault();
}

// The optional members of a plug-in: the errors of a correction, and decodes that end early.

constexpr const char *kEarlyModel = "error(0.1) D0 L0\nerror(0.1) D1 L0\nerror(0.1) D2 L0\nerror(0.1) D3 L0\n";

std::unique_ptr<decoder> early() { return make_or_throw(CUDAQ_TEST_EARLY_PLUGIN, kEarlyModel); }

TEST(PluginColumns, AreTheErrorsOfTheCorrection) {
  const auto with = early();
  EXPECT_EQ(with->num_errors(), 4U);
  std::vector<std::uint64_t> room(4);
  std::uint8_t out = 0;
  decode_details details{.errors = room};
  ASSERT_EQ(with->decode(std::vector<std::uint64_t>{1, 3}, {&out, 1}, details), decode_status::ok);
  EXPECT_EQ(details.num_errors, 2U);
  EXPECT_EQ(room[0], 1U);
  EXPECT_EQ(room[1], 3U);
  details.errors = std::span(room).first(1);
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{1, 3}, {&out, 1}, details), decode_status::buffer_too_small);
  EXPECT_EQ(details.num_errors, 0U);
}

TEST(PluginColumns, ThatAreNoErrorsOfTheModelAreAnInternalError) {
  const auto with = early();
  for (int shot = 0; shot < 100; ++shot) // until then they are checked in any case
    ASSERT_EQ(decode(*with, {1}), (answer{decode_status::ok, {1}}));
  std::vector<std::uint64_t> room(4);
  std::uint8_t out = 0;
  decode_details details{.errors = room};
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{2}, {&out, 1}), decode_status::ok) << "they were not wanted";
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{2}, {&out, 1}, details), decode_status::internal_error);
}

TEST(PluginColumns, AreNotSupportedByAPluginWithoutThem) {
  const auto with =
      make_or_throw(std::string(CUDAQ_TEST_PLUGIN_FOLDER) + "/libfaulty_plugin_9.so", "error(0.1) D0 L0\n");
  EXPECT_FALSE(with->gives_errors());
  EXPECT_FALSE(with->obeys_deadline());
  std::uint64_t room = 0;
  std::uint8_t out = 0;
  decode_details details{.errors = {&room, 1}};
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0}, {&out, 1}, details), decode_status::not_supported);
}

TEST(PluginUntil, EndsAtTheDeadlineWithTheBestSolutionOrNone) {
  const auto with = early();
  ASSERT_TRUE(with->obeys_deadline());
  std::vector<std::uint64_t> room(4);
  for (const bool has_best : {false, true}) {
    std::vector<std::uint64_t> events{0, 3};
    if (has_best)
      events = {0, 1, 3};
    std::uint8_t out = 0xEE;
    decode_details details{.control = {.deadline_ns = monotonic_ns() + 1'000'000}, .errors = room};
    EXPECT_EQ(with->decode(events, {&out, 1}, details), decode_status::deadline);
    EXPECT_EQ(details.has_solution, has_best);
    EXPECT_EQ(out, has_best ? 1 : 0);
    EXPECT_EQ(details.num_errors, has_best ? 3U : 0U);
    EXPECT_EQ(std::isnan(details.weight), !has_best);
  }
  EXPECT_EQ(with->deadlines().missed, 2U);
}

TEST(PluginUntil, EndsWhenItIsCancelledAndDecodesTheNextShot) {
  const auto with = early();
  std::uint32_t word = 0;
  std::jthread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel_decode(word);
  });
  std::uint8_t out = 0xEE;
  decode_details details{.control = {.cancel = &word}};
  EXPECT_EQ(with->decode(std::vector<std::uint64_t>{0}, {&out, 1}, details), decode_status::cancelled);
  EXPECT_EQ(out, 0);
  EXPECT_EQ(decode(*with, {1}), (answer{decode_status::ok, {1}}));
}

TEST(PluginUntil, IsNotCalledWithoutADeadline) {
  EXPECT_EQ(decode(*early(), {0}), (answer{decode_status::ok, {1}})) << "decode_until would never return";
}

// Another file takes the place of a plug-in that is loaded.

constexpr const char *kReplacedModel = "error(0.1) D0 L0\nerror(0.1) D1 L1\n";

class ReplacedPlugin : public ::testing::Test {
protected:
  ~ReplacedPlugin() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  /// As a linker or an installation does: a new file takes the name.
  void put(const char *library) const {
    const std::filesystem::path fresh = path_.string() + ".fresh";
    std::filesystem::copy_file(library, fresh);
    std::filesystem::rename(fresh, path_);
  }
  [[nodiscard]] std::unique_ptr<decoder> made() const { return make_or_throw(path_.string(), kReplacedModel); }
  [[nodiscard]] const std::filesystem::path &path() const { return path_; }

private:
  const std::filesystem::path path_ = testing::TempDir() + "replaced_" + std::to_string(getpid()) + ".so";
};

// The name of a decoder is in the memory of its library, so its address tells two loaded libraries apart.

TEST_F(ReplacedPlugin, NewDecodersHaveTheNewCodeAndOldOnesTheirOwn) {
  put(CUDAQ_TEST_PLUGIN);
  const auto first = made();
  const std::string old_name = first->name();
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  const auto second = made();
  EXPECT_STREQ(second->name(), "breaking");
  Dl_info info{};
  ASSERT_NE(dladdr(second->name(), &info), 0);
  EXPECT_TRUE(std::filesystem::equivalent(info.dli_fname, path())) << info.dli_fname;
  put(CUDAQ_TEST_PLUGIN);
  const auto third = made();
  EXPECT_EQ(third->name(), old_name);
  EXPECT_NE(third->name(), first->name()) << "a file of its own";
  for (decoder *const each : {first.get(), second.get(), third.get()})
    EXPECT_EQ(decode(*each, {0}), (answer{decode_status::ok, {1}})) << each->name();
}

TEST_F(ReplacedPlugin, DecodersOfOneFileShareItsLibrary) {
  put(CUDAQ_TEST_PLUGIN);
  const auto first = made(), same = made();
  EXPECT_EQ(first->name(), same->name());
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  const auto second = made(), also = made();
  EXPECT_EQ(second->name(), also->name());
  EXPECT_NE(first->name(), second->name());
}

TEST_F(ReplacedPlugin, IsUnloadedAfterTheLastDecoder) {
  put(CUDAQ_TEST_PLUGIN);
  auto first = made();
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  auto second = made();
  Dl_info info{};
  ASSERT_NE(dladdr(second->name(), &info), 0);
  const std::string file = info.dli_fname;
  first.reset();
  second.reset();
  for (const std::string &name : {path().string(), file})
    EXPECT_EQ(dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << name;
}

} // namespace
} // namespace cudaq::qec::realtime::test

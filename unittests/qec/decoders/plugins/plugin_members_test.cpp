// SPDX-License-Identifier: Apache-2.0
// The optional members of a plug-in: the errors of a correction, and decodes that end early.
#include "unittests/qec/qec_test_support.h"

#include "lib/qec/decoders/stop_check.h"

#include <chrono>
#include <cmath>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.1) D1 L0\nerror(0.1) D2 L0\nerror(0.1) D3 L0\n";

std::unique_ptr<decoder> early() { return make_or_throw(CUDAQ_TEST_EARLY_PLUGIN, kModel); }

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

} // namespace
} // namespace cudaq::qec::realtime::test

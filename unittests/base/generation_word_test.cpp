// SPDX-License-Identifier: Apache-2.0
#include "lib/base/generation_word.h"

#include <cstddef>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace cudaq::realtime::test {
namespace {

enum class phase : std::uint32_t { open, queued, called, deferred, completing, last = 15 };

using word_type = detail::generation_word<phase>;

static_assert(sizeof(word_type) == 8, "one compare-and-swap must cover the word");
static_assert(word_type::fits(static_cast<phase>(15)) && !word_type::fits(static_cast<phase>(16)));

void expect_state(const word_type &word, std::uint64_t generation, phase expected) {
  EXPECT_EQ(word.load().generation, generation);
  EXPECT_EQ(word.load().phase, expected);
  EXPECT_EQ(word.generation(), generation);
  EXPECT_EQ(word.phase(), expected);
}

TEST(GenerationWord, BeginsWithoutARequest) { expect_state(word_type(), 0, phase::open); }

TEST(GenerationWord, KeepsGenerationAndPhaseApart) {
  constexpr std::uint64_t kMax = ~std::uint64_t{0} >> 4; // the bits that the phase leaves
  for (const std::uint64_t generation : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, kMax})
    for (const phase p : {phase::open, phase::queued, phase::last}) {
      word_type word;
      word.start_at(generation, p);
      expect_state(word, generation, p);
      word.enter(phase::called);
      expect_state(word, generation, phase::called);
    }
}

TEST(GenerationWord, FinishOpensTheNextGeneration) {
  word_type word;
  word.start_at(41);
  expect_state(word, 41, phase::open);
  word.enter(phase::completing);
  word.finish();
  expect_state(word, 42, phase::open);
}

TEST(GenerationWord, AClaimTakesOnlyTheRequestAndThePhaseThatItNames) {
  word_type word;
  word.start_at(7, phase::deferred);
  EXPECT_FALSE(word.claim(8, phase::deferred, phase::completing)) << "the claim names the next request";
  EXPECT_FALSE(word.claim(6, phase::deferred, phase::completing)) << "the claim names the last request";
  EXPECT_FALSE(word.claim(7, phase::called, phase::completing)) << "another phase";
  expect_state(word, 7, phase::deferred);
  EXPECT_TRUE(word.claim(7, phase::deferred, phase::completing));
  expect_state(word, 7, phase::completing);
  EXPECT_FALSE(word.claim(7, phase::deferred, phase::completing)) << "claimed for the second time";
  word.finish();
  word.enter(phase::deferred);
  EXPECT_FALSE(word.claim(7, phase::deferred, phase::completing)) << "the slot holds its next request";
  expect_state(word, 8, phase::deferred);
}

// Generations in the C API have 64 bits. The word drops their upper bits when it is set and when it is claimed.
TEST(GenerationWord, DropsTheUpperBitsOfAGenerationAlike) {
  constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
  word_type word;
  word.start_at(kTop + 5, phase::deferred);
  expect_state(word, 5, phase::deferred);
  EXPECT_TRUE(word.claim(kTop + 5, phase::deferred, phase::completing));
  expect_state(word, 5, phase::completing);
}

/// Waits until `done` holds. Returns false after the deadline.
template <class Done>
bool eventually(Done &&done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (unsigned looks = 1; !done(); ++looks)
    if (looks % 1024 == 0) {
      if (std::chrono::steady_clock::now() >= end)
        return false;
      std::this_thread::yield();
    }
  return true;
}

TEST(GenerationWord, HandsOverWhatWasWrittenBeforeAStepToWhoClaimsOrFindsIt) {
  constexpr std::uint64_t kRequests = 5000;
  word_type word;
  std::uint64_t payload = 0, seen_right = 0, answered_right = 0; // not atomic: the word orders the accesses
  std::thread claiming([&] {
    for (std::uint64_t g = 0; g < kRequests; ++g) {
      if (!eventually([&] { return word.claim(g, phase::queued, phase::called); }))
        return;
      seen_right += payload == 3 * g;
      payload = 3 * g + 1;
      word.enter(phase::completing);
    }
  });
  for (std::uint64_t g = 0; g < kRequests; ++g) {
    payload = 3 * g;
    word.enter(phase::queued);
    if (!eventually([&] { return word.phase() == phase::completing; }))
      break;
    answered_right += payload == 3 * g + 1;
    word.finish();
  }
  claiming.join();
  EXPECT_EQ(seen_right, kRequests);
  EXPECT_EQ(answered_right, kRequests);
  expect_state(word, kRequests, phase::open);
}

/// Two threads meet before each claim, so that both try the same step at the same time. They meet again after it.
class claim_race {
public:
  static constexpr std::uint64_t kRequests = 10000;

  void play(std::size_t racer) {
    for (std::uint64_t g = 0; g < kRequests; ++g) {
      if (racer == 0)
        word_.enter(phase::queued);
      if (!meet())
        return;
      // The thread that arrives second at the meeting continues slightly earlier. So each racer is sometimes delayed.
      for (volatile std::uint64_t late = racer == g % 2 ? g / 2 % 64 : 0; late != 0;)
        late = late - 1;
      won_[racer] += word_.claim(g, phase::queued, phase::called);
      if (!meet())
        return;
      if (racer == 0)
        word_.finish();
    }
  }
  void expect_one_winner_each() const {
    EXPECT_EQ(won_[0] + won_[1], kRequests);
    expect_state(word_, kRequests, phase::open);
  }

private:
  bool meet() {
    const std::uint64_t both = arrived_++ / 2 * 2 + 2;
    return eventually([&] { return arrived_ >= both; });
  }

  word_type word_;
  std::atomic<std::uint64_t> arrived_{0};
  std::array<std::uint64_t, 2> won_{};
};

TEST(GenerationWord, OfTwoThreadsThatClaimARequestOneGetsIt) {
  claim_race race;
  std::thread other([&] { race.play(1); });
  race.play(0);
  other.join();
  race.expect_one_winner_each();
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Streams in a server whose decoders have no queue.
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <random>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kId = 5;

/// A control system of one stream: it counts its requests.
struct stream_client {
  decoding_server &server;
  std::uint64_t counter = 0;

  full_answer enqueue(const std::string &bits) {
    return call(server, kEnqueueFunctionId, enqueue_payload(kId, counter++, bits));
  }
  full_answer begin_tail() { return call(server, kBeginTailFunctionId, begin_tail_payload(kId, counter++)); }
  full_answer committed(std::uint64_t wanted, std::uint64_t wait = 0, bool clear = false) {
    return call(server, kGetCommittedFunctionId, committed_payload(kId, wanted, wait, clear));
  }
  full_answer reset() {
    counter = 0;
    return call(server, kResetFunctionId, reset_payload(kId));
  }
};

decoding_server server_for(std::unique_ptr<decoding_unit> unit, bool sequence = true) {
  return decoding_server(one_setup({.id = kId, .sequence = sequence}, std::move(unit)));
}

std::string random_bits(std::mt19937 &random, std::uint64_t count) {
  std::string bits;
  for (std::uint64_t k = 0; k < count; ++k)
    bits += random() % 10 == 0 ? '1' : '0';
  return bits;
}

TEST(ServerStream, GivesTheFramesOfAStreamDecoderForEveryCutOfTheRounds) {
  const std::string dem = repetition_dem(3, 0.05, 2, 100);
  const stream_options options{.decoder = "lookup", .commit = 3, .buffer = 2};
  const auto reference = stream_or_throw(dem, options);
  decoding_server server = server_for(std::make_unique<decoding_unit>(stream_or_throw(dem, options), 1));
  stream_client client{server};
  std::mt19937 random(7);
  std::uint64_t total = 0;
  for (int stream = 0; stream < 20; ++stream) {
    reference->reset();
    const std::uint64_t repetitions = random() % 30;
    const std::string bits =
        random_bits(random, reference->head_detectors() + repetitions * reference->body_detectors());
    for (std::size_t at = 0; at < bits.size();) {
      const std::size_t n = std::min<std::size_t>(random() % 9, bits.size() - at);
      ASSERT_EQ(client.enqueue(bits.substr(at, n)), answered(server_status::ok));
      ASSERT_EQ(reference->push(packed(bits.substr(at, n)), n), decode_status::ok);
      at += n;
      const bytes frame(reference->observables().begin(), reference->observables().end());
      const std::string one(frame[0] != 0 ? "1" : "0");
      ASSERT_EQ(client.committed(1), committed(reference->committed_rounds(), reference->pushed_rounds(), one));
      ASSERT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), answered(server_status::ok, one));
    }
    const std::string tail = random_bits(random, reference->tail_detectors());
    ASSERT_EQ(client.begin_tail(), answered(server_status::ok));
    ASSERT_EQ(client.enqueue(tail.substr(0, 1)), answered(server_status::ok));
    ASSERT_EQ(client.enqueue(tail.substr(1)), answered(server_status::ok));
    ASSERT_EQ(reference->finish(packed(tail), tail.size()), decode_status::ok);
    total += reference->pushed_rounds();
    ASSERT_EQ(client.committed(1, UINT64_MAX), committed(reference->committed_rounds(), reference->pushed_rounds(),
                                                         reference->observables()[0] != 0 ? "1" : "0"));
    ASSERT_EQ(client.reset(), answered(server_status::ok));
  }
  const decoder_counts counts = server.decoders()[0]->counts();
  EXPECT_EQ(counts.shots, 20U);
  EXPECT_EQ(counts.stream.pushed, total);
  EXPECT_EQ(counts.stream.committed, total);
  EXPECT_EQ(counts.stream.lag, 0U);
  EXPECT_GE(counts.stream.worst_lag, 4U) << "of a window of 5 rounds, the last one is missing";
  EXPECT_GT(counts.tail_ns, 0U);
  EXPECT_LE(counts.worst_tail_ns, counts.tail_ns);
}

TEST(ServerStream, ClearsWhatWasReadAndAddsWhatBecomesFinalLater) {
  decoding_server server = server_for(stream_unit_for(rotated_stream_model(2)));
  stream_client client{server};
  std::mt19937 random(3);
  std::string sum = "00", round;
  std::vector<std::string> rounds;
  for (std::uint64_t pushed = 1, final_before = 0; pushed <= 200; ++pushed) {
    rounds.push_back(random_bits(random, 2));
    ASSERT_EQ(client.enqueue(rounds.back()), answered(server_status::ok));
    const std::uint64_t final_now = pushed < 3 ? 0 : (pushed - 1) / 2 * 2;
    for (; final_before < final_now; ++final_before)
      for (std::size_t k = 0; k < 2; ++k)
        sum[k] = sum[k] == rounds[final_before][k] ? '0' : '1';
    const bool clear = random() % 3 == 0, by_corrections = random() % 2 == 0;
    const full_answer got = by_corrections ? call(server, kGetCorrectionsFunctionId, get_payload(kId, 2, clear))
                                           : client.committed(2, final_now, clear);
    ASSERT_EQ(got, by_corrections ? answered(server_status::ok, sum) : committed(final_now, pushed, sum)) << pushed;
    if (clear)
      sum = "00";
  }
}

TEST(ServerStream, LatchesAMisalignedTailAGapAndAFailedWindow) {
  const struct {
    const char *what;
    server_status status;
    void (*spoil)(stream_client &client);
  } cases[] = {
      {"a tail in a repetition", server_status::stream_misaligned,
       [](stream_client &c) {
         EXPECT_EQ(c.enqueue("1"), answered(server_status::ok));
         EXPECT_EQ(c.begin_tail(), answered(server_status::stream_misaligned));
       }},
      {"a second begin of the tail", server_status::stream_misaligned,
       [](stream_client &c) {
         EXPECT_EQ(c.begin_tail(), answered(server_status::ok));
         EXPECT_EQ(c.begin_tail(), answered(server_status::stream_misaligned));
       }},
      {"a tail that is too long", server_status::stream_misaligned,
       [](stream_client &c) {
         EXPECT_EQ(c.begin_tail(), answered(server_status::ok));
         EXPECT_EQ(c.enqueue("110"), answered(server_status::stream_misaligned));
       }},
      {"a dropped round", server_status::syndromes_dropped,
       [](stream_client &c) {
         ++c.counter;
         EXPECT_EQ(c.enqueue("11"), answered(server_status::syndromes_dropped));
       }},
      {"a dropped begin of the tail", server_status::syndromes_dropped,
       [](stream_client &c) {
         ++c.counter;
         EXPECT_EQ(c.enqueue("00"), answered(server_status::syndromes_dropped));
       }},
      {"a window without an explanation", server_status::internal,
       [](stream_client &c) { EXPECT_EQ(c.enqueue("10"), answered(server_status::internal)); }},
      {"a tail without an explanation", server_status::internal,
       [](stream_client &c) {
         EXPECT_EQ(c.begin_tail(), answered(server_status::ok));
         EXPECT_EQ(c.enqueue("01"), answered(server_status::internal));
       }},
  };
  for (const auto &[what, status, spoil] : cases) {
    SCOPED_TRACE(what);
    decoding_server server = server_for(stream_unit_for(paired_stream_model()));
    stream_client client{server};
    EXPECT_EQ(client.enqueue("1100"), answered(server_status::ok));
    spoil(client);
    EXPECT_EQ(client.enqueue("11"), answered(status));
    EXPECT_EQ(client.begin_tail(), answered(status));
    EXPECT_EQ(client.committed(1), answered(status));
    EXPECT_EQ(client.committed(1, 100), answered(status)) << "it does not wait";
    EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(kId, 1)), answered(status));
    EXPECT_EQ(client.reset(), answered(server_status::ok));
    EXPECT_EQ(client.enqueue("110011"), answered(server_status::ok));
    EXPECT_EQ(client.committed(1, 2), committed(2, 3, "1"));
  }
}

TEST(ServerStream, RefusesReadsThatCannotBeAnsweredBeforeTheyWait) {
  decoding_server server = server_for(stream_unit_for(rotated_stream_model(5)));
  stream_client client{server};
  for (const std::uint64_t wanted : {std::uint64_t{0}, std::uint64_t{6}, UINT64_MAX})
    EXPECT_EQ(client.committed(wanted, 100), answered(server_status::bad_request)) << wanted;
  bytes result(16, 0xEE);
  server_answer now;
  EXPECT_TRUE(server.submit(kGetCommittedFunctionId, committed_payload(kId, 5), result, {}, now));
  EXPECT_EQ(now.status, static_cast<std::int32_t>(server_status::bad_request)) << "it needs 17 bytes";
  EXPECT_EQ(result, bytes(16, 0xEE));
  EXPECT_EQ(client.committed(5), committed(0, 0, "00000")) << "nothing has latched";
}

TEST(ServerStream, DescribesARepetition) {
  decoding_server server = server_for(stream_unit_for(rotated_stream_model(5)));
  const full_answer got = call(server, kDescribeFunctionId, reset_payload(kId));
  EXPECT_EQ(read_model_facts(got.result), (model_facts{5, 0, 5, 17}));
  bytes longest = reset_payload(kId);
  append_number(longest, 2);
  const full_answer with_parts = call(server, kDescribeFunctionId, longest);
  EXPECT_EQ(with_parts.result.size(), kStreamDescriptionBytes);
  EXPECT_EQ(read_model_facts(with_parts.result), (model_facts{5, 0, 5, 17}));
  EXPECT_EQ(read_server_facts(with_parts.result), (server_facts{server.boot_id(), false}));
}

TEST(ServerStream, RefusesFunctionsOfTheOtherKindOfDecoder) {
  decoding_server shots = server_for(unit_for(rotated_model(4)));
  stream_client client{shots};
  EXPECT_EQ(client.committed(4), answered(server_status::bad_request));
  EXPECT_EQ(client.enqueue("0110"), answered(server_status::ok)) << "a read does not latch";
  EXPECT_EQ(client.begin_tail(), answered(server_status::bad_request));
  EXPECT_EQ(client.enqueue("0110"), answered(server_status::bad_request)) << "a lost place in the order does";
  decoding_server stream = server_for(stream_unit_for(rotated_stream_model(4)));
  EXPECT_EQ(call(stream, kOneShotFunctionId, packed("0110")).status,
            -static_cast<std::int32_t>(server_status::bad_request));
}

TEST(ServerStream, GivesTheNewModelToTheNextStreamAndLosesNothingOfThisOne) {
  decoding_server server = server_for(stream_unit_for(rotated_stream_model(4)));
  stream_client client{server};
  ASSERT_EQ(client.enqueue("1000000"), answered(server_status::ok));
  const reload_result result =
      server.reload(one_setup({.id = kId}, stream_unit_for(rotated_stream_model(4, 1))), soon());
  EXPECT_EQ(result.outcome, reload_outcome::applied) << result.reason;
  EXPECT_EQ(server.decoders()[0]->counts().exchanges, 0U) << "the stream has begun";
  ASSERT_EQ(client.enqueue("00001"), answered(server_status::ok));
  EXPECT_EQ(client.committed(4, 2), committed(2, 3, "1000"));
  ASSERT_EQ(client.begin_tail(), answered(server_status::ok));
  ASSERT_EQ(client.enqueue("0100"), answered(server_status::ok));
  EXPECT_EQ(client.committed(4), committed(4, 4, "1101")) << "by the old model to its end";
  ASSERT_EQ(client.reset(), answered(server_status::ok));
  EXPECT_EQ(server.decoders()[0]->counts().exchanges, 1U);
  ASSERT_EQ(client.enqueue("100000000000"), answered(server_status::ok));
  EXPECT_EQ(client.committed(4), committed(2, 3, "0100")) << "by the new one";
}

TEST(ServerStream, TakesAnotherReloadBeforeTheFirstOneIsUsed) {
  decoding_server server = server_for(stream_unit_for(rotated_stream_model(4)));
  stream_client client{server};
  ASSERT_EQ(client.enqueue("1000"), answered(server_status::ok));
  for (const unsigned shift : {1U, 2U})
    EXPECT_EQ(server.reload(one_setup({.id = kId}, stream_unit_for(rotated_stream_model(4, shift))), soon()).outcome,
              reload_outcome::applied);
  ASSERT_EQ(client.reset(), answered(server_status::ok));
  ASSERT_EQ(client.enqueue("100000000000"), answered(server_status::ok));
  EXPECT_EQ(client.committed(4), committed(2, 3, "0010"));
}

TEST(ServerStream, KeepsTheModelOfTheLastReloadThatWasNotTakenBack) {
  const auto setups = [](unsigned shift) {
    std::vector<decoder_setup> both = one_setup({.id = kId}, stream_unit_for(rotated_stream_model(4, shift)));
    both.push_back({{.id = kId + 1}, unit_for(rotated_model(4, shift))});
    return both;
  };
  for (const bool stream_ends : {false, true}) {
    decoding_server server(setups(0));
    stream_client client{server};
    ASSERT_EQ(client.enqueue("1000"), answered(server_status::ok));
    ASSERT_EQ(server.reload(setups(1), soon()).outcome, reload_outcome::applied);
    ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(kId + 1, 0, "10")), answered(server_status::ok));
    const auto in_a_shot = [&] {
      if (stream_ends) {
        EXPECT_EQ(client.reset(), answered(server_status::ok)) << "the second model is used for a moment";
      }
      return true;
    };
    ASSERT_EQ(server.reload(setups(2), soon(), in_a_shot).outcome, reload_outcome::busy);
    ASSERT_EQ(client.reset(), answered(server_status::ok));
    ASSERT_EQ(client.enqueue("100000000000"), answered(server_status::ok));
    EXPECT_EQ(client.committed(4), committed(2, 3, "0100")) << stream_ends;
  }
}

TEST(ServerStream, RejectsAReloadWithOtherSizes) {
  decoding_server server = server_for(stream_unit_for(rotated_stream_model(4)));
  const reload_result result = server.reload(one_setup({.id = kId}, unit_for(rotated_model(4))), soon());
  EXPECT_EQ(result.outcome, reload_outcome::rejected);
  EXPECT_EQ(result.reason,
            "decoders[0] (id 5): the new model has 4 bits per shot, 4 detectors and 4 observables, the "
            "running one is a stream with 4 detectors in the head, 4 in a repetition, 4 in the tail, and 4 "
            "observables; these are fixed");
  EXPECT_EQ(
      server.reload(one_setup({.id = kId}, stream_unit_for(rotated_stream_model(5))), soon()).reason,
      "decoders[0] (id 5): the new model is a stream with 5 detectors in the head, 5 in a repetition, 5 in the tail, "
      "and 5 observables, the running one is a stream with 4 detectors in the head, 4 in a repetition, 4 in the tail, "
      "and 4 observables; these are fixed");
}

} // namespace

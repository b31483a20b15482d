// SPDX-License-Identifier: Apache-2.0
// Rounds of streams with soft values and flags of leakage. The oracle is a stream decoder of its own.
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/stream/stream_readout_support.h"

#include <limits>
#include <random>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kId = 7;

std::unique_ptr<decoding_unit> chain_unit(const stream_options &with = {}) {
  const std::string dem = chain_dem();
  stream_options options = with;
  options.decoder = "bp-osd";
  options.commit = options.buffer = 2;
  options.readout = chain_table(dem);
  return stream_unit_with(dem, options);
}

decoding_server server_for(std::unique_ptr<decoding_unit> unit) {
  return decoding_server(one_setup({.id = kId}, std::move(unit)));
}

std::string last_failure(decoding_server &server) { return server.decoders().front()->failures().last; }

/// Counts its requests. One that is busy is sent again as another request.
struct readout_client {
  decoding_server &server;
  std::uint64_t counter = 0;

  full_answer send(const readout_shot &part, soft_kind kind = soft_kind::u8) {
    return counted(kEnqueueReadoutFunctionId, readout_payload(kId, counter, part, kind));
  }
  full_answer send_bits(const std::string &bits) {
    return counted(kEnqueueFunctionId, enqueue_payload(kId, counter, bits));
  }
  full_answer begin_tail() { return counted(kBeginTailFunctionId, begin_tail_payload(kId, counter)); }
  full_answer committed() { return call(server, kGetCommittedFunctionId, committed_payload(kId, 1)); }
  full_answer reset() {
    counter = 0;
    return call(server, kResetFunctionId, reset_payload(kId));
  }

private:
  full_answer counted(std::uint32_t function, const bytes &payload) {
    full_answer got = call(server, function, payload);
    for (const auto end = soon(); got == answered(server_status::busy) && std::chrono::steady_clock::now() < end;)
      got = call(server, function, payload);
    ++counter;
    return got;
  }
};

full_answer frame_of(const stream_decoder &stream) {
  return committed(stream.committed_rounds(), stream.pushed_rounds(), stream.observables()[0] != 0 ? "1" : "0");
}

/// The next values of a random experiment of the chain, in parts.
class chain_experiment {
public:
  chain_experiment(std::mt19937 &random, std::uint64_t rounds) : random_(random), rounds_(rounds) {}

  [[nodiscard]] bool has_rounds() const { return bits_ != rounds_; }
  /// Up to 5 rounds, with at least their values and flags, and at most 3 more.
  readout_shot next() {
    readout_shot part;
    const std::uint64_t bits = std::min<std::uint64_t>(random_() % 6, rounds_ - bits_);
    bits_ += bits;
    for (std::uint64_t k = 0; k < bits; ++k)
      part.bits += random_() % 3 == 0 ? '1' : '0';
    const auto target = [&] { return std::min(bits_ + random_() % 4, rounds_); };
    for (const std::uint64_t to = target(); values_ < to; ++values_)
      part.values.push_back(random_() % 3 == 0 ? 8 : random_() % 2 == 0 ? 12 : 3);
    for (const std::uint64_t to = target(); flags_ < to; ++flags_)
      part.flags.push_back(static_cast<unsigned>(random_() % 3));
    return part;
  }

private:
  std::mt19937 &random_;
  const std::uint64_t rounds_; ///< before the tail, each with a value and a flag
  std::uint64_t bits_ = 0, values_ = 0, flags_ = 0;
};

decode_status push(stream_decoder &to, const readout_shot &part, soft_kind kind) {
  const bytes bits = packed(part.bits), soft = soft_bytes_of(part.values, kind), flags = flag_bytes_of(part.flags);
  return to.push(bits, part.bits.size(), {soft, part.values.size(), kind, flags, part.flags.size()});
}

TEST(ServerStreamReadout, GivesTheFramesOfAStreamDecoderForEveryCutOfRoundsAndValues) {
  const auto unit = chain_unit(); // the oracle
  stream_decoder &oracle = *unit->stream();
  decoding_server server = server_for(chain_unit());
  readout_client client{server};
  std::mt19937 random(20261129);
  unsigned flipped = 0, requests = 0;
  for (unsigned n = 0; n < 60; ++n) {
    oracle.reset();
    const soft_kind kind = kAllKinds[n % 3];
    chain_experiment experiment(random, 1 + random() % 60);
    while (experiment.has_rounds()) {
      const readout_shot part = experiment.next();
      ASSERT_EQ(client.send(part, kind), answered(server_status::ok)) << last_failure(server);
      ASSERT_EQ(push(oracle, part, kind), decode_status::ok) << oracle.fault();
      ASSERT_EQ(client.committed(), frame_of(oracle)) << n;
      ++requests;
    }
    ASSERT_EQ(client.begin_tail(), answered(server_status::ok));
    ASSERT_EQ(client.send({n % 2 == 0 ? "1" : "0", {}, {}}, kind), answered(server_status::ok)) << last_failure(server);
    ASSERT_EQ(oracle.finish(packed(n % 2 == 0 ? "1" : "0"), 1), decode_status::ok) << oracle.fault();
    ASSERT_EQ(client.committed(), frame_of(oracle)) << n;
    flipped += oracle.observables()[0];
    ASSERT_EQ(client.reset(), answered(server_status::ok));
  }
  EXPECT_GT(requests, 300U);
  EXPECT_GT(flipped, 10U);
}

TEST(ServerStreamReadout, TakesValuesOfTheTailBeforeItsBitsAndWithThem) {
  const stream_readout_case of(repetition_dem(3, 0.03, 1, 20));
  const stream_options options{.decoder = "bp-osd", .commit = 3, .buffer = 3, .readout = of.table};
  const auto oracle = stream_or_throw(of.dem, options);
  decoding_server server = server_for(stream_unit_with(of.dem, options));
  readout_client client{server};
  std::mt19937 random(3);
  const auto bits_of = [](const bytes &packed_bits, std::uint64_t from, std::uint64_t to) {
    std::string text;
    for (std::uint64_t k = from; k < to; ++k)
      text += (packed_bits[k / 8] >> k % 8 & 1) != 0 ? '1' : '0';
    return text;
  };
  for (int n = 0; n < 20; ++n) {
    const read_shot shot = sample(of, random);
    oracle->reset();
    ASSERT_EQ(shot_sender(*oracle, of, shot).run(), decode_status::ok) << oracle->fault();
    // Floats that are no whole numbers: the payload is made here.
    const std::uint64_t before = of.whole.num_detectors - of.model.tail_detectors();
    const auto send = [&](std::uint64_t bit, std::uint64_t end_bit, std::uint64_t value, std::uint64_t end_value,
                          const std::vector<unsigned> &flags) {
      bytes payload;
      for (const std::uint64_t number :
           {kId, client.counter++, end_bit - bit, end_value - value, std::uint64_t{flags.size()}, std::uint64_t{0}})
        append_number(payload, number);
      const bytes soft = shot.soft_bytes();
      for (const bytes &array : {packed(bits_of(shot.bits.events, bit, end_bit)),
                                 bytes(soft.begin() + static_cast<std::ptrdiff_t>(4 * value),
                                       soft.begin() + static_cast<std::ptrdiff_t>(4 * end_value)),
                                 flag_bytes_of(flags)})
        payload.insert(payload.end(), array.begin(), array.end());
      return call(server, kEnqueueReadoutFunctionId, payload);
    };
    const std::uint64_t values = shot.soft.size() - of.soft.tail;
    const std::vector<unsigned> flags(shot.flags.begin(), shot.flags.end() - 1), last{shot.flags.back()};
    ASSERT_EQ(send(0, before, 0, values, flags), answered(server_status::ok)) << last_failure(server);
    ASSERT_EQ(client.begin_tail(), answered(server_status::ok));
    const std::uint64_t early = values + (n % 2 == 0 ? of.soft.tail : 1);
    ASSERT_EQ(send(before, before + 1, values, early, n % 2 == 0 ? last : std::vector<unsigned>{}),
              answered(server_status::ok))
        << last_failure(server);
    ASSERT_EQ(
        send(before + 1, of.whole.num_detectors, early, shot.soft.size(), n % 2 == 0 ? std::vector<unsigned>{} : last),
        answered(server_status::ok))
        << last_failure(server);
    ASSERT_EQ(client.committed(), frame_of(*oracle));
    ASSERT_EQ(client.reset(), answered(server_status::ok));
  }
}

TEST(ServerStreamReadout, RefusesWhatTheDecoderCannotUseWithATextAndLatches) {
  const readout_shot sure{"0000", {12, 12, 12, 12}, {0, 0, 0, 0}};
  bytes infinite = readout_payload(kId, 0, sure, soft_kind::f32);
  const float value = std::numeric_limits<float>::infinity();
  std::memcpy(infinite.data() + 48 + 1 + 4, &value, sizeof value);
  const auto without = [](const readout_shot &shot, bool values, bool flags) {
    return readout_payload(
        kId, 0,
        {shot.bits, values ? shot.values : std::vector<unsigned>{}, flags ? shot.flags : std::vector<unsigned>{}},
        soft_kind::u8);
  };
  const struct {
    std::uint32_t function;
    bytes payload;
    const char *text;
  } cases[] = {
      {kEnqueueFunctionId, enqueue_payload(kId, 0, "0000"),
       "0 soft values have come, and the rounds that are complete"},
      {kEnqueueReadoutFunctionId, without(sure, false, true), "0 soft values have come"},
      {kEnqueueReadoutFunctionId, without(sure, true, false), "0 flags have come"},
      {kEnqueueReadoutFunctionId, readout_payload(kId, 0, {"0", std::vector<unsigned>(60, 12), {}}, soft_kind::u4),
       "60 soft values have come, and with these rounds there may be"},
      {kEnqueueReadoutFunctionId, readout_payload(kId, 0, {"0", {12}, {3}}, soft_kind::u8),
       "flag 0 has the value 3, accepted: 0, 1, 2"},
      {kEnqueueReadoutFunctionId, infinite, "window 0: soft value 1 is not finite"},
  };
  for (const auto &[function, payload, text] : cases) {
    decoding_server server = server_for(chain_unit());
    readout_client client{server};
    EXPECT_EQ(call(server, function, payload), answered(server_status::bad_request)) << text;
    EXPECT_EQ(last_failure(server).find(text), 0U) << last_failure(server) << "; not " << text;
    EXPECT_EQ(client.committed(), answered(server_status::bad_request)) << "it latches";
    EXPECT_EQ(server.decoders().front()->failures().count, 1U);
    EXPECT_EQ(client.reset(), answered(server_status::ok));
    EXPECT_EQ(client.send(sure, soft_kind::u4), answered(server_status::ok)) << "also in another kind";
    EXPECT_EQ(client.committed(), committed(2, 4, "0"));
  }
}

TEST(ServerStreamReadout, RefusesAnotherKindAndAnEndWithOtherValuesThanTheExperimentHas) {
  const auto failure_after = [](bool in_the_tail, const readout_shot &last, soft_kind kind) {
    decoding_server server = server_for(chain_unit());
    readout_client client{server};
    EXPECT_EQ(client.send({"000", {12, 12, 3}, {0, 0, 0}}), answered(server_status::ok));
    if (in_the_tail) {
      EXPECT_EQ(client.begin_tail(), answered(server_status::ok));
    }
    EXPECT_EQ(client.send(last, kind), answered(server_status::bad_request));
    return last_failure(server);
  };
  EXPECT_EQ(failure_after(false, {"0", {12}, {0}}, soft_kind::u4),
            "the soft values have another kind than those before");
  EXPECT_EQ(failure_after(true, {"0", {12}, {}}, soft_kind::u8),
            "4 soft values have come, and with these rounds there may be 3");
  decoding_server server = server_for(chain_unit());
  readout_client client{server};
  EXPECT_EQ(client.send({"000", {12, 12}, {0, 0, 0}}), answered(server_status::ok));
  EXPECT_EQ(client.begin_tail(), answered(server_status::ok));
  EXPECT_EQ(client.send_bits("0"), answered(server_status::bad_request));
  EXPECT_EQ(last_failure(server), "2 soft values have come, and the rounds that are complete need 3");
}

TEST(ServerStreamReadout, ExecutesARepeatedRequestOnce) {
  decoding_server server = server_for(chain_unit());
  const bytes first = readout_payload(kId, 1, {"11", {8, 12}, {0, 0}}, soft_kind::u8);
  const bytes second = readout_payload(kId, 2, {"00", {12, 12}, {0, 0}}, soft_kind::u8);
  for (const auto &[payload, time] : {std::pair{first, 1000U}, {second, 2000U}})
    for (int attempt = 0; attempt < 3; ++attempt)
      EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, payload, 9, time), answered(server_status::ok));
  EXPECT_EQ(call(server, kGetCommittedFunctionId, committed_payload(kId, 1)), committed(2, 4, "0"));
}

TEST(ServerStreamReadout, IsInTheAnswerOfDescribeDecoderForARepetition) {
  decoding_server server = server_for(chain_unit());
  bytes question;
  append_number(question, kId);
  append_number(question, 3);
  EXPECT_EQ(read_readout_facts(call(server, kDescribeFunctionId, question).result), (readout_facts{1, 1, 0b111}));
}

// Values may come before the first bits: they are a part of the stream, too.
TEST(ServerStreamReadout, IsNotDividedByAReload) {
  decoding_server server = server_for(chain_unit());
  readout_client client{server};
  EXPECT_EQ(client.send({"", {8, 12}, {0, 0}}), answered(server_status::ok));
  auto unit = stream_unit_with(chain_dem(), {.decoder = "bp-osd", .commit = 2, .buffer = 2});
  EXPECT_EQ(server.reload(one_setup({.id = kId}, std::move(unit)), soon()).outcome, reload_outcome::rejected)
      << "a stream without a table has another shape";
  EXPECT_EQ(server.reload(one_setup({.id = kId}, chain_unit()), soon()).outcome, reload_outcome::applied);
  EXPECT_EQ(client.send({"1100", {12, 12}, {0, 0}}), answered(server_status::ok)) << last_failure(server);
  EXPECT_EQ(client.committed(), committed(2, 4, "0"));
}

TEST(ServerStreamReadout, GivesTheSameEndWithWorkersWhoseQueueIsFull) {
  workers_result workers = make_stream_workers(2);
  ASSERT_TRUE(workers) << workers.error;
  const auto unit = chain_unit({.mode = stream_mode::parallel}); // the oracle
  stream_decoder &oracle = *unit->stream();
  decoding_server server =
      server_for(chain_unit({.mode = stream_mode::parallel, .pool = workers.instance, .queue_rounds = 20}));
  readout_client client{server};
  std::mt19937 random(5);
  for (int n = 0; n < 20; ++n) {
    oracle.reset();
    chain_experiment experiment(random, 40 + random() % 200);
    while (experiment.has_rounds()) {
      const readout_shot part = experiment.next();
      ASSERT_EQ(client.send(part), answered(server_status::ok)) << last_failure(server);
      ASSERT_EQ(push(oracle, part, soft_kind::u8), decode_status::ok) << oracle.fault();
    }
    ASSERT_EQ(client.begin_tail(), answered(server_status::ok));
    ASSERT_EQ(client.send_bits("0"), answered(server_status::ok)) << last_failure(server);
    ASSERT_EQ(oracle.finish(packed("0"), 1), decode_status::ok);
    full_answer got = client.committed();
    for (const auto end = soon(); got != frame_of(oracle) && std::chrono::steady_clock::now() < end;)
      got = client.committed();
    ASSERT_EQ(got, frame_of(oracle)) << n;
    ASSERT_EQ(client.reset(), answered(server_status::ok));
  }
  bytes infinite = readout_payload(kId, 0, {"0000", {12, 12, 12, 12}, {0, 0, 0, 0}}, soft_kind::f32);
  const float value = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(infinite.data() + 48 + 1, &value, sizeof value);
  EXPECT_EQ(call(server, kEnqueueReadoutFunctionId, infinite), answered(server_status::ok)) << "its windows come later";
  client.counter = 1;
  full_answer got = client.committed();
  for (const auto end = soon(); got.status == 0 && std::chrono::steady_clock::now() < end;)
    got = client.committed();
  EXPECT_EQ(got, answered(server_status::bad_request));
  EXPECT_EQ(last_failure(server).find("window 0: soft value 0 is not finite"), 0U) << last_failure(server);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Requests that wait for a round hold slots of the transport, which other decoders need. Here the transport is a few
// slots of the test: it stops when there is none for a request.
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/server/server_threads_support.h"

#include <algorithm>
#include <array>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::uint64_t kLong = 600'000'000'000; ///< an age limit that no test reaches
const full_answer kOk = answered(server_status::ok), kBusy = answered(server_status::busy);

/// Gives each request a slot, as a provider does. One thread sends.
class slots_of_transport {
public:
  slots_of_transport(decoding_server &server, const transport_slots &slots)
      : server_(server), slots_(slots), requests_(slots.count) {}

  /// Returns the number of the request. Throws if its slot does not become free.
  std::size_t send(std::uint32_t function, const bytes &payload) {
    const std::uint32_t slot = free_slot();
    const std::size_t number = answers_.size();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      answers_.emplace_back();
      requests_[slot] = {true, number, bytes(64)};
    }
    server_.arrive(slot);
    server_answer now;
    const cudaq_host_job_t job{reinterpret_cast<std::uint64_t>(this), slot, static_cast<std::uint32_t>(number)};
    if (server_.submit(function, payload, requests_[slot].result, job, now, 1000 + number))
      take(slot, now);
    return number;
  }
  full_answer answer(std::size_t number) {
    if (!rt::wait_until(soon(), [&] { return is_answered(number); }))
      throw std::runtime_error("request " + std::to_string(number) + " was not answered");
    const std::lock_guard<std::mutex> lock(mutex_);
    return *answers_[number];
  }
  full_answer call(std::uint32_t function, const bytes &payload) { return answer(send(function, payload)); }
  bool is_answered(std::size_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return answers_[number].has_value();
  }

  static answer_receiver receiver() {
    return {[](void *, const cudaq_host_job_t &job, const server_answer &answer) {
              reinterpret_cast<slots_of_transport *>(job.generation)->take(job.slot, answer);
            },
            nullptr};
  }

private:
  struct request {
    bool open = false;
    std::size_t number = 0;
    bytes result;
  };

  std::uint32_t free_slot() {
    std::uint32_t slot = 0;
    const auto found = [&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      const std::uint32_t next = static_cast<std::uint32_t>(answers_.size()) % slots_.count;
      if (slots_.in_ring_order)
        slot = next;
      else
        while (slot != slots_.count && requests_[slot].open)
          ++slot;
      const bool is_free = slot != slots_.count && !requests_[slot].open;
      slot = is_free ? slot : 0;
      return is_free;
    };
    if (!rt::wait_until(soon(10), found))
      throw std::runtime_error("the transport stands still");
    return slot;
  }
  void take(std::uint32_t slot, const server_answer &answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    request &r = requests_[slot];
    answers_[r.number] = full_answer{answer.status, bytes(r.result.begin(), r.result.begin() + answer.bytes)};
    r.open = false;
  }

  decoding_server &server_;
  const transport_slots slots_;
  std::mutex mutex_; ///< protects the members below
  std::vector<request> requests_;
  std::deque<std::optional<full_answer>> answers_;
};

/// Streams with the ids 1 and 2, of 2 detectors a round, commit 2 and buffer 1; 3 is a decoder of shots.
struct slots_rig {
  explicit slots_rig(const transport_slots &slots, std::size_t streams = 1) : server(setups(streams)) {
    server.limit_waits(slots);
    if (const expected<> result = server.start(slots_of_transport::receiver(), CUDAQ_WAIT_BLOCK, 2); result.failed())
      throw std::runtime_error(result.text());
    transport.emplace(server, slots);
  }
  ~slots_rig() { EXPECT_TRUE(server.stop(soon())); }
  static std::vector<decoder_setup> setups(std::size_t streams) {
    std::vector<decoder_setup> all;
    for (std::uint64_t id = 1; id <= streams; ++id)
      all.push_back({{.id = id, .queue_length = 100, .age_limit_ns = kLong}, stream_unit_for(rotated_stream_model(2))});
    all.push_back({{.id = 3, .queue_length = 8}, unit_for(rotated_model(1))});
    return all;
  }
  std::size_t wait_for(std::uint64_t round, std::uint64_t id = 1) {
    return transport->send(kGetCommittedFunctionId, committed_payload(id, 2, round));
  }
  full_answer enqueue(const std::string &bits, std::uint64_t id = 1) {
    return transport->call(kEnqueueFunctionId, enqueue_payload(id, counters[id]++, bits));
  }
  full_answer call_the_other() { return transport->call(kGetCorrectionsFunctionId, get_payload(3, 1)); }
  std::size_t open_of(const std::vector<std::size_t> &numbers) {
    return static_cast<std::size_t>(
        std::ranges::count_if(numbers, [&](std::size_t number) { return !transport->is_answered(number); }));
  }
  bool all_served() {
    return rt::wait_until(soon(), [this] {
      return std::ranges::all_of(server.decoders(), [](const auto &decoder) { return decoder->waiting() == 0; });
    });
  }
  decoding_server server;
  std::optional<slots_of_transport> transport;
  std::array<std::uint64_t, 3> counters{};
};

class ServerHeldSlots : public testing::TestWithParam<transport_slots> {};

TEST_P(ServerHeldSlots, LeaveOtherDecodersTheirSlotsWhileAHundredReadsWait) {
  const transport_slots slots = GetParam();
  slots_rig rig(slots);
  const full_answer unread = rig.transport->call(kResetFunctionId, reset_payload(3));
  ASSERT_EQ(unread, kOk);
  std::vector<std::size_t> reads;
  for (int k = 0; k < 100; ++k)
    reads.push_back(rig.wait_for(1));
  ASSERT_TRUE(rig.all_served());
  EXPECT_LE(rig.open_of(reads), slots.count / 2);
  if (!slots.in_ring_order) {
    EXPECT_EQ(rig.open_of(reads), std::min(slots.count / 2, kMaxRoundWaits));
  }
  for (std::uint32_t k = 0; k < 3 * slots.count; ++k)
    EXPECT_EQ(rig.call_the_other(), answered(server_status::ok, "0"));
  EXPECT_EQ(rig.enqueue("010000"), kOk);
  std::size_t answered_reads = 0;
  for (const std::size_t read : reads) {
    const full_answer answer = rig.transport->answer(read);
    answered_reads += answer == committed(2, 3, "01") ? 1 : 0;
    EXPECT_TRUE(answer == kBusy || answer == committed(2, 3, "01"));
  }
  EXPECT_EQ(answered_reads, slots.in_ring_order ? 0 : std::min(slots.count / 2, kMaxRoundWaits))
      << "in ring order all have ended before the lap did";
}

INSTANTIATE_TEST_SUITE_P(Transports, ServerHeldSlots,
                         testing::Values(transport_slots{8, true}, transport_slots{8, false}, transport_slots{1, true},
                                         transport_slots{1, false}, transport_slots{2, true}, transport_slots{3, true},
                                         transport_slots{3, false}, transport_slots{64, false}),
                         [](const testing::TestParamInfo<transport_slots> &of) {
                           return (of.param.in_ring_order ? "Ring" : "AnyFree") + std::to_string(of.param.count);
                         });

TEST(ServerHeldSlotsInARing, AreKeptForLessThanHalfALap) {
  slots_rig rig({8, true});
  const std::size_t read = rig.wait_for(1);
  for (int k = 0; k < 3; ++k)
    EXPECT_EQ(rig.call_the_other().status, static_cast<std::int32_t>(server_status::syndromes_dropped));
  ASSERT_TRUE(rig.all_served());
  EXPECT_FALSE(rig.transport->is_answered(read));
  EXPECT_EQ(rig.enqueue("010000"), kOk) << "half a lap after it: the round is final, and so is the wait";
  const full_answer answer = rig.transport->answer(read);
  EXPECT_TRUE(answer == committed(2, 3, "01") || answer == kBusy);
}

TEST(ServerHeldSlotsInARing, AreCountedForRequestsThatTheServerDoesNotGet) {
  slots_rig rig({8, true});
  const std::size_t read = rig.wait_for(1); // slot 0
  ASSERT_TRUE(rig.all_served());
  rig.server.arrive(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(rig.transport->is_answered(read));
  rig.server.arrive(5);
  EXPECT_EQ(rig.transport->answer(read), kBusy);
}

TEST(ServerHeldSlotsInARing, AreGivenBackWhenOnlyTheTransportKnowsThatTheyAreWanted) {
  rt::shared_word<std::uint32_t> next{1};
  slots_rig rig(
      {8, true, [](void *user) { return static_cast<rt::shared_word<std::uint32_t> *>(user)->load(); }, &next});
  const std::size_t read = rig.wait_for(1); // slot 0
  ASSERT_TRUE(rig.all_served());
  for (const std::uint32_t not_yet : {1U, 4U, 8U /* not known */}) {
    next.store(not_yet);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(rig.transport->is_answered(read)) << not_yet;
  }
  next.store(5); // half a lap is left
  EXPECT_EQ(rig.transport->answer(read), kBusy);
}

TEST(ServerHeldSlotsOfSeveralStreams, AreInEqualParts) {
  slots_rig rig({8, false}, 2);
  std::vector<std::size_t> of_first, of_second;
  for (int k = 0; k < 20; ++k)
    of_first.push_back(rig.wait_for(1, 1));
  ASSERT_TRUE(rig.all_served());
  EXPECT_EQ(rig.open_of(of_first), 2U);
  for (int k = 0; k < 20; ++k)
    of_second.push_back(rig.wait_for(1, 2));
  ASSERT_TRUE(rig.all_served());
  EXPECT_EQ(rig.open_of(of_second), 2U);
  EXPECT_EQ(rig.enqueue("010000", 2), kOk);
  EXPECT_EQ(rig.transport->answer(of_second.front()), committed(2, 3, "01"));
  ASSERT_TRUE(rt::wait_until(soon(), [&] { return rig.open_of(of_second) == 0; }));
  EXPECT_EQ(rig.open_of(of_first), 2U);
  const std::size_t next = rig.wait_for(4, 2);
  ASSERT_TRUE(rig.all_served());
  EXPECT_FALSE(rig.transport->is_answered(next)) << "its slots were given back";
}

TEST(ServerHeldSlotsOfSeveralStreams, AreNeverMoreThanHalf) {
  slots_rig rig({3, false}, 2); // one for each would be 2 of 3
  const std::size_t first = rig.wait_for(1, 1);
  ASSERT_TRUE(rig.all_served());
  EXPECT_FALSE(rig.transport->is_answered(first));
  EXPECT_EQ(rig.transport->answer(rig.wait_for(1, 2)), kBusy);
}

} // namespace

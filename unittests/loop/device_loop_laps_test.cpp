// SPDX-License-Identifier: Apache-2.0
// When the device loop posts the lap of a slot: with the answer to the next request, alone after some empty looks, at
// once, and before the loop ends. docs/ring_protocol.md section 13.
#include "cudaq/realtime/detail/loop/posted_ring_transport.h"
#include "lib/ring/producer_core.h"
#include "unittests/loop/loop_host.h"
#include "unittests/support/lap_ring.h"

namespace cudaq::realtime::test {
namespace {

using transport = posted_ring_transport<single_thread_group>;

/// What the producer, the consumer and the device have stored for a slot.
struct words {
  bool answered, ready;
  std::uint64_t count, lap;
  bool operator==(const words &) const = default;
};
words of(const lap_ring &ring, std::uint32_t i) {
  const slot_ring &v = ring.view;
  return {v.answer(i) != 0, v.ready(i) != 0, v.rx_flags[i + v.lap_offset], v.tx_flags[i + v.lap_offset]};
}
std::ostream &operator<<(std::ostream &out, const words &w) {
  return out << (w.answered ? "answered, " : "") << (w.ready ? "ready, " : "") << w.count << ", " << w.lap;
}

void serve_front(transport &t) {
  transport::message m;
  ASSERT_TRUE(t.poll(0, m));
  t.precompute_next();
  t.send_front(m);
  t.advance_one();
}

TEST(PostedRingTransport, PostsALapWithTheAnswerToTheNextRequest) {
  lap_ring ring(3, 64, true);
  transport t(ring.view, 0);
  for (std::uint64_t lap = 1; lap <= 3; ++lap)
    for (std::uint32_t i = 0; i < 3; ++i) {
      ring.view.signal(i);
      serve_front(t);
      EXPECT_EQ(of(ring, i), (words{true, false, lap, lap - 1})) << i;
      const std::uint32_t before = (i + 2) % 3;
      EXPECT_EQ(of(ring, before).lap, of(ring, before).count) << i;
      ring.view.collect(i);
    }
  t.post_owed();
  EXPECT_EQ(of(ring, 2), (words{false, false, 3, 3}));
  ring.view.tx_flags[2 + ring.view.lap_offset] = 99;
  t.post_owed();
  EXPECT_EQ(of(ring, 2).lap, 99u) << "nothing was owed";
}

TEST(PostedRingTransport, PostsTheLapOfTheOnlySlotAtOnce) {
  lap_ring ring(1, 64, true);
  transport t(ring.view, 0);
  for (std::uint64_t lap = 1; lap <= 3; ++lap) {
    ring.view.signal(0);
    serve_front(t);
    EXPECT_EQ(of(ring, 0), (words{true, false, lap, lap}));
    ring.view.collect(0);
  }
}

TEST(PostedRingTransport, PostsLapsOfSeveralRequestsOfALookAndOfDropsAtOnce) {
  lap_ring ring(4, 64, true);
  transport t(ring.view, 0);
  for (std::uint32_t i = 0; i < 3; ++i)
    ring.view.signal(i);
  serve_front(t);
  EXPECT_EQ(of(ring, 0), (words{true, false, 1, 0}));
  t.prepare(t.at(0));
  t.send(t.at(0));
  EXPECT_EQ(of(ring, 0), (words{true, false, 1, 1}));
  EXPECT_EQ(of(ring, 1), (words{true, false, 1, 1}));
  t.prepare(t.at(1));
  t.discard(t.at(1));
  EXPECT_EQ(of(ring, 2), (words{false, false, 1, 1}));
}

/// A ring whose requests come one after the other: the handler of a request sends the next one, as long as there are
/// more. Everything runs on the test's thread.
class request_chain {
public:
  static constexpr std::uint32_t kSlots = 4;

  /// The handler of request number `stop_after`, counted from 1, sets the shutdown word; 0: none does.
  request_chain(std::uint32_t total, std::uint32_t stop_after)
      : ring(kSlots, 64, true), host(host_ring({kSlots, 64, false}), 1, 1, 1), total_(total), stop_after_(stop_after),
        producer_(ring.view, 0) {
    host.params.ring = ring.view;
    host.params.handlers = &handler_address_;
    memory_.lay_out(64, false);
  }
  template <class Transport>
  void run(const Transport &t) {
    current = this;
    send();
    run_group<false, single_thread_group>(host.params, 0, 1, memory_, t);
    current = nullptr;
  }
  std::uint32_t served() const { return served_; }
  std::uint32_t sent() const { return sent_; }

  lap_ring ring;
  loop_host host;

private:
  void send() {
    std::uint32_t slot = 0;
    if (sent_ >= kSlots)
      ring.view.collect(sent_ % kSlots);
    ASSERT_TRUE(producer_.claim(slot)) << "slot " << sent_ % kSlots << " of request " << sent_;
    write_request(producer_.frame(slot), {CUDAQ_RPC_MAGIC_REQUEST, 1, 0, sent_++, 0});
    producer_.commit(slot, 1);
  }
  static int serve(const void *, void *, std::uint32_t, std::uint32_t, std::uint32_t *result_len) {
    request_chain &c = *current;
    *result_len = 0;
    if (++c.served_ == c.stop_after_)
      store_release(c.host.library_word, std::uint32_t{1});
    if (c.served_ < c.total_)
      c.send();
    return 0;
  }

  static inline request_chain *current = nullptr;
  const std::uint32_t total_, stop_after_;
  std::uint32_t sent_ = 0, served_ = 0;
  producer_core producer_;
  std::uint64_t handler_address_ = reinterpret_cast<std::uint64_t>(&serve);
  group_memory memory_;
};

/// Records the lap of a slot at each empty look after its last answer; sets the shutdown word at the 40th.
struct look_record {
  const volatile std::uint64_t *lap;
  std::uint32_t *shutdown_word;
  std::vector<std::uint64_t> laps;
};
class recording_transport : public transport {
public:
  recording_transport(const slot_ring &r, look_record &record) : transport(r, 0), record_(&record) {}
  bool poll(std::uint32_t k, message &m) const {
    if (transport::poll(k, m)) {
      record_->laps.clear();
      return true;
    }
    record_->laps.push_back(load_acquire(*record_->lap));
    if (record_->laps.size() == 40)
      store_release(*record_->shutdown_word, std::uint32_t{1});
    return false;
  }

private:
  look_record *record_;
};

TEST(DeviceLoopLaps, AnOwedLapIsPostedAloneAfterSixteenEmptyLooks) {
  request_chain chain(6, 0); // the first request of a function gets its lap at once, the sixth is owed its
  const slot_ring &v = chain.ring.view;
  look_record record{v.tx_flags + v.lap_offset + 5 % request_chain::kSlots, &chain.host.library_word, {}};
  chain.run(recording_transport(v, record));
  ASSERT_EQ(chain.served(), 6u);
  ASSERT_GE(record.laps.size(), 40u);
  for (std::size_t look = 0; look < record.laps.size(); ++look)
    EXPECT_EQ(record.laps[look], look < 16 ? 1u : 2u) << look; // the slot is in its second lap
}

// The stop is requested at any distance from the next look at the shutdown word: also so that the loop ends while a lap
// is owed, with and without a further request that is left in its slot.
TEST(DeviceLoopLaps, NoLapIsOwedWhenTheLoopEnds) {
  for (const bool more : {false, true})
    for (std::uint32_t stop = 1; stop <= 40; ++stop) {
      request_chain chain(more ? UINT32_MAX : stop, stop);
      chain.run(transport(chain.ring.view, 0));
      ASSERT_GE(chain.served(), stop);
      const slot_ring &v = chain.ring.view;
      std::uint64_t given_back = 0;
      for (std::uint32_t i = 0; i < request_chain::kSlots; ++i) {
        EXPECT_EQ(v.rx_flags[i + v.lap_offset], v.tx_flags[i + v.lap_offset])
            << "slot " << i << ", stop after " << stop;
        given_back += v.tx_flags[i + v.lap_offset];
      }
      EXPECT_EQ(given_back, chain.served()) << stop;
      EXPECT_EQ(chain.sent(), chain.served() + (more ? 1 : 0));
    }
}

} // namespace
} // namespace cudaq::realtime::test

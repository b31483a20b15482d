// SPDX-License-Identifier: Apache-2.0
// What each provider promises to a peer and to the dispatcher's loop, as the page of transports lists it. What only one
// provider has is tested in its folder. Not driven: ucx, gpu-roce, the ring shapes of shm and cpu_roce, and of cpu_roce
// the dataplane over its exchange.
#include "unittests/transport/provider/driven_transport.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <dlfcn.h>

namespace cudaq::realtime::test {

std::atomic<int> refused_sends{0}; ///< so many calls of sendmmsg find no room; a loopback socket is never full

/// The system has room to send again at its end, also of a test that ends early.
struct full_socket {
  full_socket() = default;
  ~full_socket() { refused_sends.store(0); }
  full_socket(const full_socket &) = delete;
  full_socket &operator=(const full_socket &) = delete;
  /// No room from now on, for so many attempts.
  void refuse(int calls) { refused_sends.store(calls); }
};

} // namespace cudaq::realtime::test

/// Called in place of the system's function.
extern "C" int sendmmsg(int fd, mmsghdr *messages, unsigned count, int flags) {
  if (cudaq::realtime::test::refused_sends.load() > 0) {
    cudaq::realtime::test::refused_sends.fetch_sub(1);
    errno = EAGAIN;
    return -1;
  }
  static const auto system = reinterpret_cast<decltype(&sendmmsg)>(dlsym(RTLD_NEXT, "sendmmsg"));
  return system(fd, messages, count, flags);
}

namespace cudaq::realtime::test {
namespace {

using reply = driven_transport::reply;

struct tested {
  const char *name;
  std::unique_ptr<driven_transport> (*make)(std::uint32_t slots);
};
void PrintTo(const tested &t, std::ostream *out) { *out << t.name; }
std::string name_of(const ::testing::TestParamInfo<tested> &info) { return info.param.name; }

template <bool Roce, bool Unified>
std::unique_ptr<driven_transport> datagrams(std::uint32_t slots) {
  return std::make_unique<driven_datagrams>(slots, Roce, Unified);
}
template <bool Reliable>
std::unique_ptr<driven_transport> cpu_roce(std::uint32_t slots) {
  return std::make_unique<driven_cpu_roce>(slots, Reliable);
}
const tested kUdpRing{"UdpRing", datagrams<false, false>}, kUdpUnified{"UdpUnified", datagrams<false, true>},
    kRoceRing{"RoceRing", datagrams<true, false>}, kRoceUnified{"RoceUnified", datagrams<true, true>},
    kCpuRoceUc{"CpuRoceUc", cpu_roce<false>}, kCpuRoceRc{"CpuRoceRc", cpu_roce<true>},
    kShm{"Shm",
         [](std::uint32_t slots) -> std::unique_ptr<driven_transport> { return std::make_unique<driven_shm>(slots); }};

/// All providers. The adapter of cpu_roce has one peer, which is both of the two.
struct TransportContract : ::testing::TestWithParam<tested> {
  std::unique_ptr<driven_transport> make(std::uint32_t slots) const { return GetParam().make(slots); }
};
INSTANTIATE_TEST_SUITE_P(Provider, TransportContract,
                         ::testing::Values(kUdpRing, kUdpUnified, kRoceRing, kRoceUnified, kCpuRoceUc, kCpuRoceRc,
                                           kShm),
                         name_of);

TEST_P(TransportContract, AnswersEachPeerInAnyOrder) {
  const auto t = make(4);
  std::uint32_t slots[3];
  const std::pair<unsigned, std::uint32_t> sent[] = {{0, 10}, {1, 20}, {0, 11}};
  for (int n = 0; n < 3; ++n) {
    t->send(sent[n].first, sent[n].second, {static_cast<std::uint8_t>(n)});
    slots[n] = t->next();
    EXPECT_EQ(t->id_in(slots[n]), sent[n].second);
    EXPECT_EQ(t->ring.rx_data_host[slots[n] * t->ring.rx_stride_sz + CUDAQ_RPC_HEADER_SIZE], n);
  }
  for (const int n : {2, 1, 0}) {
    EXPECT_FALSE(t->arrived(sent[n].first));
    const bytes result{static_cast<std::uint8_t>(100 + n), 7};
    EXPECT_EQ(t->answer(slots[n], result), CUDAQ_OK);
    EXPECT_EQ(t->receive(sent[n].first), (reply{sent[n].second, result}));
  }
  EXPECT_EQ(t->replied().value_or(3), 3u);
}

TEST_P(TransportContract, LeavesASlotToTheLoopUntilItsAnswer) {
  const auto t = make(4);
  for (std::uint32_t id = 0; id < 6; ++id)
    t->send(0, id);
  std::vector<std::uint32_t> slots;
  for (std::uint32_t id = 0; id < 4; ++id)
    slots.push_back(t->next());
  EXPECT_EQ(std::set<std::uint32_t>(slots.begin(), slots.end()).size(), 4u);
  std::uint32_t none = 0;
  for (int n = 0; n < 200; ++n)
    ASSERT_FALSE(t->poll(none));
  for (std::uint32_t id = 0; id < 4; ++id)
    EXPECT_EQ(t->id_in(slots[id]), id);
  EXPECT_EQ(t->answer(slots[0], {}), CUDAQ_OK);
  EXPECT_EQ(t->receive(0).id, 0u);
  EXPECT_EQ(t->next(), slots[0]);
  EXPECT_EQ(t->id_in(slots[0]), 4u);
}

TEST_P(TransportContract, TakesBackTheSlotOfADroppedRequest) {
  const auto t = make(1);
  for (std::uint32_t id = 0; id < 5; ++id) {
    t->send(0, id);
    const std::uint32_t slot = t->next();
    EXPECT_EQ(t->id_in(slot), id);
    t->drop(slot);
  }
  t->send(0, 5);
  EXPECT_EQ(t->answer(t->next(), {9}), CUDAQ_OK);
  EXPECT_EQ(t->receive(0), (reply{5, {9}})) << "a dropped request has no answer";
  EXPECT_EQ(t->unanswered().value_or(5), 5u);
}

/// The providers whose loop calls tx_publish: a slot need not wait for the one before it.
struct UnifiedContract : TransportContract {};
INSTANTIATE_TEST_SUITE_P(Provider, UnifiedContract,
                         ::testing::Values(kUdpUnified, kRoceUnified, kCpuRoceUc, kCpuRoceRc, kShm), name_of);

TEST_P(UnifiedContract, RefusesAnAnswerInASlotThatTheLoopDoesNotHave) {
  const auto t = make(4);
  for (const std::uint32_t slot : {0u, t->num_slots, ~0u})
    EXPECT_EQ(t->answer(slot, {}), CUDAQ_ERR_INVALID_ARG) << slot;
  t->send(0, 1);
  const std::uint32_t slot = t->next();
  EXPECT_EQ(t->answer(slot, {}), CUDAQ_OK);
  EXPECT_EQ(t->answer(slot, {}), CUDAQ_ERR_INVALID_ARG) << "published twice";
}

TEST_P(UnifiedContract, ASlowRequestDelaysNoOther) {
  const auto t = make(2);
  t->send(0, 0);
  const std::uint32_t slow = t->next();
  for (std::uint32_t id = 1; id < 20; ++id) {
    t->send(1, id); // another client: shm serves those of one client in the order of its slots
    const std::uint32_t slot = t->next();
    ASSERT_NE(slot, slow);
    EXPECT_EQ(t->answer(slot, {static_cast<std::uint8_t>(id)}), CUDAQ_OK);
    EXPECT_EQ(t->receive(1), (reply{id, {static_cast<std::uint8_t>(id)}}));
  }
  EXPECT_EQ(t->answer(slow, {0}), CUDAQ_OK);
  EXPECT_EQ(t->receive(0), (reply{0, {0}}));
}

/// The providers that look at a frame before they take a slot for it.
struct FrameContract : TransportContract {};
INSTANTIATE_TEST_SUITE_P(Provider, FrameContract,
                         ::testing::Values(kUdpRing, kUdpUnified, kRoceRing, kRoceUnified, kCpuRoceUc, kCpuRoceRc),
                         name_of);

TEST_P(FrameContract, WhatIsNoRequestTakesNoSlot) {
  const auto t = make(2);
  for (const std::uint32_t id : {1u, 2u}) {
    for (std::uint8_t n = 0; n < 60; ++n)
      t->send_bytes(bytes(std::size_t{n} * 3, n)); // up to some more than a slot
    t->send(0, id);
    EXPECT_EQ(t->id_in(t->next()), id);
  }
}

/// The providers over datagrams: all peers share the slots, and the system may have no room to send.
struct DatagramContract : TransportContract {
  static void answer_without_room(driven_transport &t, std::uint32_t count, full_socket &full) {
    for (std::uint32_t id = 0; id < count; ++id)
      t.send(0, id);
    std::vector<std::uint32_t> slots;
    for (std::uint32_t id = 0; id < count; ++id)
      slots.push_back(t.next());
    full.refuse(INT_MAX);
    for (const std::uint32_t slot : slots)
      t.answer(slot, {7});
    EXPECT_FALSE(t.arrived(0));
  }
  static void expect_answers(driven_transport &t, std::uint32_t count) {
    std::set<std::uint32_t> answered;
    for (std::uint32_t n = 0; n < count; ++n)
      answered.insert(t.receive(0).id);
    EXPECT_EQ(answered.size(), count);
  }
};
INSTANTIATE_TEST_SUITE_P(Provider, DatagramContract, ::testing::Values(kUdpRing, kUdpUnified, kRoceRing, kRoceUnified),
                         name_of);

TEST_P(DatagramContract, ServesAnotherPeerNextWhileOneHoldsAllSlots) {
  const auto t = make(4);
  for (std::uint32_t id = 0; id < 40; ++id)
    t->send(0, id);
  std::uint32_t slots[4], none = 0;
  for (std::uint32_t &slot : slots)
    slot = t->next();
  EXPECT_FALSE(t->poll(none));
  for (const std::uint32_t id : {100u, 101u})
    t->send(1, id);
  for (int n = 0; n < 10; ++n)
    EXPECT_FALSE(t->poll(none));
  for (const auto &[slot, id] : {std::pair{slots[0], 100u}, {slots[1], 101u}, {slots[2], 4u}, {slots[3], 5u}}) {
    EXPECT_EQ(t->answer(slot, {1}), CUDAQ_OK);
    EXPECT_EQ(t->id_in(t->next()), id) << "before the 36 that came earlier; one slot and three are not equal parts";
  }
}

TEST_P(DatagramContract, KeepsAnAnswerWithoutRoomForTheNextCall) {
  const auto t = make(4);
  full_socket full;
  answer_without_room(*t, 1, full);
  full.refuse(1);
  std::uint32_t none = 0;
  EXPECT_FALSE(t->poll(none));
  EXPECT_FALSE(t->arrived(0));
  EXPECT_FALSE(t->poll(none));
  expect_answers(*t, 1);
}

TEST_P(DatagramContract, SendsAtDisconnectWhatFindsRoomLater) {
  const auto t = make(40); // more than a batch
  full_socket full;
  answer_without_room(*t, 40, full);
  full.refuse(3);
  // There is room after three attempts. A machine that is busy may not make them in the 100 ms of one call.
  const auto begin = std::chrono::steady_clock::now();
  int calls = 0;
  EXPECT_TRUE(eventually([&] { return ++calls, t->disconnect().ok(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, (calls - 1) * std::chrono::milliseconds(100));
  expect_answers(*t, 40);
}

TEST_P(DatagramContract, ReportsAtDisconnectHowManyAnswersFindNoRoom) {
  const auto t = make(40);
  t->send(0, 63);
  t->next(); // it has no answer yet
  {
    full_socket full;
    answer_without_room(*t, 39, full);
    const detail::expected<> result = t->disconnect();
    EXPECT_EQ(result.status(), CUDAQ_ERR_TIMEOUT);
    EXPECT_NE(result.text().find("39 answers wait"), std::string::npos) << result.text();
  }
  EXPECT_EQ(t->disconnect().text(), "") << "it may be called again";
  expect_answers(*t, 39);
}

/// A datagram of udp may be shorter than a slot.
struct UdpContract : TransportContract {};
INSTANTIATE_TEST_SUITE_P(Provider, UdpContract, ::testing::Values(kUdpRing, kUdpUnified), name_of);

TEST_P(UdpContract, FillsTheRestOfASlotWithZeros) {
  const auto t = make(4);
  std::memset(t->ring.rx_data_host, 0xAA, 4 * t->ring.rx_stride_sz);
  t->send_bytes(request_bytes(1, 1, {1, 2, 3}));
  const std::uint8_t *const frame = t->ring.rx_data_host + t->next() * t->ring.rx_stride_sz;
  EXPECT_EQ(bytes(frame, frame + kDrivenSlotBytes), request_bytes(1, 1, {1, 2, 3}, kDrivenSlotBytes));
}

/// In the ring shape a disconnect ends the thread that would receive.
struct DataplaneContract : TransportContract {};
INSTANTIATE_TEST_SUITE_P(Provider, DataplaneContract, ::testing::Values(kUdpUnified, kRoceUnified), name_of);

TEST_P(DataplaneContract, ReturnsNoRequestAfterDisconnectUntilItIsLaunched) {
  const auto t = make(4);
  t->send(0, 1);
  const std::uint32_t first = t->next();
  EXPECT_EQ(t->disconnect().text(), "");
  EXPECT_EQ(t->answer(first, {7}), CUDAQ_OK) << "the loop has it already";
  EXPECT_EQ(t->receive(0), (reply{1, {7}}));
  t->send(0, 2);
  t->wait_for_arrival();
  std::uint32_t none = 0;
  for (int n = 0; n < 100; ++n)
    EXPECT_FALSE(t->poll(none));
  t->launch();
  EXPECT_EQ(t->id_in(t->next()), 2u);
}

} // namespace
} // namespace cudaq::realtime::test

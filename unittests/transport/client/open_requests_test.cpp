// SPDX-License-Identifier: Apache-2.0
// The rules of a requester (docs/transport/server_wire.md, "Repeated requests", "BUSY"), without network and clock.
#include "lib/transport/client/open_requests.h"

#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "lib/transport/client/refusal_watch.h"
#include "lib/transport/client/request_driver.h"

#include <cstring>
#include <gtest/gtest.h>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
using meaning = open_requests::meaning;

class OpenRequests : public testing::Test {
protected:
  static constexpr std::uint32_t kWindow = 4, kFrameBytes = 64;
  open_requests requests{kWindow, kFrameBytes, {20 * kMs, 100 * kMs, true}};

  bool begin(std::uint32_t id, std::uint64_t now, bool renews = true, std::uint64_t deadline = kNever,
             std::uint32_t function = CUDAQ_QEC_ENQUEUE_SYNDROMES) {
    const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, function, 2, id, now};
    const std::uint8_t head[] = {7}, body[] = {9};
    return requests.begin(header, head, body, renews, deadline).has_value();
  }
  /// Sends what is due, at most one frame, and returns its bytes.
  std::vector<std::uint8_t> sent(std::uint64_t now) {
    const auto place = requests.due(now);
    if (!place)
      return {};
    requests.mark_sent(*place, now);
    const auto frame = requests.frame(*place);
    return {frame.begin(), frame.end()};
  }
  static cudaq_rpc_header_t header(const std::vector<std::uint8_t> &frame) {
    cudaq_rpc_header_t h{};
    if (frame.size() >= sizeof(h))
      std::memcpy(&h, frame.data(), sizeof(h));
    return h;
  }
  open_requests::result answer(std::uint32_t id, std::int32_t status, std::uint64_t now) {
    return requests.handle({CUDAQ_RPC_MAGIC_RESPONSE, status, 0, id, 0}, now);
  }
};

TEST_F(OpenRequests, RepeatAFrameWithEqualBytesUntilItsAnswer) {
  ASSERT_TRUE(begin(7, 5 * kMs));
  const auto first = sent(5 * kMs);
  EXPECT_EQ(header(first).request_id, 7u);
  EXPECT_EQ(first.size(), sizeof(cudaq_rpc_header_t) + 2);
  EXPECT_TRUE(sent(24 * kMs).empty());
  EXPECT_EQ(requests.next_time(), 25 * kMs);
  EXPECT_EQ(sent(25 * kMs), first);
  EXPECT_EQ(requests.repeated(), 1u);
  const auto taken = answer(7, 0, 26 * kMs);
  EXPECT_EQ(taken.means, meaning::final);
  EXPECT_EQ(taken.attempts, 2u);
  EXPECT_TRUE(sent(90 * kMs).empty());
  EXPECT_EQ(answer(7, 0, 91 * kMs).means, meaning::stray) << "the answer to the second frame";
}

TEST_F(OpenRequests, AreNotRepeatedLaterThanTheirServerRemembersThem) {
  ASSERT_TRUE(begin(1, 0));
  for (std::uint64_t at = 0; at <= 100; at += 20)
    EXPECT_FALSE(sent(at * kMs).empty()) << at;
  EXPECT_TRUE(sent(120 * kMs).empty());
  EXPECT_EQ(requests.size(), 1u) << "its answer may still come";
  EXPECT_EQ(answer(1, 0, 130 * kMs).means, meaning::final);
}

TEST_F(OpenRequests, SendTheSameBytesAfterBusyOfTheLibrary) {
  ASSERT_TRUE(begin(1, 0));
  const auto first = sent(0);
  std::uint64_t now = kMs;
  for (const std::uint64_t wait : {20'000U, 40'000U, 80'000U}) {
    EXPECT_EQ(answer(1, CUDAQ_RPC_ERR_BUSY, now).means, meaning::passed);
    EXPECT_TRUE(sent(now + wait - 1).empty());
    EXPECT_EQ(sent(now += wait), first);
  }
  EXPECT_EQ(requests.busy(), 3u);
}

TEST_F(OpenRequests, SendAnotherRequestAfterBusyOfTheServer) {
  ASSERT_TRUE(begin(1, 0));
  const auto first = sent(0);
  EXPECT_EQ(answer(1, CUDAQ_QEC_SERVER_BUSY, kMs).means, meaning::passed);
  EXPECT_EQ(answer(1, CUDAQ_QEC_SERVER_BUSY, kMs).means, meaning::stray) << "of a repeated frame; it counts once";
  auto second = sent(2 * kMs);
  EXPECT_EQ(header(second).request_id, 1 + kWindow);
  EXPECT_EQ(header(second).ptp_timestamp, 2 * kMs);
  EXPECT_EQ(requests.last_id(), 1 + kWindow);
  EXPECT_EQ(sent(22 * kMs), second) << "repeated with its own bytes";
  std::copy(first.begin(), first.begin() + sizeof(cudaq_rpc_header_t), second.begin());
  EXPECT_EQ(second, first) << "the payload, with its counter, is the same";
  EXPECT_EQ(answer(1, 0, 23 * kMs).means, meaning::stray) << "a late answer to the refused request";
  const auto taken = answer(1 + kWindow, 0, 24 * kMs);
  EXPECT_EQ(taken.means, meaning::final);
  EXPECT_EQ(taken.id, 1u) << "for its caller it is the request that began";
  EXPECT_EQ(taken.attempts, 3u);
}

TEST_F(OpenRequests, AreRefusedInQecDecodeByTheNegativeNumber) {
  ASSERT_TRUE(begin(1, 0, true, kNever, CUDAQ_QEC_DECODE_READOUT) && begin(2, 0));
  sent(0), sent(0);
  EXPECT_EQ(answer(2, -CUDAQ_QEC_SERVER_BUSY, kMs).means, meaning::final);
  EXPECT_EQ(answer(1, -CUDAQ_QEC_SERVER_BUSY, kMs).means, meaning::passed);
  ASSERT_TRUE(begin(2, 0, true, kNever, CUDAQ_QEC_DECODE));
  sent(2 * kMs), sent(2 * kMs);
  EXPECT_EQ(answer(2, CUDAQ_QEC_SERVER_BUSY, 3 * kMs).means, meaning::final) << "a status of a decode";
}

TEST_F(OpenRequests, GiveBusyOfTheServerToACallerThatAsksForIt) {
  ASSERT_TRUE(begin(1, 0, false));
  sent(0);
  EXPECT_EQ(answer(1, CUDAQ_QEC_SERVER_BUSY, kMs).means, meaning::final);
}

TEST_F(OpenRequests, AreRepeatedAnewAfterARefusalLateInTheirTime) {
  ASSERT_TRUE(begin(1, 0));
  sent(0);
  EXPECT_EQ(answer(1, CUDAQ_QEC_SERVER_BUSY, 99 * kMs).means, meaning::passed);
  EXPECT_FALSE(sent(101 * kMs).empty()) << "another request has a time of its own";
  EXPECT_FALSE(sent(190 * kMs).empty());
  EXPECT_TRUE(sent(230 * kMs).empty());
}

TEST_F(OpenRequests, SayAtTheirEndWhetherNothingWasExecuted) {
  const std::uint64_t deadline = 50 * kMs;
  ASSERT_TRUE(begin(1, 0, true, deadline) && begin(2, 0, true, deadline) && begin(3, 0, true, deadline));
  for (int k = 0; k < 3; ++k)
    sent(0);
  EXPECT_EQ(answer(1, CUDAQ_QEC_SERVER_BUSY, 46 * kMs).means, meaning::final) << "too late for another attempt";
  for (int k = 0; k < 2; ++k)
    sent(21 * kMs);
  EXPECT_EQ(answer(2, CUDAQ_RPC_ERR_BUSY, 46 * kMs).means, meaning::passed) << "its first frame has no answer";
  EXPECT_FALSE(requests.expire(49 * kMs));
  for (int k = 0; k < 2; ++k) {
    const auto last = requests.expire(deadline);
    ASSERT_TRUE(last);
    EXPECT_EQ(last->refusal, 0) << last->id;
  }
  EXPECT_FALSE(requests.expire(deadline));
  EXPECT_EQ(requests.size(), 0u);
}

TEST_F(OpenRequests, ThatWereOnlyRefusedEndWithTheirRefusal) {
  ASSERT_TRUE(begin(1, 0) && begin(2, 0) && begin(3, 0));
  sent(0), sent(0);
  EXPECT_EQ(answer(1, CUDAQ_QEC_SERVER_BUSY, kMs).means, meaning::passed);
  EXPECT_EQ(answer(2, CUDAQ_RPC_ERR_BUSY, kMs).means, meaning::passed);
  EXPECT_EQ(requests.give_up(1)->refusal, CUDAQ_QEC_SERVER_BUSY);
  EXPECT_EQ(requests.give_up(2)->refusal, CUDAQ_RPC_ERR_BUSY);
  EXPECT_EQ(requests.give_up(3)->refusal, CUDAQ_RPC_ERR_BUSY) << "no frame of it has left";
  EXPECT_FALSE(requests.give_up(3));
}

TEST_F(OpenRequests, RefuseAPlaceInUseAndAFrameThatIsTooLong) {
  ASSERT_TRUE(begin(1, 0));
  EXPECT_FALSE(begin(1 + kWindow, 0));
  EXPECT_TRUE(begin(2, 0));
  const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, 1, kFrameBytes, 3, 0};
  const std::vector<std::uint8_t> body(kFrameBytes - sizeof(header) + 1);
  EXPECT_FALSE(requests.begin(header, {}, body));
  EXPECT_TRUE(requests.begin(header, {}, std::span(body).first(body.size() - 1)));
}

TEST(RequestsThatAreRepeated, WaitUntilTheirServerCanStillKnowTheOldestOne) {
  open_requests requests(4, 64, {20 * kMs, kNever, true, 5});
  const auto begin = [&](std::uint32_t id) {
    const auto place = requests.begin({CUDAQ_RPC_MAGIC_REQUEST, 1, 0, id, 0}, {}, {}, true);
    if (place)
      requests.mark_sent(*place, 0);
    return place.has_value();
  };
  const auto answered = [&](std::uint32_t id, std::int32_t status) {
    return requests.handle({CUDAQ_RPC_MAGIC_RESPONSE, status, 0, id, 0}, 0).means == meaning::final;
  };
  ASSERT_TRUE(begin(4)); // has no answer
  for (const std::uint32_t id : {5u, 6u, 7u, 9u})
    ASSERT_TRUE(begin(id) && answered(id, 0)) << id;
  ASSERT_TRUE(begin(10)) << "the fifth later one";
  EXPECT_FALSE(begin(11));
  EXPECT_FALSE(answered(10, CUDAQ_QEC_SERVER_BUSY)) << "it is sent again as another request, which is the sixth";
  const auto place = requests.due(kMs);
  ASSERT_TRUE(place);
  requests.mark_sent(*place, kMs);
  EXPECT_TRUE(answered(14, 0));
  EXPECT_FALSE(requests.due(100 * kMs)) << "the oldest one is not repeated any more";
  EXPECT_TRUE(answered(4, 0)) << "its first frame may still be answered";
  EXPECT_TRUE(begin(15));
}

TEST_F(OpenRequests, PassOverWhatIsNoAnswerOfTheirs) {
  ASSERT_TRUE(begin(1, 0));
  EXPECT_EQ(answer(1, 0, 0).means, meaning::stray) << "it was not sent";
  sent(0);
  EXPECT_EQ(answer(1 + kWindow, 0, kMs).means, meaning::stray);
  EXPECT_EQ(requests.handle({CUDAQ_RPC_MAGIC_REQUEST, 0, 0, 1, 0}, kMs).means, meaning::stray);
  EXPECT_EQ(requests.size(), 1u);
}

TEST_F(OpenRequests, LeaveAtOnceAgainForAnotherAddress) {
  ASSERT_TRUE(begin(1, 0));
  const auto first = sent(0);
  requests.send_again(kMs);
  EXPECT_EQ(sent(kMs), first);
}

TEST_F(OpenRequests, HaveNoIdZero) {
  ASSERT_TRUE(begin(UINT32_MAX - kWindow + 1, 0));
  sent(0);
  EXPECT_EQ(answer(UINT32_MAX - kWindow + 1, CUDAQ_QEC_SERVER_BUSY, kMs).means, meaning::passed);
  EXPECT_EQ(header(sent(2 * kMs)).request_id, kWindow) << "0 would be next";
}

TEST(RequestsThatAreSentOnce, GetBusyOfTheLibraryAsTheirAnswer) {
  open_requests requests(1, 64, {});
  ASSERT_TRUE(requests.begin({CUDAQ_RPC_MAGIC_REQUEST, 1, 0, 1, 0}, {}));
  requests.mark_sent(*requests.due(0), 0);
  EXPECT_FALSE(requests.due(UINT64_MAX - 1));
  EXPECT_EQ(requests.handle({CUDAQ_RPC_MAGIC_RESPONSE, CUDAQ_RPC_ERR_BUSY, 0, 1, 0}, 0).means, meaning::final);
}

TEST(RefusalWatch, SaysAbsentOnlyAfterReportsThatGoOn) {
  refusal_watch watch(2000 * kMs, 3000 * kMs);
  watch.refused(0);
  EXPECT_TRUE(watch.any());
  watch.refused(1500 * kMs);
  EXPECT_FALSE(watch.is_absent());
  watch.refused(3000 * kMs);
  EXPECT_TRUE(watch.is_absent());
  watch.answered();
  EXPECT_FALSE(watch.any() || watch.is_absent());
}

TEST(RefusalWatch, GoesOnAfterAReportOfAnEarlierTime) {
  refusal_watch watch(2000 * kMs, 3000 * kMs);
  watch.refused(0);
  watch.refused(1500 * kMs);
  watch.refused(1400 * kMs);
  EXPECT_FALSE(watch.is_absent());
  watch.refused(3000 * kMs);
  EXPECT_TRUE(watch.is_absent());
}

TEST(RefusalWatch, DoesNotCountATimeInWhichItsOwnProcessStoodStill) {
  refusal_watch watch(2000 * kMs, 3000 * kMs);
  watch.refused(0);
  watch.refused(9000 * kMs);
  EXPECT_FALSE(watch.is_absent());
  watch.refused(10'000 * kMs);
  EXPECT_FALSE(watch.is_absent());
}

// Open requests on a link that has no room, floods, or finds another address.

/// Answers each frame, after so many refusals to take one.
class made_up_link final : public frame_link {
public:
  struct script {
    int no_room = 0;
    bool floods = false, other_address = false;
    int sent = 0;
    std::vector<std::uint64_t> waits;
  };
  explicit made_up_link(script &s) : script_(s) {}

  bool send(std::span<const std::uint8_t> frame, std::uint64_t) override {
    if (script_.no_room-- > 0)
      return false;
    ++script_.sent;
    cudaq_rpc_header_t header;
    std::memcpy(&header, frame.data(), sizeof(header));
    answer_ = {CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, header.request_id, header.ptp_timestamp};
    answered_ = !std::exchange(script_.other_address, false);
    refused_ = !answered_;
    return true;
  }
  std::optional<arrival> receive(std::uint64_t) override {
    if (script_.floods)
      return arrival{{stray_, sizeof(stray_)}, std::nullopt};
    elsewhere_ = std::exchange(refused_, false);
    if (!std::exchange(answered_, false))
      return std::nullopt;
    return arrival{{reinterpret_cast<const std::uint8_t *>(&answer_), sizeof(answer_)}, std::nullopt};
  }
  void wait(std::uint64_t time_ns) override { script_.waits.push_back(time_ns); }
  bool changed_address() override { return std::exchange(elsewhere_, false); }
  [[nodiscard]] expected<> check() override { return {}; }
  [[nodiscard]] std::uint64_t slot_size() const override { return 64; }

private:
  script &script_;
  cudaq_rpc_response_t answer_{};
  bool answered_ = false, refused_ = false, elsewhere_ = false;
  std::uint8_t stray_[24] = {};
};

constexpr std::uint64_t kHour = 3'600'000'000'000;

request_driver driver_of(made_up_link::script &script) {
  return {std::make_unique<made_up_link>(script), 1, 64, {kHour, kNever, true}};
}

TEST(RequestDriver, LooksAgainAfterATimeIfTheLinkHasNoRoom) {
  made_up_link::script script;
  script.no_room = 4;
  request_driver driver = driver_of(script);
  ASSERT_TRUE(driver.send(7, {}, {}, true, kNever).ok());
  ASSERT_TRUE(driver.wait(kNever).ok());
  EXPECT_EQ(script.sent, 1);
  ASSERT_GE(script.waits.size(), 2u);
  for (std::size_t k = 0; k < 2; ++k)
    EXPECT_EQ(script.waits[k], 50'000u) << "neither without a pause nor until the frame is due again";
}

TEST(RequestDriver, EndsAtItsTimeUnderAFlood) {
  made_up_link::script script;
  script.floods = true;
  request_driver driver = driver_of(script);
  ASSERT_TRUE(driver.send(7, {}, {}, true, 1'000'000).ok());
  const auto none = driver.wait(0);
  EXPECT_EQ(none.status(), CUDAQ_ERR_TIMEOUT);
  const auto news = driver.wait(kNever);
  ASSERT_TRUE(news.ok());
  EXPECT_EQ(news->what, request_news::event::no_answer);
  EXPECT_GT(driver.unexpected(), 1000u);
}

TEST(RequestDriver, SendsAtOnceToAnotherAddress) {
  made_up_link::script script;
  script.other_address = true;
  request_driver driver = driver_of(script);
  ASSERT_TRUE(driver.send(7, {}, {}, true, kNever).ok());
  ASSERT_TRUE(driver.wait(kNever).ok());
  EXPECT_EQ(script.sent, 2);
  EXPECT_EQ(driver.requests().repeated(), 1u);
}

} // namespace
} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// Open requests on a link that has no room, floods, or finds another address.
#include "lib/transport/client/request_driver.h"

#include <cstring>
#include <gtest/gtest.h>

namespace cudaq::realtime::detail {
namespace {

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

// SPDX-License-Identifier: Apache-2.0
// The client's link over shared memory, with a ring and a connection that the test plays: it defines the functions of
// shm_client.h that the link calls.
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "lib/transport/client/frame_link.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>

namespace {

constexpr std::uint32_t kSlots = 4, kSlotSize = 64;

struct played_ring {
  std::array<std::uint64_t, kSlots> rx_flags{}, tx_flags{};
  alignas(64) std::array<std::uint8_t, kSlots * kSlotSize> rx{}, tx{};
  int alive = 1, looks = 0;
};
played_ring played;

} // namespace

extern "C" {
cudaq_status_t cudaq_shm_client_attach(cudaq_shm_client_t **, const char *, uint64_t,
                                       const cudaq_shm_client_options_t *) {
  played = {};
  return CUDAQ_OK;
}
cudaq_status_t cudaq_shm_client_ring(const cudaq_shm_client_t *, cudaq_ringbuffer_t *out, uint32_t *slots,
                                     uint32_t *size) {
  out->rx_flags_host = played.rx_flags.data(), out->tx_flags_host = played.tx_flags.data();
  out->rx_data_host = played.rx.data(), out->tx_data_host = played.tx.data();
  out->rx_stride_sz = out->tx_stride_sz = kSlotSize;
  *slots = kSlots, *size = kSlotSize;
  return CUDAQ_OK;
}
int cudaq_shm_client_alive(const cudaq_shm_client_t *) {
  ++played.looks;
  return played.alive;
}
void cudaq_shm_client_signal(cudaq_shm_client_t *, uint32_t slot) { played.rx_flags[slot] = 1; }
cudaq_status_t cudaq_shm_client_wait(cudaq_shm_client_t *, uint32_t, uint64_t) { return CUDAQ_ERR_TIMEOUT; }
cudaq_status_t cudaq_shm_client_detach(cudaq_shm_client_t *) { return CUDAQ_OK; }
const char *cudaq_shm_client_error(void) { return ""; }
}

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kMs = 1'000'000, kStart = 1'000 * kMs;

class ShmLink : public ::testing::Test {
protected:
  void SetUp() override {
    auto made = make_shm_link("played", 0);
    ASSERT_TRUE(made.ok());
    link = std::move(*made);
  }
  void send(std::uint32_t id) {
    const cudaq_rpc_header_t header{CUDAQ_RPC_MAGIC_REQUEST, 7, 0, id, 0};
    ASSERT_TRUE(link->send({reinterpret_cast<const std::uint8_t *>(&header), sizeof(header)}, kStart));
  }
  /// The server's answer, with any frame and any flag.
  static void answer(std::uint32_t slot, std::uint64_t flag, std::uint32_t magic, std::int32_t status,
                     std::uint32_t id) {
    const cudaq_rpc_response_t frame{magic, status, 0, id, 0};
    std::memcpy(played.tx.data() + std::size_t{slot} * kSlotSize, &frame, sizeof(frame));
    played.rx_flags[slot] = 0;
    played.tx_flags[slot] = flag;
  }
  /// Status and id of the answer that comes.
  std::pair<std::int32_t, std::uint32_t> received() {
    const auto arrived = link->receive(kStart);
    if (!arrived || arrived->frame.size() < sizeof(cudaq_rpc_response_t))
      return {1, 0};
    cudaq_rpc_response_t frame;
    std::memcpy(&frame, arrived->frame.data(), sizeof(frame));
    EXPECT_EQ(frame.magic, CUDAQ_RPC_MAGIC_RESPONSE);
    return {std::int32_t{frame.status}, std::uint32_t{frame.request_id}};
  }

  std::unique_ptr<frame_link> link;
};

TEST_F(ShmLink, NoticesTheEndOfTheServerWhileSeveralSlotsWaitAndEachWaitIsShort) {
  send(1);
  send(2);
  for (std::uint64_t at = kStart; at < kStart + 30 * kMs; at += kMs / 10) {
    (void)link->receive(at);
    ASSERT_TRUE(link->check().ok());
  }
  EXPECT_LE(played.looks, 4) << "each is a call of the system";
  played.alive = 0;
  (void)link->receive(kStart + 40 * kMs);
  EXPECT_EQ(link->check().status(), CUDAQ_ERR_STATE);
}

TEST_F(ShmLink, DeliversTheLastAnswersOfAServerThatHasEnded) {
  send(1);
  send(2);
  played.alive = 0;
  (void)link->receive(kStart);
  answer(1, 1, CUDAQ_RPC_MAGIC_RESPONSE, 0, 2);
  EXPECT_TRUE(link->check().ok());
  EXPECT_EQ(received(), std::pair(0, 2u));
  EXPECT_EQ(link->check().status(), CUDAQ_ERR_STATE);
}

TEST_F(ShmLink, ALaunchThatFailedIsAnAnswerAndTheFrameInItsSlotIsNot) {
  send(1);
  answer(0, CUDAQ_TX_FLAG_ERROR_TAG << CUDAQ_TX_FLAG_ERROR_SHIFT | 700, CUDAQ_RPC_MAGIC_RESPONSE, 0, 77);
  EXPECT_EQ(received(), std::pair(std::int32_t{CUDAQ_RPC_ERR_LAUNCH_FAILED}, 1u));
  EXPECT_EQ(played.tx_flags[0], 0u) << "the slot is given back";
}

TEST_F(ShmLink, AFrameThatIsNoResponseIsNotARequestThatWasDropped) {
  send(1);
  answer(0, 1, CUDAQ_RPC_MAGIC_REQUEST, 0, 1);
  EXPECT_EQ(received(), std::pair(std::int32_t{CUDAQ_RPC_ERR_NO_RESPONSE}, 1u));
  EXPECT_EQ(played.tx_flags[0], 0u);
}

} // namespace
} // namespace cudaq::realtime::detail

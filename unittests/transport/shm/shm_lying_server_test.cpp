// SPDX-License-Identifier: Apache-2.0
// A server of shared memory that lies: in its reply to a client that attaches, and in each byte of the ring.
#include "cudaq/qec/realtime/decoding_client.h"
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/support/test_scale.h"
#include "unittests/transport/shm/attach_by_hand.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <cstring>
#include <functional>
#include <random>

namespace cudaq::realtime::test {
namespace {

/// Numbers at which programs go wrong, and others.
template <class T>
T odd_number(std::mt19937_64 &random, T honest) {
  const std::uint64_t numbers[] = {0,          1,          3,         23,         24,      63,         64,
                                   65,         4095,       4096,      65536,      65537,   1ULL << 24, 0x7FFFFFFF,
                                   0x80000000, UINT32_MAX, INT64_MAX, UINT64_MAX, random()};
  const std::uint64_t chosen = random() % 4 == 0 ? static_cast<std::uint64_t>(honest) + random() % 5 - 2
                                                 : numbers[random() % std::size(numbers)];
  return static_cast<T>(chosen);
}

TEST(ShmLyingServer, IsRefusedOrItsRingCanBeUsed) {
  std::mt19937_64 random(20261128);
  const auto next = [&random] {
    attach_answer what = honest_answer();
    detail::shm_layout &at = what.reply.layout;
    const std::function<void()> lies[] = {
        [] {}, // an honest one
        [&] { at.num_slots = odd_number(random, at.num_slots); },
        [&] { at.slot_size = odd_number(random, at.slot_size); },
        [&] { at.stride = odd_number(random, at.stride); },
        [&] { at.rx_flags = odd_number(random, at.rx_flags); },
        [&] { at.tx_flags = odd_number(random, at.tx_flags); },
        [&] { at.rx_data = odd_number(random, at.rx_data); },
        [&] { at.tx_data = odd_number(random, at.tx_data); },
        [&] { at.bytes = odd_number(random, at.bytes); },
        [&] { // another ring, whose memory is shorter or longer
          at = detail::make_shm_layout(odd_number(random, 4U), odd_number(random, 64U), detail::shm_page(false));
          at.bytes = random() % 2 == 0 ? what.segment_bytes : at.bytes;
        },
        [&] { what.segment_bytes = odd_number(random, what.segment_bytes) % (1U << 28); },
        [&] { what.bell_bytes = odd_number(random, what.bell_bytes) % (1U << 28); },
        [&] { what.reply.status = odd_number(random, 0); },
        [&] { what.reply.magic = odd_number(random, what.reply.magic); },
        [&] { what.reply.version = odd_number(random, 2U); },
        [&] { what.bytes = random() % (sizeof(detail::shm_gpu_reply) + 1); },
        [&] { what.files = random() % 4; }};
    for (std::uint64_t n = 1 + random() % 3; n != 0; --n)
      lies[random() % std::size(lies)]();
    std::memset(what.reply.text, 'x', sizeof(what.reply.text));
    return what;
  };
  const std::string name = own_name("lies");
  lying_server server(name, next);
  const std::uint64_t cases = number_from("CUDAQ_TEST_SHM_LIES", load_size(500));
  std::uint64_t taken = 0;
  for (std::uint64_t n = 0; n < cases; ++n) {
    cudaq_shm_client_t *client = nullptr;
    const cudaq_status_t status = cudaq_shm_client_attach(&client, name.c_str(), 0, nullptr);
    ASSERT_STRNE(cudaq_status_string(status), "unknown cudaq_status_t") << n;
    if (status != CUDAQ_OK) {
      EXPECT_STRNE(cudaq_shm_client_error(), "") << n;
      continue;
    }
    ++taken;
    cudaq_ringbuffer_t ring{};
    std::uint32_t slots = 0, size = 0;
    ASSERT_EQ(cudaq_shm_client_ring(client, &ring, &slots, &size), CUDAQ_OK);
    const std::vector<std::uint8_t> payload(size - CUDAQ_RPC_HEADER_SIZE);
    for (const std::uint32_t slot : {0U, slots - 1}) {
      (void)cudaq_host_ringbuffer_write_rpc_request(&ring, slot, 1, payload.data(),
                                                    static_cast<std::uint32_t>(payload.size()), 1, 1);
      cudaq_shm_client_signal(client, slot);
      EXPECT_NE(cudaq_shm_client_wait(client, slot, 0), CUDAQ_OK);
    }
    cudaq_shm_client_detach(client);
  }
  EXPECT_GT(taken, cases / 50) << "honest ones, and lies without effect";
  EXPECT_LT(taken, cases / 2);
  std::printf("%llu replies, %llu taken\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(taken));
}

TEST(ShmLyingServer, ThatWritesAnythingIntoTheRingHarmsNoClient) {
  std::mt19937_64 random(7);
  const auto scribble = [&random](std::uint8_t *segment, std::uint8_t *, const detail::shm_layout &at) {
    const std::uint64_t slot = random() % at.num_slots;
    auto *const rx = reinterpret_cast<std::uint64_t *>(segment + at.rx_flags) + slot,
                *tx = reinterpret_cast<std::uint64_t *>(segment + at.tx_flags) + slot;
    cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, 0, 0};
    std::memcpy(&header.request_id, segment + at.rx_data + slot * at.stride + offsetof(cudaq_rpc_header_t, request_id),
                sizeof header.request_id);
    std::memcpy(&header.ptp_timestamp,
                segment + at.rx_data + slot * at.stride + offsetof(cudaq_rpc_header_t, ptp_timestamp),
                sizeof header.ptp_timestamp);
    header.result_len = odd_number(random, 8U);
    header.status = random() % 2 == 0 ? 0 : odd_number(random, 0);
    header.magic = random() % 8 == 0 ? odd_number(random, 0U) : header.magic;
    header.request_id += random() % 8 == 0 ? 1 : 0;
    std::memcpy(segment + at.tx_data + slot * at.stride, &header, sizeof header);
    if (random() % 4 != 0)
      detail::store_release<std::uint64_t>(*rx, random() % 16 == 0 ? random() : 0);
    const std::uint64_t flags[] = {1, 1, 1, 0, CUDAQ_TX_FLAG_IN_FLIGHT, random(), UINT64_MAX};
    detail::store_release<std::uint64_t>(*tx, flags[random() % std::size(flags)]);
  };
  const std::string name = own_name("scribbles");
  lying_server server(name, honest_answer, scribble);
  const std::uint64_t cases = number_from("CUDAQ_TEST_SHM_LIES", load_size(120));
  std::uint64_t answered = 0;
  cudaq_qec_client_t *client = nullptr;
  for (std::uint64_t n = 0; n < cases; ++n) {
    cudaq_qec_client_options_t options{};
    options.struct_size = sizeof(options);
    options.max_open = 2;
    if (client == nullptr) {
      ASSERT_EQ(cudaq_qec_client_open_shm(&client, name.c_str(), kPatience, &options), CUDAQ_OK)
          << cudaq_qec_client_error();
    }
    const std::uint64_t body = n;
    const cudaq_qec_client_request_t request{CUDAQ_QEC_RESET_DECODER, 0, nullptr, 0, &body, sizeof body, 5'000'000};
    cudaq_qec_client_answer_t answer{};
    const cudaq_status_t status = cudaq_qec_client_call(client, &request, &answer);
    ASSERT_TRUE(status == CUDAQ_OK || status == CUDAQ_ERR_TIMEOUT || status == CUDAQ_ERR_UNSUPPORTED)
        << n << ": " << status << " " << cudaq_qec_client_error();
    answered += status == CUDAQ_OK ? 1 : 0;
    if (status == CUDAQ_OK) {
      ASSERT_LE(answer.result_bytes, 64 - sizeof(cudaq_rpc_response_t)) << n;
    }
    if (n % 50 == 49) // another ring
      cudaq_qec_client_close(std::exchange(client, nullptr));
  }
  cudaq_qec_client_close(client);
  EXPECT_GT(answered, 0U);
  std::printf("%llu requests, %llu answered\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(answered));
}

/// The clients attach one after the other, send, and wait a little. How many got a ring.
std::uint64_t rings_of_gpu_clients(const std::string &name, std::uint64_t cases) {
  started_program client({CUDAQ_SHM_GPU_CLIENT, "lied", name, std::to_string(cases)});
  const std::string text = client.line();
  EXPECT_EQ(text.rfind("DONE ", 0), 0U) << text;
  EXPECT_EQ(client.wait(), 0);
  return text.size() > 5 ? std::strtoull(text.c_str() + 5, nullptr, 10) : 0;
}

TEST(ShmLyingServer, IsRefusedOrItsRingInTheMemoryOfAGpuCanBeUsed) {
  std::mt19937_64 random(20261129);
  const auto next = [&random] {
    attach_answer what = honest_answer_on_gpu();
    detail::shm_layout &at = what.reply.layout;
    const std::function<void()> lies[] = {
        [] {},
        [&] { at.num_slots = odd_number(random, at.num_slots); },
        [&] { at.slot_size = odd_number(random, at.slot_size); },
        [&] { at.rx_flags = odd_number(random, at.rx_flags); },
        [&] { at.tx_flags = odd_number(random, at.tx_flags); },
        [&] { at.rx_data = odd_number(random, at.rx_data); },
        [&] { at.bytes = odd_number(random, at.bytes); },
        [&] { // another ring, in the same memory
          at = detail::make_gpu_layout(odd_number(random, 4U), odd_number(random, 64U), detail::shm_page(false));
        },
        [&] { what.requests.bytes = odd_number(random, what.requests.bytes); },
        [&] { what.gpu_bytes = 1 + odd_number(random, what.gpu_bytes) % (1U << 28); },
        [&] { what.requests.device_uuid[random() % 16] = static_cast<std::uint8_t>(random()); },
        [&] { what.reply.version = odd_number(random, 2U); },
        [&] { what.bytes = random() % (sizeof(detail::shm_gpu_reply) + 1); },
        [&] { what.files = random() % 4; }};
    for (std::uint64_t n = 1 + random() % 3; n != 0; --n)
      lies[random() % std::size(lies)]();
    return what;
  };
  const std::string name = own_name("gpulies");
  lying_server server(name, next);
  const std::uint64_t cases = number_from("CUDAQ_TEST_SHM_LIES", load_size(300));
  const std::uint64_t taken = rings_of_gpu_clients(name, cases);
  EXPECT_GT(taken, cases / 50);
  EXPECT_LT(taken, cases / 2);
  std::printf("%llu replies, %llu taken\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(taken));
}

TEST(ShmLyingServer, ThatWritesAnythingIntoFlagsAndLapsOfARingOnAGpuHarmsNoClient) {
  std::mt19937_64 random(11);
  const auto scribble = [&random](std::uint8_t *segment, std::uint8_t *gpu, const detail::shm_layout &at) {
    const std::uint64_t slot = random() % at.num_slots, lap = detail::lap_distance(at.num_slots);
    const std::uint64_t words[] = {0, 0, 1, 2, CUDAQ_TX_FLAG_IN_FLIGHT, random(), UINT64_MAX};
    const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 0, odd_number(random, 8U),
                                      static_cast<std::uint32_t>(random() % 4), 0};
    std::memcpy(segment + at.tx_data + slot * at.stride, &header, sizeof header);
    for (std::uint64_t *const flags : {reinterpret_cast<std::uint64_t *>(gpu + at.rx_flags),
                                       reinterpret_cast<std::uint64_t *>(segment + at.tx_flags)})
      for (const std::uint64_t word : {slot, slot + lap})
        if (random() % 2 == 0)
          detail::store_release<std::uint64_t>(flags[word], words[random() % std::size(words)]);
  };
  const std::string name = own_name("gpuscrib");
  lying_server server(
      name, [] { return honest_answer_on_gpu(); }, scribble);
  const std::uint64_t cases = number_from("CUDAQ_TEST_SHM_LIES", load_size(60));
  EXPECT_EQ(rings_of_gpu_clients(name, cases), cases);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The send requests of gpu-roce, byte for byte; where the headers of rdma-core are installed, also against these.
#include "contrib/gpu_roce/send_request.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#if __has_include(<infiniband/mlx5dv.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#include <infiniband/mlx5dv.h>
#pragma GCC diagnostic pop
#define HAS_MLX5DV
#endif

namespace cudaq::realtime::test {
namespace {

using namespace detail;
using bytes = std::array<std::uint8_t, 64>;

bytes made(std::uint64_t index, std::uint32_t length, std::uint64_t remote = 0) {
  std::array<std::uint8_t, 128> answer{};
  for (std::size_t i = 0; i < answer.size(); ++i)
    answer[i] = static_cast<std::uint8_t>(i + 1);
  send_request request{};
  make_send_request(request, index, 0x1c7 << 8, answer.data(), length, remote, 0x11223344);
  bytes out;
  std::memcpy(out.data(), &request, out.size());
  return out;
}

TEST(SendRequest, HoldsAShortAnswer) {
  bytes expected{0, 0, 5, 0x0a, 0, 1, 0xc7, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0x80, 0, 0, 3, 1, 2, 3};
  EXPECT_EQ(made(0x10005, 3), expected) << "the index has 16 bits";
}

TEST(SendRequest, HoldsAtMost44Bytes) {
  bytes out = made(0, 44);
  EXPECT_EQ(out[7], 4) << "four units, the whole request";
  EXPECT_EQ(out[63], 44);
  EXPECT_EQ(made(0, 12)[7], 2);
  EXPECT_EQ(made(0, 13)[7], 3);
  EXPECT_EQ(made(0, 28)[7], 3);
  EXPECT_EQ(made(0, 29)[7], 4);
}

TEST(SendRequest, PointsToALongAnswer) {
  bytes expected{0, 1, 2, 0x0a, 0,    1,    0xc7, 2,    0, 0, 0, 4, 0, 0, 0, 0,
                 0, 0, 0, 45,   0x11, 0x22, 0x33, 0x44, 8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_EQ(made(0x102, 45, 0x0807060504030201), expected);
}

TEST(SendRequest, IsWhatRdmaCoreMakes) {
#ifdef HAS_MLX5DV
  static_assert(offsetof(mlx5_cqe64, imm_inval_pkey) == 36 && offsetof(mlx5_cqe64, wqe_counter) == 60 &&
                sizeof(mlx5_cqe64) == 64); // adapter_queues.cuh
  static_assert(MLX5_CQE_RESP_WR_IMM == 1 && MLX5_CQE_RESP_ERR == 14 && MLX5_CQE_INVALID == 15);
  constexpr std::uint8_t kOnError = 1 << 2; // no name in rdma-core
  bytes expected{};
  auto *const control = reinterpret_cast<mlx5_wqe_ctrl_seg *>(expected.data());
  mlx5dv_set_ctrl_seg(control, 0x102, MLX5_OPCODE_SEND, 0, 0x1c7, kOnError, 2, 0, 0);
  mlx5dv_set_data_seg(reinterpret_cast<mlx5_wqe_data_seg *>(control + 1), 45, 0x11223344, 0x0807060504030201);
  EXPECT_EQ(made(0x102, 45, 0x0807060504030201), expected);

  expected = {};
  mlx5dv_set_ctrl_seg(control, 7, MLX5_OPCODE_SEND, 0, 0x1c7, kOnError, 3, 0, 0);
  reinterpret_cast<mlx5_wqe_inl_data_seg *>(control + 1)->byte_count = htobe32(20 | MLX5_INLINE_SEG);
  for (std::uint8_t i = 0; i < 20; ++i)
    expected[20u + i] = static_cast<std::uint8_t>(i + 1);
  EXPECT_EQ(made(7, 20), expected);
#else
  GTEST_SKIP() << "the headers of rdma-core (libibverbs-dev) are not installed";
#endif
}

} // namespace
} // namespace cudaq::realtime::test

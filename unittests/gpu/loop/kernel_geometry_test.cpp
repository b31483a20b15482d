// SPDX-License-Identifier: Apache-2.0
// Strides and slot sizes. An accepted geometry can be used up to its last byte, and no byte beyond is written; any
// other is refused.
#include "unittests/gpu/support/gpu_dispatcher.h"

#include <array>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint8_t kCanary = 0xc5;

/// Mapped memory for a ring with the strides that the test chooses.
class hand_made_ring {
public:
  static constexpr std::uint32_t kSlots = 5;
  static constexpr std::size_t kMaxStride = 4096;

  hand_made_ring() {
    void *memory = nullptr;
    CUDA_EXPECT_OK(cudaHostAlloc(&memory, kTxData + kSlots * kMaxStride + kEnd, cudaHostAllocMapped));
    base_ = static_cast<std::uint8_t *>(memory);
  }
  ~hand_made_ring() { CUDA_EXPECT_OK(cudaFreeHost(base_)); }

  /// `shift`: distance in bytes from the start of a page to the first slot.
  cudaq_ringbuffer_t with(std::size_t rx_stride, std::size_t tx_stride, std::size_t shift = 0) {
    std::memset(base_, 0, kRxData);
    std::memset(base_ + kRxData, kCanary, kTxData + kSlots * kMaxStride + kEnd - kRxData);
    cudaq_ringbuffer_t ring{};
    ring.rx_flags_host = reinterpret_cast<std::uint64_t *>(base_);
    ring.tx_flags_host = reinterpret_cast<std::uint64_t *>(base_ + 1024);
    ring.rx_data_host = base_ + kRxData + shift;
    ring.tx_data_host = base_ + kTxData + shift;
    ring.rx_stride_sz = rx_stride;
    ring.tx_stride_sz = tx_stride;
    std::uint8_t *dev = base_;
    CUDA_EXPECT_OK(cudaHostGetDevicePointer(reinterpret_cast<void **>(&dev), base_, 0));
    ring.rx_flags = reinterpret_cast<std::uint64_t *>(dev);
    ring.tx_flags = reinterpret_cast<std::uint64_t *>(dev + 1024);
    ring.rx_data = dev + kRxData + shift;
    ring.tx_data = dev + kTxData + shift;
    return ring;
  }
  /// Counts the changed bytes that do not belong to the first `slot_size` bytes of a slot.
  static std::size_t damage(const cudaq_ringbuffer_t &ring, std::uint32_t slot_size) {
    std::size_t wrong = 0;
    for (std::uint32_t i = 0; i < kSlots; ++i)
      for (std::size_t b = slot_size; b < ring.tx_stride_sz; ++b)
        wrong += ring.tx_data_host[i * ring.tx_stride_sz + b] != kCanary;
    for (std::size_t b = 0; b < kEnd; ++b)
      wrong += ring.tx_data_host[kSlots * ring.tx_stride_sz + b] != kCanary;
    return wrong;
  }

private:
  static constexpr std::size_t kRxData = 4096, kEnd = 64;
  static constexpr std::size_t kTxData = kRxData + kSlots * kMaxStride + kEnd;
  std::uint8_t *base_ = nullptr;
};

class KernelGeometry : public gpu_test, public ::testing::WithParamInterface<kernel_kind> {
protected:
  /// Serves seven requests of sizes up to the largest one in a ring of this geometry.
  void serve(const gpu_setup &setup, std::uint32_t usable) {
    gpu_dispatcher dispatcher(manager_.get, setup);
    ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
    gpu_client client(setup.ring, setup.shape.num_slots);
    const std::uint32_t max_size = usable - CUDAQ_RPC_HEADER_SIZE;
    std::uint32_t id = 0;
    for (const std::uint32_t size :
         {max_size, 0u, max_size / 2, max_size, max_size - (max_size != 0), max_size / 3, max_size})
      ASSERT_NO_FATAL_FAILURE(expect_serves(client, ++id, size));
    EXPECT_EQ(hand_made_ring::damage(setup.ring, usable), 0u);
  }
  manager_handle manager_;
};

// Known failure 27.
TEST_P(KernelGeometry, ServesEveryStrideThatIsAMultipleOf8) {
  hand_made_ring memory;
  for (std::uint32_t stride = 24; stride <= 1024; stride += 8) {
    SCOPED_TRACE("stride " + std::to_string(stride));
    gpu_setup setup{GetParam(), {hand_made_ring::kSlots, 0, false}, memory.with(stride, stride), {}};
    ASSERT_NO_FATAL_FAILURE(serve(setup, stride));
  }
}

// The bytes of a slot beyond slot_size are not the library's.
// Known failures 8, 27.
TEST_P(KernelGeometry, StaysWithinTheUsableBytesOfASlot) {
  hand_made_ring memory;
  for (const std::uint32_t stride : {64u, 72u, 512u, 1000u, 4096u})
    for (const std::uint32_t spare : {8u, 16u, 40u}) {
      SCOPED_TRACE("stride " + std::to_string(stride) + ", not usable: " + std::to_string(spare));
      gpu_setup setup{GetParam(), {hand_made_ring::kSlots, stride - spare, false}, memory.with(stride, stride), {}};
      ASSERT_NO_FATAL_FAILURE(serve(setup, stride - spare));
    }
}

TEST_P(KernelGeometry, ServesStridesThatDifferAndBasesThatAreNotLines) {
  hand_made_ring memory;
  for (const auto &[rx, tx, shift] :
       std::vector<std::array<std::size_t, 3>>{{128, 256, 0}, {264, 96, 0}, {128, 128, 8}, {136, 128, 24}}) {
    SCOPED_TRACE("strides " + std::to_string(rx) + " and " + std::to_string(tx) + ", shift " + std::to_string(shift));
    const auto usable = static_cast<std::uint32_t>(rx < tx ? rx : tx);
    gpu_setup setup{GetParam(), {hand_made_ring::kSlots, usable, false}, memory.with(rx, tx, shift), {}};
    ASSERT_NO_FATAL_FAILURE(serve(setup, usable));
  }
}

TEST_P(KernelGeometry, RefusesTheRestWithAText) {
  hand_made_ring memory;
  struct wrong {
    std::size_t rx, tx, shift;
    std::uint32_t num_slots, slot_size;
    const char *what;
  };
  for (const wrong &w :
       {wrong{16, 64, 0, 5, 0, "a stride shorter than a header"},
        wrong{64, 16, 0, 5, 0, "a TX stride shorter than a header"},
        wrong{75, 75, 0, 5, 0, "a stride that is not a multiple of 8"},
        wrong{64, 68, 0, 5, 0, "a TX stride that is not a multiple of 8"},
        wrong{64, 64, 4, 5, 0, "slots that are not aligned to 8"},
        wrong{64, 64, 0, 5, 72, "a slot size beyond the stride"}, wrong{64, 64, 0, 0, 0, "no slots"}}) {
    SCOPED_TRACE(w.what);
    const gpu_setup setup{GetParam(), {w.num_slots, w.slot_size, false}, memory.with(w.rx, w.tx, w.shift), {}};
    gpu_dispatcher dispatcher(manager_.get, setup);
    const call_result started = dispatcher.start();
    if (GetParam().unified()) { // the geometry is the transport's, and its launch function refuses it
      EXPECT_NE(started.status, CUDAQ_OK);
    } else {
      EXPECT_EQ(started.status, CUDAQ_ERR_INVALID_ARG) << started.text;
    }
    EXPECT_GT(started.text.size(), 10u);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, KernelGeometry, ::testing::ValuesIn(each_kind()), name_of_kind);

} // namespace
} // namespace cudaq::realtime::test

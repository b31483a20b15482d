// SPDX-License-Identifier: Apache-2.0
// The requester of a ring in mapped or in device memory that a kernel serves.
#pragma once

#include "cudaq/realtime/detail/base/flag_word.h"
#include "cudaq/realtime/detail/base/slot_memory.h"
#include "unittests/gpu/support/gpu_test.h"

#include <memory>

namespace cudaq::realtime::test {

using detail::load_acquire; // for words that a kernel also uses
using detail::store_release;

/// Access to single slots.
class slot_access {
public:
  virtual ~slot_access() = default;
  virtual bool free(std::uint32_t slot) = 0;
  virtual void write(std::uint32_t slot, const cudaq_rpc_header_t &header,
                     const std::vector<std::uint8_t> &payload) = 0;
  /// flag 0: signals the address of the slot itself.
  virtual void signal(std::uint32_t slot, std::uint64_t flag) = 0;
  virtual std::uint64_t rx_flag(std::uint32_t slot) = 0;
  virtual std::uint64_t tx_flag(std::uint32_t slot) = 0;
  virtual void read(std::uint32_t slot, answer &out) = 0;
  virtual void clear(std::uint32_t slot) = 0;
};

/// A ring in mapped memory. It uses the slot helpers of the C API, and plain stores for wrong requests.
class mapped_slots : public slot_access {
public:
  explicit mapped_slots(const cudaq_ringbuffer_t &ring) : ring_(ring) {}

  bool free(std::uint32_t slot) override { return cudaq_host_ringbuffer_slot_available(&ring_, slot) == 1; }
  void write(std::uint32_t slot, const cudaq_rpc_header_t &header, const std::vector<std::uint8_t> &payload) override {
    const auto bytes = static_cast<std::uint32_t>(payload.size());
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, header.function_id, payload.data(), bytes,
                                                            header.request_id, header.ptp_timestamp));
    std::memcpy(ring_.rx_data_host + slot * ring_.rx_stride_sz, &header,
                sizeof(header)); // overwrites it with any header, right or wrong
  }
  void signal(std::uint32_t slot, std::uint64_t flag) override {
    if (flag == 0)
      cudaq_host_ringbuffer_signal_slot(&ring_, slot);
    else
      store_release(ring_.rx_flags_host[slot], flag);
    detail::fence_posted_stores(); // the memory may be write-combining
  }
  std::uint64_t rx_flag(std::uint32_t slot) override { return load_acquire(ring_.rx_flags_host[slot]); }
  std::uint64_t tx_flag(std::uint32_t slot) override { return load_acquire(ring_.tx_flags_host[slot]); }
  void read(std::uint32_t slot, answer &out) override {
    const void *result = nullptr;
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &out.header, &result));
    const auto *bytes = static_cast<const std::uint8_t *>(result);
    if (bytes != nullptr)
      out.result.assign(bytes, bytes + out.header.result_len);
  }
  void clear(std::uint32_t slot) override { cudaq_host_ringbuffer_clear_slot(&ring_, slot); }

private:
  const cudaq_ringbuffer_t ring_;
};

/// A ring in device memory, as another device would see it. Each access is a copy on one stream, and copies on a stream
/// run one after another.
class device_slots : public slot_access {
public:
  explicit device_slots(const cudaq_ringbuffer_t &ring) : ring_(ring) {
    CUDA_EXPECT_OK(cudaHostAlloc(&staging_, kFlags + ring.rx_stride_sz + ring.tx_stride_sz, cudaHostAllocPortable));
  }
  // staging_ is not freed: freeing it would wait for the kernel.

  bool free(std::uint32_t slot) override {
    copy(word(0), &ring_.rx_flags[slot], sizeof(std::uint64_t));
    copy(word(1), &ring_.tx_flags[slot], sizeof(std::uint64_t));
    finish();
    return *word(0) == 0 && *word(1) == 0;
  }
  void write(std::uint32_t slot, const cudaq_rpc_header_t &header, const std::vector<std::uint8_t> &payload) override {
    std::memcpy(data(), &header, sizeof(header));
    if (!payload.empty())
      std::memcpy(data() + sizeof(header), payload.data(), payload.size());
    copy(ring_.rx_data + slot * ring_.rx_stride_sz, data(), sizeof(header) + payload.size());
  }
  void signal(std::uint32_t slot, std::uint64_t flag) override {
    *word(2) = flag != 0 ? flag : reinterpret_cast<std::uint64_t>(ring_.rx_data + slot * ring_.rx_stride_sz);
    copy(&ring_.rx_flags[slot], word(2), sizeof(std::uint64_t));
    finish();
  }
  std::uint64_t rx_flag(std::uint32_t slot) override { return read_word(&ring_.rx_flags[slot]); }
  std::uint64_t tx_flag(std::uint32_t slot) override { return read_word(&ring_.tx_flags[slot]); }
  void read(std::uint32_t slot, answer &out) override {
    copy(data(), ring_.tx_data + slot * ring_.tx_stride_sz, ring_.tx_stride_sz);
    finish();
    std::memcpy(&out.header, data(), sizeof(out.header));
    EXPECT_EQ(out.header.magic, CUDAQ_RPC_MAGIC_RESPONSE);
    ASSERT_LE(out.header.result_len + sizeof(out.header), ring_.tx_stride_sz);
    const std::uint8_t *result = data() + sizeof(out.header);
    out.result.assign(result, result + out.header.result_len);
  }
  void clear(std::uint32_t slot) override {
    *word(2) = 0;
    copy(&ring_.tx_flags[slot], word(2), sizeof(std::uint64_t));
    finish();
  }

private:
  static constexpr std::size_t kFlags = 64; ///< the staged flags lie before the staged frame

  std::uint64_t *word(std::size_t i) const { return static_cast<std::uint64_t *>(staging_) + i; }
  std::uint8_t *data() const { return static_cast<std::uint8_t *>(staging_) + kFlags; }
  void copy(volatile void *to, const volatile void *from, std::size_t bytes) {
    CUDA_EXPECT_OK(
        cudaMemcpyAsync(const_cast<void *>(to), const_cast<const void *>(from), bytes, cudaMemcpyDefault, stream_.get));
  }
  void finish() { CUDA_EXPECT_OK(stream_.wait()); }
  std::uint64_t read_word(const volatile std::uint64_t *from) {
    copy(word(0), from, sizeof(std::uint64_t));
    finish();
    return *word(0);
  }

  const cudaq_ringbuffer_t ring_;
  side_stream stream_;
  void *staging_ = nullptr;
};

/// Fills slots in ring order and collects answers. Every wait has a deadline.
class gpu_client {
public:
  gpu_client(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots) : num_slots_(num_slots) {
    if (ring.rx_data_host != nullptr)
      slots = std::make_unique<mapped_slots>(ring);
    else
      slots = std::make_unique<device_slots>(ring);
  }

  static cudaq_rpc_header_t header(std::uint32_t function_id, std::size_t payload_bytes, std::uint32_t request_id) {
    return {CUDAQ_RPC_MAGIC_REQUEST, function_id, static_cast<std::uint32_t>(payload_bytes), request_id,
            timestamp_of(request_id)};
  }
  static std::uint64_t timestamp_of(std::uint32_t request_id) { return 0x9e3779b97f4a7c15ull * (request_id + 1ull); }

  /// Waits until the next slot of the ring is free and writes a frame, right or wrong. Returns the slot.
  std::uint32_t put(const cudaq_rpc_header_t &header, const std::vector<std::uint8_t> &payload,
                    std::uint64_t flag = 0) {
    const std::uint32_t slot = next_;
    EXPECT_TRUE(eventually([&] { return slots->free(slot); })) << "slot " << slot << " never became free";
    slots->write(slot, header, payload);
    slots->signal(slot, flag);
    next_ = (next_ + 1) % num_slots_;
    return slot;
  }
  std::uint32_t send(std::uint32_t function_id, const std::vector<std::uint8_t> &payload, std::uint32_t request_id) {
    return put(header(function_id, payload.size(), request_id), payload);
  }

  bool try_collect(std::uint32_t slot, answer &out) {
    const std::uint64_t flag = slots->tx_flag(slot);
    if (flag == 0)
      return false;
    const bool sentinel =
        flag == CUDAQ_TX_FLAG_IN_FLIGHT || flag >> CUDAQ_TX_FLAG_ERROR_SHIFT == CUDAQ_TX_FLAG_ERROR_TAG;
    EXPECT_FALSE(sentinel) << "a kernel wrote the sentinel " << std::hex << flag;
    out.tx = sentinel ? CUDAQ_TX_ERROR : CUDAQ_TX_READY;
    if (!sentinel)
      slots->read(slot, out);
    slots->clear(slot);
    return true;
  }
  answer collect(std::uint32_t slot) {
    answer out;
    EXPECT_TRUE(eventually([&] { return try_collect(slot, out); })) << "no answer in slot " << slot;
    return out;
  }
  answer call(std::uint32_t function_id, const std::vector<std::uint8_t> &payload, std::uint32_t request_id = 1) {
    return collect(send(function_id, payload, request_id));
  }

  std::uint32_t next_slot() const { return next_; }
  void set_next_slot(std::uint32_t slot) { next_ = slot; }

  std::unique_ptr<slot_access> slots;

private:
  const std::uint32_t num_slots_;
  std::uint32_t next_ = 0;
};

} // namespace cudaq::realtime::test

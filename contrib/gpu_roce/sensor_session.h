// SPDX-License-Identifier: Apache-2.0
// The device hooks of gpu-roce without the adapter: which completion is a request, and when the queues go on. `Adapter`
// has the accesses to the queues (adapter_queues.cuh). Host and device code: a test runs it with an adapter of its own.
//
// One request, num_pages 64, the first one after the start (received 0, sent 0):
//
//   rx_poll      completion 0 comes with the immediate 0x5007: page 7. The upper bits are the sensor bridge's counter
//                request = page 7, response = page 64 + 7
//   tx_publish   send request 0 points to page 71, or holds the answer itself
//                then the receive request of completion 0 is posted again, as number 64; in the other order the answer
//                would leave later
//                received = sent = 1
#pragma once

#include "contrib/gpu_roce/gpu_roce_context.h"
#include "contrib/gpu_roce/send_request.h"
#include "cudaq/realtime/detail/base/flag_word.h"

#include <new>

namespace cudaq::realtime::detail {

/// What the receive queue reports about a frame.
struct queue_entry {
  std::uint32_t opcode;
  std::uint32_t immediate;
};

/// Adapter(context, storage) opens the queues. Its functions:
///   bool poll(index, queue_entry &)     true: completion `index` is there, and all of its frame can be read
///   std::uint32_t queue_shifted()
///   void send(send_request &, index)   the sent frame has all writes to the answer before the call
///   void repost(index)                 posts receive request `index`
///   void finish_send()                 the send request of the last send may change
template <class Adapter>
class sensor_session {
public:
  /// NULL: the context is not one of this version.
  CUDAQ_REALTIME_HOST_DEVICE static sensor_session *attach(void *storage, void *ctx, volatile int *shutdown) {
    auto *const context = static_cast<gpu_roce_context *>(ctx);
    if (context == nullptr || shutdown == nullptr || context->magic != kGpuRoceContextMagic)
      return nullptr;
    return new (storage) sensor_session(*context, shutdown, storage);
  }

  /// False: shutdown, or the queue pair has failed.
  CUDAQ_REALTIME_HOST_DEVICE bool poll(void **request, void **response) {
    for (std::uint32_t polls = 1;; ++polls) {
      // The flag may be across the bus.
      if (polls % kPollsPerShutdown == 0 && load_relaxed(*shutdown_) != 0)
        return false;
      queue_entry c;
      if (!adapter_.poll(context_.received, c))
        continue;
      if (c.opcode != kWriteWithImmediate)
        return false; // the adapter flushes a failed queue: no further frame can come
      const std::uint32_t page = c.immediate & kPageBits;
      if (page < context_.num_pages) {
        *request = at(page);
        *response = at(context_.num_pages + page);
        return true;
      }
      receive_next(); // no peer knows this page
    }
  }

  CUDAQ_REALTIME_HOST_DEVICE void publish(void *response) {
    std::uint32_t magic;
    std::memcpy(&magic, response, sizeof(magic));
    const bool answered = magic != 0; // a header of zeros is no response: docs/transport/device_hooks.md
    if (answered) {
      const auto offset = static_cast<std::uint64_t>(static_cast<std::uint8_t *>(response) - context_.pages);
      make_send_request(send_, context_.sent, adapter_.queue_shifted(), response, context_.frame_size,
                        context_.pages_remote + offset, context_.key);
      adapter_.send(send_, context_.sent);
      original_->sent = ++context_.sent;
    }
    receive_next();
    if (answered)
      adapter_.finish_send();
  }

  static constexpr std::uint32_t kPollsPerShutdown = 1024;
  static constexpr std::uint32_t kPageBits = 0xFFF;
  static constexpr std::uint32_t kQueueLength = 64;       ///< receive requests that the host has posted
  static constexpr std::uint32_t kWriteWithImmediate = 1; ///< MLX5_CQE_RESP_WR_IMM

private:
  CUDAQ_REALTIME_HOST_DEVICE sensor_session(gpu_roce_context &context, volatile int *shutdown, const void *storage)
      : context_(context), original_(&context), shutdown_(shutdown), adapter_(context_, storage) {}

  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *at(std::uint32_t page) const {
    return context_.pages + static_cast<std::uint64_t>(page) * context_.page_size;
  }
  CUDAQ_REALTIME_HOST_DEVICE void receive_next() {
    adapter_.repost(context_.received + kQueueLength);
    original_->received = ++context_.received; // a later start goes on there
  }

  send_request send_;
  gpu_roce_context context_; ///< a copy, which is faster to read
  gpu_roce_context *original_;
  volatile int *shutdown_;
  Adapter adapter_;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// The steps of the kernels before and after an inference. Each function does the part of thread `thread` of `threads`;
// tests call it on the CPU with one thread. This room starts no thread. The threads that run its code:
//
//   thread         started by                   owns                         waits                ends
//   gateway in     the dispatcher or scheduler  input tensor                 with a queue: polls  after copy_input
//                  that launches the graph                                   ready[tail], stop
//   gateway out    the same graph, after the    output tensor; the answer,   with a queue: polls  after answer_request
//                  inference                    or entry `tail` until ready  ready[tail], stop    or publish_entry
//   poller         the program                  its claimed entry            never                after release_job
//   capture_graph  the program                  the graph                    for the warm-up      on return
#pragma once

#include "cudaq/qec/decoding/decode_status.h"
#include "cudaq/qec/realtime/inference_engine.h"
#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstring>

namespace cudaq::qec::realtime::detail {

using experimental::service_queue;

/// The frames of the request and of its answer. Both are null if there is no request.
struct service_frames {
  std::uint8_t *request, *answer;
};
CUDAQ_QEC_HOST_DEVICE inline service_frames frames_of(const service_queue &q) {
  if (q.io != nullptr)
    return {static_cast<std::uint8_t *>(q.io->rx_slot), q.io->tx_slot};
  auto *const frame = static_cast<std::uint8_t *>(*q.mailbox);
  return {frame, frame};
}

/// Waits until the next entry is idle and returns it, or -1 if stop() was called. Called by one thread.
CUDAQ_QEC_HOST_DEVICE inline int await_entry(const service_queue &q) {
  const int entry = *q.tail;
  while (cudaq::realtime::detail::load_acquire(q.ready[entry]) != 0)
    if (cudaq::realtime::detail::load_acquire(*q.stop) != 0)
      return -1;
  return entry;
}

/// The payload size that a header states, but at most the size of the slot, if that is known. The graph reads the slot
/// after the dispatcher has judged the request: a requester that breaks the protocol may have written another size.
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t payload_size(const service_queue &q, const cudaq_rpc_header_t &header) {
  if (q.slot_bytes == 0)
    return header.arg_len;
  const std::size_t room = q.slot_bytes < sizeof(header) ? 0 : q.slot_bytes - sizeof(header);
  return header.arg_len < room ? header.arg_len : static_cast<std::uint32_t>(room);
}

/// Copies n bytes; both ends are 8-byte aligned and do not overlap. A thread loads several words before it stores the
/// first one: each load may be a trip over the bus, some 1.3 us.
CUDAQ_QEC_HOST_DEVICE inline void copy_bytes(std::uint8_t *to, const std::uint8_t *from, std::size_t n,
                                             std::uint32_t thread, std::uint32_t threads) {
  constexpr std::size_t kAtOnce = 8; // 16 KiB with 256 threads
  const auto *const in = reinterpret_cast<const std::uint64_t *>(from);
  auto *const out = reinterpret_cast<std::uint64_t *>(to);
  const std::size_t words = n / 8;
  for (std::size_t first = thread; first < words; first += kAtOnce * threads) {
    std::uint64_t held[kAtOnce];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::size_t k = 0; k < kAtOnce; ++k)
      if (const std::size_t at = first + k * threads; at < words)
        held[k] = in[at];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::size_t k = 0; k < kAtOnce; ++k)
      if (const std::size_t at = first + k * threads; at < words)
        out[at] = held[k];
  }
  for (std::size_t i = words * 8 + thread; i < n; i += threads)
    to[i] = from[i];
}

/// Copies the payload to the input tensor: at most the tensor's size, with zeros after a shorter payload.
CUDAQ_QEC_HOST_DEVICE inline void copy_input(const service_queue &q, const std::uint8_t *frame, std::uint32_t thread,
                                             std::uint32_t threads) {
  cudaq_rpc_header_t header;
  memcpy(&header, frame, sizeof(header));
  const std::size_t size = payload_size(q, header);
  const std::size_t given = size < q.input_bytes ? size : q.input_bytes;
  copy_bytes(q.input, frame + CUDAQ_RPC_HEADER_SIZE, given, thread, threads);
  for (std::size_t i = given + thread; i < q.input_bytes; i += threads)
    q.input[i] = 0;
}

/// Without a queue: the status of the answer. A payload whose size is not the input's is not a shot of this model.
CUDAQ_QEC_HOST_DEVICE inline std::int32_t status_of(const service_queue &q, const service_frames &frames) {
  const std::size_t room = q.io != nullptr ? q.io->tx_stride_sz : q.slot_bytes;
  const bool is_bounded = q.io != nullptr || q.slot_bytes != 0;
  if (is_bounded && q.output_bytes + CUDAQ_RPC_HEADER_SIZE > room)
    return CUDAQ_RPC_ERR_RESULT_TOO_LARGE; // for all requests, even with other errors
  cudaq_rpc_header_t request;
  memcpy(&request, frames.request, sizeof(request));
  return request.arg_len != q.input_bytes ? CUDAQ_RPC_ERR_BAD_ARG_LEN : 0;
}

/// Writes the header of the response, and with io publishes it. Called by one thread, after all threads have copied.
CUDAQ_QEC_HOST_DEVICE inline void answer_request(const service_queue &q, const service_frames &frames,
                                                 std::int32_t status) {
  cudaq_rpc_header_t request;
  memcpy(&request, frames.request, sizeof(request));
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, status,
                                      status == 0 ? static_cast<std::uint32_t>(q.output_bytes) : 0, request.request_id,
                                      request.ptp_timestamp};
  memcpy(frames.answer, &response, sizeof(response));
  if (q.io != nullptr)
    cudaq::realtime::detail::store_release(*q.io->tx_flag, q.io->tx_flag_value);
}

/// Gives the entry to the CPU. Called by one thread, after all threads have copied.
CUDAQ_QEC_HOST_DEVICE inline void publish_entry(const service_queue &q, void *frame) {
  const int entry = *q.tail;
  cudaq_rpc_header_t request;
  memcpy(&request, frame, sizeof(request));
  q.frames[entry] = frame;
  q.sizes[entry] = payload_size(q, request);
  *q.tail = entry + 1 == q.depth ? 0 : entry + 1;
  cudaq::realtime::detail::store_release<int>(q.ready[entry], 1);
}

} // namespace cudaq::qec::realtime::detail

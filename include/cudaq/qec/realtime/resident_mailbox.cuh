/* SPDX-License-Identifier: Apache-2.0 */
// How a pipeline worker and its resident block exchange requests, and the loop of a block. For code that nvcc compiles,
// and for the CPU that plays it in a test. Programs use resident_workers.h and resident_kernel.cuh.
//
//   worker's thread   frame, flags[w] = its address       w: the worker
//   block             sees flags[w]; the stage reads the frame, writes the output
//   block             flags[w] = 0, ready 1
//   worker's thread   ready 1 -> 2, reads the output, ready 0; then it may write the next frame
#ifndef CUDAQ_QEC_REALTIME_RESIDENT_MAILBOX_CUH
#define CUDAQ_QEC_REALTIME_RESIDENT_MAILBOX_CUH

#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstddef>
#include <cstdint>

namespace cudaq::qec::realtime::gpu {

/// A request, as a stage sees it. Addresses are device addresses.
struct resident_request {
  /// A header of 24 bytes, of which only arg_len is set, then the payload; 64-byte aligned.
  /// resident_config::payload_bytes can be read; the bytes after a shorter payload are left from earlier requests.
  const std::uint8_t *frame;
  std::uint8_t *output; ///< resident_config::output_bytes, in mapped memory; 64-byte aligned
  std::uint32_t worker;
};

/// The words of one block, in mapped memory, on lines of their own.
struct alignas(128) resident_state {
  volatile int ready;           ///< the worker's ready flag
  volatile std::uint32_t began; ///< 1: the block runs
};

/// A kernel argument. Addresses are device addresses.
struct resident_mailboxes {
  volatile std::uint64_t *flags; ///< one for each worker, and one more: not 0 tells all blocks to end
  const std::uint8_t *frames;
  std::size_t frame_stride;
  std::uint8_t *outputs;
  std::size_t output_stride;
  resident_state *states;
  std::uint32_t workers;
};

/// The life of a block. All threads of the group call it. group: thread(), sync(), any(bool), and idle(), which the
/// first thread calls after each 64 polls that find nothing. stage(request) is called by all threads; its writes to the
/// output are visible to the worker's thread when all have returned.
template <class Group, class Stage>
CUDAQ_REALTIME_HOST_DEVICE void serve_mailbox(const Group &group, const resident_mailboxes &boxes, std::uint32_t worker,
                                              const Stage &stage) {
  namespace words = cudaq::realtime::detail;
  constexpr std::uint32_t kPollsPerEndCheck = 64; // between two reads of the word that ends the block
  volatile std::uint64_t &flag = boxes.flags[worker];
  resident_state &state = boxes.states[worker];
  const bool leads = group.thread() == 0;
  if (leads)
    words::store_release<std::uint32_t>(state.began, 1);
  for (;;) {
    bool found = false;
    for (std::uint32_t poll = 1; leads && !found; ++poll) {
      found = words::load_acquire(flag) != 0;
      if (found || poll % kPollsPerEndCheck != 0)
        continue;
      if (words::load_acquire(boxes.flags[boxes.workers]) != 0)
        break;
      group.idle();
    }
    if (!group.any(found))
      return;
    stage(resident_request{boxes.frames + worker * boxes.frame_stride, boxes.outputs + worker * boxes.output_stride,
                           worker});
    group.sync();
    if (leads) {
      words::store_relaxed(flag, std::uint64_t{0}); // before the release: the worker's thread signals after it
      words::store_release(state.ready, 1);
    }
  }
}

} // namespace cudaq::qec::realtime::gpu

#endif

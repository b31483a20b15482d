// SPDX-License-Identifier: Apache-2.0
// Copies requests from the ring to a group's workspace. A read over the bus takes about 1.2 us, however many are in
// flight.
#pragma once

#include "cudaq/realtime/detail/loop/loop_workspace.h"

namespace cudaq::realtime::detail {

/// Bytes of a frame that can be read in whole words.
template <class Transport>
CUDAQ_REALTIME_HOST_DEVICE std::uint32_t readable_words(const Transport &transport) {
  return transport.aligned16() ? transport.readable() & ~15u : transport.readable() & ~7u;
}

/// Fetches the first `bytes` bytes of up to 32 messages, all in flight at the same time. `from`: the calling lane's
/// message, or null.
template <class Group, class Word>
CUDAQ_REALTIME_OUT_OF_LINE void gather(std::uint8_t *to, const std::uint8_t *from, std::uint32_t bytes) {
  constexpr std::uint32_t kEach = kLookBytes / sizeof(Word), kSteps = kEach; // kWidth messages of kEach words
  Word held[kSteps];
  std::uint32_t taken = 0; // bit u: step u loads a word
  const std::uint32_t within = Group::lane() % kEach * sizeof(Word);
  const std::uint32_t first_message = Group::lane() / kEach; // whose word the lane fetches in step 0
  constexpr std::uint32_t kStride = Group::kWidth >= kEach ? Group::kWidth / kEach : 1;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t u = 0; u < kSteps; ++u) {
    const std::uint32_t k = Group::kWidth == 1 ? 0 : first_message + u * kStride;
    const std::uint32_t at = Group::kWidth == 1 ? u * sizeof(Word) : within;
    const std::uint8_t *const frame = Group::from(from, k);
    taken |= std::uint32_t{frame != nullptr && at < bytes} << u;
    if ((taken >> u & 1u) != 0)
      held[u] = load_frame<Word>(frame + at);
  }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t u = 0; u < kSteps; ++u) {
    const std::uint32_t k = Group::kWidth == 1 ? 0 : first_message + u * kStride;
    const std::uint32_t at = Group::kWidth == 1 ? u * sizeof(Word) : within;
    if ((taken >> u & 1u) != 0)
      *reinterpret_cast<Word *>(to + k * kLookPitch + at) = held[u];
  }
}

/// Fetches the first bytes of the messages of `mask` to workspace.requests; `mine` is the message of the calling lane.
/// Returns the number of bytes of each.
template <class Group, class Transport>
CUDAQ_REALTIME_HOST_DEVICE std::uint32_t fetch_several(loop_workspace &workspace, const Transport &transport,
                                                       std::uint32_t mask, const typename Transport::message &mine) {
  const std::uint32_t whole = readable_words(transport);
  const std::uint32_t bytes = kLookBytes < whole ? kLookBytes : whole;
  const std::uint8_t *const from = (mask >> Group::lane() & 1u) != 0 ? transport.request(mine) : nullptr;
  Group::sync(); // all lanes have read the last requests
  if (transport.aligned16())
    gather<Group, word16>(workspace.requests, from, bytes);
  else
    gather<Group, std::uint64_t>(workspace.requests, from, bytes);
  Group::sync();
  return bytes;
}

/// Fetches one message: as many bytes as the last one had.
template <class Group>
class front_fetcher {
public:
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t bytes() const { return bytes_; }

  /// Fetches the message at `from` to `in`, which no lane reads any more, and runs `meanwhile` during the read. Returns
  /// the header, valid in lane 0: the same that is at `in`.
  template <class Helpers, class Meanwhile>
  CUDAQ_REALTIME_HOST_DEVICE request fetch(std::uint8_t *in, const std::uint8_t *from, bool aligned16, Helpers &helpers,
                                           Meanwhile &&meanwhile) const {
    request r;
    if (unlikely(!at_once_)) {
      helpers.fetch_while(in, from, bytes_, aligned16, meanwhile);
      Group::sync();
      return copied_header<request>(in);
    }
    const std::uint32_t at = Group::lane() * static_cast<std::uint32_t>(sizeof(word16));
    const word16 held = load_frame<word16>(from + (at < bytes_ ? at : 0));
    meanwhile();
    if (at < bytes_)
      *reinterpret_cast<word16 *>(in + at) = held;
    r.magic = held.part[0], r.function_id = held.part[1], r.arg_len = held.part[2], r.request_id = held.part[3];
    // From lane 1, not from the slot: a second load of this kind is a second read over PCIe.
    const std::uint64_t timestamp = std::uint64_t{held.part[1]} << 32 | held.part[0];
    r.ptp_timestamp = Group::from(timestamp, 1);
    Group::sync();
    return r;
  }

  CUDAQ_REALTIME_HOST_DEVICE bool expects(std::uint32_t arg_len) const { return arg_len == arg_len_; }
  /// Sets the number of bytes to fetch next, for a request with `arg_len` payload bytes. `arg_len` may be invalid.
  template <class Transport>
  CUDAQ_REALTIME_HOST_DEVICE void expect(std::uint32_t arg_len, const Transport &transport,
                                         std::uint32_t staging_bytes) {
    arg_len_ = arg_len;
    const std::uint32_t probable = round16(CUDAQ_RPC_HEADER_SIZE + arg_len), whole = readable_words(transport);
    const std::uint32_t little = kLookBytes < staging_bytes ? kLookBytes : staging_bytes;
    bytes_ = probable >= kLeastBytes && probable <= staging_bytes ? probable : little;
    bytes_ = bytes_ < whole ? bytes_ : whole;
    at_once_ = Group::kWidth > 1 && transport.aligned16() && bytes_ <= Group::kWidth * sizeof(word16);
  }

private:
  std::uint32_t arg_len_ = ~0u;
  std::uint32_t bytes_ = 0;
  bool at_once_ = false; ///< one word per lane covers all bytes
};

} // namespace cudaq::realtime::detail

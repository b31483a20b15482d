// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/stream/repeating_model.h"
#include "lib/qec/stream/window_set.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cudaq::qec::realtime {

/// What a stream decoder is made from.
struct stream_source {
  stream_options options; ///< with the settings of the decoder's name
  repeating_model model;
  stream_heralds heralds;
  stream_readout readout;
  bool is_whole_form = false; ///< the name was sliding-window's, with this decoder as its inner
};
/// Reads the decoder's name, the model, and the file of heralds. `heralds`: the contents of that file, which then is
/// not read.
[[nodiscard]] expected<stream_source> read_stream(const decoder_model &errors, const stream_options &options,
                                                  std::optional<std::string_view> heralds = {});

/// make_stream_decoder for a model that was read before. `push_bits`: with workers and
/// without queue_rounds, the queue is so long that push never answers not_supported to `push_bits` bits.
[[nodiscard]] stream_result make_stream_decoder(const stream_source &source, std::uint64_t push_bits = 0);

/// Learns what becomes final. The functions may be null. They must not throw, and must not call the stream.
struct stream_listener {
  void *user = nullptr;
  /// Of every window, in the order of rounds: `rounds` rounds are final, with these observables. Called by the thread
  /// that decodes, before poll() shows it.
  void (*released)(void *user, std::uint64_t rounds, std::span<const std::uint8_t> observables) = nullptr;
  /// With workers only, by one of them, without a lock: poll() shows further rounds, or that the stream is broken.
  void (*progressed)(void *user) = nullptr;
};
/// While no worker is in the stream: before its first bits, or after a reset. After the destructor it is not called.
void listen(stream_decoder &stream, const stream_listener &listener) noexcept;

/// push, but where that is busy it waits until there is room. A call of the owner.
[[nodiscard]] decode_status push_when_free(stream_decoder &stream, std::span<const std::uint8_t> bits,
                                           std::uint64_t count, const stream_values &known = {}) noexcept;

/// How many values and flags must have come with the first `bits` bits before the tail. A call of the owner.
[[nodiscard]] readout_place needed_values(stream_decoder &stream, std::uint64_t bits) noexcept;

/// The decoder of the windows.
[[nodiscard]] const decoder_choice &choice_of(const stream_decoder &stream) noexcept;

/// The rounds that are final, or will be without further bits. A call of the owner.
[[nodiscard]] std::uint64_t complete_rounds(const stream_decoder &stream) noexcept;

} // namespace cudaq::qec::realtime

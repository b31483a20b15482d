// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {

decoder_session::decoder_session(std::unique_ptr<decoding_unit> unit, bool sequence)
    : unit_(std::move(unit)), sequence_(sequence),
      // append() writes one byte after the shot.
      shot_(static_cast<std::size_t>((unit_->bits_per_shot() + 7) / 8) + 1),
      observables_(static_cast<std::size_t>((unit_->num_observables() + 7) / 8)), corrections_(observables_.size()) {}

server_answer decoder_session::serve(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  switch (request.function) {
  case wire_function::enqueue: {
    const server_status status = latched_ == server_status::ok ? enqueue(request) : latched_;
    if (status != server_status::ok && status != server_status::deadline)
      latch(status);
    return {static_cast<std::int32_t>(status), 0};
  }
  case wire_function::get_corrections:
    return get_corrections(request, result);
  case wire_function::one_shot:
    return decode_one(request, result);
  case wire_function::describe: // decoding_server answers it
    return refuse(request.function, server_status::bad_request);
  case wire_function::reset:
    break;
  }
  expected_counter_.reset();
  latched_ = server_status::ok;
  filled_ = 0;
  std::fill(shot_.begin(), shot_.end(), std::uint8_t{0});
  std::fill(corrections_.begin(), corrections_.end(), std::uint8_t{0});
  return {};
}

void decoder_session::latch(server_status why) noexcept {
  if (latched_ == server_status::ok)
    latched_ = why;
  // The bits of this shot are of no use any more, so an exchange need not wait for its end.
  filled_ = 0;
  std::fill(shot_.begin(), shot_.end(), std::uint8_t{0});
}

std::unique_ptr<decoding_unit> decoder_session::exchange(std::unique_ptr<decoding_unit> unit) noexcept {
  std::swap(unit_, unit);
  return unit;
}

server_status decoder_session::enqueue(const wire_request &request) noexcept {
  if (sequence_ && expected_counter_ && request.counter != *expected_counter_)
    // The distance modulo 2^64 tells a gap from a counter that was used before.
    return request.counter - *expected_counter_ < std::uint64_t{1} << 63 ? server_status::syndromes_dropped
                                                                         : server_status::bad_request;
  if (request.num_bits > unit_->bits_per_shot() - filled_)
    return server_status::bad_request;
  expected_counter_ = request.counter + 1;
  append(request.bits, request.num_bits);
  return filled_ == unit_->bits_per_shot() ? decode_shot() : server_status::ok;
}

void decoder_session::append(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept {
  const unsigned shift = filled_ % 8;
  std::size_t at = static_cast<std::size_t>(filled_ / 8);
  for (std::uint64_t left = count; left != 0; ++at) {
    const std::uint64_t here = std::min<std::uint64_t>(left, 8);
    const unsigned byte = bits[static_cast<std::size_t>((count - left) / 8)] & (0xFFU >> (8 - here));
    shot_[at] = static_cast<std::uint8_t>(shot_[at] | byte << shift);
    shot_[at + 1] = static_cast<std::uint8_t>(shot_[at + 1] | byte << shift >> 8);
    left -= here;
  }
  filled_ += count;
}

server_status decoder_session::decode_shot() noexcept {
  const auto bits = std::span<const std::uint8_t>(shot_).first(shot_.size() - 1);
  const decode_status status = unit_->decode_stream(bits, observables_);
  filled_ = 0;
  std::fill(shot_.begin(), shot_.end(), std::uint8_t{0});
  if (status != decode_status::ok && status != decode_status::deadline)
    return server_status::internal;
  ++shots_;
  for (std::size_t i = 0; i < corrections_.size(); ++i)
    corrections_[i] = static_cast<std::uint8_t>(corrections_[i] ^ observables_[i]);
  return status == decode_status::ok ? server_status::ok : server_status::deadline;
}

server_answer decoder_session::get_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  if (latched_ != server_status::ok)
    return refuse(request.function, latched_);
  const std::uint64_t wanted = request.num_bits;
  if (wanted == 0 || wanted > unit_->num_observables() || result.size() < (wanted + 7) / 8)
    return refuse(request.function, server_status::bad_request);
  const auto bytes = static_cast<std::size_t>((wanted + 7) / 8);
  std::memcpy(result.data(), corrections_.data(), bytes);
  if (wanted % 8 != 0)
    result[bytes - 1] = static_cast<std::uint8_t>(result[bytes - 1] & ((1U << (wanted % 8)) - 1));
  if (request.clear)
    std::fill(corrections_.begin(), corrections_.end(), std::uint8_t{0});
  return {0, static_cast<std::uint32_t>(bytes)};
}

server_answer decoder_session::decode_one(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  const std::size_t bytes = observables_.size();
  if (result.size() < bytes)
    return {static_cast<std::int32_t>(decode_status::buffer_too_small), 0};
  if (request.bits.size() > (unit_->num_detectors() + 7) / 8)
    return {static_cast<std::int32_t>(decode_status::bad_detector_index), 0};
  const decode_status status = unit_->decode_events(request.bits, result.first(bytes));
  if (!unit_->has_solution())
    return {static_cast<std::int32_t>(status), 0};
  ++shots_;
  return {static_cast<std::int32_t>(status), static_cast<std::uint32_t>(bytes)};
}

} // namespace cudaq::qec::realtime

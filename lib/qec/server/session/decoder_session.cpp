// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/decoder_session.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {

decoder_session::decoder_session(std::unique_ptr<decoding_unit> unit, bool sequence)
    : corrections_(static_cast<std::size_t>((unit->num_observables() + 7) / 8)), unit_(std::move(unit)),
      sequence_(sequence) {}

server_answer decoder_session::serve(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  switch (request.function) {
  case wire_function::enqueue:
  case wire_function::begin_tail: {
    const server_status status = latched_ == server_status::ok ? take(request) : latched_;
    if (status != server_status::ok && status != server_status::busy && status != server_status::deadline)
      latch(status);
    if (status == server_status::busy)
      return {.waits = true};
    return refuse(request.function, status);
  }
  case wire_function::get_corrections:
    return latched_ == server_status::ok ? get_corrections(request, result) : refuse(request.function, latched_);
  case wire_function::get_committed:
    return latched_ == server_status::ok ? get_committed(request, result) : refuse(request.function, latched_);
  case wire_function::one_shot:
    return decode_one(request, result);
  case wire_function::describe: // decoding_server answers it
    return refuse(request.function, server_status::bad_request);
  case wire_function::reset:
    break;
  }
  expected_counter_.reset();
  latched_ = server_status::ok;
  std::ranges::fill(corrections_, std::uint8_t{0});
  restart(false);
  return {};
}

void decoder_session::latch(server_status why) noexcept {
  if (latched_ == server_status::ok)
    latched_ = why;
  // The bits so far are of no use any more, so an exchange need not wait for their end.
  restart(true);
}

std::unique_ptr<decoding_unit> decoder_session::exchange(std::unique_ptr<decoding_unit> unit) noexcept {
  std::swap(unit_, unit);
  return unit;
}

server_status decoder_session::take(const wire_request &request) noexcept {
  if (sequence_ && expected_counter_ && request.counter != *expected_counter_)
    // The distance modulo 2^64 tells a gap from a counter that was used before.
    return request.counter - *expected_counter_ < std::uint64_t{1} << 63 ? server_status::syndromes_dropped
                                                                         : server_status::bad_request;
  const server_status status = request.function == wire_function::enqueue ? append(request) : begin_tail();
  if (status == server_status::ok || status == server_status::deadline)
    expected_counter_ = request.counter + 1;
  return status;
}

bool decoder_session::can_answer(const wire_request &request, std::size_t room) const noexcept {
  return request.num_bits != 0 && request.num_bits <= unit_->num_observables() && room >= (request.num_bits + 7) / 8;
}

server_answer decoder_session::get_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  if (!can_answer(request, result.size()))
    return refuse(request.function, server_status::bad_request);
  if (const server_status status = update_corrections(); status != server_status::ok) {
    latch(status);
    return refuse(request.function, status);
  }
  return give_corrections(request, result);
}

server_answer decoder_session::give_corrections(const wire_request &request, std::span<std::uint8_t> result) noexcept {
  const std::uint64_t wanted = request.num_bits;
  const auto bytes = static_cast<std::size_t>((wanted + 7) / 8);
  std::memcpy(result.data(), corrections_.data(), bytes);
  if (wanted % 8 != 0)
    result[bytes - 1] = static_cast<std::uint8_t>(result[bytes - 1] & ((1U << (wanted % 8)) - 1));
  if (request.clear) {
    std::ranges::fill(corrections_, std::uint8_t{0});
    corrections_cleared();
  }
  return {0, static_cast<std::uint32_t>(bytes)};
}

void bit_buffer::append(std::span<const std::uint8_t> bits, std::uint64_t count) noexcept {
  const unsigned shift = size_ % 8;
  std::size_t at = static_cast<std::size_t>(size_ / 8);
  for (std::uint64_t left = count; left != 0; ++at) {
    const std::uint64_t here = std::min<std::uint64_t>(left, 8);
    const unsigned byte = bits[static_cast<std::size_t>((count - left) / 8)] & (0xFFU >> (8 - here));
    bytes_[at] = static_cast<std::uint8_t>(bytes_[at] | byte << shift);
    bytes_[at + 1] = static_cast<std::uint8_t>(bytes_[at + 1] | byte << shift >> 8);
    left -= here;
  }
  size_ += count;
}

void bit_buffer::clear() noexcept {
  std::ranges::fill(bytes_, std::uint8_t{0});
  size_ = 0;
}

} // namespace cudaq::qec::realtime

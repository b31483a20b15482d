// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/round_reader.h"

#include "lib/qec/decoding/number_of.h"
#include "lib/qec/shots/shot_stream.h"
#include "tools/shots/several_shots.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

using qec::number_of;

constexpr std::size_t kChunk = std::size_t{1} << 16;

/// On a character of 01: the line ends after it.
constexpr std::uint8_t kLineEnd = 2;

} // namespace

round_reader::round_reader(const std::string &path, qec::shot_format format, const qec::repeating_model &model)
    : source_(path), model_(model), is_text_(format == qec::shot_format::text01), head_(model.head()),
      body_(model.body()), tail_(model.tail()) {
  if (!is_text_ && format != qec::shot_format::b8)
    throw qec::shot_file_error(fmt::format("{}: format {}: a stream is read as 01 or b8", name(), name_of(format)));
  std::uint64_t max_bits = model.tail_detectors(), longest = 0;
  for (const auto *part : {&head_, &body_})
    for (const std::uint64_t detectors : *part)
      longest = std::max(longest, detectors);
  for (const std::uint64_t detectors : tail_)
    tail_units_ += units(detectors);
  max_bits = std::max(max_bits, longest);
  buffer_.resize(units(longest) + tail_units_ + kChunk);
  bits_.resize((max_bits + 7) / 8 + 1); // append() may touch a byte more
}

round_reader::found round_reader::next() {
  while (!has_next() && !has_ended_) {
    fill();
    if (source_.stopped())
      return found::stop;
  }
  std::ranges::fill(bits_, std::uint8_t{0});
  count_ = 0;
  if (has_next()) {
    append_round(size_of(round_));
    ++round_;
    return found::round;
  }
  if (source_.error() != 0)
    source_.fail();
  if (!bad_text_.empty())
    throw qec::shot_file_error(bad_text_);
  if (waiting() != tail_units_ || round_ < head_.size() || (round_ - head_.size()) % body_.size() != 0)
    fail_at_end();
  for (const std::uint64_t detectors : tail_) {
    append_round(detectors);
    ++round_;
  }
  return found::tail;
}

std::uint64_t round_reader::size_of(std::uint64_t round) const noexcept {
  return round < head_.size() ? head_[round] : body_[(round - head_.size()) % body_.size()];
}

void round_reader::refuse(std::uint64_t at, std::uint8_t character) {
  const bool is_text = character > ' ' && character < 0x7f;
  bad_text_ =
      fmt::format("{}: byte {}: {} is neither 0, 1 nor the end of a line{}", name(), at,
                  is_text ? fmt::format("'{}'", static_cast<char>(character)) : fmt::format("{:#04x}", character),
                  is_text ? "" : " (is the file b8? try --in_format b8)");
  has_ended_ = true;
}

void round_reader::fill() {
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
            buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  const ssize_t got = source_.read({reinterpret_cast<char *>(buffer_.data() + end_), buffer_.size() - end_});
  has_ended_ = got <= 0 && !source_.stopped();
  if (has_ended_ && after_return_)
    return refuse(source_.bytes() - 1, '\r');
  if (got <= 0)
    return;
  const std::size_t first = end_, last = end_ + static_cast<std::size_t>(got);
  if (!is_text_) {
    end_ = last;
    return;
  }
  for (std::size_t at = first; at < last; ++at) {
    const std::uint8_t character = buffer_[at];
    const bool after_return = std::exchange(after_return_, false);
    if (character == '\r' && !after_return) { // CR and LF end a line, as without --stream
      after_return_ = true;
    } else if (after_return && character != '\n') {
      return refuse(source_.bytes() - (last - at) - 1, '\r');
    } else if (character == '0' || character == '1') {
      buffer_[end_++] = character - '0';
    } else if (character != '\n') {
      return refuse(source_.bytes() - (last - at), character);
    } else if (end_ != begin_) { // else the line ends after a round that was given out
      buffer_[end_ - 1] |= kLineEnd;
    }
  }
}

/// Appends a round of the buffer to the bits.
void round_reader::append_round(std::uint64_t detectors) {
  const std::uint8_t *const unit = buffer_.data() + begin_;
  if (is_text_) {
    for (std::uint64_t k = 0; k < detectors; ++k) {
      append(unit[k] & 1, 1);
      if ((unit[k] & kLineEnd) != 0 && k + 1 != detectors)
        fail(fmt::format("a line ends after {} of its {}{}", k + 1, number_of(detectors, "detector"),
                         is_experiment(model_, model_.first_detector(round_) + k + 1)
                             ? "; before that is a whole experiment: are these shots? " + advice_for_shots(model_)
                             : ""));
    }
  } else {
    for (std::uint64_t k = 0; k < detectors; k += 8) {
      const std::uint64_t used = std::min<std::uint64_t>(8, detectors - k);
      if (unit[k / 8] >> used != 0)
        fail(fmt::format("bits after its {} are set (is each round a row of whole bytes?)",
                         number_of(detectors, "detector")));
      append(unit[k / 8], used);
    }
  }
  begin_ += units(detectors);
}

void round_reader::append(std::uint8_t byte, std::uint64_t count) noexcept {
  const std::uint64_t shift = count_ % 8;
  bits_[count_ / 8] = static_cast<std::uint8_t>(bits_[count_ / 8] | byte << shift);
  if (shift + count > 8)
    bits_[count_ / 8 + 1] = static_cast<std::uint8_t>(byte >> (8 - shift));
  count_ += count;
}

void round_reader::fail(const std::string &why) const {
  throw qec::shot_file_error(fmt::format("{}: round {}: {}", name(), round_, why));
}

void round_reader::fail_at_end() const {
  const char *const unit = is_text_ ? "bit" : "byte";
  throw qec::shot_file_error(fmt::format(
      "{}: the input ends {} after {}, where no experiment ends: it has a head of {}, whole repetitions of {}, and a "
      "tail of {} in {}",
      name(), number_of(waiting(), unit), round_ == 0 ? "its beginning" : fmt::format("round {}", round_ - 1),
      number_of(head_.size(), "round"), number_of(body_.size(), "round"), number_of(tail_units_, unit),
      number_of(tail_.size(), "round")));
}

} // namespace cudaq::realtime::tools

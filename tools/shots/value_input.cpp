// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/value_input.h"

#include "lib/qec/shots/shot_stream.h"
#include "tools/common/report.h"

#include <algorithm>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::size_t kValueBytesAtOnce = std::size_t{1} << 16;
constexpr const char *kSoftValues = "soft values", *kFlagsOfLeakage = "flags";

} // namespace

value_input::value_input(const std::string &path, unsigned bits_of_value, const char *what)
    : source_(path), width_(bits_of_value), what_(what) {}

/// False: stopped, or the end.
bool value_input::fill(std::size_t bytes) {
  while (waiting() < bytes) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kValueBytesAtOnce);
    const ssize_t got = source_.read({reinterpret_cast<char *>(buffer_.data() + before), kValueBytesAtOnce});
    buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0)
      source_.fail();
    if (got == 0)
      return false;
  }
  return true;
}

bool value_input::read_to(std::uint64_t number) {
  count_ = number - std::min(number, come_);
  const std::uint64_t bits = count_ * width_;
  if (!fill((skip_ + bits + 7) / 8)) {
    if (source_.stopped())
      return false;
    throw qec::shot_file_error(fmt::format("{}: it ends after {} {}, and the rounds up to here need {}", source_.name(),
                                           come_ + (8 * waiting() - skip_) / width_, what_, number));
  }
  packed_.assign((bits + 7) / 8, 0);
  const std::uint8_t *const from = buffer_.data() + begin_;
  for (std::size_t k = 0; k < packed_.size(); ++k) {
    const unsigned next = k + 1 < waiting() ? from[k + 1] : 0;
    packed_[k] = static_cast<std::uint8_t>((from[k] | next << 8) >> skip_);
  }
  begin_ += (skip_ + bits) / 8;
  skip_ = (skip_ + bits) % 8;
  come_ += count_;
  return true;
}

void value_input::check_end() {
  if (fill(skip_ == 0 ? 1 : 2))
    throw qec::shot_file_error(
        fmt::format("{}: it has more than the {} {} of the experiment", source_.name(), come_, what_));
  if (skip_ != 0 && waiting() != 0 && buffer_[begin_] >> skip_ != 0)
    throw qec::shot_file_error(fmt::format("{}: bits after its {} {} are set", source_.name(), come_, what_));
}

stream_value_input::stream_value_input(const readout_files &files, const qec::stream_values_info &of)
    : kind_(files.kind()) {
  const struct {
    std::optional<value_input> &input;
    const char *option, *what;
    const std::string &path;
    std::uint64_t values;
    unsigned width;
  } both[] = {{soft_, "--soft", kSoftValues, files.soft, of.body_soft, qec::bits_of(kind_)},
              {leakage_, "--leakage", kFlagsOfLeakage, files.leakage, of.body_leakage, 2}};
  for (const auto &one : both) {
    if (const std::string text = wrong_readout_file(one.option, one.path, one.values, one.what); !text.empty())
      throw usage_error(text);
    if (one.values != 0)
      one.input.emplace(one.path, one.width, one.what);
  }
  if (soft_ && (of.kinds >> static_cast<unsigned>(kind_) & 1) == 0)
    throw usage_error(fmt::format("--soft_kind {}: the table of --readout does not take this kind", files.soft_kind));
}

void stream_value_input::stop_when(const std::function<bool()> &stop_requested) {
  for (auto *const one : {&soft_, &leakage_})
    if (*one)
      (*one)->stop_when(stop_requested);
}

bool stream_value_input::has(qec::readout_place all) const noexcept {
  return (!soft_ || soft_->has(static_cast<std::uint64_t>(all.value))) &&
         (!leakage_ || leakage_->has(static_cast<std::uint64_t>(all.flag)));
}

bool stream_value_input::read_to(qec::readout_place all) {
  return (!soft_ || soft_->read_to(static_cast<std::uint64_t>(all.value))) &&
         (!leakage_ || leakage_->read_to(static_cast<std::uint64_t>(all.flag)));
}

qec::stream_values stream_value_input::next() const noexcept {
  qec::stream_values known{.kind = kind_};
  if (soft_) {
    known.soft = soft_->bytes();
    known.num_soft = soft_->count();
  }
  if (leakage_) {
    known.leakage = leakage_->bytes();
    known.num_leakage = leakage_->count();
  }
  return known;
}

void stream_value_input::check_end() {
  for (auto *const one : {&soft_, &leakage_})
    if (*one)
      (*one)->check_end();
}

std::string stream_value_input::text() const {
  std::string all;
  for (const auto &[input, what] : {std::pair{&soft_, kSoftValues}, {&leakage_, kFlagsOfLeakage}})
    if (*input)
      all += fmt::format("{}{} {}", all.empty() ? "" : " and ", (*input)->come(), what);
  return all;
}

} // namespace cudaq::realtime::tools

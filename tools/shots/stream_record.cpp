// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/stream_record.h"

#include "lib/qec/shots/shot_stream.h"
#include "tools/common/output_file.h"
#include "tools/shots/round_reader.h"
#include "tools/shots/sampled_shots.h"
#include "tools/shots/several_shots.h"
#include "tools/shots/value_input.h"

#include <fmt/format.h>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

/// Values [from, to) of `width` bits each, from a whole byte on.
void append_values(std::span<const std::uint8_t> packed, unsigned width, std::uint64_t from, std::uint64_t to,
                   std::vector<std::uint8_t> &bytes) {
  const std::uint64_t bits = (to - from) * width, shift = from * width % 8;
  const std::span<const std::uint8_t> first = packed.subspan(static_cast<std::size_t>(from * width / 8));
  for (std::size_t k = 0; k < (bits + 7) / 8; ++k) {
    const unsigned both = first[k] | (k + 1 < first.size() ? static_cast<unsigned>(first[k + 1]) << 8 : 0U);
    bytes.push_back(static_cast<std::uint8_t>(both >> shift));
  }
  if (bits % 8 != 0)
    bytes.back() = static_cast<std::uint8_t>(bytes.back() & ((1U << bits % 8) - 1));
}

} // namespace

stream_record::stream_record(const own_data &files, const readout_files &values, const qec::repeating_model &model,
                             const qec::stream_readout &readout)
    : model_(model), soft_bits_(qec::bits_of(values.kind())) {
  try {
    for (const auto &[option, path] : {std::pair{"--in", files.in.path}, std::pair{"--obs_in", files.obs_in.path},
                                       std::pair{"--soft", values.soft}, std::pair{"--leakage", values.leakage}})
      refuse_output_file(option, path);
    if (const auto result = check_one_experiment(files.in, model); result.failed())
      throw record_error(result.text());
    read_rounds(files.in);
    if (!readout.empty())
      read_values(values, readout);
    if (files.obs_in.given())
      read_observables(files.obs_in);
  } catch (const qec::shot_file_error &error) {
    throw record_error(error.what());
  } catch (const usage_error &error) {
    throw record_error(error.what());
  }
}

void stream_record::read_rounds(const shot_source &in) {
  round_reader reader(in.path, stream_format("--in", in), model_);
  while (reader.next() == round_reader::found::round) {
    events_.insert(events_.end(), reader.bits().begin(),
                   reader.bits().begin() + static_cast<std::ptrdiff_t>((reader.count() + 7) / 8));
    ++before_tail_;
    if (events_.size() > kMaxSampledBytes)
      throw usage_error(fmt::format("--in {}: the rounds of a record are kept in memory, at most {} bytes; `decode "
                                    "--stream` takes longer ones",
                                    in.path, kMaxSampledBytes));
  }
  tail_.assign(reader.bits().begin(), reader.bits().end());
  if (before_tail_ == model_.head().size())
    throw usage_error(fmt::format("--in {}: an experiment without a repetition, accepted: one or more", in.path));
}

void stream_record::read_values(const readout_files &files, const qec::stream_readout &readout) {
  stream_value_input input(files, readout.info());
  const qec::readout_place all = readout.total((before_tail_ - model_.head().size()) / model_.body().size());
  if (static_cast<std::uint64_t>(all.value) > 8 * kMaxSampledBytes / soft_bits_)
    throw usage_error(fmt::format("--soft {}: {} values, and a record is kept in memory, at most {} bytes", files.soft,
                                  all.value, kMaxSampledBytes));
  if (static_cast<std::uint64_t>(all.flag) > 4 * kMaxSampledBytes)
    throw usage_error(fmt::format("--leakage {}: {} flags, and a record is kept in memory, at most {} bytes",
                                  files.leakage, all.flag, kMaxSampledBytes));
  static_cast<void>(input.read_to(all)); // nothing stops it
  const qec::stream_values known = input.next();
  soft_.assign(known.soft.begin(), known.soft.end());
  flags_.assign(known.leakage.begin(), known.leakage.end());
  input.check_end();
}

void stream_record::read_observables(const shot_source &in) {
  qec::shot_reader reader(in.path, in.shot_format(), qec::shot_bits{0, model_.num_observables()}, "--obs_in_format");
  observables_.resize(static_cast<std::size_t>((model_.num_observables() + 7) / 8));
  read_one_row(reader, observables_);
}

void stream_record::begin(std::uint64_t /*seed*/, std::uint64_t /*k*/) {
  next_round_ = next_tail_ = 0;
  next_row_ = 0;
}

std::span<const std::uint8_t> stream_record::next_round() {
  const bool is_tail = next_round_ >= before_tail_;
  const std::uint64_t size = is_tail ? model_.tail()[next_round_ - before_tail_]
                                     : model_.first_detector(next_round_ + 1) - model_.first_detector(next_round_);
  ++next_round_;
  round_.clear();
  for (std::uint64_t k = 0; k < size; ++k) {
    const std::uint64_t at = is_tail ? next_tail_ + k : 8 * next_row_ + k;
    round_.push_back((is_tail ? tail_ : events_)[at / 8] >> at % 8 & 1);
  }
  if (is_tail)
    next_tail_ += size;
  else
    next_row_ += static_cast<std::size_t>((size + 7) / 8);
  return round_;
}

void stream_record::append_soft(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const {
  append_values(soft_, soft_bits_, from, to, bytes);
}

void stream_record::append_flags(std::uint64_t from, std::uint64_t to, std::vector<std::uint8_t> &bytes) const {
  append_values(flags_, 2, from, to, bytes);
}

} // namespace cudaq::realtime::tools

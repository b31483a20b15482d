// SPDX-License-Identifier: Apache-2.0
// Which errors of a stream its soft values and flags mean. Values and flags of an experiment have numbers from 0, as
// its detectors have; each repetition of the loop brings equally many.
//
// Example: 9 measurements in all, a loop of 3 repetitions with 2 measurements each. Error 1 of the loop is there with
// the probability 0.002, or if the first measurement of its repetition is misread:
//
//   of the table                of the loop                         of an experiment with 100 repetitions
//   misread 4 0.002 3 0         error 1, rest 0.002, reading 3      error 4, reading 3
//   misread 6 0.002 5 0         (the same, 2 later)                 error 6, reading 5
//   ...                                                             ...
//   9 measurements              2 a repetition, 3 others            203 measurements
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/decoders/readout/readout_content.h"
#include "lib/qec/stream/repeating_model.h"

#include <cstdint>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

/// A place among the values of a stream, and one among its flags; also how many of each.
struct readout_place {
  std::int64_t value = 0, flag = 0;
  friend readout_place operator+(readout_place a, readout_place b) noexcept {
    return {a.value + b.value, a.flag + b.flag};
  }
  friend readout_place operator*(readout_place a, std::int64_t n) noexcept { return {a.value * n, a.flag * n}; }
  bool operator==(const readout_place &) const = default;
};

/// Errors whose probability a readout says, in ascending order. Their values and flags count from a place that the
/// owner of the list knows.
struct read_errors {
  struct reading {
    std::int64_t value;
    std::uint32_t calibration;
    bool operator==(const reading &) const = default;
  };
  struct listing {
    std::int64_t flag;
    unsigned flag_value;
    double probability;
    bool operator==(const listing &) const = default;
  };
  struct entry {
    std::uint64_t error;
    double rest;                            ///< with readings: its probability without misread measurements
    std::size_t end_readings, end_listings; ///< its own end before these
    bool operator==(const entry &) const = default;
  };

  std::vector<entry> errors;
  std::vector<reading> readings;
  std::vector<listing> listings;
  bool operator==(const read_errors &) const = default;

  [[nodiscard]] std::span<const reading> readings_of(std::size_t k) const noexcept {
    const std::size_t begin = k == 0 ? 0 : errors[k - 1].end_readings;
    return std::span(readings).subspan(begin, errors[k].end_readings - begin);
  }
  [[nodiscard]] std::span<const listing> listings_of(std::size_t k) const noexcept {
    const std::size_t begin = k == 0 ? 0 : errors[k - 1].end_listings;
    return std::span(listings).subspan(begin, errors[k].end_listings - begin);
  }
  /// Adds entry k of another list, as this error.
  void add(const read_errors &from, std::size_t k, std::uint64_t error, readout_place by = {});
  /// Moves all values and flags.
  void move(readout_place by) noexcept;
  /// The place after the last value and the last flag; {0, 0} if all are below 0.
  [[nodiscard]] readout_place end() const noexcept;
};

/// The readout of a stream: that of the head, of one repetition, and of the tail.
class stream_readout {
public:
  stream_readout() = default; ///< none

  /// `table`: of the model as its text has it. Refused: repetitions whose errors differ in the table, or whose values
  /// do not follow each other at equal distances; a loop without any, so that these distances are not known;
  /// calibrations that no kind of soft values suits.
  static expected<stream_readout> make(const readout_table::content &table, const repeating_model &model);

  [[nodiscard]] bool empty() const noexcept { return head_.errors.empty() && body_.errors.empty(); }
  /// Of the model with this number of repetitions.
  [[nodiscard]] read_errors unrolled(std::uint64_t repetitions) const;
  /// The errors of the head, of a repetition, and of the tail, counted from the begin of the part. Values and flags are
  /// those of the first repetition, and of an experiment with one.
  [[nodiscard]] const read_errors &head() const noexcept { return head_; }
  [[nodiscard]] const read_errors &body() const noexcept { return body_; }
  [[nodiscard]] read_errors tail() const;
  /// Values and flags of a repetition, and of head and tail together.
  [[nodiscard]] readout_place in_body() const noexcept { return in_body_; }
  [[nodiscard]] readout_place others() const noexcept { return others_; }
  [[nodiscard]] readout_place total(std::uint64_t repetitions) const noexcept {
    return others_ + in_body_ * static_cast<std::int64_t>(repetitions);
  }
  /// From which a window that begins with this round counts its values: windows that are alike have equal lists.
  [[nodiscard]] readout_place base_of(std::uint64_t round) const noexcept {
    return in_body_ * static_cast<std::int64_t>(round < head_rounds_ ? 0 : (round - head_rounds_) / body_rounds_);
  }
  [[nodiscard]] const std::vector<readout_calibration> &calibrations() const noexcept { return calibrations_; }
  /// Bit k: soft_kind k suits all calibrations. 0 without measurements.
  [[nodiscard]] std::uint32_t kinds() const noexcept { return kinds_; }
  [[nodiscard]] stream_values_info info() const noexcept;
  /// Bytes of memory, of the lists.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

private:
  class reader;

  read_errors head_, body_, tail_; ///< errors count from the begin of the part; values of the tail as in the text
  std::vector<readout_calibration> calibrations_;
  std::uint32_t kinds_ = 0;
  readout_place in_body_, others_;
  std::uint64_t head_errors_ = 0, body_errors_ = 0, repetitions_ = 0;
  std::uint64_t head_rounds_ = 0, body_rounds_ = 1;
};

} // namespace cudaq::qec::realtime

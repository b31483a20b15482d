// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/readout/readout_content.h"

#include "lib/qec/decoding/model_text_file.h"

#include <cmath>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kMaxValues = dem_limits{}.detectors; ///< measurements, and flags
constexpr std::uint64_t kMaxCalibrations = std::uint64_t{1} << 16;
constexpr std::uint64_t kNone = UINT64_MAX;

class table_reader {
public:
  explicit table_reader(const detector_error_model &model)
      : named_(model), listed_by_(model.num_errors, kNone), all_(std::make_unique<readout_table::content>()) {}

  expected<> read_line(std::string_view line) {
    std::string_view rest = line;
    const std::string_view word = next_word(rest);
    if (word == "measurements" || word == "flags")
      return read_count(word, rest, line);
    if (word == "gaussian" || word == "levels")
      return read_calibration(word, rest);
    if (word == "misread")
      return read_misread(rest);
    if (word == "flag")
      return read_flag(rest);
    return reason("the line begins with " + in_quotes(word) +
                  ", accepted: measurements, flags, gaussian, levels, misread, flag");
  }

  expected<std::unique_ptr<readout_table>> finish() {
    if (all_->measurements == 0 && all_->flags == 0)
      return reason("the file has neither measurements nor flags before its end");
    begin_listed(3 * all_->flags);
    return std::make_unique<readout_table>(std::move(all_));
  }

private:
  expected<> read_count(std::string_view word, std::string_view rest, std::string_view line) {
    std::uint64_t count = 0;
    const std::string_view number = next_word(rest);
    if (!read_number(number, count) || count == 0 || count > kMaxValues || !at_end(rest))
      return reason("the line is " + in_quotes(line) + ", accepted: " + std::string(word) +
                    " and how many a shot has, from 1 to " + std::to_string(kMaxValues));
    std::uint64_t &of_shot = word == "flags" ? all_->flags : all_->measurements;
    if (of_shot != 0)
      return reason(std::string(word) + " are in an earlier line, too");
    of_shot = count;
    if (word == "measurements")
      is_read_.assign(static_cast<std::size_t>(count), false);
    return {};
  }

  expected<> read_calibration(std::string_view word, std::string_view rest) {
    const std::string_view number = next_word(rest);
    std::uint64_t index = 0;
    if (!read_number(number, index) || index != all_->calibrations.size() || index >= kMaxCalibrations)
      return reason("the calibration is " + in_quotes(number) + ", accepted: the next number, " +
                    std::to_string(all_->calibrations.size()) + ", up to " + std::to_string(kMaxCalibrations - 1));
    std::vector<double> numbers;
    while (!at_end(rest)) {
      const std::string_view text = next_word(rest);
      double value = 0;
      if (!read_number(text, value) || !std::isfinite(value))
        return reason("calibration " + std::string(number) + " has " + in_quotes(text) + ", accepted: finite numbers");
      numbers.push_back(value);
    }
    readout_calibration made;
    if (word == "levels") {
      if (numbers.size() != 16 && numbers.size() != 256)
        return reason("calibration " + std::string(number) + " has " + std::to_string(numbers.size()) +
                      " levels, accepted: 16 or 256");
      for (const double ratio : numbers)
        made.misread.push_back(1 / (1 + std::exp(std::abs(ratio))));
    } else {
      if (numbers.size() != 4 || !(numbers[2] > 0) || !(numbers[3] > 0 && numbers[3] < 1))
        return reason("calibration " + std::string(number) +
                      " is no Gaussian, accepted: the mean of 0, the mean of 1, their standard deviation above 0, and "
                      "the share of 1 between 0 and 1");
      made.both = {numbers[0], numbers[1], numbers[2], numbers[3]};
      made.slope = (numbers[0] - numbers[1]) / numbers[2] / numbers[2];
      made.middle = numbers[0] / 2 + numbers[1] / 2;
      made.offset = std::log((1 - numbers[3]) / numbers[3]);
      if (!std::isfinite(made.slope) || numbers[0] == numbers[1])
        return reason("the means of calibration " + std::string(number) +
                      " are equal, or too far apart for its standard deviation");
    }
    all_->calibrations.push_back(std::move(made));
    return {};
  }

  /// Where the error is in the list of named ones.
  expected<std::size_t> name(std::uint64_t error) {
    const expected<std::uint64_t *> at = named_.of(error);
    if (at.failed())
      return at.reason();
    if (**at == error_entries::kUnnamed) {
      **at = all_->errors.size();
      all_->errors.push_back({error, 0, all_->readings.size()});
    }
    return static_cast<std::size_t>(**at);
  }

  expected<> read_misread(std::string_view rest) {
    if (had_flag_)
      return reason("a line misread comes after a line flag");
    const expected<error_probability> one = read_pair(rest);
    if (one.failed())
      return one.reason();
    const std::size_t before = all_->errors.size();
    const auto at = name(one->error);
    if (at.failed())
      return at.reason();
    const std::string text = "error " + std::to_string(one->error);
    if (*at != before)
      return reason(text + " is in an earlier line misread, too");
    if (at_end(rest))
      return reason(text + " has no measurement, accepted: pairs of a measurement and its calibration");
    while (!at_end(rest)) {
      const std::string_view measurement = next_word(rest), calibration = next_word(rest);
      readout_table::content::reading read{};
      if (!read_number(measurement, read.measurement) || read.measurement >= all_->measurements)
        return reason(text + ": the measurement is " + in_quotes(measurement) + ", and a shot has " +
                      std::to_string(all_->measurements));
      if (!read_number(calibration, read.calibration) || read.calibration >= all_->calibrations.size())
        return reason(text + ": the calibration of measurement " + std::string(measurement) + " is " +
                      in_quotes(calibration) + ", and there are " + std::to_string(all_->calibrations.size()) +
                      " before this line");
      if (is_read_[read.measurement])
        return reason("measurement " + std::string(measurement) + " is listed twice; it misreads one error");
      is_read_[read.measurement] = true;
      all_->readings.push_back(read);
    }
    all_->errors.back() = {one->error, one->probability, all_->readings.size()};
    ++all_->num_misread;
    return {};
  }

  expected<> read_flag(std::string_view rest) {
    const std::string_view flag = next_word(rest), value = next_word(rest);
    std::uint64_t number = 0, of_value = 0;
    if (!read_number(flag, number) || number >= all_->flags || !read_number(value, of_value) || of_value > 2)
      return reason("the line begins with " + in_quotes("flag " + std::string(flag) + " " + std::string(value)) +
                    ", accepted: a flag below " + std::to_string(all_->flags) + ", and its value 0, 1 or 2");
    const std::uint64_t range = 3 * number + of_value;
    if (range < all_->begin_listed.size())
      return reason("flag " + std::string(flag) + " " + std::string(value) +
                    " comes after a higher one or twice; flags and their values ascend");
    had_flag_ = true;
    begin_listed(range);
    while (!at_end(rest)) {
      const expected<error_probability> one = read_pair(rest);
      if (one.failed())
        return one.reason();
      const auto at = name(one->error);
      if (at.failed())
        return at.reason();
      if (listed_by_[one->error] == range)
        return reason("error " + std::to_string(one->error) + " is listed twice");
      listed_by_[one->error] = range;
      all_->listed_errors.push_back({*at, one->probability});
    }
    return {};
  }

  /// The ranges up to this one begin at the end of the list.
  void begin_listed(std::uint64_t range) {
    all_->begin_listed.resize(static_cast<std::size_t>(range) + 1, all_->listed_errors.size());
  }

  error_entries named_;                  ///< where it is in content::errors
  std::vector<std::uint64_t> listed_by_; ///< of each error: the last flag and value that list it, or kNone
  std::vector<bool> is_read_;            ///< of each measurement: it has an error
  bool had_flag_ = false;
  std::unique_ptr<readout_table::content> all_;
};

} // namespace

expected<std::unique_ptr<readout_table>> parse_readout_table(std::string_view text, const decoder_model &model) {
  return read_lines_about<table_reader>(text, "cudaq-realtime-readout 1", model);
}

} // namespace cudaq::qec::realtime

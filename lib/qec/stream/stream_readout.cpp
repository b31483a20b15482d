// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/stream/stream_readout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {

void read_errors::add(const read_errors &from, std::size_t k, std::uint64_t error, readout_place by) {
  for (const reading &one : from.readings_of(k))
    readings.push_back({one.value + by.value, one.calibration});
  for (const listing &one : from.listings_of(k))
    listings.push_back({one.flag + by.flag, one.flag_value, one.probability});
  errors.push_back({error, from.errors[k].rest, readings.size(), listings.size()});
}

void read_errors::move(readout_place by) noexcept {
  for (reading &one : readings)
    one.value += by.value;
  for (listing &one : listings)
    one.flag += by.flag;
}

readout_place read_errors::end() const noexcept {
  readout_place found;
  for (const reading &one : readings)
    found.value = std::max(found.value, one.value + 1);
  for (const listing &one : listings)
    found.flag = std::max(found.flag, one.flag + 1);
  return found;
}

namespace {

/// But for rounding.
bool are_equal(double p, double q) { return std::abs(p - q) <= 1e-9 * std::max(p, q); }

/// Whether two repetitions have the same errors, values and flags.
bool are_alike(const read_errors &a, const read_errors &b) {
  return a.readings == b.readings &&
         std::ranges::equal(a.errors, b.errors,
                            [](const read_errors::entry &one, const read_errors::entry &other) {
                              return one.error == other.error && are_equal(one.rest, other.rest) &&
                                     one.end_readings == other.end_readings && one.end_listings == other.end_listings;
                            }) &&
         std::ranges::equal(a.listings, b.listings,
                            [](const read_errors::listing &one, const read_errors::listing &other) {
                              return one.flag == other.flag && one.flag_value == other.flag_value &&
                                     are_equal(one.probability, other.probability);
                            });
}

} // namespace

/// Puts the errors of a table into their parts.
class stream_readout::reader {
public:
  reader(const readout_table::content &table, const repeating_model &model) : table_(table) {
    made_.head_errors_ = model.head_errors();
    made_.body_errors_ = model.body_errors();
    made_.repetitions_ = model.repetitions();
    made_.head_rounds_ = model.head().size();
    made_.body_rounds_ = model.body().size();
    made_.calibrations_ = table.calibrations;
  }

  expected<stream_readout> run() {
    if (expected<> result = find_kinds(); result.failed())
      return result.reason();
    const std::uint64_t tail = 1 + made_.repetitions_;
    const read_errors all = by_error();
    for (std::size_t k = 0; k < all.errors.size(); ++k) {
      const model_place place =
          place_in_model(all.errors[k].error, made_.head_errors_, made_.body_errors_, made_.repetitions_);
      if (expected<> result = go_on_to(place.part); result.failed())
        return result.reason();
      (place.part == 0 ? made_.head_ : place.part == tail ? made_.tail_ : repetition_).add(all, k, place.within);
    }
    if (expected<> result = go_on_to(tail); result.failed())
      return result.reason();
    if (expected<> result = find_sizes(); result.failed())
      return result.reason();
    return std::move(made_);
  }

private:
  expected<> find_kinds() {
    if (table_.measurements == 0)
      return {};
    for (const soft_kind kind : {soft_kind::f32, soft_kind::u8, soft_kind::u4})
      if (std::ranges::all_of(table_.readings,
                              [&](const auto &one) { return table_.calibrations[one.calibration].takes(kind); }))
        made_.kinds_ |= 1U << static_cast<unsigned>(kind);
    if (made_.kinds_ == 0)
      return reason(kNoKindSuits);
    return {};
  }

  /// The errors of the table in ascending order, each with its flags.
  read_errors by_error() const {
    std::vector<std::vector<read_errors::listing>> listings(table_.errors.size());
    for (std::uint64_t flag = 0; flag < table_.flags; ++flag)
      for (unsigned value = 0; value < 3; ++value) {
        const std::size_t range = static_cast<std::size_t>(3 * flag + value);
        for (std::size_t k = table_.begin_listed[range]; k < table_.begin_listed[range + 1]; ++k)
          listings[table_.listed_errors[k].named].push_back(
              {static_cast<std::int64_t>(flag), value, table_.listed_errors[k].probability});
      }
    std::vector<std::size_t> ascending(table_.errors.size());
    std::iota(ascending.begin(), ascending.end(), std::size_t{0});
    std::ranges::sort(ascending, {}, [&](std::size_t k) { return table_.errors[k].error; });
    read_errors all;
    for (const std::size_t k : ascending) {
      if (k < table_.num_misread)
        for (std::size_t at = k == 0 ? 0 : table_.errors[k - 1].end_readings; at < table_.errors[k].end_readings; ++at)
          all.readings.push_back(
              {static_cast<std::int64_t>(table_.readings[at].measurement), table_.readings[at].calibration});
      all.listings.insert(all.listings.end(), listings[k].begin(), listings[k].end());
      all.errors.push_back({table_.errors[k].error, table_.errors[k].rest, all.readings.size(), all.listings.size()});
    }
    return all;
  }

  /// Ends the repetitions before this part.
  expected<> go_on_to(std::uint64_t part) {
    for (; current_ < part; ++current_) {
      if (current_ == 1)
        made_.body_ = repetition_;
      if (current_ > 1) {
        if (current_ == 2)
          find_distances();
        read_errors as_first = repetition_;
        as_first.move(made_.in_body_ * (1 - static_cast<std::int64_t>(current_)));
        if (!are_alike(as_first, made_.body_))
          return reason("the readout of repetition " + std::to_string(current_) +
                        " of the loop is not that of the first one");
      }
      repetition_ = {};
    }
    return {};
  }

  /// From the first repetition to the second one.
  void find_distances() noexcept {
    if (!repetition_.readings.empty() && !made_.body_.readings.empty())
      made_.in_body_.value = repetition_.readings.front().value - made_.body_.readings.front().value;
    if (!repetition_.listings.empty() && !made_.body_.listings.empty())
      made_.in_body_.flag = repetition_.listings.front().flag - made_.body_.listings.front().flag;
  }

  expected<> find_sizes() {
    const auto repetitions = static_cast<std::int64_t>(made_.repetitions_);
    const auto measurements = static_cast<std::int64_t>(table_.measurements);
    const auto flags = static_cast<std::int64_t>(table_.flags);
    const struct {
      std::int64_t all, in_body;
      const char *what;
      std::int64_t &others;
    } each[] = {{measurements, made_.in_body_.value, "soft values", made_.others_.value},
                {flags, made_.in_body_.flag, "flags", made_.others_.flag}};
    for (const auto &one : each) {
      if (one.all != 0 && one.in_body <= 0)
        return reason(std::string("how many ") + one.what +
                      " a repetition of the loop has is not known: the table needs some of two repetitions, whose "
                      "numbers ascend");
      if (one.in_body > one.all / repetitions)
        return reason(std::string("a repetition of the loop has ") + std::to_string(one.in_body) + " " + one.what +
                      ", and all " + std::to_string(repetitions) + " have " + std::to_string(one.all));
      one.others = one.all - repetitions * one.in_body;
    }
    return {};
  }

  const readout_table::content &table_;
  stream_readout made_;
  read_errors repetition_;    ///< that is read now
  std::uint64_t current_ = 0; ///< its part
};

expected<stream_readout> stream_readout::make(const readout_table::content &table, const repeating_model &model) {
  return reader(table, model).run();
}

read_errors stream_readout::tail() const {
  read_errors moved = tail_;
  moved.move(in_body_ * (1 - static_cast<std::int64_t>(repetitions_)));
  return moved;
}

read_errors stream_readout::unrolled(std::uint64_t repetitions) const {
  read_errors all;
  const auto add = [&all](const read_errors &part, std::uint64_t error, readout_place by) {
    for (std::size_t k = 0; k < part.errors.size(); ++k)
      all.add(part, k, error + part.errors[k].error, by);
  };
  add(head_, 0, {});
  for (std::uint64_t k = 0; k < repetitions; ++k)
    add(body_, head_errors_ + k * body_errors_, in_body_ * static_cast<std::int64_t>(k));
  add(tail_, head_errors_ + repetitions * body_errors_,
      in_body_ * (static_cast<std::int64_t>(repetitions) - static_cast<std::int64_t>(repetitions_)));
  return all;
}

stream_values_info stream_readout::info() const noexcept {
  const auto count = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
  return {count(in_body_.value), count(others_.value), count(in_body_.flag), count(others_.flag), kinds_};
}

std::uint64_t stream_readout::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const read_errors *const part : {&head_, &body_, &tail_})
    sum += part->errors.size() * sizeof(read_errors::entry) + part->readings.size() * sizeof(read_errors::reading) +
           part->listings.size() * sizeof(read_errors::listing);
  return sum;
}

} // namespace cudaq::qec::realtime

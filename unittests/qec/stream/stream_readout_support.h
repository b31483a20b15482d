// SPDX-License-Identifier: Apache-2.0
// Streams whose rounds come with soft values and flags of leakage.
#pragma once

#include "unittests/qec/model_text.h"
#include "unittests/qec/shot_lists.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <cstring>
#include <map>

namespace cudaq::qec::realtime::test {

inline constexpr double kRest = 0.002;  ///< of errors that a misread measurement causes, without it
inline constexpr double kSpread = 0.55; ///< of values around 1 and -1
inline constexpr double kListed = 0.3;  ///< of an error whose flag is 2

/// Two numbers in the order head, repetitions, tail.
struct part_sizes {
  std::uint64_t head = 0, body = 0, tail = 0;
  std::uint64_t total(std::uint64_t repetitions) const { return head + repetitions * body + tail; }
};

/// A model with a loop, and a table for it: each error that joins two rounds is a misread measurement, and of each part
/// (head, a repetition, tail) the first error is likely if the flag of the part is 2. The first value of all, and the
/// last one, belong to measurements that no detector sees.
struct stream_readout_case {
  explicit stream_readout_case(std::string text) : dem(std::move(text)), model(repeating_or_throw(dem)) {
    const std::uint64_t repetitions = model.repetitions();
    whole = *model.unrolled(repetitions);
    const std::vector<std::uint64_t> round = model.rounds(repetitions);
    std::uint64_t number = 1; // of a value
    soft.head = soft.tail = 1;
    flags = {1, 1, 1};
    std::string misread, listed;
    std::uint64_t before = UINT64_MAX, next_part = 0;
    for (const dem_component &c : whole.components) {
      const bool is_alone =
          &c + 1 == whole.components.data() + whole.components.size() || (&c)[1].mechanism != c.mechanism;
      const auto detectors = whole.detectors_of(c);
      const bool is_first = c.mechanism != before,
                 in_time = detectors.size() == 2 && is_first && is_alone && round[detectors[0]] != round[detectors[1]];
      before = c.mechanism;
      const model_place place = place_in_model(c.mechanism, model.head_errors(), model.body_errors(), repetitions);
      if (in_time) {
        misread += "misread " + std::to_string(c.mechanism) + " " + std::to_string(kRest) + " " +
                   std::to_string(number) + " 0\n";
        value_of[c.mechanism] = number++;
        if (place.part <= 1 || place.part > repetitions)
          ++(place.part == 0 ? soft.head : place.part == 1 ? soft.body : soft.tail);
      } else if (is_first && place.part == next_part) {
        listed += "flag " + std::to_string(place.part) + " 2 " + std::to_string(c.mechanism) + " " +
                  std::to_string(kListed) + "\n";
        flag_of[c.mechanism] = place.part;
        ++next_part;
      }
    }
    lines = "measurements " + std::to_string(number + 1) + "\nflags " + std::to_string(repetitions + 2) +
            "\ngaussian 0 1 -1 " + std::to_string(kSpread) + " 0.5\n" + misread + listed;
    table = head_of_text("cudaq-realtime-readout 1", dem) + lines;
  }

  std::string dem, table, lines;
  repeating_model model;
  detector_error_model whole; ///< as the text has it
  part_sizes soft, flags;
  std::map<std::uint32_t, std::uint64_t> value_of, flag_of; ///< by error of `whole`
};

/// An experiment as long as the text says.
struct read_shot {
  component_sampler::shot bits;
  std::vector<float> soft;
  std::vector<unsigned> flags;

  std::vector<std::uint8_t> soft_bytes() const {
    std::vector<std::uint8_t> out(soft.size() * sizeof(float));
    std::memcpy(out.data(), soft.data(), out.size());
    return out;
  }
  std::vector<std::uint8_t> leakage_bytes() const {
    std::vector<std::uint8_t> out((flags.size() + 3) / 4);
    for (std::size_t k = 0; k < flags.size(); ++k)
      out[k / 4] = static_cast<std::uint8_t>(out[k / 4] | flags[k] << 2 * (k % 4));
    return out;
  }
};

inline read_shot sample(const stream_readout_case &of, std::mt19937 &random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> noise(1, kSpread);
  const component_sampler errors(of.whole, 1);
  read_shot made{errors.none(), {}, {}};
  for (std::uint64_t k = 0; k < of.soft.total(of.model.repetitions()); ++k)
    made.soft.push_back(static_cast<float>(noise(random)));
  for (std::uint64_t k = 0; k < of.flags.total(of.model.repetitions()); ++k)
    made.flags.push_back(random() % 8 == 0 ? 2 : random() % 2);
  std::uint32_t before = UINT32_MAX;
  bool happens = false;
  for (const dem_component &c : of.whole.components) {
    if (c.mechanism != before) {
      const auto value = of.value_of.find(c.mechanism), flag = of.flag_of.find(c.mechanism);
      const bool is_read = value != of.value_of.end();
      const bool is_listed = flag != of.flag_of.end() && made.flags[flag->second] == 2;
      happens = uniform(random) < (is_read ? kRest : is_listed ? kListed : c.probability);
      if (is_read && made.soft[value->second] < 0)
        happens = !happens;
    }
    before = c.mechanism;
    if (happens)
      errors.add(made.bits, c);
  }
  return made;
}

/// What the table says of the whole shot.
inline shot_list list_of_shot(const stream_readout_case &of, const read_shot &shot) {
  const readout_table_result table = read_readout_table(of.table, of.dem);
  if (!table)
    throw std::runtime_error(table.error);
  shot_list list;
  std::string fault;
  const std::vector<std::uint8_t> soft = shot.soft_bytes(), leakage = shot.leakage_bytes();
  if (table.instance->list_of({.soft = soft, .leakage = leakage}, list, fault) != decode_status::ok)
    throw std::runtime_error(fault);
  return list;
}

/// Sends a shot in order: bits, values, flags.
class shot_sender {
public:
  shot_sender(stream_decoder &to, const stream_readout_case &of, const read_shot &shot)
      : to_(to), of_(of), shot_(shot) {}

  /// The next bits, with the values and flags until these have come; again if the queue is full.
  decode_status push(std::uint64_t bits, std::uint64_t soft, std::uint64_t flags) {
    return send(bits, soft, flags, false);
  }
  /// The next bits with the values of the repetitions that they end or are in.
  decode_status push(std::uint64_t bits) {
    const std::uint64_t head = of_.model.head_detectors(), body = of_.model.body_detectors();
    const std::uint64_t then = std::max(bits_ + bits, head), begun = (then - head + body - 1) / body;
    return push(bits, std::max(soft_, of_.soft.head + begun * of_.soft.body),
                std::max(flags_, of_.flags.head + begun * of_.flags.body));
  }
  /// The tail with all that is left. Waits for the end.
  decode_status finish() {
    const std::uint64_t tail = of_.model.tail_detectors();
    if (const decode_status status = send(tail, shot_.soft.size(), shot_.flags.size(), true);
        status != decode_status::ok)
      return status;
    return to_.wait_committed(UINT64_MAX, soon()).status;
  }
  /// All of it, in pieces of a repetition.
  decode_status run() {
    const std::uint64_t before = of_.whole.num_detectors - of_.model.tail_detectors();
    decode_status status = decode_status::ok;
    while (bits_ < before && status == decode_status::ok)
      status = push(std::min(before - bits_, of_.model.body_detectors()));
    return status == decode_status::ok ? finish() : status;
  }
  std::uint64_t bits() const { return bits_; }

private:
  decode_status send(std::uint64_t bits, std::uint64_t soft, std::uint64_t flags, bool is_tail) {
    const std::vector<std::uint8_t> row = part_of(shot_.bits.events, bits_, bits);
    const read_shot part{{},
                         {shot_.soft.begin() + static_cast<std::ptrdiff_t>(soft_),
                          shot_.soft.begin() + static_cast<std::ptrdiff_t>(soft)},
                         {shot_.flags.begin() + static_cast<std::ptrdiff_t>(flags_),
                          shot_.flags.begin() + static_cast<std::ptrdiff_t>(flags)}};
    const std::vector<std::uint8_t> values = part.soft_bytes(), leakage = part.leakage_bytes();
    const stream_values known{values, part.soft.size(), soft_kind::f32, leakage, part.flags.size()};
    decode_status status = decode_status::busy;
    for (const auto deadline = soon(); status == decode_status::busy && std::chrono::steady_clock::now() < deadline;) {
      const std::uint64_t committed = to_.committed_rounds();
      status = is_tail ? to_.finish(row, bits, known) : to_.push(row, bits, known);
      if (status == decode_status::busy)
        static_cast<void>(to_.wait_committed(committed + 1, deadline));
    }
    if (status == decode_status::ok) {
      bits_ += bits;
      soft_ = soft;
      flags_ = flags;
    }
    return status;
  }

  stream_decoder &to_;
  const stream_readout_case &of_;
  const read_shot &shot_;
  std::uint64_t bits_ = 0, soft_ = 0, flags_ = 0; ///< that were sent
};

/// The surface code of distance 3 with fewer repetitions.
inline std::string short_surface_dem(std::uint64_t repetitions) {
  std::string text = surface_dem();
  const std::size_t at = text.find("repeat "), end = text.find(' ', at + 7);
  return text.replace(at + 7, end - at - 7, std::to_string(repetitions));
}

inline constexpr std::uint64_t kChainRepetitions = 15;

/// A chain with one detector a round and a measurement of each: a pair of events in successive rounds is either an
/// error that flips the observable, or the measurement of the first round, which was misread.
inline std::string chain_dem() {
  const std::string round = "detector(0) D0\nerror(0.01) D0 L0\nerror(0.01) D0\n";
  const std::string joined = "error(0.02) D0 D1 L0\nerror(1e-9) D0 D1\n";
  return round + joined + "shift_detectors(1) 1\nrepeat " + std::to_string(kChainRepetitions) + " {\n" + round +
         joined + "shift_detectors(1) 1\n}\n" + round;
}

/// Its table: value k and flag k are those of round k. Values near 12 are 0, near 3 are 1.
inline std::string chain_table(const std::string &dem, bool has_flags = true,
                               const std::string &calibration = "gaussian 0 12 3 2 0.5\n") {
  const std::string number = std::to_string(kChainRepetitions + 1);
  std::string misread, flags;
  for (std::uint64_t k = 0; k <= kChainRepetitions; ++k) {
    misread += "misread " + std::to_string(4 * k + 3) + " 0 " + std::to_string(k) + " 0\n";
    flags += "flag " + std::to_string(k) + " 2 " + std::to_string(4 * k + 3) + " 0.4\n";
  }
  return head_of_text("cudaq-realtime-readout 1", dem) + "measurements " + number + "\n" +
         (has_flags ? "flags " + number + "\n" : "") + calibration + misread + (has_flags ? flags : "");
}

} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/stream/repeating_model.h"
#include "unittests/qec/qec_test_support.h"
#include "unittests/qec/soon.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace cudaq::qec::realtime::test {

/// A repetition code with distance d (d - 1 detectors a round), errors of data and of measurements with probability p:
/// head of one round, a loop, a tail of one round. `period`: rounds in a repetition.
inline std::string repetition_dem(int d, double p, int period, std::uint64_t repetitions) {
  const int n = d - 1;
  const std::string error = "error(" + std::to_string(p) + ")";
  const auto round = [&](int first, int time, bool measured) {
    std::string text;
    for (int k = 0; k < n; ++k)
      text += "detector(" + std::to_string(k) + "," + std::to_string(time) + ") D" + std::to_string(first + k) + "\n";
    text += error + " D" + std::to_string(first) + " L0\n";
    for (int k = 0; k + 1 < n; ++k)
      text += error + " D" + std::to_string(first + k) + " D" + std::to_string(first + k + 1) + "\n";
    text += error + " D" + std::to_string(first + n - 1) + "\n";
    for (int k = 0; measured && k < n; ++k)
      text += error + " D" + std::to_string(first + k) + " D" + std::to_string(first + k + n) + "\n";
    return text;
  };
  std::string text = round(0, 0, true) + "shift_detectors(0,1) " + std::to_string(n) + "\nrepeat " +
                     std::to_string(repetitions) + " {\n";
  for (int r = 0; r < period; ++r)
    text += round(r * n, r, true);
  return text + "shift_detectors(0," + std::to_string(period) + ") " + std::to_string(period * n) + "\n}\n" +
         round(0, 0, false);
}

/// A distance 3 surface code with circuit noise, as Stim writes it: repetitions of two rounds.
inline std::string surface_dem() {
  std::ifstream in(data_folder() / "surface_loop_d3_p0.004.dem");
  return {std::istreambuf_iterator<char>(in), {}};
}

inline repeating_model repeating_or_throw(std::string_view dem, std::string_view rounds = "time") {
  auto model = repeating_model::of(dem, *round_rule::parse(rounds));
  if (model.failed())
    throw std::runtime_error(model.text());
  return std::move(*model);
}

inline std::unique_ptr<stream_decoder> stream_or_throw(std::string_view dem, const stream_options &options) {
  stream_result made = make_stream_decoder(dem, options);
  if (!made)
    throw std::runtime_error(made.error);
  return std::move(made.instance);
}

inline std::shared_ptr<stream_workers> workers_or_throw(std::size_t count) {
  workers_result made = make_stream_workers(count);
  if (!made)
    throw std::runtime_error(made.error);
  return made.instance;
}

/// Shots of a model: each component happens or not.
class component_sampler {
public:
  component_sampler(const detector_error_model &model, std::uint32_t seed) : model_(model), random_(seed) {}

  struct shot {
    std::vector<std::uint8_t> events, observables; ///< bits
  };
  shot next() {
    shot made = none();
    for (const dem_component &c : model_.components)
      if (std::uniform_real_distribution<double>()(random_) < c.probability)
        add(made, c);
    return made;
  }
  shot none() const {
    return {std::vector<std::uint8_t>((model_.num_detectors + 7) / 8),
            std::vector<std::uint8_t>((model_.num_observables + 7) / 8)};
  }
  void add(shot &to, const dem_component &c) const {
    flip_bits(model_.detectors_of(c), to.events);
    flip_bits(model_.observables_of(c), to.observables);
  }

private:
  const detector_error_model &model_;
  std::mt19937 random_;
};

/// Bits [begin, begin + count) as a row of their own.
inline std::vector<std::uint8_t> part_of(const std::vector<std::uint8_t> &bits, std::uint64_t begin,
                                         std::uint64_t count) {
  std::vector<std::uint8_t> part;
  for (std::uint64_t k = 0; k < count; ++k) {
    if (k % 8 == 0)
      part.push_back(0);
    if ((bits[(begin + k) / 8] >> ((begin + k) % 8) & 1) != 0)
      part.back() = static_cast<std::uint8_t>(part.back() | 1U << k % 8);
  }
  return part;
}

/// Pushes bits [begin, end), again if the queue is full.
inline decode_status push_part(stream_decoder &stream, const std::vector<std::uint8_t> &bits, std::uint64_t begin,
                               std::uint64_t end) {
  const std::vector<std::uint8_t> part = part_of(bits, begin, end - begin);
  decode_status status = decode_status::busy;
  for (const auto deadline = soon(); status == decode_status::busy && std::chrono::steady_clock::now() < deadline;) {
    const std::uint64_t committed = stream.committed_rounds();
    if ((status = stream.push(part, end - begin)) == decode_status::busy)
      static_cast<void>(stream.wait_committed(committed + 1, deadline));
  }
  return status;
}

/// Sends the tail and waits for the end.
inline decode_status finish(stream_decoder &stream, const std::vector<std::uint8_t> &events, std::uint64_t detectors) {
  const std::uint64_t tail = stream.tail_detectors();
  if (const decode_status status = stream.finish(part_of(events, detectors - tail, tail), tail);
      status != decode_status::ok)
    return status;
  const stream_progress end = stream.wait_committed(UINT64_MAX, soon());
  return end.status == decode_status::ok && !end.is_final ? decode_status::busy : end.status;
}

/// Streams a whole experiment, in one push if the stream takes so much at once. Returns the status of its end.
inline decode_status run(stream_decoder &stream, const std::vector<std::uint8_t> &events, std::uint64_t detectors) {
  const std::uint64_t before = detectors - stream.tail_detectors();
  decode_status status = stream.push(events, before);
  const std::uint64_t part = stream.body_detectors();
  if (status == decode_status::not_supported || status == decode_status::busy) // too much at once
    for (std::uint64_t at = 0; at < before && (at == 0 || status == decode_status::ok); at += part)
      status = push_part(stream, events, at, std::min(at + part, before));
  return status == decode_status::ok ? finish(stream, events, detectors) : status;
}

inline std::vector<std::uint8_t> flips_of(const stream_decoder &stream) {
  return {stream.observables().begin(), stream.observables().end()};
}

/// Streams the shot of these components, which must be corrected.
inline void expect_corrects(stream_decoder &stream, const detector_error_model &whole,
                            const std::vector<std::size_t> &components) {
  const component_sampler errors(whole, 1);
  auto shot = errors.none();
  for (const std::size_t c : components)
    errors.add(shot, whole.components[c]);
  stream.reset();
  ASSERT_EQ(run(stream, shot.events, whole.num_detectors), decode_status::ok);
  ASSERT_EQ(flips_of(stream), shot.observables) << "components " << testing::PrintToString(components);
  ASSERT_EQ(stream.committed_rounds(), stream.pushed_rounds());
}

/// Each `step`-th error of the model on its own.
inline void expect_corrects_every_error(stream_decoder &stream, const detector_error_model &whole,
                                        std::size_t step = 1) {
  for (std::size_t k = 0; k < whole.components.size(); k += step)
    ASSERT_NO_FATAL_FAILURE(expect_corrects(stream, whole, {k}));
}

} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unittests/qec/server/server_test_support.h"

namespace cudaq::qec::realtime::test {

/// A model of streams: head, repetition and tail are one round of `n` detectors. Detector k of a round is flipped only
/// by an error that flips observable (k + shift) % n, so corrections are the XOR of the rounds, each rotated.
inline std::string rotated_stream_model(unsigned n, unsigned shift = 0) {
  const auto round = [&](unsigned time) {
    std::string text;
    for (unsigned k = 0; k < n; ++k)
      text += "detector(" + std::to_string(time) + ") D" + std::to_string(k) + "\n";
    return text + rotated_model(n, shift);
  };
  const std::string next = "shift_detectors(1) " + std::to_string(n) + "\n";
  return round(0) + next + "repeat 100 {\n" + round(0) + next + "}\n" + round(0);
}

/// The same, but two errors of each round flip its two detectors together: one event alone has no explanation.
inline std::string paired_stream_model() {
  const std::string round = "detector(0) D0\ndetector(0) D1\nerror(0.1) D0 D1 L0\n", next = "shift_detectors(1) 2\n";
  return round + next + "repeat 100 {\n" + round + next + "}\n" + round;
}

inline std::unique_ptr<decoding_unit> stream_unit_with(const std::string &model, const stream_options &options) {
  stream_result made = make_stream_decoder(model, options);
  if (!made)
    throw std::runtime_error(made.error);
  return std::make_unique<decoding_unit>(std::move(made.instance), 17);
}

/// `workers`: may be null.
inline std::unique_ptr<decoding_unit> stream_unit_for(const std::string &model, std::uint64_t commit = 2,
                                                      std::uint64_t buffer = 1,
                                                      std::shared_ptr<stream_workers> workers = {}) {
  return stream_unit_with(model, {.decoder = "lookup",
                                  .commit = commit,
                                  .buffer = buffer,
                                  .mode = stream_mode::sequential,
                                  .pool = std::move(workers)});
}

inline bytes begin_tail_payload(std::uint64_t id, std::uint64_t counter) {
  bytes payload;
  append_number(payload, id);
  append_number(payload, counter);
  return payload;
}

inline bytes committed_payload(std::uint64_t id, std::uint64_t wanted, std::uint64_t wait_for_round = 0,
                               bool clear = false) {
  bytes payload;
  for (const std::uint64_t number : {id, wanted, std::uint64_t{clear}, wait_for_round})
    append_number(payload, number);
  return payload;
}

/// The answer to get_committed.
inline full_answer committed(std::uint64_t rounds, std::uint64_t pushed, const std::string &bits) {
  full_answer answer{0, {}};
  append_number(answer.result, rounds);
  append_number(answer.result, pushed);
  const bytes frame = packed(bits);
  answer.result.insert(answer.result.end(), frame.begin(), frame.end());
  return answer;
}

} // namespace cudaq::qec::realtime::test

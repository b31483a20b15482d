// SPDX-License-Identifier: Apache-2.0
// Decodes shots with any decoder: its name, or the path of a plug-in, is the argument. The model is a memory of three
// bits, read out twice: an error between two detectors, or between a detector and the boundary.
#include <cudaq/qec/decoding/decoder.h>

#include <array>
#include <cstdio>

using namespace cudaq::qec::realtime;

int main(int argc, char **argv) {
  const char *const model = "error(0.01) D0 L0\n"
                            "error(0.02) D0 D1\n"
                            "error(0.01) D1\n";
  const decoder_result made = make_decoder(argc > 1 ? argv[1] : "auto", model);
  if (!made)
    return std::printf("%s\n", made.error.c_str()), 1;
  decoder &with = *made.instance;

  // One shot: the detectors that fired, and the observables to flip.
  const std::array<std::uint64_t, 1> events{0};
  std::array<std::uint8_t, 1> flips{};
  decode_details details; // the weight of the correction
  const decode_status status = with.decode(events, flips, details);
  std::printf("%s: D0 -> L%d, weight %.3f, %s\n", with.name(), flips[0], details.weight, decode_status_text(status));

  // A batch: one row of bits for each shot. No event; D0; D1; both; both.
  const std::array<std::uint8_t, 5> shots{0b00, 0b01, 0b10, 0b11, 0b11};
  std::array<std::uint8_t, 5> answers{};
  std::array<decode_status, 5> statuses{};
  const decode_status first_error = with.decode_batch(shots.size(), shots, answers, statuses);
  for (std::size_t i = 0; i < shots.size(); ++i)
    std::printf("  shot %zu: events %d -> flips %d, %s\n", i, shots[i], answers[i], decode_status_text(statuses[i]));
  return status == decode_status::ok && flips[0] == 1 && first_error == decode_status::ok &&
                 answers == std::array<std::uint8_t, 5>{0, 1, 0, 0, 0}
             ? 0
             : 1;
}

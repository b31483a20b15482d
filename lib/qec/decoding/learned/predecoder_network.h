// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// A grid of layers * width * width cells; cell (t, i, j) is number (t * width + i) * width + j.
struct network_grid {
  std::uint32_t layers = 0, width = 0;
  std::size_t cells() const noexcept { return std::size_t{layers} * width * width; }
};

/// The network that training/predecoder trains, on the CPU: the reference of every faster engine. All layers are
/// convolutions of 3 x 3 x 3 with zeros around the grid, those between the first and the last add their input, and all
/// but the last are cut at 0. So it serves grids of each size. The sums have a fixed order: the same input gives the
/// same bits on each machine.
class predecoder_network {
public:
  static constexpr std::uint32_t kInputs = 4;  ///< events of X, events of Z, where events of X can be, where of Z
  static constexpr std::uint32_t kOutputs = 3; ///< logits: a Z flip, an X flip, a misread outcome

  /// Takes a file that train.py or publish.py of training/predecoder has written: safetensors, float32 or float16.
  /// Refused, with the reason: any other format, shape or size, offsets outside the file, a value that is not finite.
  [[nodiscard]] static expected<predecoder_network> parse(std::span<const std::uint8_t> file);

  /// An output above it is a correction: the logit of the card's `threshold`, a probability of 0.5 if it has none.
  [[nodiscard]] float threshold() const noexcept { return threshold_; }
  [[nodiscard]] std::uint32_t channels() const noexcept { return layers_.front().outputs; }
  struct convolution {
    std::uint32_t inputs = 0, outputs = 0;
    std::vector<float> weights; ///< [3][3][3][inputs][outputs]
    std::vector<float> biases;
  };
  /// At least two: the first has kInputs inputs, the last kOutputs outputs, all else is channels().
  [[nodiscard]] std::span<const convolution> layers() const noexcept { return layers_; }
  /// Floats that run() needs as its memory.
  [[nodiscard]] std::size_t memory_floats(network_grid grid) const noexcept { return 2 * grid.cells() * channels(); }
  /// input: kInputs values a cell. output: kOutputs values a cell. Allocates nothing; threads share a network.
  void run(network_grid grid, std::span<const float> input, std::span<float> output,
           std::span<float> memory) const noexcept;

private:
  static void apply(const convolution &layer, network_grid grid, const float *from, float *to) noexcept;

  std::vector<convolution> layers_;
  float threshold_ = 0;
};

} // namespace cudaq::qec::realtime

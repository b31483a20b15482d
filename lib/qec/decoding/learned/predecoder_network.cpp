// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/learned/predecoder_network.h"

#include "lib/qec/decoding/learned/safetensors.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint32_t kMaxChannels = 1024;
constexpr std::size_t kMaxLayers = 64, kTaps = 27;

/// The value of a float16.
float of_half(std::uint32_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  if (exponent == 0) // a multiple of 2^-24
    return std::copysign(std::ldexp(static_cast<float>(fraction), -24), std::bit_cast<float>(sign));
  const std::uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// The values of tensor `name`. A reason says what is wrong with it.
expected<std::vector<float>> values_of(const safetensors &file, const std::string &name,
                                       std::span<const std::uint64_t> shape) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end())
    return reason("it has no tensor " + name);
  std::size_t count = 1;
  for (const std::uint64_t size : shape)
    count *= static_cast<std::size_t>(size);
  const bool half = found->second.type == "F16";
  const std::size_t bytes = half ? 2 : 4;
  if ((!half && found->second.type != "F32") || !std::ranges::equal(found->second.shape, shape) ||
      found->second.data.size() != bytes * count)
    return reason("tensor " + name + " has another type, shape or size than this network");
  std::vector<float> values(count);
  for (std::size_t k = 0; k < count; ++k) {
    std::uint32_t word = 0;
    for (std::size_t at = 0; at < bytes; ++at)
      word |= std::uint32_t{found->second.data[bytes * k + at]} << (8 * at);
    values[k] = half ? of_half(word) : std::bit_cast<float>(word);
    if (!std::isfinite(values[k]))
      return reason("tensor " + name + " has a value that is not finite");
  }
  return values;
}

/// The logit of a probability in a card.
expected<float> threshold_of(const safetensors &file) {
  const auto found = file.metadata.find("threshold");
  if (found == file.metadata.end())
    return 0.0f;
  const std::string &word = found->second;
  double p = 0;
  const auto [stopped, fault] = std::from_chars(word.data(), word.data() + word.size(), p);
  if (fault != std::errc{} || stopped != word.data() + word.size() || !(p > 0 && p < 1))
    return reason("its threshold is not a number between 0 and 1");
  return static_cast<float>(std::log(p / (1 - p)));
}

} // namespace

expected<predecoder_network> predecoder_network::parse(std::span<const std::uint8_t> bytes) {
  const expected<safetensors> file = parse_safetensors(bytes);
  if (file.failed())
    return file.reason();
  const auto format = file->metadata.find("format");
  if (format == file->metadata.end() || format->second != "cudaq-realtime predecoder 1")
    return reason("its format is not \"cudaq-realtime predecoder 1\"");
  const auto first = file->tensors.find("weights.0");
  if (first == file->tensors.end() || first->second.shape.empty() || first->second.shape[0] == 0 ||
      first->second.shape[0] > kMaxChannels)
    return reason("its first layer has no channels, or more than " + std::to_string(kMaxChannels));
  const std::size_t count = file->tensors.size() / 2;
  if (count < 2 || count > kMaxLayers || file->tensors.size() % 2 != 0)
    return reason("it has not 2 to " + std::to_string(kMaxLayers) + " layers, each with weights and biases");

  predecoder_network network;
  const auto channels = static_cast<std::uint32_t>(first->second.shape[0]);
  for (std::size_t k = 0; k < count; ++k) {
    convolution layer{k == 0 ? kInputs : channels, k + 1 == count ? kOutputs : channels, {}, {}};
    const std::uint64_t shape[] = {layer.outputs, layer.inputs, 3, 3, 3};
    auto weights = values_of(*file, "weights." + std::to_string(k), shape);
    auto biases = values_of(*file, "biases." + std::to_string(k), std::span(shape).first(1));
    if (weights.failed() || biases.failed())
      return (weights.failed() ? weights.reason() : biases.reason());
    layer.biases = std::move(*biases);
    layer.weights.resize(weights->size());
    for (std::size_t out = 0; out < layer.outputs; ++out)
      for (std::size_t in = 0; in < layer.inputs; ++in)
        for (std::size_t tap = 0; tap < kTaps; ++tap)
          layer.weights[(tap * layer.inputs + in) * layer.outputs + out] =
              (*weights)[(out * layer.inputs + in) * kTaps + tap];
    network.layers_.push_back(std::move(layer));
  }
  const expected<float> threshold = threshold_of(*file);
  if (threshold.failed())
    return threshold.reason();
  network.threshold_ = *threshold;
  return network;
}

void predecoder_network::apply(const convolution &layer, network_grid grid, const float *from, float *to) noexcept {
  const auto layers = static_cast<int>(grid.layers), width = static_cast<int>(grid.width);
  const auto cell = [&](int t, int i, int j) { return static_cast<std::size_t>((t * width + i) * width + j); };
  for (int t = 0; t < layers; ++t)
    for (int i = 0; i < width; ++i)
      for (int j = 0; j < width; ++j) {
        float *const sum = to + cell(t, i, j) * layer.outputs;
        std::ranges::copy(layer.biases, sum);
        for (int tap = 0; tap < static_cast<int>(kTaps); ++tap) {
          const int near_t = t + tap / 9 - 1, near_i = i + tap / 3 % 3 - 1, near_j = j + tap % 3 - 1;
          if (near_t < 0 || near_t >= layers || near_i < 0 || near_i >= width || near_j < 0 || near_j >= width)
            continue;
          const float *const values = from + cell(near_t, near_i, near_j) * layer.inputs;
          const float *weights = layer.weights.data() + static_cast<std::size_t>(tap) * layer.inputs * layer.outputs;
          for (std::uint32_t in = 0; in < layer.inputs; ++in, weights += layer.outputs) {
            const float value = values[in];
            if (value == 0) // most inputs, and half of the values that are cut at 0
              continue;
            for (std::uint32_t out = 0; out < layer.outputs; ++out)
              sum[out] += value * weights[out];
          }
        }
      }
}

void predecoder_network::run(network_grid grid, std::span<const float> input, std::span<float> output,
                             std::span<float> memory) const noexcept {
  const std::size_t values = grid.cells() * channels();
  const std::span<float> halves[] = {memory.first(values), memory.subspan(values, values)};
  const float *from = input.data();
  for (std::size_t k = 0; k + 1 < layers_.size(); ++k) {
    const std::span<float> to = halves[k % 2];
    apply(layers_[k], grid, from, to.data());
    for (std::size_t at = 0; at < values; ++at)
      to[at] = std::max(0.0f, k == 0 ? to[at] : to[at] + from[at]);
    from = to.data();
  }
  apply(layers_.back(), grid, from, output.data());
}

} // namespace cudaq::qec::realtime

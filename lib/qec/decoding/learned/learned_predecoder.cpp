// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/learned/learned_predecoder.h"

#include "lib/qec/decoding/whole_file.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 28;
constexpr std::size_t kMaxMemoryFloats = std::size_t{1} << 29;

void toggle(std::span<std::uint64_t> bits, std::uint32_t index) {
  bits[index / 64] ^= std::uint64_t{1} << (index % 64);
}

class learned_predecoder final : public predecoder {
public:
  learned_predecoder(predecoder_network network, memory_lattice lattice, predecoder_layout layout)
      : predecoder(layout), network_(std::move(network)), lattice_(std::move(lattice)),
        input_(lattice_.grid.cells() * predecoder_network::kInputs),
        output_(lattice_.grid.cells() * predecoder_network::kOutputs), memory_(network_.memory_floats(lattice_.grid)) {
    for (const memory_lattice::place place : lattice_.places)
      input_[place.cell * predecoder_network::kInputs + 2 + place.what] = 1;
  }
  const char *name() const noexcept override { return "model"; }

protected:
  std::uint32_t residual_of(std::span<const std::uint64_t> fired, std::span<std::uint64_t> frame,
                            std::span<std::uint64_t> residual) noexcept override {
    std::ranges::copy(fired, residual.begin());
    if (std::ranges::all_of(fired, [](std::uint64_t word) { return word == 0; }))
      return 0;
    for (std::size_t k = 0; k < lattice_.places.size(); ++k) {
      const memory_lattice::place place = lattice_.places[k];
      const bool event = (fired[k / 64] >> (k % 64) & 1) != 0;
      input_[place.cell * predecoder_network::kInputs + place.what] = event ? 1.0f : 0.0f;
    }
    network_.run(lattice_.grid, input_, output_, memory_);
    std::uint32_t corrections = 0;
    for (std::size_t at = 0; at < output_.size(); ++at) {
      const memory_lattice::effect effect =
          lattice_.effects[at % predecoder_network::kOutputs][at / predecoder_network::kOutputs];
      if (!(output_[at] > network_.threshold()) || effect.detectors == 0)
        continue;
      ++corrections;
      const auto list = std::span(lattice_.lists).subspan(effect.first, effect.detectors + effect.observables);
      for (const std::uint32_t detector : list.first(effect.detectors))
        toggle(residual, detector);
      for (const std::uint32_t observable : list.subspan(effect.detectors))
        toggle(frame, observable);
    }
    return corrections;
  }

private:
  predecoder_network network_;
  memory_lattice lattice_;
  std::vector<float> input_, output_, memory_;
};

} // namespace

expected<learned_model> read_learned_model(const std::string &file, const decoder_model &given) {
  const expected<std::string> text = read_whole_file(file, kMaxFileBytes);
  if (text.failed())
    return text.reason();
  const std::span bytes(reinterpret_cast<const std::uint8_t *>(text->data()), text->size());
  expected<predecoder_network> network = predecoder_network::parse(bytes);
  if (network.failed())
    return reason(file + ": " + network.text());
  const auto errors = given.errors();
  if (errors.failed())
    return errors.reason();
  expected<memory_lattice> lattice = read_memory_lattice(given);
  if (lattice.failed())
    return reason("the model of the errors: " + lattice.text());
  const predecoder_layout layout{static_cast<std::uint32_t>((*errors)->num_detectors),
                                 static_cast<std::uint32_t>((*errors)->num_observables)};
  return learned_model{std::move(*network), std::move(*lattice), layout};
}

expected<std::unique_ptr<predecoder>> make_learned_predecoder(const std::string &file, const decoder_model &given) {
  const auto refused = [&](const std::string &why) { return reason("model predecoder: " + why); };
  try {
    expected<learned_model> model = read_learned_model(file, given);
    if (model.failed())
      return refused(model.text());
    if (model->network.memory_floats(model->lattice.grid) > kMaxMemoryFloats)
      return refused("the model of the errors: its grid has " + std::to_string(model->lattice.grid.cells()) +
                     " cells, and the network's values of them take more than 2 GiB");
    return std::make_unique<learned_predecoder>(std::move(model->network), std::move(model->lattice), model->layout);
  } catch (const std::bad_alloc &) {
    return refused("the network or its grid does not fit into memory");
  }
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// The input is the text of a detector error model. A model that is accepted has its invariants and survives a round
// trip; decoders made of it answer every syndrome with a status.
#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/detector_graph.h"
#include "unittests/fuzz/fuzz_input.h"

#include <charconv>

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

// Small, so that every input is quick: the time is linear in the size of the text plus these limits.
constexpr dem_limits kLimits{.detectors = 4096, .observables = 1024, .instructions = 20000, .targets = 40000};
// Of a model that decoders are made of.
constexpr std::uint64_t kMaxDetectors = 12, kMaxObservables = 4, kMaxComponents = 200;

bool ascending_below(std::span<const std::uint64_t> indices, std::uint64_t end) {
  for (std::size_t k = 0; k < indices.size(); ++k)
    if (indices[k] >= end || (k != 0 && indices[k - 1] >= indices[k]))
      return false;
  return true;
}

void check_invariants(const detector_error_model &model) {
  require(model.num_detectors <= kLimits.detectors, "detectors are limited");
  require(model.num_observables <= kLimits.observables, "observables are limited");
  require(model.targets.size() <= kLimits.targets, "targets are limited");
  std::size_t next = 0;
  for (const dem_component &c : model.components) {
    require(c.probability > 0 && c.probability <= 1, "a component has a probability");
    require(c.first_target == next, "components follow each other");
    next += c.detectors + c.observables;
    require(next <= model.targets.size(), "targets are in range");
    require(ascending_below(model.detectors_of(c), model.num_detectors), "detectors ascend and are in range");
    require(ascending_below(model.observables_of(c), model.num_observables), "observables ascend and are in range");
  }
  require(next == model.targets.size(), "every target belongs to a component");
}

/// A text of the unrolled model: a line for each component, and the size.
std::string text_of(const detector_error_model &model) {
  std::string text;
  for (const dem_component &c : model.components) {
    char digits[32];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), c.probability).ptr;
    text += "error(" + std::string(digits, end) + ")";
    for (const std::uint64_t d : model.detectors_of(c))
      text += " D" + std::to_string(d);
    for (const std::uint64_t o : model.observables_of(c))
      text += " L" + std::to_string(o);
    text += '\n';
  }
  if (model.num_detectors != 0)
    text += "detector D" + std::to_string(model.num_detectors - 1) + "\n";
  if (model.num_observables != 0)
    text += "logical_observable L" + std::to_string(model.num_observables - 1) + "\n";
  return text;
}

void check_round_trip(const detector_error_model &model, const std::string &text) {
  dem_limits more = kLimits;
  more.instructions += 2;
  more.targets += 2;
  const auto again = parse_dem(text, more);
  require(again.ok(), "the model's own text is accepted: " + again.text());
  require(again->num_detectors == model.num_detectors && again->num_observables == model.num_observables &&
              again->targets == model.targets && again->components.size() == model.components.size(),
          "the model's own text is the same model");
  for (std::size_t k = 0; k < model.components.size(); ++k)
    require(again->components[k].probability == model.components[k].probability &&
                again->components[k].detectors == model.components[k].detectors,
            "a component survives the round trip");
}

void check_decoders(const detector_error_model &model, const std::string &text) {
  const auto graph = detector_graph::from_dem(model);
  require(graph.ok() || !graph.text().empty(), "a refused graph has a reason");
  for (const std::string_view kind : {"lookup", "auto", "bp-osd"}) {
    const decoder_result made = make_decoder(kind, text);
    require((made.instance == nullptr) != made.error.empty(), "there is a decoder or a reason");
    if (made.instance == nullptr)
      continue;
    std::string answer(made.instance->observable_bytes(), '\0');
    const std::span<std::uint8_t> out(reinterpret_cast<std::uint8_t *>(answer.data()), answer.size());
    for (std::uint64_t syndrome = 0; syndrome >> model.num_detectors == 0; syndrome = syndrome * 3 + 1) {
      std::uint64_t events[kMaxDetectors];
      std::size_t count = 0;
      for (std::uint64_t d = 0; d < model.num_detectors; ++d)
        if ((syndrome >> d & 1) != 0)
          events[count++] = d;
      const decode_status status = made.instance->decode({events, count}, out);
      require(status == decode_status::ok || status == decode_status::no_solution, "a syndrome is answered");
      // The others refuse errors of probability 1, which make events that must be there; auto takes bp-osd then.
      require(syndrome != 0 || status == decode_status::ok || made.instance->name() == std::string_view("bp-osd"),
              "no events are always explained");
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const auto model = parse_dem(text, kLimits);
  if (model.failed()) {
    require(model.text().starts_with("line "), "a refusal names the line: " + model.text());
    return 0;
  }
  check_invariants(*model);
  const std::string own = text_of(*model);
  check_round_trip(*model, own);
  if (model->num_detectors <= kMaxDetectors && model->num_observables <= kMaxObservables &&
      model->components.size() <= kMaxComponents)
    check_decoders(*model, own);
  return 0;
}

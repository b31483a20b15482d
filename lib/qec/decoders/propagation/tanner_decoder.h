// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoders/confidence/confident_decoder.h"
#include "lib/qec/decoders/propagation/tanner_graph.h"
#include "lib/qec/decoders/replaced_errors.h"

#include <memory>
#include <utility>

namespace cudaq::qec::realtime {

/// Makes a Decoder(tanner_graph, options, smallest probability), with gaps if the setting confidence asks for them.
/// `settings`: read by the caller, but for those that all decoders of a graph have; one that is left is an error.
template <class Decoder, class Options>
decoder_result make_tanner_decoder(const decoder_model &model, decoder_settings &settings, const Options &options) {
  const double smallest = smallest_of(settings);
  const bool has_gaps = settings.flag("confidence");
  if (const expected<> result = settings.check(); result.failed())
    return {nullptr, result.text()};
  const auto make = [&](const decoder_model &of) -> decoder_result {
    auto graph = tanner_graph::from_model(of);
    if (graph.failed())
      return {nullptr, graph.text()};
    return {std::make_unique<Decoder>(std::move(*graph), options, smallest), {}};
  };
  decoder_result made = make(model);
  return made && has_gaps ? make_confident_decoder(std::move(made.instance), **model.errors(), make) : std::move(made);
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// One factory for each name of decoder_names(). decoder_factory.cpp has the table.
#pragma once

#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/error_form.h"
#include "lib/qec/decoding/decoder_model.h"

#include <optional>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

/// Whether make_decoder knows this name; a reason has the fault of its form or its name. Settings are checked only by
/// the decoder itself, and a plug-in only when it is loaded.
[[nodiscard]] expected<> check_decoder_name(std::string_view name);

/// A decoder, or an error text.
struct chosen_decoder : decoder_result {
  std::string auto_reason; ///< why auto did not make its first choice; "" if it did, and with another name
};
/// make_decoder, also for a model that is no text, or from which several decoders are made. `heralds`: the contents of
/// the file that the setting heralds names, which then is not read.
[[nodiscard]] chosen_decoder choose_decoder(std::string_view name, const decoder_model &model,
                                            std::optional<std::string_view> heralds = {});

/// Minimum-weight perfect matching, for any graph-like model. The instance is warmed up: its first decode is as fast
/// as the later ones. Setting edges=1: it gives edges.
[[nodiscard]] decoder_result make_pymatching_decoder(const decoder_model &model, decoder_settings &settings);

/// The same with PyMatching's correlated (two-pass) matching. The components of a decomposed error are correlated.
[[nodiscard]] decoder_result make_correlated_decoder(const decoder_model &model, decoder_settings &settings);

/// A table with the minimum-weight answer to every syndrome; for small codes only (docs/decoding.md). Setting depth=N:
/// the syndromes of all sets of at most N errors, for any code; any other syndrome is not_converged.
[[nodiscard]] decoder_result make_lookup_decoder(const decoder_model &model, decoder_settings &settings);

/// Belief propagation and ordered statistics, for any model (bp_osd/bp_osd_options.h has the settings).
[[nodiscard]] decoder_result make_bp_osd_decoder(const decoder_model &model, decoder_settings &settings);

/// Relay belief propagation, for any model (relay_bp/relay_bp_options.h has the settings).
[[nodiscard]] decoder_result make_relay_bp_decoder(const decoder_model &model, decoder_settings &settings);

/// The same on a GPU: a plug-in, in builds with CUDA. The error says what is missing; the CPU never takes its place.
[[nodiscard]] decoder_result make_relay_bp_gpu_decoder(const decoder_model &model, decoder_settings &settings);
[[nodiscard]] decoder_result make_model_gpu_decoder(const decoder_model &model, decoder_settings &settings);

/// Windows of a repeating model one after another, as a stream is decoded. Settings: inner (the decoder of a window),
/// commit, buffer, rounds, mode, heralds; all others are those of the inner decoder. `heralds`: the contents of the
/// file of this setting; without them the file is read.
[[nodiscard]] decoder_result make_sliding_window_decoder(const decoder_model &model, decoder_settings &settings,
                                                         std::optional<std::string_view> heralds);

/// Several decoders on the same shot, each on a thread of its own, which is made once. Settings: members, and mode:
/// first takes the first solution, best the one of least weight; then the others are cancelled.
[[nodiscard]] decoder_result make_race_decoder(const decoder_model &model, decoder_settings &settings);

/// A decoder of a plug-in (decoder_plugin.h). All settings are the plug-in's.
[[nodiscard]] decoder_result make_plugin_decoder(const std::string &path, const decoder_model &model,
                                                 const decoder_settings &settings);
/// What its table says (error_form.h has the others).
[[nodiscard]] expected<error_form> error_form_of_plugin(const std::string &path);
/// Of a race: that of its members if all have the same, else joined. `members`: the setting of this name.
[[nodiscard]] expected<error_form> error_form_of_race(std::string_view members);
/// Whether one of its members does.
[[nodiscard]] bool race_takes_edges_only(std::string_view members);

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"
#include "lib/qec/shots/shot_stream.h"
#include "lib/qec/stream/repeating_model.h"
#include "tools/shots/own_data.h"

#include <cstdint>
#include <span>
#include <string>

namespace cudaq::realtime::tools {

/// Whether `detectors` detectors are a head, whole repetitions and a tail.
bool is_experiment(const qec::repeating_model &model, std::uint64_t detectors);

/// What to do with a file of shots instead of --stream.
std::string advice_for_shots(const qec::repeating_model &model);

/// Looks at a regular file before it is decoded as one experiment. Fails if it holds shots instead, as Stim writes
/// them. Reads at most its first line.
///
///   01   lines of a whole experiment each, where a line ends inside a round, or has the length of the model's text
///   b8   whole shots of the model's text, and not head, repetitions and tail in rows of whole bytes
qec::expected<> check_one_experiment(const shot_source &in, const qec::repeating_model &model);

/// The format of a file of one experiment. Throws usage_error for one that is none.
qec::shot_format stream_format(const char *option, const shot_source &source);

/// The only row of a file with the observables of one experiment. Throws shot_file_error, and usage_error for another
/// number of rows.
void read_one_row(qec::shot_reader &from, std::span<std::uint8_t> row);

} // namespace cudaq::realtime::tools

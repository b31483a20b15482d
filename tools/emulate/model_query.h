// SPDX-License-Identifier: Apache-2.0
// Which model has the server, and is it still the same server? Asked before the first shot, and after a run with
// errors: docs/transport/server_wire.md, "The model of a decoder".
#pragma once

#include "lib/qec/server/session/wire_requests.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"

#include <optional>

namespace cudaq::realtime::tools {

/// What a decoder of the server answers.
struct server_description {
  qec::model_facts model;
  std::optional<qec::server_facts> server;   ///< only of an answer to a longer query
  std::optional<qec::readout_facts> readout; ///< only of an answer to the longest one
};

struct model_query {
  std::uint32_t sent = 0;    ///< the id of the next request
  bool answered = false;     ///< else the server does not know the query, and is served as it is
  std::string note;          ///< the model has the same size but another content; names both. "": the same model
  std::uint64_t boot_id = 0; ///< of the server of the first decoder; 0: not known
};

/// Asks for the models of all decoders that the options name, with ids from first_id on. Throws usage_error, with both
/// models, if one has another number of detectors or observables than the shots, if it is of a stream, or if the server
/// has no decoder of this id, or if one is known to take other soft values and flags than those of the shots; and
/// api_error if no server listens. `readout`: null, or that of the shots.
model_query query_model(link &to, const emulate_options &options, const cudaq::qec::realtime::shot_set &shots,
                        const recorded_readout *readout, std::uint32_t first_id = 0);

/// The facts of the stream that the options name; nothing: the server does not tell. Throws api_error if none listens,
/// and usage_error if the server has no such decoder, or if it decodes shots.
std::optional<server_description> query_facts(link &to, const emulate_options &options, std::uint32_t &next_id);
/// What they say beside those of --dem and --readout, which are those of a repetition. Throws usage_error as above.
model_query compare_stream(const emulate_options &options, const std::optional<server_description> &theirs,
                           const qec::model_facts &own, const qec::readout_facts &readout);

/// After a run with errors: what is to be said about the server, if it was started again since `before`, or ends. "":
/// nothing, or it does not answer. `next_id`: of the next request.
std::string restart_note(link &to, const emulate_options &options, const model_query &before, std::uint32_t next_id);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// Which model has the server, and is it still the same server? Asked before the first shot, and after a run with
// errors: docs/transport/server.md, "The model of a decoder".
#pragma once

#include "lib/qec/server/wire_requests.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"

namespace cudaq::realtime::tools {

struct model_question {
  std::uint32_t sent = 0;    ///< requests that were sent; their ids are 0, 1, ...
  bool answered = false;     ///< else the server does not know the question, and is served as it is
  std::string note;          ///< the model has the same size but another content; names both. "": the same model
  std::uint64_t boot_id = 0; ///< of the server of the first decoder; 0: not known
};

/// Asks for the models of all decoders that the options name. Throws usage_error, with both models, if one has another
/// number of detectors or observables than the shots, and api_error if no server listens.
model_question ask_for_model(link &to, const emulate_options &options, const cudaq::qec::realtime::shot_set &shots);

/// The same for a stream: its decoder must answer with these facts; its `detectors` are those of a repetition.
model_question ask_for_stream(link &to, const emulate_options &options, const qec::model_facts &own);

/// After a run with errors: what is to be said about the server, if it was started again since `before`, or ends. "":
/// nothing, or it does not answer. `next_id`: of the next request.
std::string restart_note(link &to, const emulate_options &options, const model_question &before, std::uint32_t next_id);

} // namespace cudaq::realtime::tools

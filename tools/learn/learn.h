// SPDX-License-Identifier: Apache-2.0
// `learn`: detection events of good shots in, the rates of the model's errors out. One thread.
#pragma once

#include "tools/common/report.h"
#include "tools/shots/own_data.h"

#include <string>

namespace cudaq::realtime::tools {

struct learn_options {
  own_data data{"", {"-", ""}, {}, {}, false};
  std::string tied;      ///< a file of groups of errors; "": none
  std::string out;       ///< the text of the model with the learned rates; "": none
  double held_out = 0.1; ///< share of the shots for the score; 0: no score
  double prior = 4;      ///< factor by which a rate is expected to differ from the model's, one sigma
};

/// Returns an exit_code: kExitCheckFailed if the data must not change the model. Throws usage_error if a file cannot be
/// used.
int run_learn(const learn_options &options, const output &out);

} // namespace cudaq::realtime::tools

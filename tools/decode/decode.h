// SPDX-License-Identifier: Apache-2.0
// `decode`: detection events in, predicted observables out, as files or pipes in Stim's formats.
//
// Threads of a run:
//
//   thread   started by    owns                                       waits                   ends
//   main     the system    the files; the counts; the order           for the oldest batch    with the program
//   decoder  --threads >1  its decoder; a batch while it decodes it   for a batch             with decoder_threads
//
// Batches are read, decoded by any thread, and written in the order in which they were read. With one thread the main
// thread decodes.
#pragma once

#include "tools/common/report.h"
#include "tools/shots/own_data.h"

#include <string>

namespace cudaq::realtime::tools {

struct decode_options {
  own_data data{"", {"-", ""}, {}, {}, false};
  shot_source out{"-", ""};
  shot_source errors_out; ///< not given: the errors of the corrections are not wanted
  std::string decoder = "auto";
  std::string predecoder = "passthrough";
  unsigned threads = 1; ///< 0: one for each core that the program may use
};

/// From the report alone.
std::string decode_html(const json &report);

/// Returns an exit_code. Throws usage_error if a file cannot be used; the text says how many answers were written.
int run_decode(const decode_options &options, const output &out);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// `decoding`: logical errors and time of decoders and predecoders on shots that are sampled from a model. Every
// case decodes the same shots, so the ratio of two cases is a paired one. Unless a time or a signal ends the run, the
// result does not depend on the number of threads. With several models: error_curve.h.
#pragma once

#include "benchmarks/decoding/bench_readout.h"
#include "tools/common/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct bench_decoding_options {
  std::vector<std::string> dem_files;
  std::string csv_file;                      ///< "": none; else rates of models over their physical error rate
  std::string svg_file;                      ///< "": none
  std::vector<std::string> decoders{"auto"}; ///< the first one, alone, is the reference
  std::vector<std::string> predecoders{"none"};
  std::vector<double> deadlines_us; ///< each decoder also decodes with each of these deadlines
  std::vector<double> flagged;      ///< each decoder also decodes shots that replace these shares of the errors
  bench_readout_options known;      ///< any: each decoder decodes all shots with what these know, too
  std::uint64_t shots = 100000;     ///< of each model
  double duration_s = 0;            ///< > 0: time to decode, instead of shots
  std::uint64_t failures = 0;       ///< stop when the reference has failed so often; 0: do not
  std::uint32_t errors = 0;         ///< errors of each shot; 0: as the model says
  std::uint64_t seed = 1;
  unsigned threads = 1; ///< each with its decoders; 0: one for each core
};

/// Returns an exit_code. Throws usage_error for a model that cannot be read, or that a named decoder does not take.
int run_bench_decoding(const bench_decoding_options &options, const output &out);

} // namespace cudaq::realtime::tools

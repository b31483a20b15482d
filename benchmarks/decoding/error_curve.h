// SPDX-License-Identifier: Apache-2.0
// Logical error rates of several models: a point for each model and decoder, a line for each distance over the physical
// error rate. The counts are in a CSV file of sinter, so a run goes on where the one before it has ended.
#pragma once

#include "benchmarks/decoding/bench_decoding.h"
#include "tools/shots/own_data.h"

#include <string>

namespace cudaq::realtime::tools {

/// What a model is, from the name of its file: `surface_d5_p0.003_r5.dem`, or `d=5,p=0.003,r=5.dem` as sinter has it.
/// 0: not in the name.
struct model_labels {
  std::uint32_t distance = 0, rounds = 0;
  double noise = 0; ///< physical error rate
};
model_labels labels_of(const std::string &path);

/// The logical error rate of one round, if each of `rounds` flips the observable with this probability on its own:
/// (1 - (1 - 2 p)^(1/rounds)) / 2, sinter's shot_error_rate_to_piece_error_rate. `rate`: of a shot, for one observable.
double rate_of_a_round(double rate, std::uint32_t rounds);

/// `decoding` with several models, or with --csv. As run_bench_decoding.
int run_error_curve(const bench_decoding_options &options, const output &out);

} // namespace cudaq::realtime::tools

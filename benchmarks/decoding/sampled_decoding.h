// SPDX-License-Identifier: Apache-2.0
// Decoders on shots that are sampled from a model. The shots depend on the seed alone, so every case decodes the same
// shots, and what is counted does not depend on the number of threads, unless a time or a signal ends the run.
#pragma once

#include "benchmarks/decoding/bench_decoding.h"
#include "benchmarks/decoding/bench_readout.h"
#include "lib/qec/decoders/offline_decoder.h"
#include "lib/qec/decoding/model_sampler.h"
#include "tools/common/latency_histogram.h"
#include "tools/common/report.h"
#include "tools/shots/config_shots.h"
#include "tools/shots/own_data.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// Shots without a solution, each in one of these.
struct unanswered_counts : unanswered_shots {
  std::uint64_t refused = 0; ///< the decoder does not take the shot, or no set of errors explains it
  std::uint64_t failed = 0;  ///< internal errors, an exception of a plug-in among them

  void add(qec::decode_status status) noexcept;
  void operator+=(const unanswered_counts &more) noexcept;
  [[nodiscard]] std::uint64_t total() const noexcept { return unanswered_shots::total() + refused + failed; }
};

/// What a case did with some shots.
struct case_counts {
  paired_errors errors{}; ///< `without` is the reference
  std::uint64_t events = 0;
  unanswered_counts unanswered;
  std::string first_fault; ///< why the first shot was refused, or its decoder failed; "": there is none
  qec::deadline_counts deadlines;
  std::uint64_t late = 0; ///< answers after their deadline; deadlines.late also has shots without a solution
  double ns = 0;
  latency_histogram shot_ns; ///< wall-clock time of each shot since the one before, also of those without a solution

  /// Counts a shot without a solution. `fault`: of its decoder.
  void add_unanswered(qec::decode_status status, const char *fault);
  void operator+=(const case_counts &more);
};

/// Of the reports that have case_fields. In 1 `refused` had also the shots that did not converge or failed.
inline constexpr int kDecodingSchemaVersion = 2;

/// Below the row of a case: the times of its shots, its deadlines, and which of its failures are no wrong answers.
std::string case_text(const case_counts &counts);
/// The same as fields of a report.
json case_fields(const case_counts &counts);
/// The same as tables of a page, a row for each of `cases`, which have these fields and one that names them.
std::string case_tables(const json &cases, const std::function<std::string(const json &)> &name_of);

/// A decoder, with its deadline and the predecoder before it.
struct decoding_case {
  std::string name;
  std::string decoder;    ///< without the deadline
  std::string predecoder; ///< "": none
  double deadline_us = 0; ///< 0: none
  double flagged = 0;     ///< share of the errors that each shot replaces, by the probability that they have
  bool knows = false;     ///< it has the soft values, flags or heralds of each shot
};

/// In the order of reports; the first one is the reference.
std::vector<decoding_case> cases_of(const bench_decoding_options &options);

/// A model, its decoders, and which of its shots they decode.
struct sampled_task {
  std::string dem_file, dem;
  std::vector<decoding_case> cases; ///< the first one is the reference
  std::uint64_t done = 0;           ///< the first shots, which an earlier run has decoded, are left out
  std::uint64_t done_failures = 0;  ///< of the reference in these
};

class sampled_decoding {
public:
  /// Keeps a reference to the options. Throws usage_error for a model that cannot be read, or that a decoder does not
  /// take.
  sampled_decoding(const bench_decoding_options &options, sampled_task task);
  ~sampled_decoding();
  sampled_decoding(const sampled_decoding &) = delete;
  sampled_decoding &operator=(const sampled_decoding &) = delete;

  [[nodiscard]] const qec::detector_error_model &model() const noexcept { return model_; }
  [[nodiscard]] const qec::model_sampler &sampler() const noexcept { return *sampler_; }
  [[nodiscard]] std::size_t threads() const noexcept { return threads_; }
  /// What shots know; null: nothing.
  [[nodiscard]] const bench_readout *known() const noexcept { return known_.get(); }

  /// What each case did with the shots of this run: until the shots, the time or the failures of the options are
  /// reached, or after a signal. `save` is called by this thread every few seconds with the same for the shots so far.
  /// Call it once.
  using sums_of_cases = std::vector<case_counts>;
  sums_of_cases run(const std::function<void(const sums_of_cases &)> &save = {});

private:
  const bench_decoding_options &options_;
  const sampled_task task_;
  qec::detector_error_model model_;
  std::unique_ptr<const qec::model_sampler> sampler_;
  std::unique_ptr<const bench_readout> known_;
  std::size_t threads_;
  class batch_decoder;
  std::unique_ptr<batch_decoder> first_;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The time of each request of a run, in its order of answers: what an FPGA's recorder keeps, as a file of lines.
#pragma once

#include "tools/common/output_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct exchange_times {
  std::uint32_t request_id = 0;
  std::uint64_t sent_ns = 0, answered_ns = 0; ///< answered_ns 0: no answer came
  std::int32_t status = 0;                    ///< of the answer
};

/// The file of --ila, opened before the work; NULL if no path is given. Throws usage_error.
std::unique_ptr<output_file> open_ila(const std::string &path);

/// Used by one thread.
class exchange_record {
public:
  static constexpr std::size_t kMax = std::size_t{1} << 22; ///< later ones are counted only

  void add(const exchange_times &one) {
    if (all_.size() == kMax)
      ++left_out_;
    else
      all_.push_back(one);
  }
  [[nodiscard]] const std::vector<exchange_times> &all() const { return all_; }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
  /// Comma-separated lines, with a line of names before them; nothing without a file. Throws usage_error.
  void write_csv(output_file *file) const;

private:
  std::vector<exchange_times> all_;
  std::uint64_t left_out_ = 0;
};

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// `decode --confidence`: the gaps of the observables (decode_details::gaps) as a file, and what they are worth.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace cudaq::realtime::tools {

/// Of a file name: gaps are written as bytes. Else as text.
[[nodiscard]] inline bool has_binary_gaps(const std::string &path) { return path.ends_with(".f64"); }

/// A row for each shot. Text: a line with the gaps in order, a space between two; `inf`, and `nan` of one that is not
/// known. Bytes: IEEE 754 doubles, least byte first.
class gap_file {
public:
  /// "": nothing is written. A file is replaced. Throws usage_error.
  explicit gap_file(const std::string &path);

  void write(std::span<const double> gaps);
  /// Hands everything to the system. Throws usage_error if an error occurred since the last call.
  void flush();

private:
  struct closer {
    void operator()(std::FILE *file) const noexcept { std::fclose(file); }
  };
  const std::string path_;
  std::unique_ptr<std::FILE, closer> file_;
  std::string text_; ///< since the last flush
};

/// How many shots are wrong if those of the smallest gaps are discarded. A shot counts with its smallest gap.
class gap_curve {
public:
  void add(std::span<const double> gaps, bool is_wrong);
  /// Lines for the text report: shares of 0 to 25 % are discarded.
  [[nodiscard]] std::string text(bool has_truth) const;
  /// Each limit in steps of kStep that discards other shots than the one before it.
  [[nodiscard]] json report(bool has_truth) const;

private:
  static constexpr double kStep = 0.125;
  static constexpr std::uint64_t kMaxBin = 8000; ///< those above count with it, infinite ones too

  struct counts {
    std::uint64_t shots = 0, wrong = 0;
  };
  std::map<std::uint64_t, counts> bins_; ///< by the number of steps in the gap
  counts all_, unknown_;
};

} // namespace cudaq::realtime::tools

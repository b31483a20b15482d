// SPDX-License-Identifier: Apache-2.0
// The CSV files of sinter: rows of counts, added up by their strong_id. A program that measures more adds a row.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// Counts of one decoder on one model. The names are those of sinter's columns.
struct sinter_row {
  std::uint64_t shots = 0, errors = 0, discards = 0;
  double seconds = 0; ///< of one core
  std::string decoder, strong_id;
  std::string json_metadata; ///< an object; "": none
};

/// With the end of the line.
extern const char *const kSinterHeader;
/// The line of a row, with its end, for a file with this header: in the order of its columns, empty where a column is
/// not one of sinter_row.
std::string sinter_line(const sinter_row &row, const std::string &header = kSinterHeader);

/// The rows of a file, those of a strong_id added up, in the order of their first ones. Columns may have any order, and
/// others are ignored. Throws usage_error with `name` and the line of what cannot be read. A file without a line is
/// one without rows.
std::vector<sinter_row> read_sinter_csv(std::istream &file, const std::string &name);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/shots/shot_stream.h"
#include "tools/decode/decode.h"
#include "tools/shots/recorded_readout.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::realtime::tools {

/// The table and the files of --readout, --soft and --leakage: rows of bytes, one for each shot.
class readout_input {
public:
  /// Throws usage_error or shot_file_error.
  readout_input(const readout_files &files, std::string_view dem_text);

  void stop_when(const std::function<bool()> &stop_requested);
  /// Calls `follow(reader, row)` for each file, which reads the next row, or the end. Then list() is that of the shot.
  template <class Follow>
  void read(Follow &&follow) {
    for (auto *const one : {&soft_, &leakage_})
      if (one->reader)
        follow(*one->reader, std::span(one->row));
  }
  /// Of the shot that was read last, until the next one. Throws shot_file_error with its number, which is `shot`.
  qec::shot_probabilities list(std::uint64_t shot);

private:
  struct source {
    std::optional<qec::shot_reader> reader;
    std::vector<std::uint8_t> row;
  };
  static void open(source &one, const char *option, const std::string &path, std::size_t bytes, const char *what);

  const std::string table_path_;
  std::unique_ptr<qec::readout_table> table_;
  const qec::soft_kind kind_;
  source soft_, leakage_;
  std::vector<qec::error_probability> list_;
};

} // namespace cudaq::realtime::tools

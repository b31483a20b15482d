// SPDX-License-Identifier: Apache-2.0
#include "tools/decode/readout_input.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools {

readout_input::readout_input(const readout_files &files, std::string_view dem_text)
    : table_path_(files.readout), table_(make_readout_table(files, read_readout_file(files), dem_text)),
      kind_(files.kind()) {
  open(soft_, "--soft", files.soft, table_->soft_bytes(kind_), "soft values of measurements");
  open(leakage_, "--leakage", files.leakage, table_->leakage_bytes(), "flags of leakage");
  list_.reserve(table_->max_errors());
}

void readout_input::open(source &one, const char *option, const std::string &path, std::size_t bytes,
                         const char *what) {
  if (const std::string text = wrong_readout_file(option, path, bytes, what); !text.empty())
    throw usage_error(text);
  one.row.resize(bytes);
  if (bytes != 0) // a row of b8 with 8 observables for each byte
    one.reader.emplace(path, qec::shot_format::b8, qec::shot_bits{0, 8 * std::uint64_t{bytes}});
}

void readout_input::stop_when(const std::function<bool()> &stop_requested) {
  for (source *const one : {&soft_, &leakage_})
    if (one->reader)
      one->reader->stop_when(stop_requested);
}

qec::shot_probabilities readout_input::list(std::uint64_t shot) {
  std::string fault;
  if (table_->list_of({.soft = soft_.row, .kind = kind_, .leakage = leakage_.row}, list_, fault) !=
      qec::decode_status::ok)
    throw qec::shot_file_error(fmt::format("--readout {}: shot {}: {}", table_path_, shot, fault));
  return list_;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/decode/readout_input.h"

#include "lib/qec/decoding/model_text_file.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

std::unique_ptr<qec::readout_table> table_of(const decode_options &o, std::string_view dem_text) {
  const auto text = qec::read_model_text(o.readout);
  if (text.failed())
    throw usage_error(fmt::format("--readout: {}", text.text()));
  qec::readout_table_result table = qec::read_readout_table(*text, dem_text);
  if (!table)
    throw usage_error(fmt::format("--readout: {}: {}", o.readout, table.error));
  return std::move(table.instance);
}

qec::soft_kind kind_of(const std::string &name) {
  return name == "u8" ? qec::soft_kind::u8 : name == "u4" ? qec::soft_kind::u4 : qec::soft_kind::f32;
}

} // namespace

readout_input::readout_input(const decode_options &o, std::string_view dem_text)
    : table_path_(o.readout), table_(table_of(o, dem_text)), kind_(kind_of(o.soft_kind)) {
  open(soft_, "--soft", o.soft, table_->soft_bytes(kind_), "soft values of measurements");
  open(leakage_, "--leakage", o.leakage, table_->leakage_bytes(), "flags of leakage");
  list_.reserve(table_->max_errors());
}

void readout_input::open(source &one, const char *option, const std::string &path, std::size_t bytes,
                         const char *what) {
  if (path.empty() == (bytes == 0)) {
    one.row.resize(bytes);
    if (bytes != 0) // a row of b8 with 8 observables for each byte
      one.reader.emplace(path, qec::shot_format::b8, qec::shot_bits{0, 8 * std::uint64_t{bytes}});
  } else if (path.empty()) {
    throw usage_error(fmt::format("{} is missing: the table of --readout has {}", option, what));
  } else {
    throw usage_error(fmt::format("{} {}: the table of --readout has no {}", option, path, what));
  }
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

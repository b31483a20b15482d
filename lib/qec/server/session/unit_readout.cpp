// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/unit_readout.h"

#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/decoding/number_of.h"

#include <new>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// From the widest.
constexpr soft_kind kKinds[] = {soft_kind::f32, soft_kind::u8, soft_kind::u4};

} // namespace

std::uint64_t readout_facts::longest_bytes() const noexcept {
  return soft_bytes(kind_of(UINT64_MAX)) + leakage_bytes();
}

soft_kind readout_facts::kind_of(std::uint64_t bytes) const noexcept {
  for (const soft_kind kind : kKinds)
    if (takes(kind) && soft_bytes(kind) == bytes)
      return kind;
  for (const soft_kind kind : kKinds)
    if (takes(kind))
      return kind;
  return soft_kind::f32; // of no measurement
}

std::string readout_facts::text() const {
  std::string names;
  for (const soft_kind kind : kKinds)
    if (takes(kind))
      names += (names.empty() ? "" : ", ") + std::string(name_of(kind));
  std::string all = measurements == 0 ? "" : number_of(measurements, "soft value") + " (" + names + ")";
  if (flags != 0)
    all += (all.empty() ? "" : " and ") + number_of(flags, "flag");
  return all;
}

readout_facts readout_facts_of(const stream_values_info &of) noexcept {
  return {of.body_soft, of.body_leakage, of.kinds};
}

std::uint64_t digest_with(std::uint64_t digest, std::string_view file) noexcept {
  return (digest ^ crc32_of(file)) * 0x100000001b3U;
}

unit_readout::unit_readout(std::unique_ptr<readout_table> table)
    : table_(std::move(table)), facts_{table_->num_measurements(), table_->num_flags(), 0} {
  list_.reserve(table_->max_errors());
  // A table says which kinds it takes by what it refuses.
  const std::vector<std::uint8_t> zeros(table_->soft_bytes(soft_kind::f32) + table_->leakage_bytes());
  const auto leakage = std::span(zeros).first(table_->leakage_bytes());
  for (const soft_kind kind : kKinds)
    if (facts_.measurements != 0 &&
        table_->list_of({.soft = std::span(zeros).first(table_->soft_bytes(kind)), .kind = kind, .leakage = leakage},
                        list_, fault_) == decode_status::ok)
      facts_.kinds |= std::uint64_t{1} << static_cast<unsigned>(kind);
}

decode_status unit_readout::make_list(const shot_readout &shot) noexcept {
  has_memory_ = true;
  try {
    return table_->list_of(shot, list_, fault_);
  } catch (const std::bad_alloc &) {
    list_.clear();
    has_memory_ = false;
    return decode_status::internal_error;
  }
}

} // namespace cudaq::qec::realtime

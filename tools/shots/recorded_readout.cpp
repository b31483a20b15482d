// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/recorded_readout.h"

#include "lib/qec/decoders/readout/readout_sampler.h"
#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/decoding/whole_file.h"
#include "tools/common/output_file.h"
#include "tools/common/report.h"
#include "tools/shots/sampled_shots.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kSoft = "soft values of measurements", *kLeakage = "flags of leakage";

} // namespace

qec::soft_kind readout_files::kind() const {
  return soft_kind == "u8" ? qec::soft_kind::u8 : soft_kind == "u4" ? qec::soft_kind::u4 : qec::soft_kind::f32;
}

std::string read_readout_file(const readout_files &files) {
  auto text = qec::read_model_text(files.readout);
  if (text.failed())
    throw usage_error(fmt::format("--readout: {}", text.text()));
  return std::move(*text);
}

std::unique_ptr<qec::readout_table> make_readout_table(const readout_files &files, std::string_view text,
                                                       std::string_view dem_text) {
  qec::readout_table_result table = qec::read_readout_table(text, dem_text);
  if (!table)
    throw usage_error(fmt::format("--readout: {}: {}", files.readout, table.error));
  return std::move(table.instance);
}

std::string wrong_readout_file(const char *option, const std::string &path, std::size_t bytes, const char *what) {
  if (path.empty() == (bytes == 0))
    return "";
  return path.empty() ? fmt::format("{} is missing: the table of --readout has {}", option, what)
                      : fmt::format("{} {}: the table of --readout has no {}", option, path, what);
}

recorded_readout::recorded_readout(const readout_files &files, const qec::shot_set &shots)
    : path_(files.readout), text_(read_readout_file(files)), kind_(files.kind()),
      table_(std::make_unique<qec::unit_readout>(make_readout_table(files, text_, shots.dem_text))),
      soft_(read("--soft", files.soft, facts().soft_bytes(kind_), kSoft, shots)),
      leakage_(read("--leakage", files.leakage, facts().leakage_bytes(), kLeakage, shots)) {}

recorded_readout::recorded_readout(const readout_files &files, qec::shot_set &shots, std::uint64_t seed)
    : path_(files.readout), text_(read_readout_file(files)), kind_(files.kind()), is_drawn_(true) {
  auto table = make_readout_table(files, text_, shots.dem_text);
  const qec::readout_table &of_shots = *table;
  table_ = std::make_unique<qec::unit_readout>(std::move(table));
  if (!files.leakage.empty())
    leakage_ = read("--leakage", files.leakage, facts().leakage_bytes(), kLeakage, shots);
  draw(of_shots, shots, seed, files.leaked);
}

void recorded_readout::draw(const qec::readout_table &table, qec::shot_set &shots, std::uint64_t seed, double leaked) {
  const auto model = qec::parse_dem(shots.dem_text);
  auto sampler = model.ok() ? qec::readout_sampler::of(*model, table, kind_) : model.reason();
  if (sampler.failed())
    throw usage_error(fmt::format("--readout {}: {}", path_, sampler.text()));
  const bool draws_flags = leakage_.row_bytes == 0 && table.num_flags() != 0;
  soft_.row_bytes = table.soft_bytes(kind_);
  if (draws_flags)
    leakage_.row_bytes = table.leakage_bytes();
  if (const std::size_t bytes = shot_bytes(); bytes != 0 && shots.shots > kMaxSampledBytes / bytes)
    throw usage_error(fmt::format("--shots {}: sampled values are kept in memory, {} bytes a shot; at most {} are "
                                  "accepted",
                                  shots.shots, bytes, kMaxSampledBytes / bytes));
  soft_.bytes.resize(static_cast<std::size_t>(shots.shots) * soft_.row_bytes);
  leakage_.bytes.resize(static_cast<std::size_t>(shots.shots) * leakage_.row_bytes);
  std::ranges::fill(shots.detections, std::uint8_t{0});
  std::ranges::fill(shots.observables, std::uint8_t{0});
  const auto row_of = [](auto &bytes, std::size_t row_bytes, std::uint64_t shot) {
    return std::span(reinterpret_cast<std::uint8_t *>(bytes.data()) + shot * row_bytes, row_bytes);
  };
  std::mt19937_64 random;
  std::string fault;
  for (std::uint32_t shot = 0; shot < shots.shots; ++shot) {
    if (shot % kSampledBatch == 0)
      random = random_of_batch(seed, shot / kSampledBatch);
    if (draws_flags)
      qec::draw_flags(random, leaked, table.num_flags(), row_of(leakage_.bytes, leakage_.row_bytes, shot));
    const auto status = sampler->sample(random, leakage_row(shot),
                                        {row_of(shots.detections, shots.detection_bytes(), shot),
                                         row_of(shots.observables, shots.observable_bytes(), shot),
                                         row_of(soft_.bytes, soft_.row_bytes, shot)},
                                        fault);
    if (status != qec::decode_status::ok)
      throw usage_error(fmt::format("--readout {}: shot {}: {}", path_, shot, fault));
  }
}

recorded_readout::rows recorded_readout::read(const char *option, const std::string &path, std::size_t row_bytes,
                                              const char *what, const qec::shot_set &shots) {
  if (const std::string text = wrong_readout_file(option, path, row_bytes, what); !text.empty())
    throw usage_error(text);
  if (row_bytes == 0)
    return {};
  refuse_output_file(option, path);
  auto bytes = qec::read_whole_file(path);
  if (bytes.failed())
    throw usage_error(fmt::format("{}: {}", option, bytes.text()));
  if (bytes->size() != shots.shots * row_bytes)
    throw usage_error(fmt::format("{} {}: {} bytes; {} shots of {} bytes each have {}", option, path, bytes->size(),
                                  shots.shots, row_bytes, shots.shots * row_bytes));
  return {row_bytes, std::move(*bytes)};
}

std::span<const std::uint8_t> recorded_readout::row(const rows &of, std::uint32_t shot) noexcept {
  return {reinterpret_cast<const std::uint8_t *>(of.bytes.data()) + of.row_bytes * shot, of.row_bytes};
}

qec::shot_probabilities recorded_readout::list(std::uint32_t shot) const {
  if (table_->make_list({.soft = soft_row(shot), .kind = kind_, .leakage = leakage_row(shot)}) !=
      qec::decode_status::ok)
    throw usage_error(fmt::format("--readout {}: shot {}: {}", path_, shot, table_->fault()));
  return table_->list();
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/decoding/bench_readout.h"

#include "lib/qec/decoders/heralds/herald_list.h"
#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/decoding/model_text_file.h"
#include "lib/qec/learning/learned_rates.h"
#include "tools/common/report.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

/// A table whose flag k is herald k.
std::string table_of_heralds(const std::string &file, const std::string &dem_text) {
  const qec::decoder_model model{dem_text};
  const auto list = qec::load_heralds(file, {}, model);
  if (list.failed())
    throw usage_error("--heralds: " + list.text());
  std::string text =
      fmt::format("cudaq-realtime-readout 1\nmodel {:08x}\nflags {}\n", qec::crc32_of(dem_text), list->end.size());
  for (std::size_t herald = 0; herald < list->end.size(); ++herald) {
    if (list->errors_of(herald).empty())
      continue;
    text += fmt::format("flag {} 2", herald);
    for (const auto &[error, probability] : list->errors_of(herald))
      text += fmt::format(" {} {}", error, probability);
    text += "\n";
  }
  return text;
}

} // namespace

bench_readout::bench_readout(const bench_readout_options &options, const std::string &dem_text,
                             const qec::detector_error_model &model)
    : is_of_heralds_(!options.heralds.empty()), kind_(options.kind()),
      leaked_(is_of_heralds_ ? options.erased : options.leaked), model_(model),
      table_(is_of_heralds_ ? make_readout_table(options, table_of_heralds(options.heralds, dem_text), dem_text)
                            : make_readout_table(options, read_readout_file(options), dem_text)) {
  static_cast<void>(sampler()); // refused now
  find_averages(dem_text);
}

double bench_readout::probability_of(unsigned value) const noexcept {
  const double of_1 = is_of_heralds_ ? 0 : leaked_;
  return value == 2 ? leaked_ : value == 1 ? of_1 : 1 - leaked_ - of_1;
}

/// If several flags list an error they are taken one after the other, which is right but for products of their shares.
void bench_readout::find_averages(const std::string &dem_text) {
  const qec::readout_table::content &all = table_->contents();
  std::vector<double> average; // of the errors that the table names, without misread measurements
  std::map<std::uint64_t, const qec::dem_component *> component_of;
  for (const qec::dem_component &c : model_.components)
    component_of.emplace(c.mechanism, &c);
  const auto rest_of = [&](std::size_t k) {
    return k < all.num_misread ? all.errors[k].rest : component_of.at(all.errors[k].error)->probability;
  };
  for (std::size_t k = 0; k < all.errors.size(); ++k)
    average.push_back(rest_of(k));
  for (std::size_t range = 0; range + 1 < all.begin_listed.size(); ++range) {
    const double share = probability_of(static_cast<unsigned>(range % 3));
    for (std::size_t at = all.begin_listed[range]; at < all.begin_listed[range + 1]; ++at) {
      double &now = average[all.listed_errors[at].named];
      now += share * (all.listed_errors[at].probability - now);
    }
  }
  qec::learned_rates rates; // as if they had been learned: the text has these numbers then
  for (std::size_t k = 0; k < average.size(); ++k) {
    const qec::dem_component &c = *component_of.at(all.errors[k].error);
    if (average[k] == rest_of(k))
      continue;
    const double rest = rest_of(k),
                 misread = k < all.num_misread && rest != 0.5 ? (c.probability - rest) / (1 - 2 * rest) : 0;
    qec::learned_rate one{};
    one.mechanism = c.mechanism;
    one.line = c.line;
    one.rate = qec::merged_probability(average[k], misread);
    rates.errors.push_back(one);
  }
  average_dem_ = qec::text_with(dem_text, rates);
}

std::string bench_readout::text() const {
  if (is_of_heralds_)
    return fmt::format("{} heralds, each fires in {:g} % of the shots", table_->num_flags(), 100 * leaked_);
  std::string text = fmt::format("{} soft values", table_->num_measurements());
  if (table_->num_flags() != 0)
    text += fmt::format(" and {} flags, {:g} % of them 2", table_->num_flags(), 100 * leaked_);
  return text + ", drawn";
}

qec::readout_sampler bench_readout::sampler() const {
  auto made = qec::readout_sampler::of(model_, *table_, kind_);
  if (made.failed())
    throw usage_error("--readout: " + made.text());
  return std::move(*made);
}

void bench_readout::sample(qec::readout_sampler &from, std::mt19937_64 &random,
                           const qec::readout_sampler::shot_room &shot, std::span<std::uint8_t> flags) const {
  if (is_of_heralds_) { // never 1
    std::ranges::fill(flags, std::uint8_t{0});
    for (std::uint64_t k = 0; k < table_->num_flags(); ++k)
      if (qec::uniform(random) <= leaked_)
        flags[k / 4] = static_cast<std::uint8_t>(flags[k / 4] | 2U << 2 * (k % 4));
  } else {
    qec::draw_flags(random, leaked_, table_->num_flags(), flags);
  }
  std::string fault;
  if (from.sample(random, flags, shot, fault) != qec::decode_status::ok)
    throw usage_error("--readout: " + fault);
}

void bench_readout::list_of(std::span<const std::uint8_t> soft, std::span<const std::uint8_t> flags,
                            std::vector<qec::error_probability> &list) const {
  std::string fault;
  if (table_->list_of({.soft = soft, .kind = kind_, .leakage = flags}, list, fault) != qec::decode_status::ok)
    throw usage_error("--readout: " + fault);
}

} // namespace cudaq::realtime::tools

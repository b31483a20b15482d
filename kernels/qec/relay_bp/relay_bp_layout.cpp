// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/relay_bp/relay_bp_layout.h"

#include "lib/qec/decoding/dem.h"

#include <algorithm>
#include <array>
#include <bit>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr std::uint32_t kBanks = 32;

relay_job job_of(const grouped_graph &g, const relay_bp_options &o) {
  relay_job job{};
  job.num_check_lanes = static_cast<std::uint32_t>(g.rows_of_check.size());
  job.num_cells = g.num_cells;
  job.num_column_groups = static_cast<std::uint32_t>(g.column_groups.size());
  job.num_place_rows = static_cast<std::uint32_t>(g.places.size() / kWarpLanes);
  job.strengths = o.strengths();
  job.pre_iter = o.pre_iter;
  job.num_sets = o.num_sets;
  job.set_max_iter = o.set_max_iter;
  job.stop_nconv = o.stop_nconv;
  job.chains = o.ensemble;
  job.mode = o.mode;
  return job;
}

/// The factors of a leg's iterations, without those at the end that equal the one before.
std::vector<float> scales_of(const relay_bp_options &o) {
  std::vector<float> scales;
  const std::uint32_t most = std::max(o.pre_iter, o.set_max_iter);
  for (std::uint32_t k = 1; k <= most; ++k) {
    scales.push_back(static_cast<float>(o.scale(k)));
    if (o.alpha != 0 || scales.back() == 1)
      break;
  }
  return scales;
}

} // namespace

relay_layout::relay_layout(const tanner_graph &graph, const relay_bp_options &options, std::size_t block_bytes)
    : groups(graph, {kWarpLanes, kRowStride, UINT32_MAX}), scales(scales_of(options)), job_(job_of(groups, options)) {
  for (std::uint32_t g = 0; g < groups.check_groups.size(); ++g) {
    const grouped_graph::check_group &group = groups.check_groups[g];
    group_of_row.insert(group_of_row.end(), group.rows, static_cast<std::uint16_t>(g)); // kMaxChecks are 256 groups
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane)
      checks.push_back({group.first_cell + lane, groups.rows_of_check[g * kWarpLanes + lane]});
  }
  for (std::size_t g = 0; g < groups.column_groups.size(); ++g) {
    const grouped_graph::column_group &group = groups.column_groups[g];
    const auto lanes = std::span(groups.column_at).subspan(g * kWarpLanes, kWarpLanes);
    const auto used = kWarpLanes - std::ranges::count(lanes, grouped_graph::kUnused);
    column_groups.push_back(
        {group.first_place / kWarpLanes, static_cast<std::uint16_t>(group.rows), static_cast<std::uint16_t>(used)});
  }
  for (const std::uint32_t column : groups.column_at) {
    const double value = column == grouped_graph::kUnused ? 0 : realtime::log_odds(graph.probability[column]);
    log_odds.push_back(static_cast<float>(value));
    units.push_back(weight_units(value));
  }
  for (std::uint32_t chain = 0; chain < options.ensemble; ++chain)
    for (std::uint32_t leg = 0; leg <= kTabledLegs; ++leg)
      for (const std::uint32_t column : groups.column_at)
        gammas.push_back(static_cast<float>(job_.strengths.of(chain, leg, column)));
  job_.num_scales = static_cast<std::uint32_t>(scales.size());
  job_.num_rows = static_cast<std::uint32_t>(group_of_row.size());
  const auto fits = [&](relay_variant variant) { return relay_memory_bytes(job_, variant) <= block_bytes; };
  const bool few = job_.num_column_lanes() <= kRegisterRounds * kBlockThreads &&
                   job_.num_check_lanes <= kRegisterChecks * kBlockThreads;
  if (few && fits(relay_variant::registers))
    variant_ = relay_variant::registers;
  else if (job_.num_cells <= UINT16_MAX + 1U && fits(relay_variant::shared))
    variant_ = relay_variant::shared;
  if (variant_ != relay_variant::device)
    spread_banks();
}

const char *relay_layout::variant_text() const noexcept {
  switch (variant_) {
  case relay_variant::registers:
    return "messages in shared memory, values of columns in registers";
  case relay_variant::shared:
    return "messages in shared memory, values of columns in device memory";
  case relay_variant::device:
    break;
  }
  return "messages in device memory: the model does not fit into the shared memory of a block";
}

/// Gives the messages of a check other rows, so that columns that are summed at the same time find theirs in different
/// banks. Passes over all checks exchange two rows of a check if that leaves no more conflicts than before: exchanges
/// that leave as many lead out of arrangements that no single one makes better.
void relay_layout::spread_banks() {
  struct message {
    std::size_t at;     ///< in groups.places
    std::uint32_t step; ///< the row of a group of columns, whose lanes read at the same time
  };
  std::vector<std::vector<message>> of_check(groups.rows_of_check.size());
  std::vector<std::array<std::uint8_t, kBanks>> load(groups.places.size() / kWarpLanes);
  for (std::size_t at = 0; at < groups.places.size(); ++at) {
    const std::uint32_t cell = groups.places[at], row = cell / kRowStride;
    const auto step = static_cast<std::uint32_t>(at / kWarpLanes);
    ++load[step][cell % kBanks];
    if (row < group_of_row.size()) // not a cell of unused lanes
      of_check[std::size_t{group_of_row[row]} * kWarpLanes + cell % kRowStride].push_back({at, step});
  }
  constexpr int kPasses = 40;
  for (int pass = 0; pass < kPasses; ++pass)
    for (std::vector<message> &messages : of_check)
      for (std::size_t a = 0; a < messages.size(); ++a)
        for (std::size_t b = a + 1; b < messages.size(); ++b) {
          std::uint32_t &x = groups.places[messages[a].at], &y = groups.places[messages[b].at];
          auto &with_x = load[messages[a].step], &with_y = load[messages[b].step];
          const std::uint32_t bank_x = x % kBanks, bank_y = y % kBanks;
          if (bank_x == bank_y || messages[a].step == messages[b].step)
            continue;
          // Conflicts of a bank with n messages: n (n - 1) / 2.
          const int now = with_x[bank_x] - 1 + with_y[bank_y] - 1, then = with_x[bank_y] + with_y[bank_x];
          if (then > now)
            continue;
          --with_x[bank_x], ++with_x[bank_y], --with_y[bank_y], ++with_y[bank_x];
          std::swap(x, y);
        }
  short_places.assign(groups.places.begin(), groups.places.end());
}

std::size_t relay_layout::bank_conflicts() const {
  std::size_t conflicts = 0;
  for (std::size_t step = 0; step < groups.places.size(); step += kWarpLanes) {
    std::array<std::size_t, kBanks> load{};
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
      ++load[groups.places[step + lane] % kBanks];
    conflicts += *std::ranges::max_element(load) - 1;
  }
  return conflicts;
}

void relay_layout::pack_syndrome(std::span<const std::uint8_t> syndrome,
                                 std::span<std::uint32_t> words) const noexcept {
  std::ranges::fill(words, 0U);
  for (std::size_t check = 0; check < syndrome.size(); ++check)
    if (syndrome[check] != 0) {
      const std::uint32_t lane = groups.lane_of_check[check];
      words[lane / kWarpLanes] |= 1U << lane % kWarpLanes;
    }
}

void relay_layout::columns_of(std::span<const std::uint32_t> solution, std::vector<std::uint32_t> &columns) const {
  columns.clear();
  for (std::size_t g = 0; g < solution.size(); ++g)
    for (std::uint32_t left = solution[g]; left != 0; left &= left - 1)
      columns.push_back(groups.column_at[g * kWarpLanes + static_cast<std::size_t>(std::countr_zero(left))]);
  std::ranges::sort(columns);
}

} // namespace cudaq::qec::realtime::gpu

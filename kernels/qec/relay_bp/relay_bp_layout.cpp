// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/relay_bp/relay_bp_layout.h"

#include "lib/qec/decoding/dem.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr std::uint32_t kBanks = 32;

relay_job job_of(const relay_bp_options &o) {
  relay_job job{};
  job.parts = 1;
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
  const std::uint32_t max_iter = std::max(o.pre_iter, o.set_max_iter);
  for (std::uint32_t k = 1; k <= max_iter; ++k) {
    scales.push_back(static_cast<float>(o.scale(k)));
    if (o.alpha != 0 || scales.back() == 1)
      break;
  }
  return scales;
}

} // namespace

relay_layout::relay_layout(const tanner_graph &graph, const relay_bp_options &options, const relay_room &room)
    : scales(scales_of(options)), job_(job_of(options)) {
  const auto fits = [&](relay_variant variant) {
    const auto few_cells = [](const relay_part &part) { return part.num_cells <= UINT16_MAX + 1U; };
    return (has_messages_in_device(variant) || std::ranges::all_of(job_.part, few_cells)) &&
           relay_memory_bytes(job_, variant) <= room.block_bytes;
  };
  if (room.cluster_blocks != 0) {
    cut_graph(graph, room.cluster_blocks, room.check_lanes);
    for (const relay_variant variant :
         {relay_variant::cluster_device, relay_variant::cluster_shared, relay_variant::cluster}) // the best one last
      if (fits(variant) && (room.cluster_blocks > 1 || variant == relay_variant::cluster))
        variant_ = variant;
  }
  if (!is_cluster(variant_)) {
    cut_graph(graph, 1, 1);
    job_.sizes = job_.part[0];
    const bool few = job_.num_column_lanes() <= kRegisterRounds * kBlockThreads &&
                     job_.sizes.num_check_lanes <= kRegisterChecks * kBlockThreads;
    if (few && fits(relay_variant::registers))
      variant_ = relay_variant::registers;
    else if (fits(relay_variant::shared))
      variant_ = relay_variant::shared;
  }
  if (!has_messages_in_device(variant_)) {
    spread_banks(is_cluster(variant_) ? room.check_lanes : 1);
    short_places.assign(places.begin(), places.end());
  }
  for (const std::uint32_t column : column_at) {
    const double value = column == grouped_graph::kUnused ? 0 : realtime::log_odds(graph.probability[column]);
    log_odds.push_back(static_cast<float>(value));
    units.push_back(weight_units(value));
  }
  for (std::uint32_t chain = 0; chain < options.ensemble; ++chain)
    for (std::uint32_t leg = 0; leg <= kTabledLegs; ++leg)
      for (const std::uint32_t column : column_at)
        gammas.push_back(static_cast<float>(job_.strengths.of(chain, leg, column)));
  job_.num_scales = static_cast<std::uint32_t>(scales.size());
}

/// Gives each part about the same number of messages. Columns are in ascending order of their first checks, which are
/// mostly in the order of time, so few checks are cut.
void relay_layout::cut_graph(const tanner_graph &graph, std::uint32_t parts, std::uint32_t check_lanes) {
  for (auto *const list : {&places, &column_at, &lane_of_check})
    list->clear();
  checks.clear(), group_of_row.clear(), column_groups.clear(), cuts.clear(), sends_to.clear();
  std::vector<std::uint16_t> holders(graph.num_checks); // bit p is set if part p has messages of the check
  std::ranges::fill(job_.part, relay_part{});
  job_.parts = parts;
  std::vector<std::uint32_t> begins{0};
  for (std::uint32_t column = 0; column < graph.num_columns(); ++column) {
    while (begins.size() < parts && graph.first_check[column] * parts >= graph.checks.size() * begins.size())
      begins.push_back(column);
    for (const std::uint32_t check : graph.checks_of(column))
      holders[check] |= static_cast<std::uint16_t>(1U << (begins.size() - 1));
  }
  begins.resize(parts + 1, graph.num_columns());
  std::vector<std::uint32_t> numbers(graph.num_checks, relay_check::kNotCut);
  job_.num_cut = 0;
  for (std::uint32_t check = 0; check < graph.num_checks; ++check)
    if (!std::has_single_bit(holders[check]))
      numbers[check] = job_.num_cut++;
  lane_of_check.assign(graph.num_checks, grouped_graph::kUnused);
  for (std::uint32_t part = 0; part < parts; ++part)
    append_part(graph, begins[part], begins[part + 1], part, check_lanes, holders, numbers);
  assign_slots();
  job_.total_words = static_cast<std::uint32_t>(checks.size() / kWarpLanes);
  job_.total_column_groups = static_cast<std::uint32_t>(column_groups.size());
  job_.total_cells = 0;
  for (const relay_part &part : job_.part)
    job_.total_cells += part.num_cells;
}

void relay_layout::append_part(const tanner_graph &graph, std::uint32_t begin, std::uint32_t end, std::uint32_t number,
                               std::uint32_t check_lanes, std::span<const std::uint16_t> holders,
                               std::span<const std::uint32_t> numbers) {
  tanner_graph own; // the columns of this part, and their checks
  std::vector<std::uint32_t> number_of(graph.num_checks, kNoCheck), check_of;
  own.probability.assign(graph.probability.begin() + begin, graph.probability.begin() + end);
  for (std::uint32_t column = begin; column < end; ++column) {
    for (const std::uint32_t check : graph.checks_of(column)) {
      if (number_of[check] == kNoCheck) {
        number_of[check] = own.num_checks++;
        check_of.push_back(check);
      }
      own.checks.push_back(number_of[check]);
    }
    own.first_check.push_back(own.checks.size());
  }
  const grouped_graph groups(own, {kWarpLanes, kRowStride, UINT32_MAX, check_lanes});
  relay_part &part = job_.part[number];
  part.num_check_lanes = static_cast<std::uint32_t>(groups.rows_of_check.size());
  part.num_cells = groups.num_cells;
  part.num_column_groups = static_cast<std::uint32_t>(groups.column_groups.size());
  part.num_place_rows = static_cast<std::uint32_t>(groups.places.size() / kWarpLanes);
  const std::size_t first_lane = checks.size(), rows_before = group_of_row.size();
  for (std::uint32_t g = 0; g < groups.check_groups.size(); ++g) {
    const grouped_graph::check_group &group = groups.check_groups[g];
    group_of_row.insert(group_of_row.end(), group.rows, static_cast<std::uint16_t>(g)); // few groups: kMaxChecks
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane)
      checks.push_back({group.first_cell + lane, groups.rows_of_check[g * kWarpLanes + lane], relay_check::kNotCut});
  }
  part.num_rows = static_cast<std::uint32_t>(group_of_row.size() - rows_before);
  std::vector<std::uint32_t> in_order(own.num_checks); // of lanes: neighbouring threads have neighbouring cuts
  std::iota(in_order.begin(), in_order.end(), 0U);
  std::ranges::sort(in_order, {}, [&](std::uint32_t check) { return groups.lane_of_check[check]; });
  for (const std::uint32_t check : in_order) {
    const std::uint32_t of_all = check_of[check];
    const std::size_t lane = first_lane + groups.lane_of_check[check];
    if (lane_of_check[of_all] == grouped_graph::kUnused)
      lane_of_check[of_all] = static_cast<std::uint32_t>(lane);
    if (numbers[of_all] == relay_check::kNotCut)
      continue;
    for (std::uint32_t k = 0; k < check_lanes; ++k)
      checks[lane + k].cut = part.num_cuts;
    const auto others = static_cast<std::uint16_t>(holders[of_all] & ~(1U << number));
    cuts.push_back({static_cast<std::uint16_t>(numbers[of_all]), static_cast<std::uint16_t>(part.num_slots), others,
                    static_cast<std::uint16_t>(std::popcount(others))});
    ++part.num_cuts;
    part.num_slots += cuts.back().num_others;
  }
  for (std::size_t g = 0; g < groups.column_groups.size(); ++g) {
    const grouped_graph::column_group &group = groups.column_groups[g];
    const auto lanes = std::span(groups.column_at).subspan(g * kWarpLanes, kWarpLanes);
    const auto used = kWarpLanes - std::ranges::count(lanes, grouped_graph::kUnused);
    column_groups.push_back(
        {group.first_place / kWarpLanes, static_cast<std::uint16_t>(group.rows), static_cast<std::uint16_t>(used)});
    for (const std::uint32_t column : lanes)
      column_at.push_back(column == grouped_graph::kUnused ? column : begin + column);
  }
  places.insert(places.end(), groups.places.begin(), groups.places.end());
}

/// Tells each part its slots in the others. A slot's number has 16 bits: a part has at most kMaxChecks cut checks.
void relay_layout::assign_slots() {
  static_assert(kMaxChecks * (kMaxParts - 1) <= UINT16_MAX);
  std::vector<std::uint16_t> first_slots(std::size_t{job_.parts} * job_.num_cut);
  const auto first_slot = [&](std::uint32_t part, std::uint32_t number) -> std::uint16_t & {
    return first_slots[std::size_t{part} * job_.num_cut + number];
  };
  const auto for_each_cut = [&](const auto &body) {
    auto cut = cuts.begin();
    for (std::uint32_t part = 0; part < job_.parts; ++part)
      for (std::uint32_t k = 0; k < job_.part[part].num_cuts; ++k)
        body(part, *cut++);
  };
  for_each_cut([&](std::uint32_t part, const relay_cut &cut) { first_slot(part, cut.number) = cut.first_slot; });
  for_each_cut([&](std::uint32_t part, const relay_cut &cut) {
    const std::uint32_t holders = cut.others | 1U << part;
    for (std::uint32_t left = cut.others; left != 0; left &= left - 1) {
      const auto to = static_cast<std::uint32_t>(std::countr_zero(left));
      const std::uint32_t before = holders & ((1U << part) - 1) & ~(1U << to);
      sends_to.push_back(static_cast<std::uint16_t>(first_slot(to, cut.number) + std::popcount(before)));
    }
  });
  job_.max_slots = 0;
  for (const relay_part &part : job_.part)
    job_.max_slots = std::max(job_.max_slots, part.num_slots);
}

const char *relay_layout::variant_text() const noexcept {
  switch (variant_) {
  case relay_variant::cluster:
    return "messages and values of columns in shared memory";
  case relay_variant::registers:
    return "messages in shared memory, values of columns in registers";
  case relay_variant::cluster_shared:
  case relay_variant::shared:
    return "messages in shared memory, values of columns in device memory";
  case relay_variant::cluster_device:
  case relay_variant::device:
    break;
  }
  return "messages in device memory: the model does not fit into the shared memory of a chain's blocks";
}

/// Gives the messages of a check other rows, so that columns that are summed at the same time find theirs in different
/// banks. Passes over all checks exchange two rows of a check if that leaves no more conflicts than before: exchanges
/// that leave as many lead out of arrangements that no single one makes better. Large models get fewer passes.
void relay_layout::spread_banks(std::uint32_t check_lanes) {
  struct message {
    std::size_t at;     ///< in places
    std::uint32_t step; ///< the row of a group of columns, whose lanes read at the same time
  };
  std::vector<std::vector<message>> of_check(checks.size());
  std::vector<std::array<std::uint8_t, kBanks>> load(places.size() / kWarpLanes);
  std::size_t first_lane = 0, first_row = 0, at = 0;
  for (std::uint32_t p = 0; p < job_.parts; ++p) {
    const relay_part &part = job_.part[p];
    for (const std::size_t end = at + std::size_t{part.num_place_rows} * kWarpLanes; at < end; ++at) {
      const std::uint32_t cell = places[at], row = cell / kRowStride;
      const auto step = static_cast<std::uint32_t>(at / kWarpLanes);
      ++load[step][cell % kBanks];
      if (row < part.num_rows) { // not a cell of unused lanes
        const std::size_t lane = group_of_row[first_row + row] * kWarpLanes + cell % kRowStride;
        of_check[first_lane + lane / check_lanes * check_lanes].push_back({at, step});
      }
    }
    first_lane += part.num_check_lanes;
    first_row += part.num_rows;
  }
  constexpr std::size_t kMaxPairs = 300'000'000, kFewestPasses = 4, kMaxPasses = 40;
  std::size_t pairs = 1; // of a pass
  for (const std::vector<message> &messages : of_check)
    pairs += messages.size() * messages.size() / 2;
  const std::size_t passes = std::clamp(kMaxPairs / pairs, kFewestPasses, kMaxPasses);
  for (std::size_t pass = 0; pass < passes; ++pass)
    for (std::vector<message> &messages : of_check)
      for (std::size_t a = 0; a < messages.size(); ++a)
        for (std::size_t b = a + 1; b < messages.size(); ++b) {
          std::uint32_t &x = places[messages[a].at], &y = places[messages[b].at];
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
}

void relay_layout::pack_syndrome(std::span<const std::uint8_t> syndrome,
                                 std::span<std::uint32_t> words) const noexcept {
  std::ranges::fill(words, 0U);
  for (std::size_t check = 0; check < syndrome.size(); ++check)
    if (syndrome[check] != 0) {
      const std::uint32_t lane = lane_of_check[check];
      words[lane / kWarpLanes] |= 1U << lane % kWarpLanes;
    }
}

void relay_layout::columns_of(std::span<const std::uint32_t> solution, std::vector<std::uint32_t> &columns) const {
  columns.clear();
  for (std::size_t g = 0; g < solution.size(); ++g)
    for (std::uint32_t left = solution[g]; left != 0; left &= left - 1)
      columns.push_back(column_at[g * kWarpLanes + static_cast<std::size_t>(std::countr_zero(left))]);
  std::ranges::sort(columns);
}

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/lookup_decoder.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/split_errors/component_errors.h"
#include "lib/qec/decoding/split_errors/joined_sets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

using index_list = std::vector<std::uint64_t>;
constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max();
// PyMatching's NUM_DISTINCT_WEIGHTS - 1.
constexpr double kLargestWeight = (1 << 24) - 1;

// Thrown inside this file only; build_lookup_table turns it into an error text.
struct table_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct merged_error {
  index_list detectors;
  index_list observables;
  double probability;
};

std::vector<merged_error> merge_errors(const detector_error_model &model) {
  std::map<std::pair<index_list, index_list>, double> merged;
  for (const dem_component &c : model.components) {
    const std::string line = "line " + std::to_string(c.line) + ": ";
    if (c.probability >= 1)
      throw table_error(line + "an error of probability 1 has no finite weight; the decoder bp-osd takes it");
    if (c.detectors == 0) {
      // Only an error that is likelier than not could be in the least set.
      if (c.probability > 0.5)
        throw table_error(line + "an error without detectors has a probability above 1/2; use the pymatching decoder");
      continue;
    }
    const auto detectors = model.detectors_of(c);
    const auto observables = model.observables_of(c);
    double &p =
        merged[{index_list(detectors.begin(), detectors.end()), index_list(observables.begin(), observables.end())}];
    p = merged_probability(p, c.probability);
  }
  std::vector<merged_error> errors;
  for (auto &[key, p] : merged)
    errors.push_back({key.first, key.second, p});
  return errors;
}

double weight_scale(const std::vector<merged_error> &errors) {
  double largest = 0;
  bool integral = true;
  for (const merged_error &e : errors) {
    const double weight = log_odds(e.probability);
    largest = std::max(largest, std::abs(weight));
    integral = integral && std::round(weight) == weight;
  }
  return integral ? 1.0 : kLargestWeight / largest;
}

/// A connected piece of the model.
struct piece {
  index_list detectors;
  std::vector<const merged_error *> errors;
  index_list observables; ///< observables that its errors flip, ascending
  bool has_boundary = false;
  bool graphlike = true;
};

std::vector<piece> split(std::uint64_t num_detectors, const std::vector<merged_error> &errors) {
  joined_sets sets(static_cast<std::size_t>(num_detectors));
  for (const merged_error &e : errors)
    for (const std::uint64_t d : e.detectors)
      sets.join(d, e.detectors[0]);

  const std::vector<std::uint32_t> piece_of = sets.numbers(); // in the order of their first detectors
  std::vector<piece> pieces;
  for (std::uint64_t d = 0; d < num_detectors; ++d) {
    if (piece_of[d] == pieces.size())
      pieces.emplace_back();
    pieces[piece_of[d]].detectors.push_back(d);
  }
  for (const merged_error &e : errors) {
    piece &p = pieces[piece_of[e.detectors[0]]];
    p.errors.push_back(&e);
    p.has_boundary = p.has_boundary || e.detectors.size() == 1;
    p.graphlike = p.graphlike && e.detectors.size() <= 2;
    p.observables.insert(p.observables.end(), e.observables.begin(), e.observables.end());
  }
  for (piece &p : pieces) {
    std::sort(p.observables.begin(), p.observables.end());
    p.observables.erase(std::unique(p.observables.begin(), p.observables.end()), p.observables.end());
  }
  return pieces;
}

/// The pieces that need rows. The others flip no observable; as graphs they need no table to decide which of their
/// syndromes have a cause.
bool needs_rows(const piece &p) { return !p.observables.empty() || !p.graphlike; }

std::uint64_t index_in(const index_list &sorted, std::uint64_t value) {
  return static_cast<std::uint64_t>(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
}

/// Least weight of every (observables, syndrome) of one piece. state = observables << detectors | syndrome. A state
/// that no set of errors reaches has kUnreached.
///
/// An error is in the set or not, so one pass over all states per error is exact:
/// best'(s) = min(best(s), best(s ^ error) + weight). Example with two errors, A = 01 (weight 3) and B = 11 (weight 4):
///
///   start    {00: 0}
///   after A  {00: 0, 01: 3}
///   after B  {00: 0, 01: 3, 10: 7, 11: 4}
///
/// Negative weights (p > 1/2) need no special treatment.
std::vector<std::int64_t> least_weights(const piece &p, double scale) {
  const std::size_t bits = p.detectors.size() + p.observables.size();
  std::vector<std::int64_t> best(std::size_t{1} << bits, kUnreached);
  best[0] = 0;
  for (const merged_error *e : p.errors) {
    std::size_t flip = 0;
    for (const std::uint64_t d : e->detectors)
      flip ^= std::size_t{1} << index_in(p.detectors, d);
    for (const std::uint64_t o : e->observables)
      flip ^= std::size_t{1} << (p.detectors.size() + index_in(p.observables, o));
    const std::int64_t weight = matching_weight(e->probability, scale);
    const std::size_t high = std::size_t{1} << (std::bit_width(flip) - 1);
    for (std::size_t state = 0; state < best.size(); ++state) {
      if ((state & high) != 0)
        continue; // its pair is done already
      const std::int64_t a = best[state];
      const std::int64_t b = best[state ^ flip];
      if (b != kUnreached)
        best[state] = std::min(a, b + weight);
      if (a != kUnreached)
        best[state ^ flip] = std::min(b, a + weight);
    }
  }
  return best;
}

void fill_rows(const piece &p, double scale, std::uint32_t row_bytes, std::uint64_t num_observables,
               std::uint8_t *rows) {
  const std::vector<std::int64_t> best = least_weights(p, scale);
  const std::size_t num_rows = std::size_t{1} << p.detectors.size();
  for (std::size_t syndrome = 0; syndrome < num_rows; ++syndrome) {
    std::uint8_t *row = rows + syndrome * row_bytes;
    std::size_t chosen = syndrome;
    // Ascending observables and a strict comparison: of equal weights the smallest observables win.
    for (std::size_t state = syndrome; state < best.size(); state += num_rows)
      if (best[state] < best[chosen])
        chosen = state;
    const auto set_bit = [row](std::uint64_t bit) {
      row[bit / 8] = static_cast<std::uint8_t>(row[bit / 8] | (1U << (bit % 8)));
    };
    if (best[chosen] == kUnreached)
      set_bit(num_observables);
    else
      for (std::size_t k = 0; k < p.observables.size(); ++k)
        if ((chosen >> (p.detectors.size() + k) & 1U) != 0)
          set_bit(p.observables[k]);
  }
}

std::uint32_t map_entry(detector_role role, std::size_t part, std::size_t bit) {
  return static_cast<std::uint32_t>(role) << 24 | static_cast<std::uint32_t>(part) << 8 |
         static_cast<std::uint32_t>(bit);
}

/// Makes the detector map, counts parity groups, and lists the pieces that get rows.
struct plan {
  std::vector<std::uint32_t> detector_map;
  std::vector<const piece *> parts;
  std::uint32_t parity_groups = 0;
};

plan make_plan(std::uint64_t num_detectors, const std::vector<piece> &pieces) {
  plan result;
  result.detector_map.resize(static_cast<std::size_t>(num_detectors));
  for (const piece &p : pieces) {
    const auto set_all = [&](std::uint32_t entry) {
      for (const std::uint64_t d : p.detectors)
        result.detector_map[d] = entry;
    };
    if (p.errors.empty()) {
      set_all(map_entry(detector_role::forbidden, 0, 0));
    } else if (!needs_rows(p)) {
      if (p.has_boundary)
        set_all(map_entry(detector_role::ignored, 0, 0));
      else
        set_all(map_entry(detector_role::parity, 0, result.parity_groups++));
    } else {
      if (p.detectors.size() > kLookupMaxPartDetectors ||
          p.detectors.size() + p.observables.size() > kLookupMaxPartBits)
        throw table_error("a connected part of the code has " + std::to_string(p.detectors.size()) + " detectors and " +
                          std::to_string(p.observables.size()) + " observables; a table holds at most " +
                          std::to_string(kLookupMaxPartDetectors) + " detectors, and " +
                          std::to_string(kLookupMaxPartBits) +
                          " of both; use the pymatching decoder; the decoder bp-osd takes such models, also if errors "
                          "flip more than two detectors");
      if (p.errors.size() > kLookupMaxSteps >> (p.detectors.size() + p.observables.size()))
        throw table_error("a connected part of the code has " + std::to_string(p.errors.size()) + " errors, " +
                          std::to_string(p.detectors.size()) + " detectors and " +
                          std::to_string(p.observables.size()) +
                          " observables; building its table would take minutes; the decoder bp-osd takes such models");
      for (std::size_t bit = 0; bit < p.detectors.size(); ++bit)
        result.detector_map[p.detectors[bit]] = map_entry(detector_role::part_bit, result.parts.size(), bit);
      result.parts.push_back(&p);
    }
  }
  if (result.parts.size() > kLookupMaxParts || result.parity_groups > kLookupMaxParityGroups)
    throw table_error("the code has " + std::to_string(result.parts.size()) + " parts with observables and " +
                      std::to_string(result.parity_groups) +
                      " parts without observables and boundary; a table holds at most " +
                      std::to_string(kLookupMaxParts) + " and " + std::to_string(kLookupMaxParityGroups) +
                      "; the decoders pymatching and bp-osd have no such limit");
  return result;
}

detector_error_model placed_errors(const detector_error_model &given) {
  auto placed = component_errors(given);
  if (placed.failed())
    throw table_error(placed.text());
  return std::move(*placed);
}

lookup_table build(const detector_error_model &given) {
  const detector_error_model model = placed_errors(given);
  const std::vector<merged_error> errors = merge_errors(model);
  const std::vector<piece> pieces = split(model.num_detectors, errors);
  const plan planned = make_plan(model.num_detectors, pieces);

  lookup_table_header header{};
  header.magic = kLookupMagic;
  header.version = kLookupVersion;
  header.num_detectors = static_cast<std::uint32_t>(model.num_detectors);
  header.num_observables = static_cast<std::uint32_t>(model.num_observables);
  header.num_parts = static_cast<std::uint32_t>(planned.parts.size());
  header.num_parity_groups = planned.parity_groups;
  header.row_bytes = header.num_observables / 8 + 1;
  header.detector_map_offset = sizeof header;
  header.part_offset_offset = (header.detector_map_offset + 4 * model.num_detectors + 7) / 8 * 8;
  header.total_bytes = header.part_offset_offset + 8 * planned.parts.size();
  std::vector<std::uint64_t> part_offset;
  for (const piece *p : planned.parts) {
    part_offset.push_back(header.total_bytes);
    header.total_bytes += (std::uint64_t{header.row_bytes} << p->detectors.size()) + 7;
    header.total_bytes = header.total_bytes / 8 * 8; // each part begins aligned
  }
  if (header.total_bytes > kLookupMaxBytes)
    throw table_error("the table would have " + std::to_string(header.total_bytes) + " bytes; the limit is " +
                      std::to_string(kLookupMaxBytes) + "; the decoders pymatching and bp-osd have no such limit");

  std::vector<std::uint64_t> words(static_cast<std::size_t>((header.total_bytes + 7) / 8));
  auto *block = static_cast<std::uint8_t *>(static_cast<void *>(words.data()));
  std::memcpy(block, &header, sizeof header);
  if (!planned.detector_map.empty())
    std::memcpy(block + header.detector_map_offset, planned.detector_map.data(), 4 * planned.detector_map.size());
  if (!part_offset.empty())
    std::memcpy(block + header.part_offset_offset, part_offset.data(), 8 * part_offset.size());
  const double scale = weight_scale(errors);
  for (std::size_t k = 0; k < planned.parts.size(); ++k)
    fill_rows(*planned.parts[k], scale, header.row_bytes, model.num_observables, block + part_offset[k]);
  return lookup_table(std::move(words));
}

class table_decoder final : public decoder {
public:
  explicit table_decoder(std::shared_ptr<const lookup_table> table)
      : decoder(table->header().num_detectors, table->header().num_observables), table_(std::move(table)),
        view_(table_->view()) {}

  const char *name() const noexcept override { return "lookup"; }
  const char *refuses_probabilities() const noexcept override {
    return "lookup does not take probabilities of a shot: its table has the answers for those of the model; "
           "pymatching, relay-bp and bp-osd take them";
  }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *) noexcept override {
    lookup_state state;
    lookup_begin(state);
    for (const std::uint64_t event : events)
      lookup_add_event(view_, state, event);
    return lookup_finish(view_, state, observables.data());
  }

private:
  std::shared_ptr<const lookup_table> table_;
  lookup_table_view view_;
};

/// The answers to the syndromes of all sets of at most `depth` errors, as rows of equal length, ascending by syndrome.
struct depth_table {
  std::uint64_t num_detectors = 0, num_observables = 0;
  std::size_t event_words = 0, row_words = 0; ///< a row: the words of the events, then those of the observables
  std::vector<std::uint64_t> rows;
};

void flip_bit(std::uint64_t *words, std::uint64_t bit) { words[bit / 64] ^= std::uint64_t{1} << (bit % 64); }

/// Adds a row for each set that has `set` and at most `left` of the errors from `begin` on.
void add_sets(const std::vector<merged_error> &errors, std::size_t begin, std::uint64_t left, depth_table &table,
              std::vector<std::uint64_t> &set, double weight, std::vector<double> &weights) {
  table.rows.insert(table.rows.end(), set.begin(), set.end());
  weights.push_back(weight);
  if (left == 0)
    return;
  for (std::size_t k = begin; k < errors.size(); ++k) {
    const auto flip = [&] {
      for (const std::uint64_t d : errors[k].detectors)
        flip_bit(set.data(), d);
      for (const std::uint64_t o : errors[k].observables)
        flip_bit(set.data() + table.event_words, o);
    };
    flip();
    add_sets(errors, k + 1, left - 1, table, set, weight + log_odds(errors[k].probability), weights);
    flip();
  }
}

depth_table build_by_depth(const detector_error_model &given, std::uint64_t depth) {
  const detector_error_model model = placed_errors(given);
  const std::vector<merged_error> errors = merge_errors(model);
  for (const merged_error &e : errors)
    if (e.probability > 0.5)
      throw table_error("an error has a probability above 1/2; a table by depth holds the sets of fewest errors; use "
                        "depth=0 or the decoder bp-osd");
  depth_table all;
  all.num_detectors = model.num_detectors;
  all.num_observables = model.num_observables;
  all.event_words = static_cast<std::size_t>(model.num_detectors / 64 + 1);
  all.row_words = all.event_words + static_cast<std::size_t>(model.num_observables / 64 + 1);
  const double bytes = 8.0 * static_cast<double>(all.row_words);
  double sets = 1, of_one_size = 1;
  for (std::uint64_t k = 0; k < depth; ++k) {
    of_one_size *= (static_cast<double>(errors.size()) - static_cast<double>(k)) / static_cast<double>(k + 1);
    sets += std::max(of_one_size, 0.0);
  }
  if (sets * bytes > static_cast<double>(kLookupMaxBytes))
    throw table_error("the sets of at most " + std::to_string(depth) + " of " + std::to_string(errors.size()) +
                      " errors have more than " + std::to_string(kLookupMaxBytes) +
                      " bytes; use a smaller depth, pymatching or bp-osd");
  std::vector<std::uint64_t> set(all.row_words, 0);
  std::vector<double> weights;
  add_sets(errors, 0, depth, all, set, 0, weights);

  const auto row = [&all](std::size_t k) { return std::span(all.rows).subspan(k * all.row_words, all.row_words); };
  std::vector<std::size_t> sorted(weights.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  // Of one syndrome the least weight comes first; then the smallest observables, so that the order of errors is without
  // effect.
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    const auto events_a = row(a).first(all.event_words), events_b = row(b).first(all.event_words);
    if (!std::ranges::equal(events_a, events_b))
      return std::ranges::lexicographical_compare(events_a, events_b);
    return weights[a] != weights[b] ? weights[a] < weights[b] : std::ranges::lexicographical_compare(row(a), row(b));
  });
  depth_table table{all.num_detectors, all.num_observables, all.event_words, all.row_words, {}};
  for (const std::size_t k : sorted) {
    const auto events = row(k).first(all.event_words);
    if (table.rows.empty() ||
        !std::ranges::equal(events, std::span(table.rows).last(all.row_words).first(all.event_words)))
      table.rows.insert(table.rows.end(), row(k).begin(), row(k).end());
  }
  table.rows.shrink_to_fit();
  return table;
}

class depth_decoder final : public decoder {
public:
  explicit depth_decoder(depth_table table)
      : decoder(table.num_detectors, table.num_observables), table_(std::move(table)), bits_(table_.event_words) {}

  const char *name() const noexcept override { return "lookup"; }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *) noexcept override {
    std::fill(bits_.begin(), bits_.end(), std::uint64_t{0});
    for (const std::uint64_t event : events)
      flip_bit(bits_.data(), event);
    std::size_t first = 0, end = table_.rows.size() / table_.row_words;
    while (first < end) {
      const std::size_t middle = first + (end - first) / 2;
      if (std::ranges::lexicographical_compare(row(middle).first(table_.event_words), bits_))
        first = middle + 1;
      else
        end = middle;
    }
    if (first * table_.row_words == table_.rows.size() ||
        !std::ranges::equal(row(first).first(table_.event_words), bits_))
      return decode_status::not_converged; // a larger set may cause the events
    const auto answer = row(first).subspan(table_.event_words);
    for (std::size_t k = 0; k < observables.size(); ++k)
      observables[k] = static_cast<std::uint8_t>(answer[k / 8] >> (k % 8 * 8));
    return decode_status::ok;
  }

private:
  std::span<const std::uint64_t> row(std::size_t k) const noexcept {
    return std::span(table_.rows).subspan(k * table_.row_words, table_.row_words);
  }
  depth_table table_;
  std::vector<std::uint64_t> bits_; ///< of the shot
};

} // namespace

std::int64_t matching_weight(double probability, double scale) noexcept {
  return 2 * static_cast<std::int64_t>(std::round(log_odds(probability) * scale));
}

expected<lookup_table> build_lookup_table(const detector_error_model &model) {
  try {
    return build(model);
  } catch (const std::exception &failure) {
    return reason(failure.what());
  }
}

bool fits_lookup_table(const detector_error_model &model) {
  try {
    const detector_error_model placed = placed_errors(model);
    const std::vector<merged_error> errors = merge_errors(placed);
    (void)make_plan(placed.num_detectors, split(placed.num_detectors, errors));
    return true;
  } catch (const table_error &) {
    return false;
  }
}

std::unique_ptr<decoder> make_lookup_decoder(std::shared_ptr<const lookup_table> table) {
  return std::make_unique<table_decoder>(std::move(table));
}

decoder_result make_lookup_decoder(const decoder_model &model, decoder_settings &settings) {
  try {
    const std::uint64_t depth = settings.number("depth", 0, 0, kLookupMaxDepth);
    if (const expected<> result = settings.check(); result.failed())
      return {nullptr, "lookup decoder: " + result.text()};
    const auto errors = model.errors();
    if (errors.failed())
      return {nullptr, "lookup decoder: " + errors.text()};
    if (depth != 0)
      return {std::make_unique<depth_decoder>(build_by_depth(**errors, depth)), {}};
    auto table = build_lookup_table(**errors);
    if (table.failed())
      return {nullptr, "lookup decoder: " + table.text()};
    return {make_lookup_decoder(std::make_shared<const lookup_table>(std::move(*table))), {}};
  } catch (const std::exception &failure) { // out of memory
    return {nullptr, std::string("lookup decoder: ") + failure.what()};
  }
}

} // namespace cudaq::qec::realtime

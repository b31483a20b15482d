// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/learned/memory_lattice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr double kMaxCoordinate = 1 << 16;
constexpr std::size_t kMaxCells = std::size_t{1} << 22;
constexpr std::uint32_t kNone = UINT32_MAX;

using indices = std::vector<std::uint64_t>;

/// The likeliest error with exactly these detectors.
struct known_error {
  double probability = 0;
  indices observables;
};

struct cell_place {
  std::uint32_t t, i, j;
};

expected<cell_place> place_of(const std::vector<double> &at, std::uint64_t detector) {
  const auto whole = [](double c) { return c >= 0 && c < kMaxCoordinate && std::floor(c) == c; };
  if (at.size() != 3 || !std::ranges::all_of(at, whole) || std::fmod(at[0], 2) != 0 || std::fmod(at[1], 2) != 0)
    return reason("detector " + std::to_string(detector) +
                  " has not the coordinates (x, y, round) of a rotated surface code, x and y even");
  const auto number = [](double c) { return static_cast<std::uint32_t>(c); };
  return cell_place{number(at[2]), number(at[1]) / 2, number(at[0]) / 2};
}

class lattice_builder {
public:
  lattice_builder(const detector_error_model &model, const std::vector<std::vector<double>> &coordinates)
      : model_(model), coordinates_(coordinates) {}

  expected<memory_lattice> build() {
    if (const expected<> result = place_detectors(); result.failed())
      return result.reason();
    note_errors();
    if (const expected<> result = check_order_of_gates(); result.failed())
      return result.reason();
    for (const memory_lattice::kind what : {memory_lattice::x, memory_lattice::z})
      if (const expected<> result = add_flips(what); result.failed())
        return result.reason();
    add_misread();
    return std::move(lattice_);
  }

private:
  std::size_t cell(std::size_t t, std::size_t i, std::size_t j) const noexcept {
    return (t * lattice_.grid.width + i) * lattice_.grid.width + j;
  }

  expected<> place_detectors() {
    std::vector<cell_place> cells;
    for (std::uint64_t k = 0; k < model_.num_detectors; ++k) {
      const expected<cell_place> at = place_of(coordinates_[static_cast<std::size_t>(k)], k);
      if (at.failed())
        return at.reason();
      cells.push_back(*at);
      lattice_.grid.layers = std::max(lattice_.grid.layers, at->t + 1);
      lattice_.grid.width = std::max({lattice_.grid.width, at->i + 1, at->j + 1});
    }
    const network_grid grid = lattice_.grid;
    if (grid.width < 4 || grid.layers < 3 || grid.cells() > kMaxCells)
      return reason("it is no memory of the rotated surface code with distance 3 and 2 rounds or more, or has more "
                    "than " +
                    std::to_string(kMaxCells) + " cells");
    detector_at_.assign(grid.cells(), kNone);
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const cell_place at = cells[k];
      const std::size_t here = cell(at.t, at.i, at.j);
      if (std::exchange(detector_at_[here], static_cast<std::uint32_t>(k)) != kNone)
        return reason("two detectors have the coordinates of detector " + std::to_string(k));
      lattice_.places.push_back({static_cast<std::uint32_t>(here), kind_of(at.i, at.j)});
    }
    if (const expected<> result = check_places(); result.failed())
      return result.reason();
    for (auto &plane : lattice_.effects)
      plane.resize(grid.cells());
    return {};
  }

  /// The detectors must be all those of Stim's memory, whose code has one orientation: the network knows no other.
  expected<> check_places() const {
    const std::size_t end = lattice_.grid.width - 1, last = lattice_.grid.layers - 1;
    const auto is_in_first_layer = [&](memory_lattice::place at) { return at.cell < cell(1, 0, 0); };
    const auto first = std::ranges::find_if(lattice_.places, is_in_first_layer);
    for (std::size_t t = 0; t <= last; ++t)
      for (std::size_t i = 0; i <= end; ++i)
        for (std::size_t j = 0; j <= end; ++j) {
          const memory_lattice::kind what = kind_of(i, j);
          const std::size_t across = what == memory_lattice::x ? j : i; // a code ends without stabilizers of this kind
          const bool is_of_memory = first != lattice_.places.end() && first->what == what;
          const bool wanted = across != 0 && across != end && (is_of_memory || (t != 0 && t != last));
          if (wanted != (detector_at_[cell(t, i, j)] != kNone))
            return reason(std::string("it has ") + (wanted ? "no" : "a") + " detector at (" + std::to_string(2 * j) +
                          ", " + std::to_string(2 * i) + ", " + std::to_string(t) +
                          "), unlike Stim's memory of the rotated surface code: the network has learned no other");
        }
    return {};
  }

  /// An error between two gates of a data qubit is seen by one stabilizer in this layer, and by the other in the next
  /// one. In Stim's order of gates the later of two X stabilizers has the smaller y, that of two Z stabilizers the
  /// smaller x.
  expected<> check_order_of_gates() const {
    const std::size_t width = lattice_.grid.width, layer = width * width;
    for (const auto &[detectors, known] : errors_) {
      if (detectors.size() != 2)
        continue;
      memory_lattice::place a = lattice_.places[detectors[0]], b = lattice_.places[detectors[1]];
      if (a.cell > b.cell)
        std::swap(a, b);
      if (a.what != b.what || b.cell / layer != a.cell / layer + 1)
        continue;
      const std::size_t from_i = a.cell / width % width, to_i = b.cell / width % width;
      const std::size_t from_j = a.cell % width, to_j = b.cell % width;
      const bool is_diagonal = (from_i + 1 == to_i || to_i + 1 == from_i) && (from_j + 1 == to_j || to_j + 1 == from_j);
      if (is_diagonal && (a.what == memory_lattice::x ? to_i > from_i : to_j > from_j))
        return reason("an error fires detectors " + std::to_string(detectors[0]) + " and " +
                      std::to_string(detectors[1]) +
                      " alone. The order of gates of Stim's circuit has no such error, and the network has learned no "
                      "other order");
    }
    return {};
  }

  /// Stabilizers of the two kinds are the black and the white fields of a chessboard.
  static memory_lattice::kind kind_of(std::size_t i, std::size_t j) noexcept {
    return (i + j) % 2 != 0 ? memory_lattice::x : memory_lattice::z;
  }

  void note_errors() {
    for (const dem_component &c : model_.components) {
      const auto detectors = model_.detectors_of(c);
      if (detectors.empty() || detectors.size() > 2)
        continue;
      known_error &known = errors_[indices(detectors.begin(), detectors.end())];
      if (c.probability > known.probability) {
        const auto observables = model_.observables_of(c);
        known = {c.probability, indices(observables.begin(), observables.end())};
      }
    }
  }

  /// The detectors that a flip of data qubit (i, j) in layer t fires.
  indices fired_by_flip(memory_lattice::kind what, std::size_t t, std::size_t i, std::size_t j) const {
    indices fired;
    for (const std::size_t a : {i, i + 1})
      for (const std::size_t b : {j, j + 1})
        if (kind_of(a, b) == what && detector_at_[cell(t, a, b)] != kNone)
          fired.push_back(detector_at_[cell(t, a, b)]);
    std::ranges::sort(fired);
    return fired;
  }

  /// A qubit's flip does the same to the observables in each layer, so one that the model has is enough.
  expected<> add_flips(memory_lattice::kind what) {
    const std::size_t distance = lattice_.grid.width - 1;
    for (std::size_t i = 0; i < distance; ++i)
      for (std::size_t j = 0; j < distance; ++j) {
        const indices *observables = nullptr;
        for (std::size_t t = 0; t < lattice_.grid.layers && observables == nullptr; ++t)
          if (const auto found = errors_.find(fired_by_flip(what, t, i, j)); found != errors_.end())
            observables = &found->second.observables;
        if (observables == nullptr)
          return reason("it has no error that flips data qubit (" + std::to_string(2 * j + 1) + ", " +
                        std::to_string(2 * i + 1) + ") alone, as a memory of the rotated surface code has");
        for (std::size_t t = 0; t < lattice_.grid.layers; ++t)
          add(what, cell(t, i, j), fired_by_flip(what, t, i, j), *observables);
      }
    return {};
  }

  /// A misread outcome fires the detectors of this layer and of the next one.
  void add_misread() {
    const network_grid grid = lattice_.grid;
    const std::size_t layer = std::size_t{grid.width} * grid.width;
    for (std::size_t here = 0; here + layer < grid.cells(); ++here) {
      indices fired;
      for (const std::size_t at : {here, here + layer})
        if (detector_at_[at] != kNone)
          fired.push_back(detector_at_[at]);
      add(2, here, fired, {});
    }
  }

  void add(std::size_t plane, std::size_t here, const indices &detectors, const indices &observables) {
    if (detectors.empty())
      return; // such a flip is not seen, and not corrected
    memory_lattice::effect &effect = lattice_.effects[plane][here];
    effect = {static_cast<std::uint32_t>(lattice_.lists.size()), static_cast<std::uint32_t>(detectors.size()),
              static_cast<std::uint32_t>(observables.size())};
    for (const indices *list : {&detectors, &observables})
      for (const std::uint64_t index : *list)
        lattice_.lists.push_back(static_cast<std::uint32_t>(index));
  }

  const detector_error_model &model_;
  const std::vector<std::vector<double>> &coordinates_;
  memory_lattice lattice_;
  std::vector<std::uint32_t> detector_at_; ///< of each cell
  std::map<indices, known_error> errors_;
};

} // namespace

expected<memory_lattice> read_memory_lattice(const decoder_model &model) {
  const auto coordinates = model.coordinates();
  if (coordinates.failed())
    return coordinates.reason();
  return lattice_builder(**model.errors(), *coordinates).build();
}

} // namespace cudaq::qec::realtime

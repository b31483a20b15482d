// SPDX-License-Identifier: Apache-2.0
// Compiled without fused multiplications (lib/qec/CMakeLists.txt): strengths are the same on every machine.
#include "lib/qec/decoders/relay_bp/relay_bp.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cudaq::qec::realtime {
namespace {

/// An array of zeros whose begin suits vectors of kLanes.
template <typename T>
class lane_array {
public:
  explicit lane_array(std::size_t size)
      : size_(size), data_(static_cast<T *>(::operator new(size * sizeof(T), kAlignment))) {
    std::fill_n(data_, size, T{});
  }
  lane_array(const lane_array &) = delete;
  lane_array &operator=(const lane_array &) = delete;
  ~lane_array() { ::operator delete(data_, kAlignment); }

  T *data() noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  T &operator[](std::size_t k) noexcept { return data_[k]; }
  const T &operator[](std::size_t k) const noexcept { return data_[k]; }

private:
  static constexpr std::align_val_t kAlignment{kLanes * sizeof(double)};
  std::size_t size_;
  T *data_;
};

} // namespace

template <typename T>
struct relay_bp::arrays {
  arrays(const grouped_graph &g, std::span<const double> log_odds_of_column, bool sums_posteriors, bool plain)
      : sweeps(choose_min_sum_sweeps<T>(plain)), messages(g.num_cells), first_messages(g.num_cells),
        syndrome_sign(g.rows_of_check.size()), log_odds(g.column_at.size()), prior(g.column_at.size()),
        gamma(g.column_at.size()), posterior(g.column_at.size()),
        posterior_sum(sums_posteriors ? g.column_at.size() : 0), prefix(std::size_t{g.max_rows} * kLanes),
        answers(std::size_t{g.max_rows} * kLanes) {
    for (std::size_t lane = 0; lane < g.column_at.size(); ++lane)
      if (g.column_at[lane] != grouped_graph::kUnused)
        set(g, lane, log_odds_of_column[g.column_at[lane]]);
  }

  void set(const grouped_graph &g, std::size_t lane, double value) noexcept {
    log_odds[lane] = static_cast<T>(value);
    const grouped_graph::column_group &group = g.column_groups[lane / kLanes];
    for (std::uint32_t row = 0; row < group.rows; ++row)
      first_messages[g.places[group.first_place + row * kLanes + lane % kLanes]] = log_odds[lane];
  }

  min_sum_sweeps<T> sweeps;
  lane_array<T> messages, first_messages, syndrome_sign, log_odds, prior, gamma, posterior, posterior_sum, prefix,
      answers;
};

relay_bp::relay_bp(const tanner_graph &graph, const relay_bp_options &options, bool plain)
    : graph_(graph), options_(options), groups_(graph), lane_of_(graph.num_columns()), remaining_(graph.num_checks) {
  for (std::uint32_t lane = 0; lane < groups_.column_at.size(); ++lane)
    if (groups_.column_at[lane] != grouped_graph::kUnused)
      lane_of_[groups_.column_at[lane]] = lane;
  for (const double p : graph.probability) {
    log_odds_.push_back(log_odds(p));
    units_.push_back(weight_units(log_odds_.back()));
  }
  if (options.double_precision)
    double_ = std::make_unique<arrays<double>>(groups_, log_odds_, options.sums_posteriors, plain);
  else
    float_ = std::make_unique<arrays<float>>(groups_, log_odds_, options.sums_posteriors, plain);
  decision_.resize(graph.num_columns());
  lightest_.reserve(graph.num_columns());
  correction_.reserve(graph.num_columns());
}

relay_bp::~relay_bp() = default;

const char *relay_bp::instruction_set() const noexcept {
  return double_ ? double_->sweeps.instruction_set : float_->sweeps.instruction_set;
}

void relay_bp::reload(std::uint32_t column) noexcept {
  const double value = log_odds(graph_.probability[column]);
  log_odds_[column] = value;
  units_[column] = weight_units(value);
  if (double_)
    double_->set(groups_, lane_of_[column], value);
  else
    float_->set(groups_, lane_of_[column], value);
}

decode_status relay_bp::solve(std::span<const std::uint8_t> syndrome, stop_check stop) noexcept {
  return double_ ? solve_with(*double_, syndrome, stop) : solve_with(*float_, syndrome, stop);
}

template <typename T>
void relay_bp::copy_posteriors(const arrays<T> &a, std::span<double> of_columns) const noexcept {
  for (std::size_t lane = 0; lane < groups_.column_at.size(); ++lane)
    if (const std::uint32_t column = groups_.column_at[lane]; column != grouped_graph::kUnused)
      of_columns[column] = options_.sums_posteriors ? a.posterior_sum[lane] : a.posterior[lane];
}

void relay_bp::posteriors(std::span<double> of_columns) const noexcept {
  if (double_)
    copy_posteriors(*double_, of_columns);
  else
    copy_posteriors(*float_, of_columns);
}

template <typename T>
void relay_bp::start_leg(arrays<T> &a, std::uint32_t chain, std::uint32_t leg) noexcept {
  std::memcpy(a.messages.data(), a.first_messages.data(), a.messages.size() * sizeof(T));
  if (leg == 0 && options_.sums_posteriors)
    std::fill_n(a.posterior_sum.data(), a.posterior_sum.size(), T{});
  if (leg == 0)
    std::memcpy(a.posterior.data(), a.log_odds.data(), a.posterior.size() * sizeof(T));
  const relay_strengths strengths = options_.strengths();
  for (std::size_t lane = 0; lane < groups_.column_at.size(); ++lane) {
    const std::uint32_t column = groups_.column_at[lane];
    if (column == grouped_graph::kUnused)
      continue;
    a.gamma[lane] = static_cast<T>(strengths.of(chain, leg, column));
    a.prior[lane] = (1 - a.gamma[lane]) * a.log_odds[lane];
  }
}

template <typename T>
decode_status relay_bp::run_leg(arrays<T> &a, std::span<const std::uint8_t> syndrome, std::uint32_t leg,
                                std::uint64_t max_steps, std::uint64_t &steps, stop_check &stop) noexcept {
  const min_sum_state<T> state{&groups_,        a.messages.data(), a.syndrome_sign.data(),
                               a.prior.data(),  a.gamma.data(),    a.posterior.data(),
                               a.prefix.data(), a.answers.data(),  decision_.data()};
  const std::uint32_t max_iter = leg == 0 ? options_.pre_iter : options_.set_max_iter;
  for (std::uint32_t k = 1; k <= max_iter && steps < max_steps; ++k) {
    if (const decode_status status = stop(); status != decode_status::ok)
      return status;
    a.sweeps.checks(state, static_cast<T>(options_.scale(k)));
    decided_ = std::span(decision_).first(a.sweeps.columns(state));
    for (std::size_t lane = 0; lane < a.posterior_sum.size(); ++lane)
      a.posterior_sum[lane] += a.posterior[lane];
    ++steps;
    if (decision_fits(syndrome))
      return decode_status::ok;
    ++iterations_;
  }
  return decode_status::not_converged;
}

template <typename T>
relay_bp::chain_end relay_bp::run_chain(arrays<T> &a, std::span<const std::uint8_t> syndrome, std::uint32_t chain,
                                        std::uint64_t max_steps, stop_check &stop) noexcept {
  chain_end end;
  lightest_.clear();
  std::uint32_t found = 0;
  for (std::uint32_t leg = 0; leg <= options_.num_sets && found != options_.stop_nconv; ++leg) {
    start_leg(a, chain, leg);
    const decode_status status = run_leg(a, syndrome, leg, max_steps, end.steps, stop);
    if (status == decode_status::ok) {
      ++found;
      if (const std::uint64_t units = units_of(decided_); units < end.units) {
        end.units = units;
        lightest_.assign(decided_.begin(), decided_.end());
      }
      continue;
    }
    if (found == 0 && leg == 0)
      lightest_.assign(decided_.begin(), decided_.end());
    if (status != decode_status::not_converged || end.steps >= max_steps) {
      end.status = status;
      return end;
    }
  }
  end.status = found != 0 ? decode_status::ok : decode_status::not_converged;
  return end;
}

template <typename T>
decode_status relay_bp::solve_with(arrays<T> &a, std::span<const std::uint8_t> syndrome, stop_check &stop) noexcept {
  for (std::size_t check = 0; check < syndrome.size(); ++check)
    a.syndrome_sign[groups_.lane_of_check[check]] = syndrome[check] != 0 ? T{-0.0} : T{0};
  const bool in_step = options_.mode == ensemble_mode::in_step;
  iterations_ = 0;
  has_solution_ = false;
  decided_ = {};
  decode_status status = decode_status::not_converged;
  std::uint64_t best_units = UINT64_MAX, best_steps = UINT64_MAX;
  for (std::uint32_t chain = 0; chain < options_.ensemble; ++chain) {
    const chain_end end = run_chain(a, syndrome, chain, in_step ? best_steps : UINT64_MAX, stop);
    const bool stopped = end.status == decode_status::deadline || end.status == decode_status::cancelled;
    // Of a chain that was stopped or given up, a solution counts only if there is no other.
    const bool by_steps = in_step && end.status == decode_status::ok;
    const bool better = by_steps ? end.steps < best_steps : end.units < best_units;
    const bool counts = end.status == decode_status::ok || !has_solution_;
    if (chain == 0 || (better && counts))
      correction_.assign(lightest_.begin(), lightest_.end());
    if (better && counts) {
      best_units = end.units;
      best_steps = end.status == decode_status::ok ? end.steps : best_steps;
      has_solution_ = true;
    }
    if (end.status == decode_status::ok || stopped)
      status = end.status;
    if (stopped)
      break;
  }
  std::ranges::sort(correction_);
  weight_ = 0;
  for (const std::uint32_t column : correction_)
    weight_ += log_odds_[column];
  return status;
}

bool relay_bp::decision_fits(std::span<const std::uint8_t> syndrome) noexcept {
  std::copy(syndrome.begin(), syndrome.end(), remaining_.begin());
  for (const std::uint32_t column : decided_)
    for (const std::uint32_t check : graph_.checks_of(column))
      remaining_[check] ^= 1;
  return std::ranges::find(remaining_, 1) == remaining_.end();
}

std::uint64_t relay_bp::units_of(std::span<const std::uint32_t> columns) const noexcept {
  std::uint64_t units = 0;
  for (const std::uint32_t column : columns)
    units += units_[column];
  return units;
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/relay_bp/relay_bp.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
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

private:
  static constexpr std::align_val_t kAlignment{kLanes * sizeof(double)};
  std::size_t size_;
  T *data_;
};

} // namespace

template <typename T>
struct relay_bp::arrays {
  arrays(const grouped_graph &g, std::span<const double> log_odds_of_column, bool plain)
      : sweeps(choose_min_sum_sweeps<T>(plain)), messages(g.num_cells), first_messages(g.num_cells),
        syndrome_sign(g.rows_of_check.size()), log_odds(g.column_at.size()), prior(g.column_at.size()),
        gamma(g.column_at.size()), posterior(g.column_at.size()), prefix(std::size_t{g.most_rows} * kLanes),
        answers(std::size_t{g.most_rows} * kLanes) {
    for (std::size_t lane = 0; lane < g.column_at.size(); ++lane) {
      if (g.column_at[lane] == grouped_graph::kUnused)
        continue;
      log_odds[lane] = static_cast<T>(log_odds_of_column[g.column_at[lane]]);
      const grouped_graph::column_group &group = g.column_groups[lane / kLanes];
      for (std::uint32_t row = 0; row < group.rows; ++row)
        first_messages[g.places[group.first_place + row * kLanes + lane % kLanes]] = log_odds[lane];
    }
  }

  min_sum_sweeps<T> sweeps;
  lane_array<T> messages, first_messages, syndrome_sign, log_odds, prior, gamma, posterior, prefix, answers;
};

relay_bp::relay_bp(const tanner_graph &graph, const relay_bp_options &options, bool plain)
    : graph_(graph), options_(options), groups_(graph), remaining_(graph.num_checks) {
  for (const double p : graph.probability)
    log_odds_.push_back(log_odds(p));
  if (options.double_precision)
    double_ = std::make_unique<arrays<double>>(groups_, log_odds_, plain);
  else
    float_ = std::make_unique<arrays<float>>(groups_, log_odds_, plain);
  decision_.resize(graph.num_columns());
  correction_.reserve(graph.num_columns());
}

relay_bp::~relay_bp() = default;

const char *relay_bp::instruction_set() const noexcept {
  return double_ ? double_->sweeps.instruction_set : float_->sweeps.instruction_set;
}

decode_status relay_bp::solve(std::span<const std::uint8_t> syndrome, stop_check stop) noexcept {
  return double_ ? solve_with(*double_, syndrome, stop) : solve_with(*float_, syndrome, stop);
}

template <typename T>
void relay_bp::start_leg(arrays<T> &a, std::uint32_t leg) noexcept {
  std::memcpy(a.messages.data(), a.first_messages.data(), a.messages.size() * sizeof(T));
  if (leg == 0)
    std::memcpy(a.posterior.data(), a.log_odds.data(), a.posterior.size() * sizeof(T));
  const double width = options_.gamma_highest - options_.gamma_lowest;
  for (std::size_t lane = 0; lane < groups_.column_at.size(); ++lane) {
    const std::uint32_t column = groups_.column_at[lane];
    if (column == grouped_graph::kUnused)
      continue;
    a.gamma[lane] = static_cast<T>(
        leg == 0 ? options_.gamma0 : options_.gamma_lowest + width * unit_strength(options_.seed, leg, column));
    a.prior[lane] = (1 - a.gamma[lane]) * a.log_odds[lane];
  }
}

template <typename T>
decode_status relay_bp::run_leg(arrays<T> &a, std::span<const std::uint8_t> syndrome, std::uint32_t leg,
                                stop_check &stop) noexcept {
  const min_sum_state<T> state{&groups_,        a.messages.data(), a.syndrome_sign.data(),
                               a.prior.data(),  a.gamma.data(),    a.posterior.data(),
                               a.prefix.data(), a.answers.data(),  decision_.data()};
  const std::uint32_t most = leg == 0 ? options_.pre_iter : options_.set_max_iter;
  for (std::uint32_t k = 1; k <= most; ++k) {
    if (const decode_status status = stop(); status != decode_status::ok)
      return status;
    double scale = options_.alpha;
    if (scale == 0)
      scale = 1 - std::exp2(-(k / options_.alpha_iteration_scaling_factor));
    a.sweeps.checks(state, static_cast<T>(scale));
    decided_ = std::span(decision_).first(a.sweeps.columns(state));
    if (decision_fits(syndrome))
      return decode_status::ok;
    ++iterations_;
  }
  return decode_status::not_converged;
}

template <typename T>
decode_status relay_bp::solve_with(arrays<T> &a, std::span<const std::uint8_t> syndrome, stop_check &stop) noexcept {
  for (std::size_t check = 0; check < syndrome.size(); ++check)
    a.syndrome_sign[groups_.lane_of_check[check]] = syndrome[check] != 0 ? T{-0.0} : T{0};
  iterations_ = 0;
  num_found_ = 0;
  correction_.clear();
  weight_ = std::numeric_limits<double>::infinity();
  decode_status status = decode_status::ok;
  for (std::uint32_t leg = 0; leg <= options_.num_sets && num_found_ != options_.stop_nconv; ++leg) {
    start_leg(a, leg);
    status = run_leg(a, syndrome, leg, stop);
    if (status == decode_status::deadline || status == decode_status::cancelled)
      break;
    if (status == decode_status::ok) {
      ++num_found_;
      if (const double weight = weight_of(decided_); weight < weight_) {
        weight_ = weight;
        correction_.assign(decided_.begin(), decided_.end());
      }
    } else if (leg == 0) {
      correction_.assign(decided_.begin(), decided_.end());
    }
    status = num_found_ != 0 ? decode_status::ok : decode_status::not_converged;
  }
  std::ranges::sort(correction_);
  if (num_found_ == 0)
    weight_ = weight_of(correction_);
  return status;
}

bool relay_bp::decision_fits(std::span<const std::uint8_t> syndrome) noexcept {
  std::copy(syndrome.begin(), syndrome.end(), remaining_.begin());
  for (const std::uint32_t column : decided_)
    for (const std::uint32_t check : graph_.checks_of(column))
      remaining_[check] ^= 1;
  return std::ranges::find(remaining_, 1) == remaining_.end();
}

double relay_bp::weight_of(std::span<const std::uint32_t> columns) const noexcept {
  double weight = 0;
  for (const std::uint32_t column : columns)
    weight += log_odds_[column];
  return weight;
}

} // namespace cudaq::qec::realtime

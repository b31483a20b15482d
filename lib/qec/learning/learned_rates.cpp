// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/learning/learned_rates.h"

#include "lib/qec/learning/data_checks.h"
#include "lib/qec/learning/factor_posterior.h"
#include "lib/qec/learning/parity_system.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

namespace cudaq::qec::realtime {
namespace {

constexpr double kLargestRate = 0.4;    ///< of an error of the model: near 1/2 its exponent is infinite
constexpr double kSmallestFactor = .05; ///< of a rate in the covariances, before the factors are known
constexpr double kHalfOf95 = 1.96;      ///< of the interval of 95 %, in sigma
constexpr double kRidge = 1000; ///< sigma of the factors in the linear equations, so that each system has a solution
constexpr double kFewestSigmas = 5;        ///< of a parity's mean beyond 0; nearer to it its logarithm says nothing
constexpr int kPasses = 2;                 ///< the weights of the second one are those of the rates of the first one
constexpr std::size_t kMaxTogether = 1024; ///< factors of one dense system of equations

/// Lists of numbers below a limit that are joined.
class joined_numbers {
public:
  explicit joined_numbers(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = static_cast<std::uint32_t>(root(b)); }
  std::size_t root(std::size_t k) {
    while (parent_[k] != k) {
      parent_[k] = parent_[parent_[k]];
      k = parent_[k];
    }
    return k;
  }

private:
  std::vector<std::uint32_t> parent_;
};

/// The share of a factor in the exponent of a set.
struct share {
  std::uint32_t of; ///< the factor
  double exponent;  ///< by the model's own rates
};

/// Numbers of groups are those of errors with an effect after it.
expected<> check_errors(const std::vector<whole_error> &errors, const learning_options &options) {
  if (!(options.prior_sigma > 0) || !std::isfinite(options.prior_sigma))
    return reason("the prior has sigma " + short_number(options.prior_sigma) + ", accepted: a number above 0");
  std::unordered_map<std::uint64_t, std::uint64_t> line_of;
  for (const whole_error &error : errors) {
    if (error.probability > kLargestRate)
      return reason("line " + std::to_string(error.line) + ": the error has probability " +
                    short_number(error.probability) + "; rates are learned of errors of at most " +
                    short_number(kLargestRate));
    line_of.emplace(error.mechanism, error.line);
  }
  struct tie {
    std::size_t group;
    std::uint64_t error;
  };
  std::unordered_map<std::uint64_t, tie> tie_of_line;
  for (std::size_t group = 0; group < options.tied.size(); ++group)
    for (const std::uint64_t number : options.tied[group]) {
      const auto known = line_of.find(number);
      if (known == line_of.end())
        return reason("error " + std::to_string(number) +
                      " of a group of tied errors is not in the model, or has no effect");
      if (known->second == 0)
        continue;
      const tie &first = tie_of_line.emplace(known->second, tie{group, number}).first->second;
      if (first.group != group)
        return reason("errors " + std::to_string(first.error) + " and " + std::to_string(number) +
                      " are in two groups of tied errors, but both are of line " + std::to_string(known->second) +
                      ", which a loop repeats: they have one rate; tie them in one group");
    }
  return {};
}

class learner {
public:
  learner(const detector_error_model &model, const event_counts &counts, const learning_options &options)
      : options_(options), counts_(counts), errors_(whole_errors_of(model)), system_(errors_, *counts.sets()) {}

  expected<learned_rates> run() {
    name_factors();
    read_unknowns();
    make_equations();
    std::vector<double> exponents = closed_forms();
    for (int pass = 0; pass < kPasses; ++pass) {
      if (const expected<> result = solve(exponents); result.failed())
        return result.reason();
      exponents = with_factors();
    }
    return results(exponents);
  }

private:
  void name_factors() {
    joined_numbers joined(errors_.size());
    std::unordered_map<std::uint64_t, std::size_t> of_line;
    std::unordered_map<std::uint32_t, std::size_t> of_mechanism;
    std::vector<char> is_tied(errors_.size());
    for (std::size_t e = 0; e < errors_.size(); ++e) {
      of_mechanism.emplace(errors_[e].mechanism, e);
      if (errors_[e].line == 0)
        continue;
      const auto [known, is_new] = of_line.emplace(errors_[e].line, e);
      if (!is_new) {
        joined.join(e, known->second);
        is_tied[e] = is_tied[known->second] = 1;
      }
    }
    for (const std::vector<std::uint64_t> &group : options_.tied) {
      std::optional<std::size_t> first;
      for (const std::uint64_t number : group) {
        const std::size_t error = of_mechanism.at(static_cast<std::uint32_t>(number));
        is_tied[error] = 1;
        if (first)
          joined.join(error, *first);
        first = error;
      }
    }
    std::vector<std::size_t> free_error_of(system_.size(), SIZE_MAX);
    for (std::size_t e = 0; e < errors_.size(); ++e) {
      const std::uint32_t set = system_.flipped_by(e);
      if (set == parity_system::kNone || is_tied[joined.root(e)] != 0 || is_tied[e] != 0)
        continue;
      if (free_error_of[set] != SIZE_MAX)
        joined.join(e, free_error_of[set]);
      free_error_of[set] = e;
    }
    std::unordered_map<std::size_t, std::uint32_t> numbers;
    factors_of_.resize(system_.size());
    own_.resize(system_.size());
    for (std::size_t e = 0; e < errors_.size(); ++e) {
      const auto number = numbers.emplace(joined.root(e), static_cast<std::uint32_t>(numbers.size())).first->second;
      factor_of_.push_back(number);
      const std::uint32_t set = system_.flipped_by(e);
      if (set == parity_system::kNone)
        continue;
      const double exponent = exponent_of(errors_[e].probability);
      own_[set] += exponent;
      std::vector<share> &shares = factors_of_[set];
      const auto at = std::ranges::find(shares, number, &share::of);
      if (at != shares.end())
        at->exponent += exponent;
      else
        shares.push_back({number, exponent});
    }
    factors_.resize(numbers.size());
    posteriors_.resize(numbers.size());
  }

  void read_unknowns() {
    const std::size_t parities = counts_.sets()->size();
    unknowns_.resize(system_.num_unknowns());
    is_usable_.assign(system_.num_unknowns(), 1);
    const double smallest = kFewestSigmas / std::sqrt(counts_.effective_shots());
    for (std::size_t k = 0; k < parities; ++k) {
      const double mean = 1 - 2 * counts_.odd(k) / counts_.shots();
      is_usable_[k] = mean > smallest ? 1 : 0;
      const double value = -0.5 * std::log(std::max(mean, smallest));
      // The logarithm of a mean that scatters is too small on average, by half of its relative variance.
      unknowns_[k] = value - std::expm1(4 * value) / (4 * counts_.effective_shots());
    }
    for (std::size_t set = 0; set < system_.size(); ++set)
      measured_.push_back(system_.is_measured(set) && std::ranges::all_of(system_.form(set), [&](const auto &term) {
                            return is_usable_[term.first] != 0;
                          }));
  }

  /// An equation of each measured set: what its form says without the sets that are not measured is the sum of shares.
  /// Such a set is in it if a factor of it is also that of a measured set; else the model's own rate stands for it.
  void make_equations() {
    std::vector<char> is_measured(factors_.size());
    for (std::size_t set = 0; set < system_.size(); ++set)
      if (measured_[set])
        for (const share &one : factors_of_[set])
          is_measured[one.of] = 1;
    const std::size_t parities = counts_.sets()->size();
    for (std::size_t set = 0; set < system_.size(); ++set) // once each, in however many forms it is
      for (const share &one : factors_of_[set])
        if (!system_.is_measured(set) && is_measured[one.of] == 0)
          unknowns_[parities + set] += one.exponent;
    equations_.resize(system_.size());
    sets_of_.resize(factors_.size());
    for (std::uint32_t set = 0; set < system_.size(); ++set) {
      if (!measured_[set])
        continue;
      std::vector<share> &equation = equations_[set] = factors_of_[set];
      for (const auto &[unknown, coefficient] : system_.form(set)) {
        if (unknown < parities)
          continue;
        for (const share &one : factors_of_[unknown - parities]) {
          if (is_measured[one.of] == 0)
            continue;
          if (const auto at = std::ranges::find(equation, one.of, &share::of); at != equation.end())
            at->exponent -= coefficient * one.exponent;
          else
            equation.push_back({one.of, -coefficient * one.exponent});
        }
      }
      for (const share &one : equation)
        sets_of_[one.of].push_back(set);
    }
  }

  double value_of(const linear_form &form) const {
    double sum = 0;
    for (const auto &[k, coefficient] : form)
      sum += coefficient * unknowns_[k];
    return sum;
  }

  std::vector<double> closed_forms() {
    std::vector<double> exponents = own_;
    for (std::size_t set = 0; set < system_.size(); ++set)
      if (measured_[set])
        exponents[set] = std::max(value_of(system_.form(set)), kSmallestFactor * own_[set]);
    return exponents;
  }

  std::vector<double> with_factors() {
    std::vector<double> exponents(system_.size());
    for (std::size_t set = 0; set < system_.size(); ++set)
      for (const share &one : factors_of_[set])
        exponents[set] += one.exponent * posteriors_[one.of].median;
    return exponents;
  }

  /// Finds the factors, by the weighted equations of all measured sets. Sets without the same factors have equations of
  /// their own, of one factor in most models.
  expected<> solve(const std::vector<double> &exponents) {
    std::vector<const linear_form *> forms;
    for (std::size_t set = 0; set < system_.size(); ++set)
      forms.push_back(&system_.form(set));
    variances_ = system_.variances(forms, exponents, counts_.effective_shots()).of_forms;
    for (double &variance : variances_) // of rates near the smallest double: 0
      variance = std::max(variance, std::numeric_limits<double>::min());
    std::vector<linear_form> made;
    std::vector<std::uint32_t> of_made;
    std::vector<char> is_done(factors_.size());
    for (std::uint32_t begin = 0; begin < factors_.size(); ++begin) {
      if (is_done[begin] != 0)
        continue;
      std::vector<std::uint32_t> together{begin};
      is_done[begin] = 1;
      for (std::size_t k = 0; k < together.size(); ++k)
        for (const std::uint32_t set : sets_of_[together[k]])
          for (const share &other : equations_[set])
            if (is_done[other.of] == 0) {
              is_done[other.of] = 1;
              together.push_back(other.of);
            }
      if (together.size() > kMaxTogether)
        return reason("the tied errors join " + std::to_string(together.size()) +
                      " factors in the same sets of detectors; at most " + std::to_string(kMaxTogether) +
                      " can be solved");
      solve_together(together, made, of_made);
    }
    std::vector<const linear_form *> with_many_sets;
    for (const linear_form &form : made)
      with_many_sets.push_back(&form);
    if (!made.empty()) {
      const std::vector<double> found =
          system_.variances(with_many_sets, exponents, counts_.effective_shots()).of_forms;
      for (std::size_t k = 0; k < found.size(); ++k) {
        factor_estimate &factor = factors_[of_made[k]];
        factor.sigma = std::sqrt(factor.sigma * factor.sigma + found[k]);
      }
    }
    for (std::size_t k = 0; k < factors_.size(); ++k)
      posteriors_[k] = posterior_of(factors_[k], options_.prior_sigma);
    return {};
  }

  /// Ridge regression of the factors of `together` around 1. Their variance is that of the counts, which is added later
  /// where a factor needs the form in `made`, and that of the prior.
  void solve_together(const std::vector<std::uint32_t> &together, std::vector<linear_form> &made,
                      std::vector<std::uint32_t> &of_made) {
    const std::size_t count = together.size();
    const double prior = 1 / (kRidge * kRidge);
    std::unordered_map<std::uint32_t, std::size_t> place;
    for (std::size_t k = 0; k < count; ++k)
      place[together[k]] = k;
    std::vector<std::uint32_t> sets;
    for (const std::uint32_t factor : together)
      sets.insert(sets.end(), sets_of_[factor].begin(), sets_of_[factor].end());
    std::ranges::sort(sets);
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    std::vector<double> matrix(count * count);
    for (const std::uint32_t set : sets)
      for (const share &a : equations_[set])
        for (const share &b : equations_[set])
          matrix[place[a.of] * count + place[b.of]] += a.exponent * b.exponent / variances_[set];
    std::vector<double> normal = matrix;
    for (std::size_t k = 0; k < count; ++k)
      normal[k * count + k] += prior;
    const std::vector<double> inverse = inverse_of(std::move(normal), count);
    for (std::size_t k = 0; k < count; ++k) {
      factor_estimate &factor = factors_[together[k]];
      factor = {1, 0, 0};
      const double *const row = inverse.data() + k * count;
      double of_counts = 0;
      std::vector<std::pair<std::uint32_t, double>> weights; // of sets
      for (const std::uint32_t set : sets) {
        double weight = 0, own = 0;
        for (const share &one : equations_[set]) {
          weight += row[place[one.of]] * one.exponent / variances_[set];
          own += one.exponent;
        }
        if (weight == 0)
          continue;
        weights.emplace_back(set, weight);
        factor.mean += weight * (value_of(system_.form(set)) - own);
        of_counts += weight * weight * variances_[set];
        for (const share &one : equations_[set])
          if (one.of == together[k])
            factor.slope += weight * weight * one.exponent / counts_.effective_shots();
      }
      double of_prior = 0;
      for (std::size_t j = 0; j < count; ++j) {
        double known = 0; // the share of the data in the answer: row times matrix
        for (std::size_t i = 0; i < count; ++i)
          known += row[i] * matrix[i * count + j];
        const double left = (j == k ? 1 : 0) - known;
        of_prior += left * left / prior;
      }
      if (weights.size() <= 1) {
        factor.sigma = std::sqrt(of_prior + of_counts);
        continue;
      }
      factor.sigma = std::sqrt(of_prior);
      linear_form &form = made.emplace_back();
      of_made.push_back(together[k]);
      for (const auto &[set, weight] : weights)
        for (const auto &[unknown, coefficient] : system_.form(set))
          form.emplace_back(unknown, coefficient * weight);
      std::ranges::sort(form);
      std::size_t last = 0;
      for (std::size_t i = 1; i < form.size(); ++i)
        if (form[i].first == form[last].first)
          form[last].second += form[i].second;
        else
          form[++last] = form[i];
      form.resize(last + 1);
    }
  }

  /// Of a positive definite matrix, by Cholesky's decomposition.
  static std::vector<double> inverse_of(std::vector<double> a, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < j; ++k)
        a[j * n + j] -= a[j * n + k] * a[j * n + k];
      a[j * n + j] = std::sqrt(a[j * n + j]);
      for (std::size_t i = j + 1; i < n; ++i) {
        for (std::size_t k = 0; k < j; ++k)
          a[i * n + j] -= a[i * n + k] * a[j * n + k];
        a[i * n + j] /= a[j * n + j];
      }
    }
    std::vector<double> inverse(n * n), column(n);
    for (std::size_t c = 0; c < n; ++c) {
      for (std::size_t i = 0; i < n; ++i) {
        column[i] = i == c ? 1 : 0;
        for (std::size_t k = 0; k < i; ++k)
          column[i] -= a[i * n + k] * column[k];
        column[i] /= a[i * n + i];
      }
      for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k)
          column[i] -= a[k * n + i] * column[k];
        column[i] /= a[i * n + i];
        inverse[c * n + i] = column[i];
      }
    }
    return inverse;
  }

  learned_rates results(const std::vector<double> &exponents) {
    learned_rates rates;
    rates.shots = counts_.shots();
    rates.effective_shots = counts_.effective_shots();
    for (std::size_t e = 0; e < errors_.size(); ++e) {
      const whole_error &error = errors_[e];
      const factor_posterior &factor = posteriors_[factor_of_[e]];
      const double own = exponent_of(error.probability);
      const double rate =
          std::clamp(probability_of(own * factor.median), std::min(kSmallestRate, error.probability), kLargestLearned);
      rates.errors.push_back({error.mechanism, error.line, error.probability, rate, own * (1 - 2 * rate) * factor.sigma,
                              probability_of(own * factor.low), probability_of(own * factor.high),
                              std::log(factor.high / factor.low) < kHalfOf95 * options_.prior_sigma});
    }
    rates.detectors = beside_model(system_.of_detectors(own_), counts_);
    const std::span<const linear_form *const> none;
    const double explained = system_.variances(none, exponents, 1).of_events;
    const double beyond = counts_.variance_of_events() - explained;
    rates.variation = beyond > 0 ? std::sqrt(beyond) / counts_.mean_events() : 0;
    rates.explained_variance = explained;
    std::vector<set_change> changes;
    for (std::size_t set = 0; set < system_.size(); ++set)
      if (measured_[set] && system_.detectors_of(set).size() > 1)
        changes.push_back(
            {system_.detectors_of(set), own_[set], value_of(system_.form(set)), std::sqrt(variances_[set])});
    rates.refusals = refusals_of(rates, counts_, changes, options_);
    return rates;
  }

  static constexpr double kSmallestRate = 1e-12, kLargestLearned = 0.5 - 1e-9;

  const learning_options &options_;
  const event_counts &counts_;
  const std::vector<whole_error> errors_;
  const parity_system system_;
  std::vector<std::uint32_t> factor_of_; ///< of each error
  std::vector<factor_estimate> factors_;
  std::vector<factor_posterior> posteriors_;
  std::vector<std::vector<share>> factors_of_, equations_; ///< of each set
  std::vector<std::vector<std::uint32_t>> sets_of_;        ///< that have each factor in their equation
  std::vector<double> own_;                                ///< exponents of the sets, by the model's own rates
  std::vector<double> unknowns_, variances_;
  std::vector<char> is_usable_; ///< of the unknowns
  std::vector<bool> measured_;  ///< of the sets: all unknowns of its form are usable
};

} // namespace

std::vector<detector_rate> rates_of_detectors(const detector_error_model &model, const event_counts &counts) {
  std::vector<double> exponents(model.num_detectors);
  for (const whole_error &error : whole_errors_of(model))
    for (const std::uint32_t d : error.detectors)
      exponents[d] += exponent_of(std::min(error.probability, 1 - error.probability));
  return beside_model(exponents, counts);
}

expected<std::shared_ptr<const parity_sets>> learnable_sets(const detector_error_model &model,
                                                            const learning_options &options) {
  if (const expected<> result = check_errors(whole_errors_of(model), options); result.failed())
    return result.reason();
  return parity_sets::of(model);
}

expected<learned_rates> learn_rates(const detector_error_model &model, const event_counts &counts,
                                    const learning_options &options) {
  if (!(counts.shots() > 0))
    return reason("no shots were counted");
  const expected<std::shared_ptr<const parity_sets>> sets = learnable_sets(model, options);
  if (sets.failed())
    return sets.reason();
  if (*sets != counts.sets() && !(**sets == *counts.sets()))
    return reason("the counts are those of another model");
  return learner(model, counts, options).run();
}

} // namespace cudaq::qec::realtime

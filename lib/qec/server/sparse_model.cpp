// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/sparse_model.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace cudaq::qec::realtime {
namespace {

/// The rows of each column.
sparse_rows transposed(const sparse_rows &matrix, std::size_t columns) {
  sparse_rows out;
  out.first.assign(columns + 1, 0);
  for (const std::uint64_t column : matrix.columns)
    ++out.first[column + 1];
  for (std::size_t k = 0; k < columns; ++k)
    out.first[k + 1] += out.first[k];
  out.columns.resize(matrix.columns.size());
  std::vector<std::uint64_t> next = out.first;
  for (std::size_t r = 0; r < matrix.rows(); ++r)
    for (const std::uint64_t column : matrix.row(r))
      out.columns[next[column]++] = r;
  return out;
}

void append_targets(std::string &text, const char *kind, std::span<const std::uint64_t> indices) {
  for (const std::uint64_t index : indices)
    text += kind + std::to_string(index);
}

} // namespace

expected<sparse_rows> read_sparse(std::span<const std::int64_t> values, std::uint64_t columns) {
  const auto failure = [](std::size_t at, const std::string &what) {
    return reason("element " + std::to_string(at) + what);
  };
  sparse_rows out;
  std::vector<std::uint64_t> row;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (values[at] >= 0) {
      const auto index = static_cast<std::uint64_t>(values[at]);
      if (index >= columns)
        return failure(at, " is " + std::to_string(index) + ", not below " + std::to_string(columns));
      row.push_back(index);
      continue;
    }
    std::sort(row.begin(), row.end());
    if (const auto twice = std::adjacent_find(row.begin(), row.end()); twice != row.end())
      return failure(at, " ends a row that has " + std::to_string(*twice) + " twice");
    out.columns.insert(out.columns.end(), row.begin(), row.end());
    out.first.push_back(out.columns.size());
    row.clear();
  }
  if (!row.empty())
    return failure(values.size() - 1, " is the last one and not -1; every row ends with -1");
  return out;
}

std::string model_of_matrices(const sparse_rows &checks, const sparse_rows &observables,
                              std::span<const double> rates) {
  const sparse_rows detectors_of = transposed(checks, rates.size());
  const sparse_rows observables_of = transposed(observables, rates.size());
  std::string text;
  for (std::size_t k = 0; k < rates.size(); ++k) {
    char digits[32]; // std::to_chars does not depend on the locale
    text.append("error(").append(digits, std::to_chars(std::begin(digits), std::end(digits), rates[k]).ptr).append(")");
    append_targets(text, " D", detectors_of.row(k));
    append_targets(text, " L", observables_of.row(k));
    text += '\n';
  }
  // The sizes, also if the last rows are empty.
  text += "detector D" + std::to_string(checks.rows() - 1) + "\n";
  text += "logical_observable L" + std::to_string(observables.rows() - 1) + "\n";
  return text;
}

} // namespace cudaq::qec::realtime

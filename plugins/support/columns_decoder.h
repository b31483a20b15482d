// SPDX-License-Identifier: Apache-2.0
// What plug-ins for decoders of error columns have in common: they differ in their Solver.
#pragma once

#include "plugins/support/error_columns.h"
#include "plugins/support/syndrome_span.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

namespace cudaq::qec::plugins {

/// The value of a setting, a whole number. Throws std::invalid_argument.
inline int whole_number(const cudaq_qec_decoder_setting_t &setting, int lowest, int highest) {
  int value = 0;
  const char *end = setting.value + std::strlen(setting.value);
  const auto [stop, code] = std::from_chars(setting.value, end, value);
  if (code != std::errc{} || stop != end || value < lowest || value > highest)
    throw std::invalid_argument(std::string(setting.key) + "=" + setting.value + ": it must be a whole number from " +
                                std::to_string(lowest) + " to " + std::to_string(highest));
  return value;
}

/// Solver: a class with
///   struct options { explicit options(const cudaq_qec_decoder_model_t &); };   throws std::invalid_argument
///   Solver(const error_columns &, std::size_t rank, const options &);          there is at least one column
///   void solve(const std::vector<std::uint8_t> &syndrome, std::vector<std::size_t> &columns);
/// solve gets a syndrome that is not 0 and that some set of columns causes. It adds the columns of its answer; this
/// class checks that they cause the syndrome. After an exception the solver is made again.
template <typename Solver>
class columns_decoder {
public:
  explicit columns_decoder(const cudaq_qec_decoder_model_t &model)
      : options_(model), model_(read_columns(model)), span_(model_), syndrome_(model_.num_detectors) {
    build();
  }

  std::int32_t decode(const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables) {
    syndrome_ = model_.certain_detectors;
    for (std::size_t i = 0; i < num_events; ++i)
      syndrome_[events[i]] ^= 1;
    if (!span_.contains(syndrome_))
      return CUDAQ_QEC_DECODE_NO_SOLUTION;
    columns_.clear();
    if (some(syndrome_)) {
      build();
      try {
        solver_->solve(syndrome_, columns_);
      } catch (...) {
        solver_.reset();
        return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
      }
    }
    for (const std::size_t column : columns_)
      for (const std::uint32_t d : model_.columns[column].detectors)
        syndrome_[d] ^= 1;
    if (some(syndrome_))
      return CUDAQ_QEC_DECODE_INTERNAL_ERROR; // there is a solution, and the decoder did not find one
    std::copy(model_.certain_observables.begin(), model_.certain_observables.end(), observables);
    for (const std::size_t column : columns_)
      flip_observables(model_.columns[column].observables, observables);
    return CUDAQ_QEC_DECODE_OK;
  }

private:
  static bool some(const std::vector<std::uint8_t> &bytes) {
    return std::find(bytes.begin(), bytes.end(), 1) != bytes.end();
  }
  void build() {
    if (solver_ == nullptr && !model_.columns.empty())
      solver_ = std::make_unique<Solver>(model_, span_.rank(), options_);
  }

  typename Solver::options options_;
  error_columns model_;
  syndrome_span span_;
  std::unique_ptr<Solver> solver_; ///< null after an exception
  std::vector<std::uint8_t> syndrome_;
  std::vector<std::size_t> columns_;
};

template <typename Solver>
std::int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, std::size_t error_size) {
  try {
    *decoder = std::make_unique<columns_decoder<Solver>>(*model).release();
    return CUDAQ_QEC_DECODE_OK;
  } catch (const std::bad_alloc &) {
    std::snprintf(error, error_size, "out of memory");
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  } catch (const std::exception &failure) {
    std::snprintf(error, error_size, "%s", failure.what());
  } catch (...) {
    std::snprintf(error, error_size, "the decoder failed without a reason");
  }
  return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
}

template <typename Solver>
std::int32_t decode(void *self, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                    double *) {
  try {
    return static_cast<columns_decoder<Solver> *>(self)->decode(events, num_events, observables);
  } catch (...) { // out of memory
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  }
}

template <typename Solver>
void destroy(void *self) {
  delete static_cast<columns_decoder<Solver> *>(self);
}

} // namespace cudaq::qec::plugins

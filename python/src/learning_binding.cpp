// SPDX-License-Identifier: Apache-2.0
// Rates learned from detection events. No call holds the GIL while it counts or learns.
#include "bindings.h"
#include "threads.h"

#include <cstdint>
#include <cudaq/qec/decoding/learning.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace nb = nanobind;
using namespace cudaq::qec::realtime;

namespace cudaq_python {
namespace {

using rows_of_bytes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// An object of one call of learn() in Python, so of one thread.
class native_learner {
public:
  native_learner(const std::string &dem, const std::string &tied, double held_out, double prior) {
    const gil_released released;
    rate_learner_result made = make_rate_learner(dem, {tied, held_out, prior});
    if (!made)
      throw std::invalid_argument(made.error);
    learner_ = std::move(made.instance);
  }

  std::size_t num_detectors() const { return learner_->num_detectors(); }

  /// `first`: the number of the first of them, for the text of an error.
  void add(rows_of_bytes shots, std::uint64_t first) {
    const gil_released released;
    for (std::size_t k = 0; k < shots.shape(0); ++k)
      if (const decode_status status = learner_->add({shots.data() + k * shots.shape(1), shots.shape(1)});
          status != decode_status::ok)
        throw std::invalid_argument("shot " + std::to_string(first + k) + ": " + decode_status_text(status));
  }

  void finish() {
    const gil_released released;
    learning_report_result learned = learner_->finish();
    if (!learned)
      throw std::invalid_argument(learned.error);
    report_ = std::move(*learned.instance);
  }

  // Of the report, after finish().
  std::string dem() const { return report_.dem; }
  std::vector<std::string> refusals() const { return report_.refusals; }
  /// Number, line, model, rate, sigma, low, high, resolved.
  std::vector<std::tuple<std::uint64_t, std::uint64_t, double, double, double, double, double, bool>> errors() const {
    std::vector<std::tuple<std::uint64_t, std::uint64_t, double, double, double, double, double, bool>> all;
    for (const learned_error &one : report_.errors)
      all.emplace_back(one.error, one.line, one.model, one.rate, one.sigma, one.low, one.high, one.resolved);
    return all;
  }
  /// Rate, model, sigmas.
  std::vector<std::tuple<double, double, double>> detectors() const {
    std::vector<std::tuple<double, double, double>> all;
    for (const learned_detector &one : report_.detectors)
      all.emplace_back(one.rate, one.model, one.sigmas);
    return all;
  }
  /// As learned_score has it.
  std::optional<std::tuple<double, double, std::uint64_t, double>> score() const {
    if (!report_.score)
      return std::nullopt;
    return std::tuple{report_.score->per_shot, report_.score->sigma, report_.score->blocks,
                      report_.score->better_by_sigmas};
  }
  std::uint64_t shots() const { return report_.shots; }
  std::uint64_t held_out_shots() const { return report_.held_out_shots; }
  double variation() const { return report_.variation; }

private:
  std::unique_ptr<rate_learner> learner_;
  learning_report report_{};
};

} // namespace

void bind_learning(nb::module_ &m) {
  nb::class_<native_learner>(m, "NativeLearner")
      .def(nb::init<const std::string &, const std::string &, double, double>(), nb::arg("dem"), nb::arg("tied"),
           nb::arg("held_out"), nb::arg("prior"))
      .def("add", &native_learner::add, nb::arg("shots"), nb::arg("first"))
      .def("finish", &native_learner::finish)
      .def_prop_ro("num_detectors", &native_learner::num_detectors)
      .def_prop_ro("dem", &native_learner::dem)
      .def_prop_ro("refusals", &native_learner::refusals)
      .def_prop_ro("errors", &native_learner::errors)
      .def_prop_ro("detectors", &native_learner::detectors)
      .def_prop_ro("score", &native_learner::score)
      .def_prop_ro("shots", &native_learner::shots)
      .def_prop_ro("held_out_shots", &native_learner::held_out_shots)
      .def_prop_ro("variation", &native_learner::variation);
}

} // namespace cudaq_python

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A memory Z of the rotated surface code with Stim's coordinates, as text of a detector error model: in each layer
/// each data qubit is flipped, and each outcome misread, with probability p. For shots of any size without a circuit.
class memory_text {
public:
  memory_text(std::uint32_t distance, std::uint32_t rounds, double p)
      : distance_(distance), rounds_(rounds), error_("error(" + std::to_string(p) + ")") {
    each_cell([this](std::uint32_t t, std::uint32_t i, std::uint32_t j) {
      const std::uint32_t across = is_x(i, j) ? j : i; // the code ends without stabilizers of this kind
      const bool is_there = across != 0 && across != distance_ && (!is_x(i, j) || (t != 0 && t != rounds_));
      names_.push_back(is_there ? " D" + std::to_string(num_detectors_++) : "");
      if (is_there)
        text_ += "detector(" + std::to_string(2 * j) + ", " + std::to_string(2 * i) + ", " + std::to_string(t) + ")" +
                 names_.back() + "\n";
    });
    each_cell([this](std::uint32_t t, std::uint32_t i, std::uint32_t j) { add_errors(t, i, j); });
  }
  [[nodiscard]] const std::string &text() const noexcept { return text_; }

private:
  static bool is_x(std::uint32_t i, std::uint32_t j) { return (i + j) % 2 != 0; }
  const std::string &name(std::uint32_t t, std::uint32_t i, std::uint32_t j) const {
    return names_[(std::size_t{t} * (distance_ + 1) + i) * (distance_ + 1) + j];
  }
  template <class Cell>
  void each_cell(const Cell &cell) const {
    for (std::uint32_t t = 0; t <= rounds_; ++t)
      for (std::uint32_t i = 0; i <= distance_; ++i)
        for (std::uint32_t j = 0; j <= distance_; ++j)
          cell(t, i, j);
  }
  void add_error(const std::string &fired, const char *observable) {
    if (!fired.empty())
      text_ += error_ + fired + observable + "\n";
  }
  void add_errors(std::uint32_t t, std::uint32_t i, std::uint32_t j) {
    if (t != rounds_)
      add_error(name(t, i, j) + name(t + 1, i, j), "");
    if (i == distance_ || j == distance_)
      return;
    for (const bool seen_by_x : {true, false}) {
      std::string fired;
      for (const std::uint32_t a : {i, i + 1})
        for (const std::uint32_t b : {j, j + 1})
          fired += is_x(a, b) == seen_by_x ? name(t, a, b) : "";
      add_error(fired, i == 0 && !seen_by_x ? " L0" : "");
    }
  }

  const std::uint32_t distance_, rounds_;
  const std::string error_;
  std::uint32_t num_detectors_ = 0;
  std::vector<std::string> names_; ///< of the detectors of the cells
  std::string text_;
};

} // namespace cudaq::realtime::tools

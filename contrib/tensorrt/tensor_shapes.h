// SPDX-License-Identifier: Apache-2.0
// A model's tensors in the form of the services: types by TensorRT's numbers, and shapes with a batch of 1.
#pragma once

#include "cudaq/qec/realtime/inference_engine.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// The type for a value of nvinfer1::DataType, whose values do not change. No type: smaller than a byte, or unknown
/// here.
constexpr std::optional<experimental::tensor_type> tensor_type_of(int data_type) {
  using enum experimental::tensor_type;
  constexpr experimental::tensor_type kTypes[] = {float32, float16, int8,     int32, boolean,
                                                  uint8,   float8,  bfloat16, int64};
  if (data_type < 0 || data_type >= static_cast<int>(std::size(kTypes)))
    return std::nullopt;
  return kTypes[data_type];
}

/// Sets each dynamic dimension (-1), the batch or another one, to 1, as the specification does. Throws
/// std::runtime_error if the tensor has no elements.
inline std::vector<std::int64_t> pinned_shape(const std::string &name, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> pinned(shape.begin(), shape.end());
  for (std::size_t i = 0; i < pinned.size(); ++i) {
    if (pinned[i] < 0)
      pinned[i] = 1;
    if (pinned[i] == 0)
      throw std::runtime_error("tensor \"" + name + "\": dimension " + std::to_string(i) + " is 0");
  }
  return pinned;
}

} // namespace cudaq::qec::realtime

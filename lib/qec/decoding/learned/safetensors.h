// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// A file of the format safetensors: 8 bytes with the size of a header, the header in JSON, the data of the tensors.
struct safetensors {
  struct tensor {
    std::string type; ///< "F32", for example
    std::vector<std::uint64_t> shape;
    std::span<const std::uint8_t> data; ///< of the file
  };
  std::map<std::string, tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// The file must outlive the result. Refused, with the reason: a header that is not the JSON of this format, a name
/// that stands twice, offsets that lead out of the data, and tensors that share bytes. The sizes of types and shapes
/// are the caller's task.
[[nodiscard]] expected<safetensors> parse_safetensors(std::span<const std::uint8_t> file);

} // namespace cudaq::qec::realtime

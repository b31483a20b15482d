// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <cstddef>
#include <string>

namespace cudaq::qec::realtime {

/// Reads a whole file. The error names the path and the reason of the system; its status is CUDAQ_ERR_UNSUPPORTED if
/// the process has no memory or too many open files. Only regular files: to open or to read another one may take any
/// time. Refused: a file of more than `largest` bytes. Throws std::bad_alloc.
[[nodiscard]] expected<std::string> read_whole_file(const std::string &path, std::size_t largest = 64U << 20);

} // namespace cudaq::qec::realtime

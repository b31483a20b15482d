// SPDX-License-Identifier: Apache-2.0
// The abilities of this build and this machine, and how to get the missing ones.
#pragma once

#include "tools/common/report.h"

#include <cstdint>

namespace cudaq::realtime::tools {

/// True if a program of this version works with this library, both as cudaq_realtime_version() says it: the major
/// version is the same, and the library has at least the program's minor version, as a minor version only adds names.
constexpr bool library_fits(std::uint32_t program, std::uint32_t library) {
  return program >> 16 == library >> 16 && program >> 8 <= library >> 8;
}

/// Returns an exit_code: kExitRefused if the library does not fit, else kExitOk, also if something is missing.
int run_info(const output &out);

} // namespace cudaq::realtime::tools

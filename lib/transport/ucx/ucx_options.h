// SPDX-License-Identifier: Apache-2.0
// The options of the ucx provider: docs/transport/route.md.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::detail {

struct ucx_options {
  std::string bind_address = "127.0.0.1";
  std::uint32_t port = 0; ///< 0: the system chooses one
  std::uint32_t num_slots = 64;
  std::uint32_t slot_size = 256;
  std::uint32_t max_routers = 2;
  std::uint32_t silence_ms = 5000;
  std::string tls;           ///< UCX_TLS
  std::string ignored_words; ///< of option_parser
};

/// As option_parser.
expected<> read_ucx_options(int argc, char *const *argv, ucx_options &out);

} // namespace cudaq::realtime::detail

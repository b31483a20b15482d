// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::detail {

/// The options of docs/transport/transport_shm.md, after their check.
struct shm_options {
  std::string name = "default";
  std::uint32_t num_slots = 8; ///< of one client
  std::uint32_t slot_size = 256;
  std::uint32_t max_clients = 0; ///< 0 until the check: then 1, or 8 with unified
  std::uint32_t mode = 0600;     ///< of the socket
  std::uint32_t wait_us = 0;     ///< longest sleep of the loop; 0: it never sleeps
  int gpu = 0;                   ///< the device whose memory holds the requests, with requests_on_gpu
  bool unified = false, pinned = false, huge_pages = false;
  bool requests_on_gpu = false;
  bool gpu_given = false;    ///< without it, pages are pinned in the context of the calling thread's device
  std::string ignored_words; ///< of option_parser
};

/// As option_parser. An argv[0] that does not begin with -- is a program's name, also with --strict.
expected<> parse_shm_options(int argc, char **argv, shm_options &out);

} // namespace cudaq::realtime::detail

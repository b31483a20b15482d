// SPDX-License-Identifier: Apache-2.0
// The options of the gpu-roce provider. docs/transport/gpu_roce.md describes them.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::detail {

/// Entries of the receive queue, of the send queue and of their completion queues (WQE_NUM of the sensor bridge).
inline constexpr std::uint32_t kQueueEntries = 64;
/// The number of a page has 12 bits in the immediate.
inline constexpr std::uint32_t kMaxPages = 4096;

struct gpu_roce_options {
  std::string device = "rocep1s0f0";
  std::string peer_ip; ///< empty: the peer of the exchange
  std::uint32_t remote_qp = 0x2;
  std::uint32_t gpu = 0;
  std::uint32_t timeout_s = 60;
  std::uint32_t page_size = 384;
  std::uint32_t num_pages = 64;
  std::uint32_t payload_size = 8;
  std::uint32_t exchange_port = 12345;
  bool forward = false;
  bool unified = false;
  bool cpu = false;
  bool exchange_qp = false;
  std::string ignored_words; ///< of option_parser

  std::uint32_t frame_size() const { return CUDAQ_RPC_HEADER_SIZE + payload_size; }
  /// How long the ends of the monitor and of the kernels are waited for.
  std::uint32_t end_limit_s() const { return timeout_s < 5 ? timeout_s : 5; }
};

/// As option_parser. An argv[0] that does not begin with -- is a program's name, also with --strict.
expected<> parse_gpu_roce_options(int argc, char *const *argv, gpu_roce_options &out);

} // namespace cudaq::realtime::detail

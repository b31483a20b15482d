// SPDX-License-Identifier: Apache-2.0
// The options of the cpu_roce provider. docs/transport/cpu_roce.md describes them.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::detail {

struct cpu_roce_options {
  std::string device = "mlx5_0";
  std::uint32_t ib_port = 1;
  std::string local_ip = "10.0.0.2";
  std::uint32_t local_address = 0; ///< the same as a number: 10.0.0.2 is 0x0A000002
  std::uint32_t port = 0;          ///< TCP, of the rendezvous; 0: the system chooses one
  std::string listen_ip;           ///< of the rendezvous; after the check local_ip, if it was not given
  std::uint32_t num_slots = 8;
  std::uint32_t slot_size = 256;
  std::uint32_t frame_size = 0; ///< of each answer; after the check the slot's, if it was not given
  bool sensor_bridge = false;   ///< --qp_config=hsb_fpga, otherwise rendezvous
  std::string peer_ip;          ///< hsb_fpga
  std::uint32_t peer_address = 0;
  std::uint32_t remote_qp = 0x2; ///< hsb_fpga
  bool reliable = false;         ///< --qp-type=rc, otherwise uc
  std::uint32_t mtu = 4096;
  bool unified = false, pinned_rings = false;
  cudaq_wait_policy_t wait = CUDAQ_WAIT_SPIN_YIELD; ///< of the thread in the ring shape
  int core = CUDAQ_CORE_ANY;
  std::string ignored_words; ///< of option_parser

  /// Receives that are posted while all slots are free. With UC there are twice as many as slots: a write to a slot in
  /// use is then seen, and answered. With RC a missing receive holds the sender back.
  std::uint32_t receives() const { return reliable ? num_slots : 2 * num_slots; }
};

/// Reads and checks the options, as option_parser.
expected<> parse_cpu_roce_options(int argc, char *const *argv, cpu_roce_options &out);

} // namespace cudaq::realtime::detail

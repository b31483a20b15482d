// SPDX-License-Identifier: Apache-2.0
// `emulate`: an FPGA in software, which a host programs by its registers. docs/transport/fpga_player.md.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

struct fpga_options {
  int control_port = 8192;        ///< 0: any free one
  std::string transport = "roce"; ///< of the windows: "roce" or "udp"
  std::string own_address;        ///< "": 127.0.0.1 for registers; for windows the system chooses one
  std::uint32_t mtu = 4096;
  std::uint32_t vp_address = 0x1000, hif_address = 0x0800;
  double timeout_s = 10;
  std::string ila_file; ///< "": none
};

/// Until Ctrl-C or SIGTERM. Returns an exit_code. Throws usage_error and api_error.
int run_fpga(const fpga_options &options, const output &out);

} // namespace cudaq::realtime::tools

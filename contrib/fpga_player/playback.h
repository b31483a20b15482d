// SPDX-License-Identifier: Apache-2.0
// The host of an FPGA player: writes messages into its memory, lets it send them once, reads the record of the answers
// and checks it. docs/transport/fpga_player.md.
#pragma once

#include "tools/common/report.h"
#include "tools/shots/own_data.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::tools {

struct playback_options {
  std::string hsb_ip = "127.0.0.1"; ///< of the FPGA
  int control_port = 8192;
  std::uint32_t vp_address = 0x1000, hif_address = 0x0800;
  std::string bridge_ip = "127.0.0.1"; ///< of the server
  int bridge_port = 4791;
  std::uint32_t bridge_qp = 0x11, bridge_rkey = 0x1234;
  std::uint64_t bridge_buffer = 0;
  std::uint32_t page_size = 384, num_pages = 128;
  std::uint32_t num_messages = 100;
  std::uint32_t payload_size = 0; ///< made-up bytes; 0: recorded shots
  std::string function = "rpc_increment";
  double rate = 8000; ///< messages a second; 0: as fast as the FPGA can
  bool emulator = false, forward = false, no_verify = false;
  std::string config = "d3";
  std::string noise = "0.005";
  std::string data_folder;
  own_data data;
  std::uint64_t seed = 0;
  std::string ila_file;
  double timeout_s = 10;
};

/// Returns an exit_code. Throws usage_error and api_error.
int run_playback(const playback_options &options, const output &out);

} // namespace cudaq::realtime::tools

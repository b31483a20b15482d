// SPDX-License-Identifier: Apache-2.0
// A control system in software: plays syndromes to a server over a transport, checks every answer, and reports the
// round trips.
//
// The emulator has one thread, and a number of streams. A stream plays one shot at a time, as a conversation of one or
// two requests:
//
//   --protocol decode   one request: all detection events; the answer is the correction
//   --protocol server   two requests to one decoder of the decoding server: enqueue, then get_corrections
//
// Streams of --protocol decode take the shots in turn, --window of them. Of --protocol server there is one stream for
// each --decoder-ids. With --rounds, or --stream, it plays endless experiments instead: stream_player.h.
#pragma once

#include "tools/common/report.h"
#include "tools/shots/own_data.h"
#include "tools/shots/recorded_readout.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// 1 had deadline_statuses, now deadline_missed, and late_shots, now begun_late.
inline constexpr int kEmulateSchemaVersion = 2;

struct emulate_options : readout_files {
  std::string transport = "udp"; ///< "udp", "roce", "shm" or "ring"
  std::string address = "127.0.0.1";
  int port = 0;
  std::string name;            ///< of the server's shared memory
  std::uint32_t slot_size = 0; ///< udp, roce: bytes of a slot, as the server has it; 0: as `serve` chooses
  std::string own_address;     ///< roce; "": the system chooses one
  std::uint32_t qp = 0x11;     ///< roce: the server's numbers
  std::uint32_t rkey = 0x1234;
  std::uint32_t pages = 8;
  std::uint32_t mtu = 4096;
  std::string decoder = "auto"; ///< ring: the decoder of its service; else of the check
  bool names_decoder = false;   ///< the user has given it; else the check takes the one that the server names
  std::string protocol = "decode";
  std::vector<std::uint64_t> decoder_ids = {0};
  std::uint32_t window = 8; ///< --protocol decode, rounds: requests that are open at the same time
  std::uint64_t rounds = 0; ///< > 0: rounds of an endless experiment, which is played `shots` times
  bool stream = false;      ///< the same, of the experiment that data.in has
  std::size_t workers = 0;  ///< rounds: threads of the check, as the server has them; 0: the main thread
  double cycle_us = 1;      ///< rounds: one round comes each cycle_us; 0: as fast as possible
  std::string config = "d13";
  std::string noise = "0.005";
  std::string data_folder;
  own_data data;        ///< instead of a named set
  bool sample = false;  ///< shots from the model, instead of recorded ones
  std::string ila_file; ///< "": none
  std::uint64_t shots = 20000;
  double duration_s = 0; ///< > 0: time to play, instead of shots
  double rate = 0;       ///< shots per second, evenly spaced; 0: as fast as possible
  /// Finds the highest rate: duration_s is that of a run, or rounds those of a run; rate, or cycle_us, of the first.
  bool search_rate = false;
  double search_p999_us = 1000;     ///< most of p99.9 of a shot or of a window, from its time in the schedule
  std::uint32_t search_repeats = 3; ///< runs at each rate
  double retry_ms = 0;
  std::uint64_t seed = 0;
  double timeout_s = 10;
};

/// Returns an exit_code. Throws usage_error and api_error.
int run_emulate(const emulate_options &options, const output &out);
/// The same for endless experiments: options.rounds is not 0, or options.stream.
int run_emulate_stream(const emulate_options &options, const output &out);

} // namespace cudaq::realtime::tools

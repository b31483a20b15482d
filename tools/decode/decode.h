// SPDX-License-Identifier: Apache-2.0
// `decode`: detection events in, predicted observables out, as files or pipes in Stim's formats.
//
// Threads of a run of shots (a stream has the main thread, and with --workers those of cudaq/qec/decoding/stream.h):
//
//   thread   started by    owns                                       waits                   ends
//   main     the system    the files; the counts; the order           for the oldest batch    with the program
//   decoder  --threads >1  its decoder; a batch while it decodes it   for a batch             with decoder_threads
//
// Batches are read, decoded by any thread, and written in the order in which they were read. With one thread the main
// thread decodes.
#pragma once

#include "tools/common/report.h"
#include "tools/shots/own_data.h"
#include "tools/shots/recorded_readout.h"

#include <string>

namespace cudaq::realtime::tools {

struct decode_options : readout_files {
  own_data data{"", {"-", ""}, {}, {}, false};
  shot_source out{"-", ""};
  std::string flags;              ///< a file of probabilities that shots replace; "": none
  std::string heralds;            ///< a file: which detectors of --in are heralds, and of which errors; "": none
  shot_source errors_out;         ///< not given: the errors of the corrections are not wanted
  std::string confidence;         ///< a file of the gaps of the observables; "": they are not wanted
  std::string svg;                ///< a file for the picture of a shot; "": none
  std::string svg_shot = "event"; ///< which one: `event`: the first with an event, `wrong`: ..., or its number
  std::string decoder = "auto";
  std::string predecoder = "passthrough";
  std::string late = "failure";         ///< what a late answer is in the logical error rate; else "answer"
  unsigned threads = 1;                 ///< 0: one for each core that the program may use
  bool stream = false;                  ///< one experiment, round by round; else shots
  std::uint64_t commit = 0, buffer = 0; ///< of a stream, as the next one: stream_options
  std::string rounds = "time";
  std::size_t workers = 0; ///< threads that decode the windows of a stream; 0: the main thread does
};

/// From the report alone.
std::string decode_html(const json &report);
/// `window_ns`: the times of the windows.
std::string decode_stream_html(const json &report, const latency_histogram &window_ns);

/// A part of the text report, at once: on stdout, or on stderr if the answers are on stdout.
void print_note(const decode_options &options, const output &out, const std::string &text);

/// Returns an exit_code. Throws usage_error if a file cannot be used; the text says how many answers were written.
int run_decode(const decode_options &options, const output &out);
/// The same for a stream. run_decode has checked the options.
int run_decode_stream(const decode_options &options, const std::string &dem_text, const output &out);

} // namespace cudaq::realtime::tools

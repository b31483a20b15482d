// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/decode/decode.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kDecodeFooter =
    R"(Formats are those of Stim. Without a format option the ending of the file name counts (shots.b8), else 01.
Predictions go to stdout, counts and progress to stderr; with --out FILE the counts go to stdout. If a file is wrong or
a shot cannot be decoded, the answers of the shots before it are in the output, and the exit status is 2.

Examples:
  cudaq-realtime decode --dem model.dem --in shots.b8 --out predictions.01
  cudaq-realtime decode --dem model.dem --in shots.b8 --obs_in observables.b8 --out /dev/null --threads 4
                                                            only the logical error rate
  stim detect --in circuit.stim --shots 1000 --out_format b8 | cudaq-realtime decode --dem model.dem --in_format b8)";

} // namespace

void add_decode(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<decode_options>();
  decode_options &o = *options;
  CLI::App &decode =
      *program.add_subcommand("decode", "decode own shots: detection events in, predicted observables out");
  decode.footer(kDecodeFooter);
  add_own_data_options(decode, o.data);
  decode.get_option("--in")->description("detection events; -: stdin")->capture_default_str();
  add_shot_source_options(decode, o.out, "--out", "predicted observables; -: stdout")->capture_default_str();
  add_shot_source_options(decode, o.errors_out, "--errors_out",
                          "errors of the corrections, a bit for each error of the model; decoders that give them only");
  add_decoder_option(decode, o.decoder, "decoder");
  add_choice(decode, "--predecoder", o.predecoder,
             "predecoder; passthrough, auto: none; local: the built-in rule, less accurate than matching alone",
             {"passthrough", "local", "auto"});
  add_threads_option(decode, o.threads);
  add_html_option(decode, chosen.output);
  run_when_chosen(decode, chosen, [options](const output &out) { return run_decode(*options, out); });
}

} // namespace cudaq::realtime::tools

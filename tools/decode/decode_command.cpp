// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/predecoder.h"
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/decode/decode.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kDecodeFooter =
    R"(Formats are those of Stim. Without a format option the ending of the file name counts (shots.b8), else 01.
Predictions go to stdout, counts and progress to stderr; with --out FILE the counts go to stdout. If a file is wrong or
a shot cannot be decoded, the answers of the shots before it are in the output, and the exit status is 2. Shots that end
at a deadline of the decoder, or do not converge, are counted: their answer is the best solution so far, or 0.

With --stream the input is one experiment of any length, and the model has a loop. Format 01: lines of one or more
rounds; b8: each round a row of whole bytes. When rounds become final, a line "ROUNDS OBSERVABLES" comes out: how many
rounds are final, and the observables that they flip (b8: 8 bytes and the observables). At the end of the input the last
bits are the model's tail. --soft and --leakage then have the values of this experiment, one after another.

Examples:
  cudaq-realtime decode --dem model.dem --in shots.b8 --out predictions.01
  cudaq-realtime decode --dem model.dem --in shots.b8 --obs_in observables.b8 --out /dev/null --threads 4
                                                            only the logical error rate
  stim detect --in circuit.stim --shots 1000 --out_format b8 | cudaq-realtime decode --dem model.dem --in_format b8
  stim detect --in circuit.stim | cudaq-realtime decode --stream --dem model.dem
  cudaq-realtime decode --dem model.dem --in shots.b8 --obs_in observables.b8 --out /dev/null --svg shot.svg \
    --svg-shot wrong                                        a picture of the first logical error)";

/// --stream, and what goes with it.
void add_stream_options(CLI::App &decode, decode_options &o) {
  CLI::Option *const stream =
      decode.add_flag("--stream", o.stream, "decode one experiment of any length, round by round, by windows");
  for (const char *of_shots : {"--threads", "--predecoder", "--predictions", "--predictions_format",
                               "--in_includes_appended_observables", "--confidence", "--flags", "--late", "--svg"})
    stream->excludes(decode.get_option(of_shots));
  const auto add_length = [&](const char *name, std::uint64_t &rounds, const char *text) {
    decode.add_option(name, rounds, text)
        ->type_name("ROUNDS")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 20))
        ->needs(stream);
  };
  add_length("--commit", o.commit, "rounds that a window makes final (default: the distance of the code)");
  add_length("--buffer", o.buffer, "later rounds that a window looks at (default: the distance of the code)");
  decode
      .add_option("--rounds", o.rounds,
                  "what a round is: time: a value of the last coordinate; index:N: N successive detectors")
      ->capture_default_str()
      ->type_name("RULE")
      ->needs(stream);
  decode
      .add_option("--workers", o.workers,
                  "threads that decode windows; from 2 on windows are parallel; 0: the thread that reads decodes")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{0}, std::size_t{1024}))
      ->needs(stream);
}

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
  decode
      .add_option("--confidence", o.confidence,
                  "for each shot the gap of each observable: lines of text, or doubles if the name ends in .f64; "
                  "decoders that give them only")
      ->type_name("FILE");
  decode.add_option("--flags", o.flags, "probabilities of errors that single shots replace; -: stdin")
      ->type_name("FILE");
  decode.add_option("--heralds", o.heralds, "which detectors of --in are heralds, and which errors they mean")
      ->type_name("FILE");
  add_readout_options(decode, o, "; -: stdin");
  CLI::Option *const svg =
      decode.add_option("--svg", o.svg, "picture of the correction of one shot over the places of its code, into FILE")
          ->type_name("FILE");
  add_choice(
      decode, "--svg-shot", o.svg_shot,
      "the shot of --svg: event: the first one with an event; wrong: the first logical error; or its number, from 0",
      {"event", "wrong"},
      +[](const std::string &word) {
        return word.find_first_not_of("0123456789") == std::string::npos && (word == "0" || word.find('0') != 0);
      })
      ->needs(svg);
  add_decoder_option(decode, o.decoder, "decoder");
  add_choice(
      decode, "--predecoder", o.predecoder,
      "predecoder; passthrough, auto: none; local: the built-in rule, less accurate than matching alone; "
      "model=FILE: a network",
      {"passthrough", "local", "auto"}, +[](const std::string &word) { return qec::is_learned_predecoder(word); },
      "model=FILE");
  add_choice(decode, "--late", o.late,
             "what an answer after its deadline is in the logical error rate: failure, or answer: as one in time",
             {"failure", "answer"});
  add_threads_option(decode, o.threads);
  add_stream_options(decode, o);
  add_html_option(decode, chosen.output);
  decode.get_option("--html")->description("report as one HTML page, into FILE; with plots of the windows if --stream");
  run_when_chosen(decode, chosen, [options](const output &out) { return run_decode(*options, out); });
}

} // namespace cudaq::realtime::tools

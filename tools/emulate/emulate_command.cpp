// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link_options.h"
#include "tools/services/provider_service.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kEmulateFooter =
    R"(Plays recorded syndromes to a server as a control system would, and measures each round trip. The server runs in
another process: `cudaq-realtime serve`, or any program with a transport
(share/doc/cudaq-realtime/docs/transport/transports.md). With `--transport ring` no server is needed: ring, dispatcher
and decoder are in this process, as in `cudaq-realtime demo`.

Without a server:
  cudaq-realtime emulate --transport ring --config d3

Examples, with a server of `cudaq-realtime serve` in another terminal:
  cudaq-realtime emulate --transport udp --port 5000
  cudaq-realtime emulate --transport shm --name decoder --rate 10000 --shots 100000
  cudaq-realtime emulate --transport roce --own-address 127.0.0.2
  cudaq-realtime emulate --transport udp --port 5000 --protocol server --decoder-ids 0,1 --json run.json
  cudaq-realtime emulate --transport udp --port 5000 --retry-ms 20        a link that loses datagrams
  cudaq-realtime emulate --transport udp --port 5000 --search-rate --search-p999-us 200
  cudaq-realtime emulate --transport udp --port 5000 --sample --shots 100000 --ila times.csv
  cudaq-realtime emulate --transport udp --port 5000 --sample --dem model.dem --readout readout.txt  soft values, drawn
  cudaq-realtime emulate --transport udp --port 5000 --dem model.dem --rounds 1000000 --cycle-us 1    a stream
  cudaq-realtime emulate --transport udp --port 5000 --dem model.dem --stream --in rounds.b8 --obs_in flips.b8
                                                                                          a recorded experiment
  cudaq-realtime emulate --transport udp --port 5000 --dem model.dem --rounds 100000 --search-rate)";

/// What an option means that is not given.
void set_defaults_of_streams(const CLI::App &emulate, emulate_options &o) {
  // With one read they fit into the 8 slots of a server. On a link that loses requests only one with bits may be open:
  // the server takes no counter before the one that is missing.
  constexpr std::uint32_t kOpenRequests = 4;
  o.protocol = "server";
  if (emulate.get_option("--shots")->count() == 0)
    o.shots = 1;
  if (emulate.get_option("--window")->count() == 0)
    o.window = emulate.get_option("--retry-ms")->count() == 0 ? kOpenRequests : 1;
}

/// An option of another transport, or of the other protocol, has no effect.
void refuse_what_has_no_effect(CLI::App &emulate, emulate_options &o) {
  emulate.parse_complete_callback([&emulate, &o] {
    const auto refuse = [&emulate](bool applies, const std::string &with, const std::vector<const char *> &options) {
      refuse_unless(emulate, applies, with, options);
    };
    if (is_provider_path(o.transport))
      throw CLI::ValidationError(
          "--transport", o.transport + " has the side of the server only, and emulate has no client of it: it plays "
                                       "over udp, roce and shm, with `ring` in this process. Send the requests by the "
                                       "provider's own peer; `doctor --transport PATH` checks the provider");
    refuse_options_of_other_links(emulate, o.transport);
    const bool stream = o.rounds != 0 || o.stream;
    const char *const rounds = o.stream ? "--stream" : "--rounds";
    refuse(o.search_rate, "a run without --search-rate", {"--search-p999-us", "--search-repeats"});
    refuse(!o.search_rate, "--search-rate", {"--ila", "--trace", "--hgrm", "--sample"});
    refuse(stream, "a run without --rounds or --stream", {"--cycle-us", "--workers"});
    refuse(!stream, rounds,
           {"--protocol", "--rate", "--duration", "--ila", "--trace", "--config", "--noise", "--data",
            "--in_includes_appended_observables", "--predictions"});
    refuse(o.rounds == 0, "--rounds, which draws rounds and values",
           {"--sample", "--in", "--obs_in", "--soft", "--leakage"});
    refuse(!o.stream, "--stream", {"--seed"});
    refuse(o.data.given(), "shots that are not those of --dem and --in", {"--readout"});
    refuse(!o.sample, "--sample, which draws the values", {"--soft"});
    refuse(o.sample || o.rounds != 0, "values that are recorded", {"--leaked"});
    refuse(o.transport != "ring", "--transport " + o.transport, {"--readout"});
    if (stream && o.transport == "ring")
      throw CLI::ValidationError(rounds, "--transport ring serves `decode` only: a shot in one request");
    if (stream && o.search_rate && o.cycle_us == 0)
      throw CLI::ValidationError("--cycle-us", "0 is no pace, and the first run of --search-rate needs one");
    if (stream && o.decoder_ids.size() != 1)
      throw CLI::ValidationError("--decoder-ids", std::string(rounds) + " plays to one decoder");
    if (stream)
      set_defaults_of_streams(emulate, o);
    refuse(o.transport == "ring" || !o.data.predictions.given(), "--predictions", {"--decoder"});
    o.names_decoder = emulate.get_option("--decoder")->count() != 0;
    if (o.transport == "ring" && o.protocol == "server")
      throw CLI::ValidationError("--protocol", "--transport ring serves `decode` only: a shot in one request");
    if (o.protocol != "server" && emulate.get_option("--decoder-ids")->count() != 0)
      throw CLI::ValidationError("--decoder-ids",
                                 "it needs --protocol server, or --rounds, or --stream: by --protocol decode, the "
                                 "default, requests name no decoder");
    refuse(o.protocol == "decode" || stream, "--protocol server", {"--window"});
    std::vector<std::uint64_t> ids = o.decoder_ids;
    std::ranges::sort(ids);
    if (std::ranges::adjacent_find(ids) != ids.end())
      throw CLI::ValidationError("--decoder-ids", "a decoder is listed twice; it can serve one stream");
  });
}

} // namespace

void add_emulate(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<emulate_options>();
  emulate_options &o = *options;
  CLI::App &emulate = *program.add_subcommand("emulate", "a control system in software: plays syndromes to a server");
  emulate.footer(kEmulateFooter);
  add_choice(emulate, "--transport", o.transport, "how requests reach the server; ring: the server is in this process",
             {"udp", "roce", "shm", "ring"}, is_provider_path);
  add_link_options(emulate, o);
  add_decoder_option(emulate, o.decoder,
                     "ring: the decoder of the server; else as the server has it, for the expected answers; default: "
                     "what the server names");
  add_choice(emulate, "--protocol", o.protocol, "decode: a shot in one request; server: enqueue and get_corrections",
             {"decode", "server"});
  emulate.add_option("--decoder-ids", o.decoder_ids, "protocol server: decoders of the server, one stream for each")
      ->delimiter(',')
      ->capture_default_str();
  emulate
      .add_option(
          "--rounds", o.rounds,
          "play --shots experiments (default: 1) of so many rounds, up to a whole repetition, to a stream of the "
          "server; sampled from --dem")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}));
  emulate
      .add_flag("--stream", o.stream,
                "play the rounds of --in to a stream of the server: one experiment of any length, as `decode --stream` "
                "reads it, with the values and flags of --soft and --leakage")
      ->excludes("--rounds");
  emulate
      .add_option("--cycle-us", o.cycle_us, "rounds: one round comes each so many microseconds; 0: as fast as possible")
      ->capture_default_str()
      ->check(number_between(0, 1e9));
  emulate
      .add_option("--workers", o.workers,
                  "rounds: threads that decode the expected frames; from 2 on windows are parallel, as with the "
                  "server's stream_workers; 0: the main thread")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{0}, std::size_t{1024}));
  emulate
      .add_option("--window", o.window,
                  "protocol decode: requests that are open at the same time; --rounds: the same, 4 by default, 1 with "
                  "--retry-ms")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4096u));
  add_distance_options(emulate, chosen, o.config, "code of the recorded shots");
  emulate.get_option("--config")->capture_default_str();
  add_noise_option(emulate, o.noise);
  add_shots_option(emulate, o.shots, "shots to play; the set is repeated");
  add_duration_option(emulate, o.duration_s, "seconds to play, instead of --shots");
  add_rate_option(emulate, chosen, o.rate)->capture_default_str();
  emulate
      .add_flag("--search-rate", o.search_rate,
                "find the highest rate at which no shot is lost, late or wrong, and p99.9 is below a bound; a run of "
                "--duration seconds (default: 1) is played at a rate, --rate (default: 1000) is the first. With "
                "--rounds: the shortest time between rounds; a run is one experiment, --cycle-us the first")
      ->excludes(emulate.get_option("--shots"));
  emulate
      .add_option("--search-p999-us", o.search_p999_us,
                  "search-rate: most of p99.9 of a shot, in microseconds from its time in the schedule to its answer; "
                  "--rounds: of a window, from its last round")
      ->capture_default_str()
      ->check(number_between(0.001, 1e9));
  emulate.add_option("--search-repeats", o.search_repeats, "search-rate: runs at each rate; all of them must hold")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1000u));
  add_recorded_shots_options(emulate, o.data_folder, o.seed);
  CLI::Option *const sample =
      emulate.add_flag("--sample", o.sample, "new shots from the model, by --seed, instead of recorded ones")
          ->excludes(emulate.get_option("--duration"));
  add_own_data_instead_of(emulate, o.data, {"--config", "--noise", "--data"}, sample);
  emulate.get_option("--stream")->needs("--in")->excludes(sample);
  add_readout_options(emulate, o);
  emulate
      .add_option("--leaked", o.leaked,
                  "of flags that are drawn: the share that is 2, and the share that is 1; the others are 0")
      ->capture_default_str()
      ->check(number_between(0, 0.5))
      ->needs("--readout")
      ->excludes("--leakage");
  add_ila_option(emulate, o.ila_file);
  add_timeout_option(emulate, o.timeout_s, "an answer other than BUSY");
  add_html_option(emulate, chosen.output);
  add_hgrm_option(emulate, chosen.output);
  add_trace_option(emulate, chosen.output);
  refuse_what_has_no_effect(emulate, o);
  run_when_chosen(emulate, chosen, [options](const output &out) {
    return options->rounds != 0 || options->stream ? run_emulate_stream(*options, out) : run_emulate(*options, out);
  });
}

} // namespace cudaq::realtime::tools

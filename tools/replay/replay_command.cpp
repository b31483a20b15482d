// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/emulate/link_options.h"
#include "tools/replay/replay.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kReplayFooter =
    R"(The recording is the file of `cudaq-realtime serve --record FILE`, also of a server that runs or was killed.
Without --config and --transport it is only shown. Otherwise its requests are played in their order, and each answer is
compared with the recorded one, bit by bit: share/doc/cudaq-realtime/docs/transport/recorder.md.

Examples:
  cudaq-realtime replay recording
  cudaq-realtime replay recording --config decoders.yaml
  cudaq-realtime replay recording --transport udp --port 7000 --as-recorded --json replay.json)";

} // namespace

void add_replay(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<replay_options>();
  replay_options &o = *options;
  CLI::App &replay = *program.add_subcommand(
      "replay", "a recording of a server: shows it, or plays it again and compares the answers");
  replay.footer(kReplayFooter);
  replay.add_option("FILE", o.file, "the recording")->required()->type_name("FILE");
  CLI::Option *const config =
      replay
          .add_option("--config", o.config, "plays to the decoders of this configuration of `serve`, in this process")
          ->type_name("FILE");
  replay.add_option("--transport", o.transport, "plays to a server in another process")
      ->check(CLI::IsMember({"udp", "roce", "shm"}))
      ->excludes(config);
  add_link_options(replay, o.link);
  replay.add_flag("--as-recorded", o.as_recorded,
                  "sends each request at its time in the recording; without it as soon as the one before is answered");
  add_timeout_option(replay, o.link.timeout_s, "an answer");
  replay.parse_complete_callback([&replay, &o] {
    refuse_options_of_other_links(replay, o.transport);
    if (o.config.empty() && o.transport.empty())
      for (const char *option : {"--as-recorded", "--timeout"})
        if (replay.get_option(option)->count() != 0)
          throw CLI::ValidationError(option, "it has no effect without --config or --transport");
  });
  run_when_chosen(replay, chosen, [options](const output &out) { return run_replay(*options, out); });
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program cudaq-realtime.
#include "tools/command_line/commands.h"
#include "tools/command_line/program.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kProgramFooter = R"(Start here:
  cudaq-realtime info                  what this machine can do, and what is missing
  cudaq-realtime doctor                what on this machine makes it slow or does not work, and the remedies
  cudaq-realtime demo                  the main use: decode surface-code shots through the ring, check every answer
  cudaq-realtime decode                own shots: detection events in, predicted observables out
  cudaq-realtime learn                 the rates of a model's errors, from detection events without labels
  cudaq-realtime pipeline              predecoding and matching as a pipeline of workers, check every answer
  cudaq-realtime emulate               a control system in software: plays syndromes to a server in another process
  cudaq-realtime serve --schema        the decoding server: decoders for requests that come over a transport
  cudaq-realtime replay FILE           the last requests of a server: shows them, plays them again, compares answers
  cudaq-realtime route --schema        many servers: spreads the requests of one transport over them
  cudaq-realtime top --counters PATH   a running server: rates, latencies, queues, errors
  cudaq-realtime latency               round trips of the library, and of the floor on the same two cores
  cudaq-realtime help demo             options and examples of a subcommand; also demo --help

Exit status:)";

// For a user who types the program's name and nothing else.
constexpr const char *kFirstSteps =
    R"(cudaq-realtime is a ring buffer and RPC dispatcher between a quantum control system and its decoders.

  cudaq-realtime demo              decodes surface-code shots through the ring, and checks every answer
  cudaq-realtime doctor            tells whether this machine is ready, and what to change
  cudaq-realtime latency --quick   measures round trips against a floor on the same two cores
  cudaq-realtime help              all subcommands; `cudaq-realtime help demo`: options and examples of one

)";

void add_subcommands(CLI::App &app, chosen_command &chosen) {
#ifdef CUDAQ_TOOL_HAS_QEC
  add_demo(app, chosen);
  add_decode(app, chosen);
  add_learn(app, chosen);
  add_pipeline(app, chosen);
  add_emulate(app, chosen);
  add_serve(app, chosen);
  add_replay(app, chosen);
  add_route(app, chosen);
  add_top(app, chosen);
#endif
  add_latency(app, chosen);
  add_doctor(app, chosen);
  add_info(app, chosen);
  add_completion(app, chosen);
  add_help(app, chosen, "demo");
}

} // namespace

const program_description &this_program() {
  static constexpr program_description kProgram{
      "cudaq-realtime", "a ring buffer and RPC dispatcher between a quantum control system and its decoders",
      kProgramFooter, kFirstSteps, &add_subcommands};
  return kProgram;
}

} // namespace cudaq::realtime::tools

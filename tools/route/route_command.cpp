// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/route/route.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kRouteFooter =
    R"(The nodes are decoding servers: cudaq-realtime serve --transport ucx. The configuration is YAML:
share/doc/cudaq-realtime/docs/transport/route.md. SIGHUP reads it again, to drain nodes; SIGTERM answers what was
accepted and ends. Options after -- are the provider's.

Examples:
  cudaq-realtime route --schema
  cudaq-realtime route --config route.yaml --transport udp -- --port=7000
  cudaq-realtime route --config route.yaml --transport shm --prometheus-port 9465)";

} // namespace

void add_route(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<route_options>();
  route_options &o = *options;
  CLI::App &route = *program.add_subcommand("route", "spreads requests of one transport over many decoding servers");
  route.footer(kRouteFooter);
  route.add_option("--config", o.config, "nodes and their decoders, in YAML")->type_name("FILE");
  route.add_option(
      "--transport", o.transport,
      "provider: a name such as udp or shm, or the path of its library; default: as the configuration says");
  add_wait_option(route, o.wait, "how the threads of dispatcher and router wait");
  route.add_option("--counters", o.counters, "Unix socket on which the live counters can be read")->type_name("PATH");
  route
      .add_option("--prometheus-port", o.prometheus_port,
                  "port of 127.0.0.1 with the live counters as Prometheus text; 0: any free one")
      ->check(CLI::Range(0, 65535));
  route.add_flag("--schema", o.schema, "prints the JSON schema of a configuration");
  run_when_chosen(route, chosen, [options, &chosen](const output &out) {
    options->provider_options = chosen.after_dashes;
    return run_route(*options, out);
  });
  route.parse_complete_callback([&chosen] { chosen.takes_words = true; });
}

} // namespace cudaq::realtime::tools

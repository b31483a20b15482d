// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/serve/serve.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kServeFooter =
    R"(The configuration is YAML: share/doc/cudaq-realtime/docs/transport/server_config.md. SIGHUP reads it again and
exchanges the models between shots; SIGTERM answers what was accepted and ends. Options after -- are the provider's.

Examples:
  cudaq-realtime serve --schema
  cudaq-realtime serve --check decoders.yaml
  cudaq-realtime serve --config decoders.yaml --transport udp -- --port=7000
  cudaq-realtime serve --config decoders.yaml --transport shm --prometheus-port 9464)";

} // namespace

void add_serve(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<serve_options>();
  serve_options &o = *options;
  CLI::App &serve = *program.add_subcommand("serve", "the decoding server: decoders for requests over a transport");
  serve.footer(kServeFooter);
  serve.add_option("--config", o.config, "decoders and transport, in YAML")->type_name("FILE");
  serve.add_option("--check", o.check, "reads this configuration and builds its decoders, and serves nothing")
      ->type_name("FILE")
      ->excludes("--config");
  serve.add_option(
      "--transport", o.transport,
      "provider: a name such as udp or shm, or the path of its library; default: as the configuration says");
  serve.add_option("--timeout", o.timeout_s, "seconds without a request after which the server ends; 0: no limit")
      ->capture_default_str()
      ->check(number_between(0, 1e9));
  serve.add_option("--end-limit", o.end_limit_s, "seconds that the end waits for the requests that were accepted")
      ->capture_default_str()
      ->check(number_between(0, 1e9));
  serve
      .add_option("--read-limit", o.read_limit_s,
                  "seconds of --end-limit in which shots that have begun go on and corrections can be read")
      ->capture_default_str()
      ->check(number_between(0, 1e9));
  serve
      .add_option("--decoder-threads", o.decoder_threads,
                  "threads that the decoders share; 0: as many as cores, at least 8; never more than decoders")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  add_wait_option(serve, o.wait, "how the threads of dispatcher and decoders wait");
  serve.add_option("--counters", o.counters, "Unix socket on which the live counters can be read")->type_name("PATH");
  serve
      .add_option("--prometheus-port", o.prometheus_port,
                  "port of 127.0.0.1 with the live counters as Prometheus text; 0: any free one")
      ->check(CLI::Range(0, 65535));
  serve
      .add_option(
          "--realtime", o.realtime,
          "fields of the section realtime, in place of those of the configuration: \"loop_core: 2, priority: 50\"")
      ->type_name("FIELDS");
  serve
      .add_option(
          "--record", o.record,
          "keeps the last N requests (default: 65536) with their answers in this file, for `replay`, in place of "
          "the section record of the configuration")
      ->type_name("FILE[:N]");
  serve.add_flag("--schema", o.schema, "prints the JSON schema of a configuration");
  run_when_chosen(serve, chosen, [options, &chosen](const output &out) {
    options->provider_options = chosen.after_dashes;
    return run_serve(*options, out);
  });
  serve.parse_complete_callback([&chosen] { chosen.takes_words = true; });
}

} // namespace cudaq::realtime::tools

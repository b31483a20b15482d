// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/doctor/doctor.h"
#include "tools/services/provider_service.h"

namespace cudaq::realtime::tools {

void add_doctor(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<doctor_options>();
  doctor_options &o = *options;
  CLI::App &doctor =
      *program.add_subcommand("doctor", "is this machine ready? each line good, warning or wrong, with the remedy");
  doctor.footer(R"(A warning costs speed. Something wrong stops what was asked for; the exit status is then 1.

Examples:
  cudaq-realtime doctor
  cudaq-realtime doctor --transport udp --port 5000
  cudaq-realtime doctor --transport roce --port 4791
  cudaq-realtime doctor --transport ucx
  cudaq-realtime doctor --transport ./libmy-provider.so -- --socket=/run/decoder.sock
  cudaq-realtime doctor --json doctor.json)");
  add_choice(doctor, "--transport", o.transport,
             "also what this transport needs; or whether a provider of your own, by its path, can be served",
             {"udp", "roce", "shm", "cpu_roce", "gpu-roce", "ucx"}, is_provider_path);
  doctor
      .add_option("--port", o.port,
                  "this port must be free: UDP with --transport udp or roce, TCP with cpu_roce or ucx; 0: not checked")
      ->needs("--transport")
      ->check(CLI::Range(0, 65535));
  const CLI::Option *const timeout =
      doctor.add_option("--timeout", o.timeout_s, "seconds for each step of the transport's self-test")
          ->capture_default_str()
          ->needs("--transport")
          ->check(number_between(0.01, 3600));
  doctor.add_option("--root", o.root, "folder whose sys, proc and dev are read instead of this machine's")
      ->type_name("FOLDER");
  run_when_chosen(doctor, chosen, [options, &chosen, timeout](const output &out) {
    options->names_timeout = timeout->count() != 0;
    options->provider_options = chosen.after_dashes;
    return run_doctor(*options, out);
  });
  doctor.parse_complete_callback([&chosen, &o] { chosen.takes_words = is_provider_path(o.transport); });
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The command line of cudaq-realtime-fpga-player.
#include "contrib/fpga_player/fpga_emulator.h"
#include "contrib/fpga_player/playback.h"
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/command_line/program.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kPlayerFooter = R"(Start here, with a server in another terminal:
  cudaq-realtime-fpga-player emulate     an FPGA in software, whose registers a host reads and writes
  cudaq-realtime-fpga-player playback    the host: programs the player of an FPGA, and checks the answers

Exit status:)";

constexpr const char *kEmulateFooter =
    R"(Serves the registers until Ctrl-C, and plays what a host writes there:
share/doc/cudaq-realtime/docs/transport/fpga_player.md.

Examples:
  cudaq-realtime-fpga-player emulate --transport roce --control-port 8192
  cudaq-realtime-fpga-player emulate --transport udp --control-port 0 --json fpga.json)";

constexpr const char *kPlaybackFooter =
    R"(Writes messages into the memory of an FPGA's player, lets it send them to a server once, reads the record of the
answers, and checks it: share/doc/cudaq-realtime/docs/transport/fpga_player.md. The FPGA may be
`cudaq-realtime-fpga-player emulate`.

Examples, with a server and an emulated FPGA in two other terminals:
  cudaq-realtime serve --config decoders.yaml --transport roce -- --peer-port=0
  cudaq-realtime-fpga-player emulate --transport roce --control-port 8192
  cudaq-realtime-fpga-player playback --emulator --page-size 256 --num-pages 8
  cudaq-realtime-fpga-player playback --emulator --page-size 256 --num-pages 8 --ila ptp_latency.csv)";

void add_server_options(CLI::App &playback, playback_options &o) {
  playback.add_option("--bridge-ip", o.bridge_ip, "IPv4 address of the server")->capture_default_str();
  playback.add_option("--bridge-port", o.bridge_port, "UDP port of the server")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  playback.add_option("--bridge-qp", o.bridge_qp, "the server's queue pair")
      ->capture_default_str()
      ->check(CLI::Range(0u, 0xFFFFFFu));
  playback.add_option("--bridge-rkey", o.bridge_rkey, "the key of the server's memory")->capture_default_str();
  playback.add_option("--bridge-buffer", o.bridge_buffer, "address of the server's memory")->capture_default_str();
  playback.add_option("--page-size", o.page_size, "bytes of a page: the server's slot size, a multiple of 128")
      ->capture_default_str()
      ->check(CLI::Range(128u, 65408u));
  playback.add_option("--num-pages", o.num_pages, "pages that are written in turn: the server's slots")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4096u));
}

/// --vp-address and --hif-address: two blocks of registers of an FPGA.
void add_register_address_options(CLI::App &command, std::uint32_t &vp, std::uint32_t &hif) {
  const auto aligned = [](const std::string &text) -> std::string {
    std::uint32_t address = 0;
    return CLI::detail::lexical_cast(text, address) && address % 4 == 0 ? "" : text + " is not a multiple of 4";
  };
  const CLI::Validator multiple([aligned](std::string &text) { return aligned(text); }, "multiple of 4");
  command.add_option("--vp-address", vp, "address of the FPGA's registers that name the server")
      ->capture_default_str()
      ->check(multiple);
  command.add_option("--hif-address", hif, "address of the FPGA's registers of its network side")
      ->capture_default_str()
      ->check(multiple);
}

void add_emulate_fpga(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<fpga_options>();
  fpga_options &o = *options;
  CLI::App &emulate = *program.add_subcommand("emulate", "an FPGA in software, which a host programs by its registers");
  emulate.footer(kEmulateFooter);
  add_choice(emulate, "--transport", o.transport, "how windows reach the server", {"roce", "udp"});
  emulate.add_option("--control-port,--port", o.control_port, "UDP port of the registers; 0: any free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  add_register_address_options(emulate, o.vp_address, o.hif_address);
  emulate.add_option("--own-address", o.own_address,
                     "the IPv4 address of registers (default: 127.0.0.1) and windows (default: the system's choice)");
  emulate.add_option("--mtu", o.mtu, "roce: most bytes of a packet's payload, as the server has it")
      ->capture_default_str()
      ->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}));
  add_ila_option(emulate, o.ila_file);
  add_timeout_option(emulate, o.timeout_s, "an answer");
  add_html_option(emulate, chosen.output);
  add_hgrm_option(emulate, chosen.output);
  run_when_chosen(emulate, chosen, [options](const output &out) { return run_fpga(*options, out); });
}

void add_playback(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<playback_options>();
  playback_options &o = *options;
  CLI::App &playback =
      *program.add_subcommand("playback", "programs the player of an FPGA by its registers, and checks the answers");
  playback.footer(kPlaybackFooter);
  playback.add_option("--hsb-ip,--hololink,--control-ip", o.hsb_ip, "IP address of the FPGA")->capture_default_str();
  playback.add_option("--control-port", o.control_port, "UDP port of the FPGA's registers")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  add_register_address_options(playback, o.vp_address, o.hif_address);
  add_server_options(playback, o);
  playback.add_option("--num-messages", o.num_messages, "messages of the pass")
      ->capture_default_str()
      ->check(CLI::Range(1u, 512u));
  CLI::Option *const payload =
      playback.add_option("--payload-size", o.payload_size, "made-up bytes of a message, instead of recorded shots")
          ->check(CLI::Range(1u, 32744u));
  playback
      .add_option("--function", o.function, "with --payload-size: the server's function, which adds 1 to each byte")
      ->capture_default_str()
      ->needs(payload);
  add_rate_option(playback, chosen, o.rate)->capture_default_str();
  playback.add_flag("--emulator", o.emulator,
                    "the FPGA is an emulated one: addresses in units of 128 bytes, and its player tells its state");
  playback.add_flag("--forward", o.forward, "the server sends each message back unchanged");
  playback.add_flag("--no-verify", o.no_verify, "do not check the answers");
  add_distance_options(playback, chosen, o.config, "code of the recorded shots");
  playback.get_option("--config")->capture_default_str();
  add_noise_option(playback, o.noise);
  add_recorded_shots_options(playback, o.data_folder, o.seed);
  add_own_data_instead_of(playback, o.data, {"--config", "--noise", "--data"});
  payload->excludes(playback.get_option("--config"), playback.get_option("--noise"), playback.get_option("--data"),
                    playback.get_option("--dem"));
  add_ila_option(playback, o.ila_file);
  add_timeout_option(playback, o.timeout_s, "an answer of the FPGA or a new record");
  run_when_chosen(playback, chosen, [options](const output &out) { return run_playback(*options, out); });
}

void add_subcommands(CLI::App &app, chosen_command &chosen) {
  add_emulate_fpga(app, chosen);
  add_playback(app, chosen);
  add_help(app, chosen, "playback");
}

} // namespace
} // namespace cudaq::realtime::tools

int main(int argc, char **argv) {
  namespace tools = cudaq::realtime::tools;
  constexpr tools::program_description kProgram{
      "cudaq-realtime-fpga-player", "an FPGA that plays messages to a decoding server, and its host, in software",
      tools::kPlayerFooter, "", &tools::add_subcommands};
  return tools::run_program(kProgram, argc, argv);
}

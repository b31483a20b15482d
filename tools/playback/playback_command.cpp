// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/playback/playback.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kPlaybackFooter =
    R"(Writes messages into the memory of an FPGA's player, lets it send them to a server once, reads the record of the
answers, and checks it: docs/transport/fpga_player.md. The FPGA may be `cudaq-realtime emulate --control-port`.

Examples, with a server and an emulated FPGA in two other terminals:
  cudaq-realtime serve --config decoders.yaml --transport roce -- --peer-port=0
  cudaq-realtime emulate --transport roce --control-port 8192
  cudaq-realtime playback --emulator --page-size 256 --num-pages 8
  cudaq-realtime playback --emulator --page-size 256 --num-pages 8 --num-messages 500 --ila ptp_latency.csv)";

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

} // namespace

void add_playback(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<playback_options>();
  playback_options &o = *options;
  CLI::App &playback =
      *program.add_subcommand("playback", "programs the player of an FPGA by its registers, and checks the answers");
  playback.footer(kPlaybackFooter);
  playback.add_option("--hsb-ip", o.hsb_ip, "IP address of the FPGA")->capture_default_str();
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

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/link_options.h"

#include "tools/command_line/command_options.h"

namespace cudaq::realtime::tools {

void add_link_options(CLI::App &command, emulate_options &o) {
  command.add_option("--address,--bridge-ip", o.address, "udp, roce: the server's IP address")->capture_default_str();
  command.add_option("--port", o.port, "the server's UDP port; roce: 4791 if it is not given")
      ->check(CLI::Range(1, 65535));
  command
      .add_option("--slot-size,--page-size", o.slot_size,
                  "udp, roce: bytes of a slot, as the server has it; default: the size of the server's answers")
      ->check(CLI::Range(24u, 65507u));
  command.add_option("--own-address", o.own_address,
                     "roce: the IPv4 address of this side; default: the one from which the server is reached");
  command.add_option("--qp", o.qp, "roce: the server's queue pair")
      ->capture_default_str()
      ->check(CLI::Range(0u, 0xFFFFFFu));
  command.add_option("--rkey", o.rkey, "roce: the key of the server's memory")->capture_default_str();
  command.add_option("--pages", o.pages, "roce: slots of the server, which are written in turn")
      ->capture_default_str()
      ->check(CLI::Range(1u, 4096u));
  command.add_option("--mtu", o.mtu, "roce: most bytes of a packet's payload, as the server has it")
      ->capture_default_str()
      ->check(CLI::IsMember({256u, 512u, 1024u, 2048u, 4096u}));
  command.add_option("--name", o.name, "shm: the name of the server");
  command
      .add_option("--retry-ms", o.retry_ms,
                  "udp, roce: send a request again after this time without an answer; 0: never")
      ->capture_default_str()
      ->check(number_between(0, 1e6));
}

void refuse_unless(const CLI::App &command, bool applies, const std::string &with,
                   const std::vector<const char *> &options) {
  for (const char *option : options)
    if (!applies && command.get_option(option)->count() != 0)
      throw CLI::ValidationError(option, "it has no effect with " + with);
}

void refuse_options_of_other_links(const CLI::App &command, const std::string &transport) {
  const std::string with = transport.empty() ? "no --transport" : "--transport " + transport;
  refuse_unless(command, transport == "shm", with, {"--name"});
  refuse_unless(command, transport == "udp" || transport == "roce", with,
                {"--address", "--port", "--slot-size", "--retry-ms"});
  refuse_unless(command, transport == "roce", with, {"--own-address", "--qp", "--rkey", "--pages", "--mtu"});
}

} // namespace cudaq::realtime::tools

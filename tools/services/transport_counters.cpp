// SPDX-License-Identifier: Apache-2.0
#include "tools/services/transport_counters.h"

#include "cudaq/realtime/daemon/bridge/cpu_roce_provider.h"
#include "cudaq/realtime/daemon/bridge/roce_provider.h"
#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "tools/services/provider_statistics.h"

#include <arpa/inet.h>
#include <charconv>
#include <cstring>
#include <fmt/core.h>
#include <span>

namespace cudaq::realtime::tools {
namespace {

/// One line of the text. Lines of one family stand one after the other; the first one has the help.
template <class Statistics>
struct counter_row {
  const char *family; ///< after cudaq_transport_
  const char *label;  ///< the value of `reason`, or a whole label, or ""
  const char *help;
  std::uint64_t Statistics::*value;
};

using udp_statistics = cudaq_udp_statistics_t;
constexpr counter_row<udp_statistics> kRequestRows[] = {
    {"received_total", "", "Datagrams, or messages of several packets, that arrived.", &udp_statistics::received},
    {"accepted_total", "", "Requests that the dispatcher got.", &udp_statistics::accepted},
    {"sent_total", "", "Answers that were sent, with replays and refusals.", &udp_statistics::replied},
    {"dropped_total", "magic", "Messages that were dropped without an answer.", &udp_statistics::dropped_magic},
    {"dropped_total", "short", "", &udp_statistics::dropped_short},
    {"dropped_total", "long", "", &udp_statistics::dropped_long},
    {"dropped_total", "duplicate", "", &udp_statistics::dropped_duplicates},
    {"dropped_total", "peers", "", &udp_statistics::dropped_peers},
    {"refused_total", "truncated", "Requests that were answered with a status and not executed.",
     &udp_statistics::answered_truncated},
    {"refused_total", "busy", "", &udp_statistics::answered_busy},
    {"refused_total", "stale", "", &udp_statistics::answered_stale},
    {"refused_total", "reused", "", &udp_statistics::answered_reused},
    {"lost_in_socket_total", "", "Datagrams that the system dropped because the socket's buffer was full.",
     &udp_statistics::dropped_kernel},
    {"replayed_total", "", "Duplicates that were answered from the replay window.", &udp_statistics::replays},
    {"reordered_total", "", "Requests that came after a newer one of the same peer.", &udp_statistics::reordered},
    {"unanswered_total", "", "Requests that the dispatcher dropped.", &udp_statistics::unanswered},
    {"errors_total", "send", "Errors that the system reported.", &udp_statistics::send_errors},
    {"errors_total", "receive", "", &udp_statistics::receive_errors},
    {"peers_expired_total", "", "Peers that were forgotten.", &udp_statistics::peers_expired},
    {"peers", "", "Peers that are remembered.", &udp_statistics::peers},
};

using roce_statistics = cudaq_roce_statistics_t;
constexpr counter_row<roce_statistics> kPacketRows[] = {
    {"packets_total", "", "RoCE packets that arrived.", &roce_statistics::packets},
    {"packets_ending_message_total", "", "Packets that completed a message.", &roce_statistics::messages},
    {"packets_inside_message_total", "", "Packets of a message that did not complete it.", &roce_statistics::parts},
    {"packets_dropped_total", "short", "Packets that were dropped.", &roce_statistics::dropped_short},
    {"packets_dropped_total", "opcode", "", &roce_statistics::dropped_opcode},
    {"packets_dropped_total", "version", "", &roce_statistics::dropped_version},
    {"packets_dropped_total", "padding", "", &roce_statistics::dropped_padding},
    {"packets_dropped_total", "icrc", "", &roce_statistics::dropped_icrc},
    {"packets_dropped_total", "qp", "", &roce_statistics::dropped_qp},
    {"packets_dropped_total", "pkey", "", &roce_statistics::dropped_pkey},
    {"packets_dropped_total", "rkey", "", &roce_statistics::dropped_rkey},
    {"packets_dropped_total", "address", "", &roce_statistics::dropped_address},
    {"packets_dropped_total", "length", "", &roce_statistics::dropped_length},
    {"packets_dropped_total", "immediate", "", &roce_statistics::dropped_immediate},
    {"packets_dropped_total", "sequence", "", &roce_statistics::dropped_sequence},
    {"packets_dropped_total", "peers", "", &roce_statistics::dropped_peers},
    {"packets_not_verified_total", "icrc=\"unverified\"", "Packets that passed without a full check of the ICRC.",
     &roce_statistics::icrc_partly},
    {"packets_not_verified_total", "icrc=\"off\"", "", &roce_statistics::icrc_unchecked},
    {"packets_lost_total", "", "Packet sequence numbers that were skipped.", &roce_statistics::packets_lost},
    {"packets_late_total", "", "Packets with a number before the expected one.", &roce_statistics::packets_late},
    {"messages_broken_total", "", "Messages that were begun and not completed.", &roce_statistics::messages_broken},
};

using adapter_statistics = cudaq_cpu_roce_statistics_t;
constexpr counter_row<adapter_statistics> kAdapterRows[] = {
    {"received_total", "", "Messages that arrived.", &adapter_statistics::received},
    {"accepted_total", "", "Requests that the dispatcher got.", &adapter_statistics::accepted},
    {"sent_total", "", "Answers and refusals that were given to the adapter.", &adapter_statistics::replied},
    {"dropped_total", "immediate", "Messages that were dropped without an answer.",
     &adapter_statistics::dropped_immediate},
    {"dropped_total", "short", "", &adapter_statistics::dropped_short},
    {"dropped_total", "long", "", &adapter_statistics::dropped_long},
    {"refused_total", "truncated", "Requests that were answered with a status and not executed.",
     &adapter_statistics::answered_truncated},
    {"refused_total", "busy", "", &adapter_statistics::answered_busy},
    {"refusals_not_sent_total", "", "Refusals that were dropped because too many waited.",
     &adapter_statistics::refusals_dropped},
    {"overwritten_total", "", "Requests whose slot was written again before the answer.",
     &adapter_statistics::overwritten},
    {"unanswered_total", "", "Requests that the dispatcher dropped.", &adapter_statistics::unanswered},
    {"orphaned_total", "", "Requests whose peer was gone before the answer.", &adapter_statistics::orphaned},
    {"peers_connected_total", "", "Peers that were connected.", &adapter_statistics::peers},
    {"peers_lost_total", "", "Connections that the adapter has put in an error state.",
     &adapter_statistics::peers_lost},
    {"callers_refused_total", "", "Connections to the rendezvous port without a reply.",
     &adapter_statistics::callers_refused},
    {"callers_delayed_total", "", "Callers for which the system had no socket.", &adapter_statistics::callers_delayed},
};

/// The text of the rows, if the library exports the function and it knows the instance.
template <class Statistics>
std::string rows_text(const provider_statistics &library, const char *function, const std::string &endpoint,
                      std::span<const counter_row<Statistics>> rows) {
  const std::optional<Statistics> all = library.read<Statistics>(function, endpoint);
  if (!all)
    return "";
  const std::string transport = endpoint_value(endpoint, "transport", "unnamed");
  std::string text, family;
  for (const counter_row<Statistics> &row : rows) {
    const std::string name = std::string("cudaq_transport_") + row.family;
    if (name != family)
      text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, name.ends_with("_total") ? "counter" : "gauge",
                          row.help);
    family = name;
    std::string label = row.label;
    if (!label.empty() && label.find('=') == std::string::npos)
      label = "reason=\"" + label + "\"";
    text += fmt::format("{}{{transport=\"{}\"{}{}}} {}\n", name, transport, label.empty() ? "" : ",", label,
                        (*all).*(row.value));
  }
  return text;
}

/// `address`: 10.0.0.2 is 0x0A000002. 0: "".
std::string v4_text(std::uint64_t address) {
  return address == 0 ? ""
                      : fmt::format("{}.{}.{}.{}", address >> 24 & 0xFF, address >> 16 & 0xFF, address >> 8 & 0xFF,
                                    address & 0xFF);
}

/// "10.0.0.2:5001", "[fe80::1]:5001"; of no peer "".
std::string newest_text(const udp_statistics &all) {
  in6_addr address;
  std::memcpy(&address, all.newest_address, sizeof(address));
  if (all.newest_port == 0)
    return "";
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    std::uint32_t v4 = 0;
    std::memcpy(&v4, all.newest_address + 12, sizeof(v4));
    return fmt::format("{}:{}", v4_text(ntohl(v4)), all.newest_port);
  }
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &address, text, sizeof(text));
  return fmt::format("[{}]:{}", text, all.newest_port);
}

} // namespace

std::string transport_counters_text(const provider_service &transport) {
  const provider_statistics library(transport.library());
  const std::string &endpoint = transport.endpoint();
  return rows_text<udp_statistics>(library, "cudaq_udp_get_statistics", endpoint, kRequestRows) +
         rows_text<roce_statistics>(library, "cudaq_roce_get_statistics", endpoint, kPacketRows) +
         rows_text<adapter_statistics>(library, "cudaq_cpu_roce_get_statistics", endpoint, kAdapterRows);
}

client_counts clients_of(const provider_service &transport) {
  const provider_statistics library(transport.library());
  const std::string &endpoint = transport.endpoint();
  if (const auto all = library.read<adapter_statistics>("cudaq_cpu_roce_get_statistics", endpoint))
    return {all->peers, all->peers_lost, v4_text(all->newest_address)};
  if (const auto all = library.read<udp_statistics>("cudaq_udp_get_statistics", endpoint))
    return {all->peers + all->peers_expired, all->peers_expired, newest_text(*all)};
  return {};
}

message_refusals refusals_of(const provider_service &transport) {
  const provider_statistics library(transport.library());
  if (const auto all = library.read<udp_statistics>("cudaq_udp_get_statistics", transport.endpoint()))
    return {all->answered_busy, all->dropped_magic + all->dropped_short};
  if (const auto all = library.read<adapter_statistics>("cudaq_cpu_roce_get_statistics", transport.endpoint()))
    return {all->answered_busy, all->dropped_immediate + all->dropped_short};
  return {};
}

std::uint64_t long_message_count(const provider_service &transport) {
  const provider_statistics library(transport.library());
  if (const auto all = library.read<udp_statistics>("cudaq_udp_get_statistics", transport.endpoint()))
    return all->dropped_long;
  if (const auto all = library.read<adapter_statistics>("cudaq_cpu_roce_get_statistics", transport.endpoint()))
    return all->dropped_long;
  const std::string word = endpoint_value(transport.endpoint_now(), "too_long", "");
  std::uint64_t count = 0;
  return std::from_chars(word.data(), word.data() + word.size(), count).ec == std::errc() ? count : 0;
}

} // namespace cudaq::realtime::tools

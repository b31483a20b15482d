// SPDX-License-Identifier: Apache-2.0
#include "tools/top/counters_reader.h"

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/report.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kAnswerLimitNs = 10'000'000'000;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

class unix_connection {
public:
  unix_connection() : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~unix_connection() {
    if (fd_ >= 0)
      close(fd_);
  }
  unix_connection(const unix_connection &) = delete;
  unix_connection &operator=(const unix_connection &) = delete;
  int fd() const { return fd_; }

private:
  const int fd_;
};

constexpr const char *kNoAnswer = "the server that listens there did not answer within 10 s";
constexpr const char *kNotCounters = "it does not give the counters of a server or a router";

void connect_to(const unix_connection &server, const sockaddr_un &address, std::uint64_t end) {
  while (server.fd() < 0 || connect(server.fd(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
    if (server.fd() < 0 || errno != EAGAIN) // EAGAIN: it accepts no more connections for the moment
      throw std::runtime_error(std::string("no server listens there: ") + std::strerror(errno));
    if (interrupt_guard::interrupted())
      throw reading_interrupted();
    if (now_ns() >= end)
      throw std::runtime_error(kNoAnswer);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void wait_for_bytes(const unix_connection &server, std::uint64_t end) {
  for (std::uint64_t now = now_ns(); now < end; now = now_ns()) {
    if (interrupt_guard::interrupted())
      throw reading_interrupted();
    pollfd ready{server.fd(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::min<std::uint64_t>((end - now) / 1'000'000 + 1, 100))) > 0)
      return;
  }
  throw std::runtime_error(kNoAnswer);
}

/// One line: name{label="value",...} number.
struct counter_line {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

bool parse_labels(std::string_view text, std::map<std::string, std::string> &labels) {
  while (!text.empty()) {
    const std::size_t equals = text.find("=\""), end = text.find('"', equals + 2);
    if (equals == std::string_view::npos || end == std::string_view::npos)
      return false;
    labels[std::string(text.substr(0, equals))] = text.substr(equals + 2, end - equals - 2);
    text.remove_prefix(end + 1);
    if (!text.empty() && text.front() == ',')
      text.remove_prefix(1);
  }
  return true;
}

template <class Number>
bool parse_number(std::string_view text, Number &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_line(std::string_view line, counter_line &into) {
  const std::size_t blank = line.rfind(' '), brace = line.find('{');
  if (blank == std::string_view::npos || !parse_number(line.substr(blank + 1), into.value) ||
      !(into.value >= 0 && into.value < 1e18)) // a count
    return false;
  if (brace == std::string_view::npos) {
    into.name = line.substr(0, blank);
    return true;
  }
  into.name = line.substr(0, brace);
  return blank > brace + 1 && line[blank - 1] == '}' &&
         parse_labels(line.substr(brace + 1, blank - brace - 2), into.labels);
}

std::string label_of(const counter_line &line, const char *name) {
  const auto found = line.labels.find(name);
  return found == line.labels.end() ? std::string() : found->second;
}

/// `places`: of the decoders that are there already.
counted_decoder &decoder_of(server_counters &server, std::map<std::uint64_t, std::size_t> &places, std::uint64_t id) {
  const auto [place, fresh] = places.emplace(id, server.decoders.size());
  if (fresh)
    server.decoders.emplace_back().id = id;
  return server.decoders[place->second];
}

double bound_ns(const counter_line &line) {
  double bound = 0;
  if (!parse_number(label_of(line, "le"), bound) || !(bound >= 0))
    bound = std::numeric_limits<double>::infinity(); // "+Inf"
  return bound * 1e9;
}

counted_stage &stage_of(const counter_line &line, std::vector<counted_stage> &stages) {
  const std::string name = label_of(line, "stage");
  if (const auto found = std::ranges::find(stages, name, &counted_stage::name); found != stages.end())
    return *found;
  return stages.emplace_back(counted_stage{name, {}, 0});
}

/// Ranks come in ascending order in each family of lines.
counted_detector &detector_of(const counter_line &line, std::vector<counted_detector> &detectors) {
  std::uint64_t rank = 0;
  parse_number(label_of(line, "rank"), rank);
  if (const auto found = std::ranges::find(detectors, rank, &counted_detector::rank); found != detectors.end())
    return *found;
  return detectors.emplace_back(counted_detector{.rank = rank});
}

void read_decoder_line(const counter_line &line, counted_decoder &d) {
  const auto count = static_cast<std::uint64_t>(line.value);
  const std::pair<const char *, std::uint64_t &> plain[] = {
      {"cudaq_decoder_requests_total", d.requests},
      {"cudaq_decoder_shots_total", d.shots},
      {"cudaq_decoder_waiting", d.waiting},
      {"cudaq_decoder_too_old_total", d.too_old},
      {"cudaq_decoder_padded_total", d.padded},
      {"cudaq_decoder_deadline_met_total", d.deadline_met},
      {"cudaq_decoder_deadline_missed_total", d.deadline_missed},
      {"cudaq_decoder_deadline_late_total", d.deadline_late},
      {"cudaq_decoder_exchanges_total", d.exchanges},
      {"cudaq_decoder_rounds_pushed_total", d.rounds_pushed},
      {"cudaq_decoder_rounds_committed_total", d.rounds_committed},
      {"cudaq_decoder_lag_rounds", d.lag_rounds},
      {"cudaq_decoder_detectors", d.detectors},
      {"cudaq_decoder_detector_shots", d.detector_shots},
      {"cudaq_decoder_detectors_beyond_5_sigma", d.detectors_beyond},
      {"cudaq_decoder_worst_lag_rounds", d.worst_lag_rounds}};
  d.is_stream = d.is_stream || line.name == "cudaq_decoder_rounds_pushed_total";
  for (const auto &[name, member] : plain)
    if (line.name == name)
      member = count;
  if (line.name == "cudaq_decoder_answers_total")
    d.answers.emplace_back(label_of(line, "status"), count);
  if (line.name == "cudaq_decoder_race_wins_total")
    d.wins.emplace_back(label_of(line, "member"), count);
  if (line.name == "cudaq_decoder_latency_seconds_sum")
    d.latency_sum_ns = line.value * 1e9;
  if (line.name == "cudaq_decoder_tail_seconds_sum")
    d.tail_sum_ns = line.value * 1e9;
  if (line.name == "cudaq_decoder_worst_tail_seconds")
    d.worst_tail_ns = line.value * 1e9;
  if (line.name == "cudaq_decoder_latency_seconds_bucket")
    d.latency.emplace_back(bound_ns(line), count);
  if (line.name == "cudaq_decoder_stage_seconds_bucket")
    stage_of(line, d.stages).buckets.emplace_back(bound_ns(line), count);
  if (line.name == "cudaq_decoder_worst_stage_seconds")
    stage_of(line, d.stages).worst_ns = line.value * 1e9;
  if (line.name == "cudaq_decoder_worst_detector")
    detector_of(line, d.worst_detectors).detector = count;
  if (line.name == "cudaq_decoder_worst_detector_sigma")
    detector_of(line, d.worst_detectors).sigma = line.value;
  if (line.name == "cudaq_decoder_worst_detector_rate")
    detector_of(line, d.worst_detectors).rate = line.value;
  if (line.name == "cudaq_decoder_worst_detector_model_rate")
    detector_of(line, d.worst_detectors).model_rate = line.value;
}

/// Nodes come in the same order in each family of lines.
void read_node_line(const counter_line &line, const std::string &name, std::vector<counted_node> &nodes) {
  auto node = std::ranges::find(nodes, name, &counted_node::name);
  if (node == nodes.end()) {
    nodes.emplace_back().name = name;
    node = nodes.end() - 1;
  }
  const auto count = static_cast<std::uint64_t>(line.value);
  const std::pair<const char *, std::uint64_t &> plain[] = {
      {"cudaq_router_node_forwarded_total", node->forwarded}, {"cudaq_router_node_answered_total", node->answered},
      {"cudaq_router_node_lost_total", node->lost},           {"cudaq_router_node_refused_total", node->refused},
      {"cudaq_router_node_late_total", node->late},           {"cudaq_router_node_joins_total", node->joins},
      {"cudaq_router_node_losses_total", node->losses}};
  if (line.name == "cudaq_router_node_joined")
    node->joined = count != 0;
  for (const auto &[known, member] : plain)
    if (line.name == known)
      member = count;
}

/// The name of a counter for people, without what each has: "transport dropped, long" of
/// cudaq_transport_dropped_total{transport="udp",reason="long"}.
std::string short_name(const counter_line &line) {
  constexpr std::string_view kOfServer = "cudaq_server_", kOfRouter = "cudaq_router_", kOfAll = "cudaq_",
                             kTotal = "_total";
  std::string_view name = line.name;
  for (const std::string_view prefix : {kOfServer, kOfRouter, kOfAll})
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  if (name.ends_with(kTotal))
    name.remove_suffix(kTotal.size());
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  for (const auto &[label, value] : line.labels)
    if (label != "transport")
      text += ", " + (label == "reason" ? value : label + " " + value);
  return text;
}

/// All that the server gives to one connection.
std::string read_page(const sockaddr_un &address, std::uint64_t end) {
  const unix_connection server;
  connect_to(server, address, end);
  std::string text;
  char part[16384];
  for (;;) {
    wait_for_bytes(server, end);
    const ssize_t n = recv(server.fd(), part, sizeof part, 0);
    if (n == 0)
      return text;
    if (n < 0)
      throw std::runtime_error(std::string("the server has closed the connection: ") + std::strerror(errno));
    if (text.size() > kMaxBytes)
      throw std::runtime_error(kNotCounters);
    text.append(part, static_cast<std::size_t>(n));
  }
}

/// A server ends an exchange that takes too long, which may be so on a machine without a free core.
bool is_cut(const std::string &text) {
  return text.empty() || (text.starts_with("# HELP cudaq_") && !text.ends_with(kEndOfCounters));
}

} // namespace

server_counters parse_counters(const std::string &text) {
  if (!text.ends_with(kEndOfCounters)) // a page that was cut could be taken for one with other numbers
    throw std::runtime_error(std::string(kNotCounters) + ", or not all of them");
  server_counters server;
  std::map<std::uint64_t, std::size_t> places;
  bool any = false;
  const std::pair<const char *, std::uint64_t &> plain[] = {
      {"cudaq_server_processed_total", server.processed},   {"cudaq_server_in_flight", server.in_flight},
      {"cudaq_server_stray_requests_total", server.strays}, {"cudaq_server_dropped_bad_magic_total", server.bad_magic},
      {"cudaq_server_reloads_total", server.reloads},       {"cudaq_router_requests_total", server.processed},
      {"cudaq_router_stray_messages_total", server.strays}};
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.empty() || line.front() == '#')
      continue;
    counter_line read;
    if (!parse_line(line, read))
      throw std::runtime_error(std::string(kNotCounters) + ": " + std::string(line.substr(0, 60)));
    for (const auto &[name, member] : plain)
      if (read.name == name) {
        member += static_cast<std::uint64_t>(read.value);
        any = true;
        server.is_router = server.is_router || read.name.starts_with("cudaq_router_");
      }
    if (read.name == "cudaq_build_info")
      server.version = label_of(read, "version");
    if (read.name == "cudaq_server_start_time_seconds")
      server.start_time = read.value;
    std::uint64_t id = 0;
    if (const auto found = read.labels.find("decoder"); found != read.labels.end() && parse_number(found->second, id))
      read_decoder_line(read, decoder_of(server, places, id));
    else if (const auto node = read.labels.find("node"); node != read.labels.end())
      read_node_line(read, node->second, server.nodes);
    else if (read.name.ends_with("_total") && read.name.starts_with("cudaq_"))
      server.others.emplace_back(short_name(read), static_cast<std::uint64_t>(read.value));
    if (read.name == "cudaq_transport_dropped_total" && label_of(read, "reason") == "magic")
      server.bad_magic += static_cast<std::uint64_t>(read.value);
  }
  if (!any)
    throw std::runtime_error(kNotCounters);
  return server;
}

std::string read_counters(const std::string &path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw usage_error(
        fmt::format("--counters {}: the path has more than {} characters", path, sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  const std::uint64_t end = now_ns() + kAnswerLimitNs;
  std::string text = read_page(address, end);
  while (is_cut(text) && now_ns() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    text = read_page(address, end);
  }
  return text;
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/serve_counters.h"

#include "tools/common/report.h"
#include "tools/serve/detector_pages.h"
#include "tools/services/transport_counters.h"
#include "tools/top/counters_reader.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

void family(std::string &text, const char *name, const char *type, const char *help) {
  text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

using detail::time_histogram;

/// Bounds from `first_ns`, a power of two, to 8.6 s: each power of two is divided into 4 equal parts, which end with
/// buckets of the histogram. Prometheus counts from the first bucket on: each line includes the lines before it. Times
/// are rounded down to whole nanoseconds, so one that is less than a bound is in its line.
void add_histogram(std::string &text, const char *name, const std::string &labels,
                   const time_histogram::snapshot &times, std::uint64_t first_ns) {
  constexpr std::uint64_t kLastNs = std::uint64_t{1} << 33;
  std::uint64_t up_to = 0;
  std::size_t bucket = 0;
  const auto add_line = [&](const std::string &bound) {
    text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, up_to);
  };
  for (std::uint64_t power = first_ns; power <= kLastNs; power *= 2)
    for (std::uint64_t bound = power; bound < 2 * power && bound <= kLastNs; bound += power / 4) {
      for (; time_histogram::buckets::upper_of(bucket) < bound; ++bucket)
        up_to += times.counts[bucket];
      add_line(fmt::format("{:.9f}", static_cast<double>(bound) * 1e-9));
    }
  up_to = times.count;
  add_line("+Inf");
  text += fmt::format("{0}_sum{{{1}}} {2:.9f}\n{0}_count{{{1}}} {3}\n", name, labels,
                      static_cast<double>(times.sum_ns) * 1e-9, times.count);
}

using cudaq::qec::realtime::decoder_counts;
using cudaq::qec::realtime::kRequestStages;
using cudaq::qec::realtime::request_stage;

/// Read once for the whole page, in the order of the members, so that no page has more answers than requests.
struct reading {
  std::uint64_t id;
  bool is_stream;
  const cudaq::qec::realtime::stage_times *times;
  time_histogram::snapshot whole;
  std::size_t waiting;
  decoder_counts counts;
};

/// Decoders whose stages are on the page: those of thousands could not be sent in the time of an exchange.
constexpr std::size_t kMaxStagedDecoders = 100;

/// The stages of the first decoders that have answered a request.
std::string stages_text(const std::vector<reading> &readings) {
  std::string text, worst;
  family(text, "cudaq_decoder_stage_seconds", "histogram", "From the end of the stage before to the end of this one.");
  family(worst, "cudaq_decoder_worst_stage_seconds", "gauge", "The most of it since the start.");
  std::size_t staged = 0;
  for (const reading &now : readings) {
    if (now.whole.count == 0 || staged++ >= kMaxStagedDecoders)
      continue;
    for (std::size_t s = 0; s < kRequestStages.size(); ++s) {
      const auto stage = static_cast<request_stage>(s);
      const time_histogram::snapshot times = stage == request_stage::whole ? now.whole : now.times->read(stage);
      const std::string labels = fmt::format("decoder=\"{}\",stage=\"{}\"", now.id, kRequestStages[s]);
      if (stage != request_stage::whole) // that is cudaq_decoder_latency_seconds
        add_histogram(text, "cudaq_decoder_stage_seconds", labels, times, 16);
      worst += fmt::format("cudaq_decoder_worst_stage_seconds{{{}}} {:.9f}\n", labels,
                           static_cast<double>(times.max_ns) * 1e-9);
    }
  }
  return text + worst;
}

/// The lines of streams; none without one.
std::string streams_text(const std::vector<reading> &readings) {
  constexpr struct {
    const char *name, *type, *help;
    std::uint64_t (*value)(const decoder_counts &counts);
  } kFamilies[] = {
      {"rounds_pushed_total", "counter", "Rounds of streams that arrived.",
       [](const decoder_counts &c) { return c.stream.pushed; }},
      {"rounds_committed_total", "counter", "Rounds of streams that are final.",
       [](const decoder_counts &c) { return c.stream.committed; }},
      {"lag_rounds", "gauge", "Rounds that arrived and are not final.",
       [](const decoder_counts &c) { return c.stream.lag; }},
      {"worst_lag_rounds", "gauge", "The most of them since the start.",
       [](const decoder_counts &c) { return c.stream.worst_lag; }},
  };
  std::string text;
  const auto each_stream = [&readings](const auto &add) {
    for (const reading &now : readings)
      if (now.is_stream)
        add(now.id, now.counts);
  };
  bool any = false;
  each_stream([&any](std::uint64_t, const decoder_counts &) { any = true; });
  if (!any)
    return text;
  for (const auto &[name, type, help, value] : kFamilies) {
    const std::string whole = fmt::format("cudaq_decoder_{}", name);
    family(text, whole.c_str(), type, help);
    each_stream([&](std::uint64_t id, const decoder_counts &counts) {
      text += fmt::format("{}{{decoder=\"{}\"}} {}\n", whole, id, value(counts));
    });
  }
  family(text, "cudaq_decoder_tail_seconds", "summary", "From the arrival of a stream's last bits to their answer.");
  each_stream([&](std::uint64_t id, const decoder_counts &counts) {
    text += fmt::format("cudaq_decoder_tail_seconds_sum{{decoder=\"{0}\"}} {1:.9f}\n"
                        "cudaq_decoder_tail_seconds_count{{decoder=\"{0}\"}} {2}\n",
                        id, static_cast<double>(counts.tail_ns) * 1e-9, counts.shots);
  });
  family(text, "cudaq_decoder_worst_tail_seconds", "gauge", "The most of it since the start.");
  each_stream([&](std::uint64_t id, const decoder_counts &counts) {
    text += fmt::format("cudaq_decoder_worst_tail_seconds{{decoder=\"{}\"}} {:.9f}\n", id,
                        static_cast<double>(counts.worst_tail_ns) * 1e-9);
  });
  return text;
}

/// Of the whole exchange with a reader.
constexpr std::chrono::milliseconds kExchangeLimit{200};

std::string failure(const std::string &what) { return what + ": " + std::strerror(errno); }

/// An exchange with one reader, on a descriptor that does not block. Gives up a reader that is not ready when the time
/// for all of it has passed.
class exchange_with_reader {
public:
  /// Owns the descriptor: no memory for the text must not keep it open.
  explicit exchange_with_reader(int fd) : fd_(fd) {}
  ~exchange_with_reader() { close(fd_); }
  exchange_with_reader(const exchange_with_reader &) = delete;
  exchange_with_reader &operator=(const exchange_with_reader &) = delete;

  void send_all(const std::string &text) {
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t n = ready(POLLOUT) ? send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL) : 0;
      if (n <= 0)
        return;
      sent += static_cast<std::size_t>(n);
    }
  }
  /// Reads until the empty line that ends the head of an HTTP request, or the reader's end of the stream; at most 4
  /// KiB. False: the reader is too slow.
  bool read_request_head(std::string &head) {
    char part[512];
    while (head.size() < 4096 && head.find("\r\n\r\n") == std::string::npos) {
      const ssize_t n = ready(POLLIN) ? recv(fd_, part, sizeof part, 0) : -1;
      if (n <= 0)
        return n == 0;
      head.append(part, static_cast<std::size_t>(n));
    }
    return true;
  }

private:
  bool ready(short event) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now()).count();
    pollfd fd{fd_, event, 0};
    // A reader that is ready is served even if this process got no core until the end.
    return poll(&fd, 1, static_cast<int>(std::max<decltype(left)>(left, 0))) > 0;
  }

  const int fd_;
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kExchangeLimit;
};

bool is_socket(const sockaddr_un &address) {
  struct stat info {};
  return lstat(address.sun_path, &info) == 0 && S_ISSOCK(info.st_mode);
}

/// No program listens at this socket: the one that made it has ended without removing it.
bool is_left_over(const sockaddr_un &address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool refused = fd >= 0 && connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 &&
                       errno == ECONNREFUSED;
  if (fd >= 0)
    close(fd);
  return refused;
}

/// The races of the server; none without one. A member that a race has twice has a number in the second one's label.
std::string races_text(const cudaq::qec::realtime::decoding_server &server) {
  std::string lines;
  for (const auto &decoder : server.decoders()) {
    const auto identity = decoder->identity();
    for (std::size_t k = 0; k < identity->members.size(); ++k) {
      const auto same = std::count(identity->members.begin(),
                                   identity->members.begin() + static_cast<std::ptrdiff_t>(k), identity->members[k]);
      const std::string member = identity->members[k] + (same == 0 ? "" : fmt::format(" #{}", same + 1));
      lines += fmt::format("cudaq_decoder_race_wins_total{{decoder=\"{}\",member={}}} {}\n", decoder->limits().id,
                           label_value(member), identity->wins[k].value());
    }
  }
  if (lines.empty())
    return lines;
  std::string text;
  family(text, "cudaq_decoder_race_wins_total", "counter", "Answers of a race that were those of this member.");
  return text + lines;
}

} // namespace

std::string status_label(std::size_t status) {
  std::string label(cudaq::qec::realtime::kServerStatusNames[status]);
  for (char &letter : label)
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return label;
}

std::string counters_text(const cudaq::qec::realtime::decoding_server &server, const provider_service &transport,
                          const server_facts &facts, const std::string &more) {
  std::string text;
  std::vector<reading> readings;
  for (const auto &decoder : server.decoders())
    readings.push_back({decoder->limits().id, decoder->is_stream(), &decoder->times(),
                        decoder->times().read(request_stage::whole), decoder->waiting(), decoder->counts()});
  const auto each = [&](const char *name, const char *type, const char *help, const auto &value) {
    family(text, name, type, help);
    for (const reading &now : readings)
      text += fmt::format("{}{{decoder=\"{}\"}} {}\n", name, now.id, value(now.counts));
  };
  each("cudaq_decoder_requests_total", "counter", "Requests for the decoder.",
       [](const decoder_counts &c) { return c.requests; });
  each("cudaq_decoder_shots_total", "counter", "Shots that were decoded; streams that ended.",
       [](const decoder_counts &c) { return c.shots; });
  family(text, "cudaq_decoder_waiting", "gauge", "Requests in the queue.");
  for (const reading &now : readings)
    text += fmt::format("cudaq_decoder_waiting{{decoder=\"{}\"}} {}\n", now.id, now.waiting);
  each("cudaq_decoder_too_old_total", "counter", "Requests above the age limit.",
       [](const decoder_counts &c) { return c.too_old; });
  each("cudaq_decoder_repeated_total", "counter", "Requests that were sent again and got their first answer.",
       [](const decoder_counts &c) { return c.repeated; });
  each("cudaq_decoder_padded_total", "counter", "Requests with bytes after their fields, which are ignored.",
       [](const decoder_counts &c) { return c.padded; });
  each("cudaq_decoder_exchanges_total", "counter", "New models that took the place of the previous one.",
       [](const decoder_counts &c) { return c.exchanges; });
  each("cudaq_decoder_deadline_met_total", "counter",
       "Decodes of shots, and of windows, that ended before their deadline.",
       [](const decoder_counts &c) { return c.deadlines.met; });
  each("cudaq_decoder_deadline_missed_total", "counter", "Decodes that did not.",
       [](const decoder_counts &c) { return c.deadlines.missed; });
  each("cudaq_decoder_deadline_late_total", "counter", "Of these: the decoder went on after its deadline.",
       [](const decoder_counts &c) { return c.deadlines.late; });
  text += races_text(server);
  text += streams_text(readings);
  family(text, "cudaq_decoder_answers_total", "counter", "Answers by status, of all functions.");
  for (const reading &now : readings)
    for (std::size_t i = 0; i < now.counts.by_status.size(); ++i)
      text += fmt::format("cudaq_decoder_answers_total{{decoder=\"{}\",status=\"{}\"}} {}\n", now.id, status_label(i),
                          now.counts.by_status[i]);
  family(text, "cudaq_decoder_latency_seconds", "histogram", "From a request's arrival at the server to its answer.");
  for (const reading &now : readings)
    add_histogram(text, "cudaq_decoder_latency_seconds", fmt::format("decoder=\"{}\"", now.id), now.whole, 256);
  text += stages_text(readings) + detectors_text(server);
  const auto one = [&](const char *name, const char *type, const char *help, std::uint64_t value) {
    family(text, name, type, help);
    text += fmt::format("{} {}\n", name, value);
  };
  const cudaq_dispatcher_stats_t stats = transport.stats();
  family(text, "cudaq_build_info", "gauge", "1, with the version of the program.");
  text += fmt::format("cudaq_build_info{{version={}}} 1\n", label_value(program_version()));
  family(text, "cudaq_server_start_time_seconds", "gauge", "When the server began, in seconds since 1970.");
  text += fmt::format("cudaq_server_start_time_seconds {:.3f}\n", facts.start);
  one("cudaq_server_stray_requests_total", "counter", "Requests that named no decoder.", server.strays());
  one("cudaq_server_reloads_total", "counter", "Configurations that were applied.", facts.reloads);
  one("cudaq_server_reloads_rejected_total", "counter", "Configurations that were not: the previous one goes on.",
      facts.reloads_rejected);
  one("cudaq_server_processed_total", "counter", "Requests that were answered.", transport.processed());
  one("cudaq_server_in_flight", "gauge", "Requests that were accepted and are not answered.", stats.in_flight);
  one("cudaq_server_dropped_bad_magic_total", "counter", "Frames that are no request.", stats.dropped_bad_magic);
  return text + transport_counters_text(transport) + more + kEndOfCounters;
}

counter_listeners::counter_listeners(const std::string &socket_path, int port) {
  try {
    if (!socket_path.empty()) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      if (socket_path.size() >= sizeof address.sun_path)
        throw usage_error(fmt::format("--counters {}: the path has more than {} characters", socket_path,
                                      sizeof address.sun_path - 1));
      std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
      unix_fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      const auto bound = [&] {
        return unix_fd_ >= 0 && bind(unix_fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
      };
      if (!bound()) {
        if (errno != EADDRINUSE)
          throw usage_error(failure("--counters " + socket_path));
        if (!is_socket(address))
          throw usage_error(
              fmt::format("--counters {}: it is a file that is no socket; give a free path", socket_path));
        if (!is_left_over(address) || unlink(address.sun_path) != 0 || !bound())
          throw std::runtime_error(
              fmt::format("--counters {}: a program listens there; end it, or give a free path", socket_path));
      }
      socket_path_ = socket_path; // ours from here on
      if (listen(unix_fd_, 8) != 0)
        throw std::runtime_error(failure("--counters " + socket_path));
    }
    if (port >= 0) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      socklen_t size = sizeof address;
      const int yes = 1;
      tcp_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (tcp_fd_ < 0 || setsockopt(tcp_fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
          bind(tcp_fd_, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0 || listen(tcp_fd_, 8) != 0 ||
          getsockname(tcp_fd_, reinterpret_cast<sockaddr *>(&address), &size) != 0)
        throw std::runtime_error(failure(fmt::format("--prometheus-port {}", port)));
      port_ = ntohs(address.sin_port);
    }
  } catch (...) {
    close_all();
    throw;
  }
}

counter_listeners::~counter_listeners() { close_all(); }

void counter_listeners::close_all() noexcept {
  if (!socket_path_.empty())
    unlink(socket_path_.c_str()); // before the next owner of the path can find it without a listener
  socket_path_.clear();
  for (int *const fd : {&unix_fd_, &tcp_fd_})
    if (*fd >= 0)
      close(std::exchange(*fd, -1));
}

std::vector<int> counter_listeners::descriptors() const {
  std::vector<int> all;
  for (const int fd : {unix_fd_, tcp_fd_})
    if (fd >= 0)
      all.push_back(fd);
  return all;
}

void counter_listeners::answer(int descriptor, const std::function<std::string()> &text,
                               const std::vector<http_page> &pages) {
  const int fd = accept4(descriptor, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0)
    return;
  exchange_with_reader reader(fd);
  std::string head;
  if (descriptor != tcp_fd_)
    reader.send_all(text());
  else if (reader.read_request_head(head))
    reader.send_all(http_answer(head, text, pages));
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/route/route.h"

#include "lib/qec/decoding/whole_file.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"
#include "tools/common/log_line.h"
#include "tools/common/output_file.h"
#include "tools/route/route_config.h"
#include "tools/route/route_counters.h"
#include "tools/serve/serve_counters.h"
#include "tools/serve/serve_signals.h"
#include "tools/services/client_log.h"
#include "tools/services/ucx_library.h"
#include "tools/shots/shot_plan.h"

#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

using namespace std::chrono_literals;
using detail::node_state;

constexpr auto kAnswerAllLimit = 10s, kThreadLimit = 2s;

route_config load_route(const std::string &path) {
  refuse_output_file("--config", path);
  const auto text = cudaq::qec::realtime::read_whole_file(path);
  if (text.failed())
    throw usage_error("--config " + text.text() + config_file_hint(path));
  auto config = read_route_config(*text);
  if (config.failed())
    throw usage_error(fmt::format("--config {}: {}", path, config.text()));
  return std::move(*config);
}

cudaq_wait_policy_t router_wait(const std::string &word) {
  return wait_policy_of(word, std::thread::hardware_concurrency() < 4);
}

std::vector<std::string> chosen_args(const route_options &o, const route_config &config) {
  const bool same = o.transport.empty() || o.transport == config.transport;
  return o.provider_options.empty() && same ? config.transport_args : o.provider_options;
}

detail::router_limits complete_limits(detail::router_limits limits, std::uint32_t entries) {
  limits.num_entries = entries;
  return limits;
}

/// The provider in front, the engine, and the link to the nodes. The main thread calls everything, except the handler
/// (dispatcher thread) and the two events (router thread).
class routing {
public:
  routing(const route_options &o, route_config config, const output &out)
      : options_(o), out_(out), lines_(out.uses_stdout_for_json() ? stderr : stdout), config_(std::move(config)),
        transport_(provider_library(chosen_transport(o.transport, config_.transport)), chosen_args(o, config_),
                   router_wait(o.wait)),
        link_(ucx_library("route").make_link(link_options())), calls_(transport_.num_slots()),
        engine_(
            config_.table, complete_limits(config_.limits, transport_.num_slots()), transport_.slot_bytes(), *link_,
            {[this](std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result) {
               complete(entry, status, result);
             },
             [this](std::uint32_t node, node_state state, const std::string &carrier) { note(node, state, carrier); }}),
        listeners_(o.counters, o.prometheus_port) {
    joined_.assign(config_.nodes.size(), false);
    engine_.drain(drained_nodes(config_));
    for (const detail::route_function &function : config_.table.functions)
      transport_.serve(function.function_id, &handle, this);
  }
  routing(const routing &) = delete;
  routing &operator=(const routing &) = delete;

  void start();
  /// Returns when the program must end.
  void run(signal_events &signals);
  /// Answers everything. False: the library did not stop in time.
  [[nodiscard]] bool drain();
  int report(const std::string &problem);

private:
  struct open_call {
    cudaq_host_job_t job{};
    std::uint8_t *result = nullptr;
    std::uint32_t max_bytes = 0;
  };

  detail::ucx_link_options link_options() const;
  static std::int32_t handle(cudaq_host_call_t *call, void *self) noexcept;
  void complete(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result);
  void note(std::uint32_t node, node_state state, const std::string &carrier);
  void announce(const std::string &line) const { write_log_line(lines_, line + "\n"); }
  void announce_notes();
  void reload();

  const route_options &options_;
  const output &out_;
  std::FILE *const lines_;
  route_config config_;
  provider_service transport_;
  std::unique_ptr<detail::node_link> link_;
  std::vector<open_call> calls_; ///< by slot
  std::vector<bool> joined_;     ///< router thread
  std::mutex notes_mutex_;
  std::vector<std::string>
      notes_; ///< lines that wait for the main thread: the router's thread must not wait for stdout
  detail::router_engine engine_;
  counter_listeners listeners_;
  client_log client_log_{transport_};
};

detail::ucx_link_options routing::link_options() const {
  detail::ucx_link_options options;
  for (const route_node &node : config_.nodes)
    options.nodes.push_back({node.address, node.port});
  options.tls = config_.tls;
  // The longest answer of any node: one that the slots in front do not take is answered RESULT_TOO_LARGE.
  options.max_bytes = detail::kMaxNodeSlotBytes + static_cast<std::uint32_t>(detail::kRouteHeaderBytes);
  return options;
}

std::int32_t routing::handle(cudaq_host_call_t *call, void *self) noexcept {
  routing &r = *static_cast<routing *>(self);
  r.calls_[call->job.slot] = {call->job, static_cast<std::uint8_t *>(call->result), call->max_result_len};
  const std::span payload(static_cast<const std::uint8_t *>(call->payload), call->payload_len);
  if (r.engine_.submit(call->job.slot, call->function_id, payload, call->ptp_timestamp, call->job.request_id))
    return CUDAQ_HOST_CALL_DEFERRED;
  return CUDAQ_RPC_ERR_BAD_ARG_LEN; // the payload does not fit into a message
}

void routing::complete(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t> result) {
  const open_call call = calls_[entry];
  const bool fits = result.size() <= call.max_bytes;
  if (fits && !result.empty())
    std::memcpy(call.result, result.data(), result.size());
  // Refused only after a stop whose grace period ended: then the library has answered.
  (void)transport_.complete(call.job, fits ? status : CUDAQ_RPC_ERR_RESULT_TOO_LARGE,
                            fits ? static_cast<std::uint32_t>(result.size()) : 0);
}

void routing::note(std::uint32_t node, node_state state, const std::string &carrier) {
  const bool was_joined = joined_[node];
  joined_[node] = state == node_state::joined || (was_joined && state == node_state::leaving);
  std::string line = "CUDAQ_REALTIME_ROUTER_NODE name=" + config_.nodes[node].name;
  if (state == node_state::joined)
    line += " state=joined carrier=" + carrier;
  else if (state == node_state::leaving)
    line += " state=leaving";
  else if (was_joined)
    line += " state=lost";
  else
    return; // an attempt to connect
  line += std::string(" time=") + log_time().text.data();
  const std::lock_guard<std::mutex> lock(notes_mutex_);
  notes_.push_back(std::move(line));
}

void routing::announce_notes() {
  std::vector<std::string> lines;
  {
    const std::lock_guard<std::mutex> lock(notes_mutex_);
    lines.swap(notes_);
  }
  for (const std::string &line : lines)
    announce(line);
}

void routing::start() {
  if (const auto result = engine_.start(router_wait(options_.wait)); result.failed())
    throw api_error("the router's thread: " + result.text());
  transport_.start();
  std::string line =
      "CUDAQ_REALTIME_ROUTER_READY " + transport_.ready_words(fmt::format(" nodes={}", config_.nodes.size()));
  if (listeners_.port() >= 0)
    line += fmt::format(" prometheus_port={}", listeners_.port());
  announce(line);
  notify_service_manager("READY=1\nSTATUS=" + line);
}

void routing::run(signal_events &signals) {
  bool connected = false;
  for (;;) {
    if (!connected && transport_.connect(50'000'000)) {
      transport_.launch();
      connected = true;
    }
    std::vector<pollfd> fds;
    for (const int fd : listeners_.descriptors())
      fds.push_back({fd, POLLIN, 0});
    fds.push_back({signals.descriptor(), POLLIN, 0});
    poll(fds.data(), fds.size(), connected ? 20 : 0);
    fds.pop_back();
    for (const pollfd &fd : fds)
      if (fd.revents != 0)
        listeners_.answer(fd.fd, [this] { return route_counters_text(engine_, config_.nodes, transport_); });
    announce_notes();
    client_log_.poll();
    signals.clear();
    if (signals.end_is_wanted())
      return;
    if (signals.take_reload())
      reload();
  }
}

void routing::reload() {
  std::string outcome = "REJECTED old_config_active", reason;
  try {
    route_config wanted = load_route(options_.config);
    reason = fixed_difference(config_, wanted);
    if (reason.empty()) {
      for (std::size_t i = 0; i < config_.nodes.size(); ++i)
        config_.nodes[i].drain = wanted.nodes[i].drain;
      engine_.drain(drained_nodes(config_));
      outcome = "APPLIED";
    }
  } catch (const std::exception &e) {
    reason = e.what();
  }
  if (!reason.empty())
    print_log("{}\n", reason);
  write_event(lines_,
              "CUDAQ_REALTIME_ROUTER_CONFIG_" + outcome); // after the reason, for programs that wait for this line
}

bool routing::drain() {
  notify_service_manager("STOPPING=1");
  engine_.close();
  for (const auto deadline = std::chrono::steady_clock::now() + kAnswerAllLimit;
       !engine_.idle() && std::chrono::steady_clock::now() < deadline;)
    std::this_thread::sleep_for(1ms);
  engine_.leave(); // answers the rest
  const bool stopped = transport_.stop(static_cast<std::uint64_t>(std::chrono::nanoseconds(kThreadLimit).count()));
  const bool ended = engine_.stop(std::chrono::steady_clock::now() + kThreadLimit);
  announce_notes();
  return stopped && ended;
}

int routing::report(const std::string &problem) {
  json nodes = json::array();
  for (std::uint32_t node = 0; node < config_.nodes.size(); ++node) {
    const detail::route_node_counters &counts = engine_.router().counters(node);
    out_.log("CUDAQ_REALTIME_ROUTER_NODE_COUNTS name={} forwarded={} answered={} lost={} refused={} late={} joins={} "
             "losses={}\n",
             config_.nodes[node].name, counts.forwarded.value(), counts.answered.value(), counts.lost.value(),
             counts.refused.value(), counts.late.value(), counts.joins.value(), counts.losses.value());
    nodes.push_back({{"name", config_.nodes[node].name},
                     {"forwarded", counts.forwarded.value()},
                     {"answered", counts.answered.value()},
                     {"lost", counts.lost.value()},
                     {"refused", counts.refused.value()},
                     {"late", counts.late.value()},
                     {"joins", counts.joins.value()},
                     {"losses", counts.losses.value()}});
  }
  out_.log("CUDAQ_REALTIME_ROUTER_PROCESSED count={}\n", transport_.processed());
  return out_.finish({{"endpoint", transport_.endpoint()},
                      {"processed", transport_.processed()},
                      {"stray_messages", engine_.router().stray_messages().value()},
                      {"nodes", nodes}},
                     problem);
}

} // namespace

int run_route(const route_options &options, const output &out) {
  if (options.schema) {
    write_text(stdout, route_json_schema());
    return kExitOk;
  }
  if (options.config.empty())
    throw usage_error("--config is missing; share/doc/cudaq-realtime/docs/transport/route.md has examples, and "
                      "--schema prints its fields");
  signal_events signals(kAnswerAllLimit + 3 * kThreadLimit); // before any thread: all of them block these signals
  // Not destroyed if a thread does not end: it uses the object.
  auto router = std::make_unique<routing>(options, load_route(options.config), out);
  try {
    router->start();
    router->run(signals);
  } catch (...) {
    if (!router->drain()) // ends the threads
      (void)router.release();
    throw;
  }
  if (router->drain())
    return router->report("");
  const int status = router.release()->report("the library did not stop in time; requests may have no answer");
  std::fflush(nullptr);
  _exit(status);
}

} // namespace cudaq::realtime::tools

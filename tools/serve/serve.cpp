// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/serve.h"

#include "lib/qec/decoding/number_of.h"
#include "lib/qec/server/config_fields.h"
#include "lib/qec/server/hosted_server.h"
#include "lib/qec/server/record/request_recorder.h"
#include "lib/qec/server/slot_size.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"
#include "tools/common/end_watch.h"
#include "tools/common/log_line.h"
#include "tools/common/output_file.h"
#include "tools/serve/background_task.h"
#include "tools/serve/decode_log.h"
#include "tools/serve/detector_pages.h"
#include "tools/serve/live_pages.h"
#include "tools/serve/realtime_setup.h"
#include "tools/serve/refusal_log.h"
#include "tools/serve/serve_config.h"
#include "tools/serve/serve_counters.h"
#include "tools/serve/serve_signals.h"
#include "tools/services/client_log.h"
#include "tools/services/long_message_log.h"
#include "tools/services/transport_counters.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

namespace server_ns = cudaq::qec::realtime;
using namespace std::chrono_literals;

/// How long a reload waits for the ends of shots.
constexpr std::chrono::nanoseconds kReloadLimit = 5s;
/// How long the end waits for a reload after all requests were answered.
constexpr auto kReloadEndLimit = 500ms;
/// What the end may take after --end-limit: the threads of the dispatcher, a reload, the decoders' destroy.
constexpr auto kAfterEndLimit = 3s;

/// 2: answers_by_status has names and counts all functions, in place of busy and failed_one_shots.
constexpr int kServeSchemaVersion = 2;

std::vector<std::string> given_args(const serve_options &o, const server_ns::hosted_server &host) {
  const bool same = o.transport.empty() || o.transport == host.config().transport;
  return o.provider_options.empty() && same ? host.config().transport_args : o.provider_options;
}

bool names_size(const std::vector<std::string> &args) {
  return std::ranges::any_of(
      args, [](const std::string &arg) { return arg.starts_with("--slot-size") || arg.starts_with("--page-size"); });
}

/// The provider, with slots in which the request of a whole shot of each decoder fits, unless its options name a size,
/// or it refuses the option: then a control system may send a shot in parts.
provider_service sized_transport(const serve_options &o, const server_ns::hosted_server &host,
                                 const std::string &library) {
  std::vector<std::string> args = given_args(o, host);
  const cudaq_wait_policy_t wait = wait_policy_of(o.wait, false);
  if (!names_size(args) && host.slot_bytes() > server_ns::kUsualSlotSize) {
    std::vector<std::string> sized = args;
    sized.push_back(fmt::format("--slot-size={}", host.slot_bytes()));
    try {
      return {library, sized, wait};
    } catch (const usage_error &) {
      // A provider without this option. It says below what else is wrong with the options, or has slots of its own.
    } catch (const api_error &) { // the same, with another status
    }
  }
  return {library, args, wait};
}

/// The lines of a reload. They exist from the start on, so that a reload without memory has one, too.
struct reload_lines {
  const std::string applied = "QEC_DECODING_SERVER_CONFIG_APPLIED",
                    rejected = "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active",
                    busy = "QEC_DECODING_SERVER_CONFIG_BUSY",
                    no_memory = "cudaq-realtime: out of memory while --config was read again\n";
};

/// The server with its transport. The main thread calls everything, except the work of a reload.
class serving {
public:
  serving(const serve_options &o, server_ns::loaded_config loaded, const output &out, signal_events &signals,
          realtime_setup &realtime, const section_overrides &sections)
      : options_(o), out_(out), signals_(signals), realtime_(realtime), sections_(sections),
        lines_(out.uses_stdout_for_json() ? stderr : stdout), host_(std::move(loaded)), server_(host_.server()),
        few_cores_(std::thread::hardware_concurrency() < server_.threads_for(o.decoder_threads) + 3),
        library_(provider_library(chosen_transport(o.transport, host_.config().transport))),
        transport_(sized_transport(o, host_, library_)), listeners_(o.counters, o.prometheus_port) {
    if (const auto result = host_.check_slots(transport_.slot_bytes()); result.failed())
      throw usage_error(
          fmt::format("--config {}: {}; give the provider larger slots (--slot-size)", o.config, result.text()));
    const server_ns::transport_slots slots{transport_.num_slots(), !transport_.is_unified()};
    if (const auto result = host_.attach(transport_.dispatcher(), slots); result.failed())
      throw api_error(result.text());
    if (transport_.slot_bytes() < host_.shot_request_bytes() && !names_size(given_args(o, host_)))
      print_log("--transport {}: its slots have {} bytes, and the request of a whole shot needs {}: shots must come in "
                "parts{}\n",
                library_, transport_.slot_bytes(), host_.shot_request_bytes(),
                host_.slot_bytes() == 0 ? "" : ", or an option of the provider must set the size");
  }
  ~serving();
  serving(const serving &) = delete;
  serving &operator=(const serving &) = delete;

  /// Prints a line that other programs wait for: to stdout, unless this is for JSON only.
  void announce(const std::string &line) const { write_log_line(lines_, line + "\n"); }
  void announce_busy_reload() const noexcept { write_event(lines_, reload_lines_.busy); }
  void start();
  void announce_queue_pair() const;
  /// Returns when the program must end.
  void run();
  /// Lets requesters read their corrections, answers the requests that were taken, and stops. False: a decoder did not
  /// end in time, and may still use this object. Then it has reported, unless the transport's threads did not end.
  [[nodiscard]] bool drain();
  /// After drain() has failed: which decoders work on.
  [[nodiscard]] std::string unended_text() const { return host_.unended_text(); }
  int report(const std::string &problem);
  /// Reports if that was not done yet, and ends the program while a decoder works: nothing that it uses is destroyed.
  [[noreturn]] void leave(const std::string &problem) noexcept;
  /// Waits for a reload that runs. False: it did not end soon, and may still use this object.
  [[nodiscard]] bool finish_reload();

private:
  void control_turn(int wait_ms);
  void begin_reload() noexcept;
  void begin_go_back();
  void log_learning();
  void reload() noexcept;
  void finish_reload_with(const std::string &line, const char *reason) const noexcept;
  void answer_a_reader(const std::vector<pollfd> &fds);
  void end_if_idle();
  std::vector<http_page> pages();
  std::string counters() const {
    return counters_text(server_, transport_, {start_, host_.reloads(), reloads_rejected_.value()},
                         learning_text(host_.learning().reports()));
  }

  const serve_options &options_;
  const output &out_;
  signal_events &signals_;
  realtime_setup &realtime_;
  const section_overrides &sections_;
  std::FILE *const lines_;
  const reload_lines reload_lines_;
  server_ns::hosted_server host_;
  server_ns::decoding_server &server_; ///< that of host_
  bool few_cores_;
  const std::string library_;
  provider_service transport_;
  counter_listeners listeners_;
  const double start_ = unix_seconds();
  mutable detail::counter reloads_rejected_; ///< and those that gave up
  bool running_ = false;                     ///< handlers may be called, and use this object
  const std::vector<http_page> pages_ = pages();
  std::size_t next_listener_ = 0;
  std::unique_ptr<background_task> reload_task_; ///< the last reload
  std::optional<int> reported_;                  ///< the status that report() has returned
  decode_log decode_log_{server_};
  client_log client_log_{transport_};
  refusal_log refusal_log_{[this] { return refusals_of(server_, transport_); }};
  long_message_log long_message_log_{
      transport_, [this]() -> std::uint64_t { return host_.slot_bytes() == 0 ? 0 : host_.shot_request_bytes(); }};
  std::uint64_t processed_ = 0, processed_since_ = now_ns(); ///< the count of requests, and when it changed
};

// After an error, while it runs: as at its normal end.
serving::~serving() {
  bool ended = false;
  try {
    ended = !running_ || drain();
  } catch (const std::exception &e) {
    print_log("{}\n", e.what());
  }
  if (!ended || !finish_reload())
    leave(unended_text());
  server_.stop(std::chrono::steady_clock::time_point::max());
}

void serving::start() {
  const server_ns::realtime_config &realtime = host_.config().realtime;
  if (const auto result = host_.record(); result.failed())
    refuse(result.status() != CUDAQ_ERR_INVALID_ARG, "record: " + result.text());
  transport_.place(realtime.loop_core, realtime.priority);
  if (const auto result = host_.start(wait_policy_of(options_.wait, few_cores_), options_.decoder_threads);
      result.failed())
    throw api_error("the decoders' threads: " + result.text());
  realtime_.apply(realtime); // some transports have requests from here on
  transport_.start();
  running_ = true;
  realtime_.apply(realtime); // with the memory of the transport's threads
  for (const realtime_step &step : realtime_.steps())
    print_log("realtime: {}: {}\n", step.what, step.why.empty() ? "applied" : "not applied: " + step.why);
  std::string line = "QEC_DECODING_SERVER_READY " + transport_.ready_words();
  if (listeners_.port() >= 0)
    line += fmt::format(" prometheus_port={}", listeners_.port());
  announce(line);
  notify_service_manager("READY=1\nSTATUS=" + line);
}

/// The numbers that an RDMA peer needs, as scripts for sensor bridges read them.
void serving::announce_queue_pair() const {
  if (const std::string banner = bridge_banner(transport_.endpoint()); !banner.empty())
    announce(banner);
}

/// For browsers, beside the counters.
std::vector<http_page> serving::pages() {
  constexpr const char *kHtml = "text/html; charset=utf-8";
  return {
      {"/detectors", kHtml, [this] { return detectors_page(server_); }},
      {"/detectors.json", "application/json", [this] { return detectors_json(server_, host_.learning().reports()); }},
      {"/times", kHtml, [this] { return times_page(timed_decoders(server_)); }},
      {"/streams", kHtml, [this] { return streams_page(stream_decoders(server_)); }}};
}

/// At most one a turn, because each may take its time; the listeners take turns.
void serving::answer_a_reader(const std::vector<pollfd> &fds) {
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const pollfd &fd = fds[next_listener_++ % fds.size()];
    if (fd.revents != 0)
      return listeners_.answer(
          fd.fd, [this] { return counters(); }, pages_);
  }
}

void serving::run() {
  for (bool connected = false, announced = false; !signals_.end_is_wanted();) {
    try {
      if (!connected && transport_.connect(50'000'000)) {
        transport_.launch();
        connected = true;
      }
      if (connected && !announced) {
        announce_queue_pair();
        announced = true;
      }
      control_turn(connected ? 100 : 0);
    } catch (const std::bad_alloc &) { // the decoders serve without this thread
      std::this_thread::sleep_for(10ms);
    }
    end_if_idle(); // also without memory
  }
}

/// --timeout: begins the end if no request has come for this time.
void serving::end_if_idle() {
  if (const std::uint64_t now = transport_.processed(); now != processed_) {
    processed_ = now;
    processed_since_ = now_ns();
  }
  if (options_.timeout_s > 0 && static_cast<double>(now_ns() - processed_since_) > options_.timeout_s * 1e9)
    signals_.begin_end();
}

void serving::control_turn(int wait_ms) {
  std::vector<pollfd> fds;
  for (const int fd : listeners_.descriptors())
    fds.push_back({fd, POLLIN, 0});
  fds.push_back({signals_.descriptor(), POLLIN, 0});
  poll(fds.data(), fds.size(), wait_ms);
  fds.pop_back();
  signals_.clear();
  if (signals_.end_is_wanted())
    return;
  // Signals that arrive during a reload are one more reload after it.
  if ((!reload_task_ || reload_task_->ended()) && signals_.take_reload())
    begin_reload();
  if ((!reload_task_ || reload_task_->ended()) && signals_.take_go_back())
    begin_go_back();
  answer_a_reader(fds); // before the lines, which may find no memory again and again
  decode_log_.poll();
  client_log_.poll();
  refusal_log_.poll();
  long_message_log_.poll();
  log_learning();
}

/// Not on the main thread: a file or a plug-in may take any time.
void serving::begin_reload() noexcept {
  try {
    notify_service_manager(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now_ns() / 1000));
    reload_task_.reset();
    refuse_output_file("--config", options_.config);
    reload_task_ = std::make_unique<background_task>([this] { reload(); }, [this] { signals_.wake(); });
  } catch (const std::exception &e) {
    finish_reload_with(reload_lines_.rejected, e.what());
  }
}

/// As a reload: it waits for the ends of shots.
void serving::begin_go_back() {
  reload_task_.reset();
  reload_task_ = std::make_unique<background_task>(
      [this] {
        try {
          const server_ns::reload_result result = host_.go_back(kReloadLimit.count());
          if (result.outcome == server_ns::reload_outcome::applied)
            print_log("learn: the models of the configuration are in use; nothing is learned until the next reload\n");
          else
            print_log("learn: a learned model is still in use: {}\n", result.reason);
        } catch (const std::bad_alloc &) {
          write_text(stderr, reload_lines_.no_memory);
        }
      },
      [this] { signals_.wake(); });
}

void serving::log_learning() {
  for (const std::string &line : host_.learning().take_lines())
    print_log("{}\n", line);
}

void serving::reload() noexcept {
  try {
    const config_text file = read_config("--config", options_.config);
    const server_ns::reload_result result = host_.reload(
        file.yaml, file.folder, kReloadLimit.count(), [this] { return signals_.end_is_wanted(); },
        [this](server_ns::server_config &config) { sections_.apply(config); });
    if (const std::string why = realtime_.lock_again(host_.config().realtime); !why.empty())
      print_log("realtime: lock_memory: not applied: {}\n", why);
    if (result.outcome == server_ns::reload_outcome::applied)
      return finish_reload_with(reload_lines_.applied, "");
    const std::string reason = fmt::format("--config {}: {}", options_.config, result.reason);
    finish_reload_with(result.outcome == server_ns::reload_outcome::busy ? reload_lines_.busy : reload_lines_.rejected,
                       reason.c_str());
  } catch (const std::exception &e) {
    finish_reload_with(reload_lines_.rejected, e.what());
  }
}

/// `line` comes after the reason, for programs that wait for it.
void serving::finish_reload_with(const std::string &line, const char *reason) const noexcept {
  if (line != reload_lines_.applied)
    reloads_rejected_.add();
  try {
    if (*reason != '\0')
      print_log("{}\n", reason);
  } catch (const std::bad_alloc &) {
    write_text(stderr, reload_lines_.no_memory);
  }
  write_event(lines_, line);
  if (!signals_.end_is_wanted())
    notify_service_manager("READY=1");
}

bool serving::finish_reload() {
  const auto deadline = std::chrono::steady_clock::now() + kReloadEndLimit;
  while (reload_task_ && !reload_task_->ended() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  return !reload_task_ || reload_task_->ended();
}

bool serving::drain() {
  notify_service_manager("STOPPING=1");
  const auto after = [begin = std::chrono::steady_clock::now()](double seconds) {
    return begin + std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
  };
  const auto deadline = after(options_.end_limit_s);
  const bool idle = server_.drain(after(options_.read_limit_s), deadline);
  if (!idle && !reported_) // now: a transport whose requests go on coming may need all the time that is left
    report(unended_text());
  // The threads of the dispatcher need some time to end, also if decoders took all of it.
  const std::chrono::nanoseconds left =
      std::max<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now(), 1s);
  const bool stopped = transport_.stop(static_cast<std::uint64_t>(left.count()));
  // Threads without work need a moment, also after a limit of 0.
  running_ = !server_.stop(idle ? std::max(deadline, std::chrono::steady_clock::now() + 500ms) : deadline) || !stopped;
  return idle && !running_;
}

void serving::leave(const std::string &problem) noexcept {
  int status = kExitCheckFailed;
  try {
    status = reported_ ? *reported_ : report(problem);
  } catch (const std::exception &e) {
    print_log("{}\n", e.what());
  }
  listeners_.close_all();
  std::fflush(nullptr);
  _exit(status);
}

json times_json(const detail::time_histogram::snapshot &times) {
  if (times.count == 0)
    return {{"count", 0}, {"mean", {}}, {"p50", {}}, {"p99", {}}, {"p99.9", {}}, {"max", {}}};
  return {{"count", times.count},
          {"mean", static_cast<double>(times.sum_ns) / static_cast<double>(times.count)},
          {"p50", times.percentile(50)},
          {"p99", times.percentile(99)},
          {"p99.9", times.percentile(99.9)},
          {"max", times.max_ns}};
}

int serving::report(const std::string &problem) {
  decode_log_.poll_failures();
  json decoders = json::array();
  for (const auto &decoder : server_.decoders()) {
    const server_ns::decoder_counts counts = decoder->counts();
    const server_ns::decode_failures failures = decoder->failures();
    out_.log("QEC_DECODING_SERVER_RING decoder={} dispatched={}\n", decoder->limits().id, counts.requests);
    const auto identity = decoder->identity();
    json answers = json::object(), stages = json::object(), wins, stream;
    for (std::size_t status = 0; status < counts.by_status.size(); ++status)
      answers[status_label(status)] = counts.by_status[status];
    if (!identity->members.empty())
      wins = json::object();
    for (std::size_t k = 0; k < identity->members.size(); ++k)
      wins[identity->members[k]] = identity->wins[k].value();
    for (std::size_t s = 0; s < server_ns::kRequestStages.size(); ++s)
      stages[server_ns::kRequestStages[s]] =
          times_json(decoder->times().read(static_cast<server_ns::request_stage>(s)));
    if (decoder->is_stream())
      stream = {{"rounds_pushed", counts.stream.pushed},
                {"rounds_committed", counts.stream.committed},
                {"worst_lag_rounds", counts.stream.worst_lag},
                {"tail_ns_sum", counts.tail_ns},
                {"tail_ns_max", counts.shots == 0 ? json() : json(counts.worst_tail_ns)}};
    decoders.push_back({{"id", decoder->limits().id},
                        {"requests", counts.requests},
                        {"shots", counts.shots},
                        {"decoder", identity->name.empty() ? json() : json(identity->name)},
                        {"too_old", counts.too_old},
                        {"repeated", counts.repeated},
                        {"padded", counts.padded},
                        {"exchanges", counts.exchanges},
                        {"failed_decodes", failures.count},
                        {"last_failure", failures.last},
                        {"deadline_met", counts.deadlines.met},
                        {"deadline_missed", counts.deadlines.missed},
                        {"deadline_late", counts.deadlines.late},
                        {"race_wins", wins},
                        {"answers_by_status", answers},
                        {"stages_ns", stages},
                        {"unanswered", counts.unanswered()},
                        {"stream", stream}});
  }
  json learning = json::array();
  for (const server_ns::learning_report &report : host_.learning().reports())
    learning.push_back(learning_json(report));
  refusal_log_.poll_at_end();
  if (!problem.empty())
    print_log("{}\n", problem); // the line of FAILED has no time
  out_.log("CUDAQ_REALTIME_SERVER_PROCESSED count={}\n", transport_.processed());
  reported_ = out_.finish({{"schema_version", kServeSchemaVersion},
                           {"endpoint", transport_.endpoint()},
                           {"processed", transport_.processed()},
                           {"reloads", host_.reloads()},
                           {"stray_requests", server_.strays()},
                           {"realtime", realtime_.as_json()},
                           {"learn", learning},
                           {"decoders", decoders}},
                          problem);
  std::fflush(stdout);
  return *reported_;
}

/// The report of a run that served nothing.
json unserved(json decoders = json::array(), json realtime = {}) {
  return {{"schema_version", kServeSchemaVersion},
          {"endpoint", ""},
          {"processed", 0},
          {"reloads", 0},
          {"stray_requests", 0},
          {"realtime", std::move(realtime)},
          {"learn", json::array()},
          {"decoders", std::move(decoders)}};
}

/// Ends the process: threads that may not end use `loaded`, or its configuration is not read yet.
[[noreturn]] void leave_now(int status) {
  std::fflush(nullptr);
  _exit(status);
}

/// --check: all that the start does, before the transport. A plug-in whose destroy does not end is held to the limit of
/// `signals`.
int check(const serve_options &o, const output &out, signal_events &signals,
          const std::shared_ptr<realtime_setup> &realtime, const std::shared_ptr<section_overrides> &sections) {
  auto loaded = load_until_end("--check", o.check, signals,
                               [realtime, sections](server_ns::server_config &config) { sections->apply(config); });
  if (!loaded)
    leave_now(out.finish(unserved(), "", kExitCheckFailed, ended(true, 0, kNotKnown, "decoders")));
  json decoders = json::array();
  std::string lines;
  for (const server_ns::decoder_setup &setup : loaded->setups) {
    const server_ns::decoding_unit &unit = *setup.unit;
    decoders.push_back({{"id", setup.limits.id}, {"decoder", unit.identity()->name}});
    lines += fmt::format("decoder {}: {}, {}, digest {:016x}\n", setup.limits.id,
                         server_ns::number_of(unit.num_detectors(), "detector"),
                         server_ns::number_of(unit.num_observables(), "observable"), unit.digest());
  }
  const std::string transport = o.transport.empty() ? loaded->config.transport : o.transport;
  lines += fmt::format("QEC_DECODING_SERVER_CONFIG_GOOD decoders={} transport={}\n", decoders.size(),
                       transport.empty() ? "none" : transport);
  signals.begin_end(); // before a refusal, which calls the plug-ins' destroy, too
  if (const std::string &file = loaded->config.record.file; !file.empty())
    if (const auto result = server_ns::request_recorder::check(file); result.failed())
      refuse(result.status() != CUDAQ_ERR_INVALID_ARG, "record: " + result.text());
  realtime->apply(loaded->config.realtime);
  loaded.reset(); // calls the plug-ins' destroy
  out.text("{}", lines);
  for (const realtime_step &step : realtime->steps())
    out.text("realtime: {}: {}\n", step.what, step.why.empty() ? "can be applied" : "cannot: " + step.why);
  return out.finish(unserved(std::move(decoders), realtime->as_json()));
}

} // namespace

int run_serve(const serve_options &options, const output &out) {
  if (options.schema) {
    write_text(stdout, server_ns::config_json_schema());
    return kExitOk;
  }
  if (options.config.empty() && options.check.empty())
    throw usage_error("--config is missing; share/doc/cudaq-realtime/docs/transport/server_config.md has examples, and "
                      "--schema prints its fields");
  // Before any thread: all of them block these signals. Before the server: decoders that do not end at its destruction
  // do not delay the end.
  end_watch::leave_out();
  signal_events signals(kAfterEndLimit +
                        std::chrono::nanoseconds(static_cast<std::int64_t>(options.end_limit_s * 1e9)));
  // Before the server: its destructor waits for a reload, which uses it.
  const auto realtime = std::make_shared<realtime_setup>(options.realtime);
  const auto sections = std::make_shared<section_overrides>(options.record, !options.realtime.empty(), *realtime);
  if (!options.check.empty())
    return check(options, out, signals, realtime, sections);
  auto loaded = load_until_end("--config", options.config, signals,
                               [realtime, sections](server_ns::server_config &config) { sections->apply(config); });
  if (!loaded) {
    print_log("the end came while --config {} was read; nothing was served\n", options.config);
    leave_now(out.finish(unserved()));
  }
  serving server(options, std::move(*loaded), out, signals, *realtime, *sections);
  server.start();
  server.run();
  if (!server.drain())
    server.leave(server.unended_text());
  if (!server.finish_reload()) {
    print_log("the end came while --config {} was read again\n", options.config);
    server.announce_busy_reload();
    server.leave("");
  }
  return server.report(""); // before the server's destructor, which frees the decoders and may not end
}

} // namespace cudaq::realtime::tools

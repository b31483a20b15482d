// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_pass.h"

#include "tools/common/clock.h"
#include "tools/common/machine.h"
#include "tools/common/report.h"
#include "tools/common/terminal.h"
#include "tools/demo/demo_client.h"

#include <chrono>
#include <exception>
#include <system_error>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kIdleTurnsPerWatch = 64;
constexpr auto kProgressPoll = std::chrono::milliseconds(20);

/// Runs turn() until done() or a stall. After a turn without work it waits; it calls watch(now) every 64 idle turns.
template <typename Done, typename Turn, typename Watch>
void run_loop(client_state &state, Done done, Turn turn, Watch watch) {
  spin_then_yield idle(state.config.client_spins);
  std::uint32_t idle_turns = 0;
  while (!done() && !state.stalled.load(std::memory_order_relaxed)) {
    if (turn()) {
      idle.worked();
    } else {
      idle.idle();
      if (++idle_turns % kIdleTurnsPerWatch == 0)
        watch(now_ns());
    }
  }
}

/// The client's threads. An exception of one thread ends both; join() throws it again.
class client_threads {
public:
  client_threads(client_state &state, shot_sender &sender, answer_collector &collector) : state_(state) {
    const pass_config &config = state.config;
    const auto collect_done = [&collector] { return collector.done(); };
    const auto watch = [&collector](std::uint64_t now) { collector.watch(now); };
    if (config.client_threads < 2) {
      launch(config.core_producer >= 0 ? config.core_producer : config.core_consumer, [=, &state, &sender, &collector] {
        const auto turn = [&] {
          const bool sent = sender.turn();
          return collector.turn() || sent;
        };
        run_loop(state, collect_done, turn, watch);
      });
      return;
    }
    launch(config.core_producer, [&state, &sender] {
      run_loop(
          state, [&] { return sender.done(); }, [&] { return sender.turn(); }, [](std::uint64_t) {});
    });
    try {
      launch(config.core_consumer, [=, &state, &collector] {
        run_loop(
            state, collect_done, [&] { return collector.turn(); }, watch);
      });
    } catch (...) { // the system gives no second thread; no destructor follows
      end();
      throw;
    }
  }
  ~client_threads() { end(); }

  [[nodiscard]] bool running() const noexcept { return running_.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] std::uint64_t lost_cores() const noexcept { return switches_.load(std::memory_order_relaxed); }
  void join() {
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
    for (const std::exception_ptr &e : errors_)
      if (e)
        std::rethrow_exception(e);
  }

private:
  void end() noexcept {
    if (!threads_.empty())
      state_.stalled.store(true, std::memory_order_relaxed);
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
  }
  template <typename Body>
  void launch(int core, Body body) {
    std::exception_ptr &error = errors_[threads_.size()];
    running_.fetch_add(1, std::memory_order_relaxed);
    const auto run = [this, core, body, &error] {
      try {
        if (const std::string why = pin_this_thread(core); !why.empty())
          throw usage_error("cannot pin a client thread to " + why);
        body();
        switches_.fetch_add(involuntary_switches(), std::memory_order_relaxed);
      } catch (...) {
        error = std::current_exception();
        state_.stalled.store(true, std::memory_order_relaxed);
      }
      running_.fetch_sub(1, std::memory_order_release);
    };
    try {
      threads_.emplace_back(run);
    } catch (const std::system_error &e) {
      throw std::runtime_error(fmt::format("a client thread: the system did not create it: {}", e.code().message()));
    }
  }

  client_state &state_;
  std::atomic<int> running_{0};
  std::atomic<std::uint64_t> switches_{0};
  std::exception_ptr errors_[2];
  std::vector<std::thread> threads_;
};

void show_progress(const client_threads &threads, const client_state &state) {
  const pass_config &config = state.config;
  progress display({config.label, "shots", config.shots, config.duration_ns});
  while (threads.running()) {
    display.show(state.answered.load(std::memory_order_relaxed), now_ns());
    std::this_thread::sleep_for(kProgressPoll);
  }
}

/// The counts of client and dispatcher must agree. Every difference becomes a problem that names both figures.
void judge(pass_result &r, double timeout_s) {
  const auto problem = [&r](std::string text) { r.problems.push_back(std::move(text)); };
  const auto must_be = [&](const char *what, std::uint64_t is, std::uint64_t should) {
    if (is != should)
      problem(fmt::format("{}: {}, should be {}", what, is, should));
  };
  if (r.stalled)
    problem(fmt::format("stalled: no progress for {:.1f} s with {} of {} requests unanswered", timeout_s,
                        r.sent - r.answered, r.sent));
  if (r.faults != 0)
    problem(fmt::format("{} answers with a wrong frame, id or timestamp", r.faults));
  if (r.bad_status != 0)
    problem(fmt::format("{} answers report an error", r.bad_status));
  if (r.mismatches != 0)
    problem(fmt::format("{} corrections differ from the expected ones", r.mismatches));
  must_be("answers collected", r.answered, r.sent);
  must_be("slots still taken at the end (answers given twice)", r.leftover_answers, 0);
  const cudaq_dispatcher_stats_t &s = r.stats;
  must_be("dispatcher: requests received", s.received, r.sent);
  must_be("dispatcher: requests handed to the handler", s.dispatched, r.sent);
  must_be("dispatcher: answers given", s.responded, r.answered);
  must_be("dispatcher: processed", r.processed, r.sent);
  must_be("dispatcher: in flight at the end", s.in_flight, 0);
  must_be("dispatcher: dropped for a wrong magic", s.dropped_bad_magic, 0);
  must_be("dispatcher: dropped as unknown function", s.dropped_unknown_function, 0);
  must_be("dispatcher: dropped for the flag value", s.dropped_flag_value, 0);
  must_be("dispatcher: unexpected flag values", s.unexpected_flag_values, 0);
  must_be("dispatcher: ring order broken by the producer", s.cursor_jumps, 0);
  must_be("dispatcher: slots refilled before their answer was collected", s.tx_busy_waits, 0);
  std::uint64_t errors = s.handler_errors;
  for (const std::uint64_t n : s.protocol_errors)
    errors += n;
  must_be("dispatcher: answers with an error status", errors, r.bad_status + r.undecided.total());
}

} // namespace

pass_result run_pass(ring_service &service, const shot_plan &plan, const pass_config &config) {
  pass_result result;
  result.config = config;
  service.start();
  client_state state(service.ring(), service.num_slots(), plan, result.config, now_ns());
  shot_sender sender(state);
  answer_collector collector(state, result);
  {
    client_threads threads(state, sender, collector);
    show_progress(threads, state);
    threads.join();
    result.involuntary_switches = threads.lost_cores();
  }
  sender.report(result);
  collector.report();
  result.stalled = state.stalled.load(std::memory_order_relaxed);
  if (result.stalled)
    result.dump = collector.consumer().describe_outstanding(now_ns()) + service.dump();
  else
    service.stop();
  result.leftover_answers = result.stalled ? 0 : collector.consumer().count_leftover_answers();
  result.stats = service.stats();
  result.processed = service.processed();
  judge(result, static_cast<double>(config.timeout_ns) * 1e-9);
  return result;
}

} // namespace cudaq::realtime::tools

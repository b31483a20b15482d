// SPDX-License-Identifier: Apache-2.0
// The graph scheduler compiled for the CPU: members of a rotation are threads, and graphs are jobs of a few worker
// threads. The launch rules of the CUDA runtime are imitated: a limit of launches per execution, no launch of a graph
// that still runs, and a relaunch that waits for everything that was launched.
#pragma once

#include "kernels/graphs/completion_poller.h"
#include "kernels/graphs/graph_block.h"
#include "kernels/graphs/graph_handlers.h"
#include "unittests/loop/loop_host.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kRuntimeLimit = 120; ///< launches per execution

/// A graph that answers one request at a time.
struct fake_graph {
  checked_function *function = nullptr;
  GraphIOContextV2 own_context{};
  GraphIOContextV2 *context = &own_context; ///< several graphs may share one context
  bool publishes = false;
  std::atomic<bool> uploaded{true};
  std::chrono::microseconds wait{0};       ///< waiting time before it reads the request
  std::chrono::microseconds linger{0};     ///< waiting time after its signal
  const std::atomic<bool> *gate = nullptr; ///< the graph waits until this is true before it reads the request
  std::uint32_t silent_every = 0;          ///< one in this number of launches ends without a signal; 0: none
  std::uint64_t key = 0;                   ///< the last key that it has read; only without a function
  std::uint32_t launches = 0;
  std::uint32_t runs = 0; ///< counted by itself, only with silent_every
  std::atomic<int> running{0};

  void run() {
    rest(wait);
    while (gate != nullptr && !gate->load())
      rest(std::chrono::microseconds(100));
    if (silent_every != 0 && ++runs % silent_every == 0)
      return;
    const GraphIOContextV2 own = *context;
    const auto *slot = static_cast<const std::uint8_t *>(own.io.rx_slot);
    const request r = read_header<request>(slot);
    std::vector<std::uint8_t> payload(slot + CUDAQ_RPC_HEADER_SIZE, slot + CUDAQ_RPC_HEADER_SIZE + r.arg_len);
    std::vector<std::uint8_t> result(own.io.tx_stride_sz - CUDAQ_RPC_HEADER_SIZE);
    cudaq_host_call_t call{};
    call.payload = payload.data();
    call.payload_len = r.arg_len;
    call.result = result.data();
    call.max_result_len = static_cast<std::uint32_t>(result.size());
    std::int32_t status = 0;
    if (function != nullptr)
      status = checked_function::serve(&call, function);
    else if (r.arg_len >= sizeof(key))
      std::memcpy(&key, payload.data(), sizeof(key));
    write_response(own.io.tx_slot, r, status, call.result_len);
    std::memcpy(own.io.tx_slot + CUDAQ_RPC_HEADER_SIZE, result.data(), call.result_len);
    store_release(*own.io.tx_flag, own.io.tx_flag_value);
    if (publishes)
      store_release(*own.done, own.done_value);
    rest(linger);
  }

private:
  static void rest(std::chrono::microseconds time) {
    if (time.count() != 0)
      std::this_thread::sleep_for(time);
  }
};

/// Threads that run launched graphs.
class graph_workers {
public:
  explicit graph_workers(std::uint32_t count) {
    for (std::uint32_t w = 0; w < count; ++w)
      threads_.emplace_back([this] { work(); });
  }
  ~graph_workers() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    more_.notify_all();
    for (std::thread &t : threads_)
      t.join();
  }
  void push(fake_graph *graph, std::atomic<int> *children) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({graph, children});
    more_.notify_one();
  }

private:
  struct job {
    fake_graph *graph;
    std::atomic<int> *children;
  };
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty())
        return;
      const job j = queue_.front();
      queue_.pop_front();
      lock.unlock();
      j.graph->run();
      j.graph->running.store(0);
      j.children->fetch_sub(1);
    }
  }
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<job> queue_;
  std::vector<std::thread> threads_;
  bool ends_ = false;
};

/// One execution of a member, with the runtime's view of it.
struct fake_execution {
  graph_workers *workers = nullptr;
  int relaunch_error = 0;
  std::atomic<int> children{0};
  std::uint32_t launches = 0;
  std::uint32_t relaunches = 0; ///< pending relaunches: the runtime allows one
  std::atomic<std::uint64_t> *over_limit = nullptr;
  std::atomic<std::uint32_t> *relaunches_refused = nullptr;
};

struct fake_launcher {
  fake_execution *execution;

  int launch(std::uint64_t exec) const {
    auto &graph = *reinterpret_cast<fake_graph *>(exec);
    if (execution->launches >= kRuntimeLimit) {
      ++*execution->over_limit;
      return 1;
    }
    if (!graph.uploaded || graph.running.exchange(1) != 0) {
      return 1;
    }
    ++execution->launches;
    ++graph.launches;
    execution->children.fetch_add(1);
    execution->workers->push(&graph, &execution->children);
    return 0;
  }
  int relaunch() const {
    if (execution->relaunch_error != 0)
      ++*execution->relaunches_refused;
    else
      ++execution->relaunches;
    return execution->relaunch_error;
  }
  /// Runs 20 times slower than real time: a thread that loses its core between a graph's signal and its end must not
  /// cause a failed launch.
  static std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) / 20;
  }
};

/// An entry of the table: a graph, a function, or, without both, a checked function of loop_host.
struct graph_entry {
  std::uint32_t function_id = 0;
  std::uint64_t key = 0;
  fake_graph *graph = nullptr;
  DeviceRPCFunction call = nullptr;
};

class graph_host {
public:
  using handler_set = graph_handler_set<fake_launcher>;
  using transport = graph_ring_transport<yielding_thread_group, thread_scope_system>;

  /// one_context: all graphs share one context.
  graph_host(const host_ring &ring, const std::vector<graph_entry> &what, std::uint32_t members,
             std::uint32_t num_workers = 2, bool order_by_key = false, bool one_context = false,
             fake_graph *triggered = nullptr)
      : base(ring, 1, 1, 3), workers_(num_workers), members_(members) {
    static const DeviceRPCFunction kCalls[] = {handler<1>, handler<2>, handler<3>};
    for (const graph_entry &e : what) {
      cudaq_function_entry_t entry{};
      entry.function_id = e.function_id;
      entry.routing_key = e.key;
      entry.dispatch_mode = e.graph != nullptr ? CUDAQ_DISPATCH_GRAPH_LAUNCH : CUDAQ_DISPATCH_DEVICE_CALL;
      entry.handler.device_fn_ptr = e.graph != nullptr  ? static_cast<void *>(e.graph)
                                    : e.call != nullptr ? reinterpret_cast<void *>(e.call)
                                                        : reinterpret_cast<void *>(kCalls[e.function_id - 1]);
      entries_.push_back(entry);
    }
    std::vector<cudaq_function_entry_t> unique = entries_;
    keep_one_of_each_pool(unique);
    EXPECT_EQ(index_.build(unique.data(), static_cast<std::uint32_t>(unique.size())).what,
              function_index::problem::none);
    const function_index_view index = index_.view();
    for (std::uint32_t r = 0; r < index.num_routes; ++r)
      handlers_.push_back(reinterpret_cast<std::uint64_t>(unique[index.routes[r].entry].handler.device_fn_ptr));
    plan_.graphs = bind_graphs(entries_, index);
    for (graph_binding &b : plan_.graphs) {
      auto &graph = *reinterpret_cast<fake_graph *>(b.exec);
      if (one_context)
        graph.context = &what.front().graph->own_context;
      b.io = reinterpret_cast<std::uint64_t>(graph.context);
      b.publishes = graph.publishes;
    }
    base.params.index = index;
    base.params.handlers = handlers_.data();
    base.params.rules.served_modes |= 1u << CUDAQ_DISPATCH_GRAPH_LAUNCH;
    plan_.dispatch = base.params;
    plan_.members = members;
    plan_.order_by_key = order_by_key;
    plan_.report = &report;
    plan_.triggered = reinterpret_cast<std::uint64_t>(triggered);
    block_ = make_graph_block(plan_, index, layout_);
    new (&words()) graph_rotation_words{};
    words().token = kTokenFree;
  }

  void start() {
    for (std::uint32_t k = 0; k < members_; ++k)
      bring(k);
  }
  /// Starts member k.
  void bring(std::uint32_t k) {
    serving_.fetch_add(1);
    threads_.emplace_back([this, k] {
      serve(k);
      serving_.fetch_sub(1);
    });
  }
  /// Stops the scheduler and waits for its end.
  void stop() {
    store_release(base.library_word, std::uint32_t{1});
    join();
  }
  /// The same with a deadline. A scheduler that does not end by then fails the test: all completion words are set, so
  /// that it ends.
  void stop_within(std::chrono::seconds limit) {
    store_release(base.library_word, std::uint32_t{1});
    EXPECT_TRUE(eventually([this] { return serving_.load() == 0; }, limit)) << "the stop does not end";
    const graph_state_view view(layout_, block(), block());
    while (serving_.load() != 0) {
      for (std::uint32_t g = 0; g < layout_.num_graphs; ++g)
        store_release(view.done_words[g], load_relaxed(view.done_words[g]) + 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(500)); // until the poller has seen them
    }
    join();
  }
  /// Waits for an end without a stop.
  void join() {
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
  }
  /// Prepares the next start, which continues where this run stopped.
  void renew() {
    store_release(base.library_word, std::uint32_t{0});
    state().stop = {};
    base.reports[0].fault = 0;
    new (&words()) graph_rotation_words{};
    words().token = kTokenFree;
  }

  const graph_scheduler_words &state() const { return *reinterpret_cast<const graph_scheduler_words *>(block_.data()); }
  graph_scheduler_words &state() { return *reinterpret_cast<graph_scheduler_words *>(block_.data()); }

  loop_host base;
  graph_report report{};
  std::atomic<std::uint64_t> over_limit{0};
  std::atomic<std::uint32_t> relaunches_refused{0};
  std::array<std::uint32_t, kMaxMembers> executions{}; ///< per member; written by the member that holds the token
  std::array<std::atomic<int>, kMaxMembers> relaunch_errors{};
  std::array<std::atomic<bool>, kMaxMembers> detained{}; ///< while set, the member does not return from its relaunch

  std::uint32_t token() { return load_acquire<std::uint32_t, kGraphScope>(words().token); }
  std::uint32_t fault() const { return base.reports[0].fault; }
  std::uint32_t members_that_served() const {
    return static_cast<std::uint32_t>(
        std::count_if(executions.begin(), executions.end(), [](auto n) { return n != 0; }));
  }

private:
  std::uint8_t *block() { return block_.data(); }
  graph_rotation_words &words() { return *reinterpret_cast<graph_rotation_words *>(block() + layout_.rotation); }

  /// Does what kernels/graphs/graph_scheduler.cuh does with a block of two warps.
  void serve(std::uint32_t k) {
    const graph_rotation rotation(words(), base.reports[0].fault, k, members_);
    for (;;) {
      rotation.arrive();
      graph_rotation::call next = graph_rotation::call::wait;
      while ((next = rotation.poll()) == graph_rotation::call::wait)
        std::this_thread::sleep_for(std::chrono::microseconds(50)); // tests share few cores
      if (next == graph_rotation::call::leave)
        return;
      fake_execution execution;
      execution.workers = &workers_;
      execution.over_limit = &over_limit;
      execution.relaunches_refused = &relaunches_refused;
      execution.relaunch_error = relaunch_errors[k].load();
      ++executions[k];
      const execution_result result = serve_execution(k, rotation, execution);
      if (result.why == execution_end::stop) {
        rotation.end(result.gave_up ? result.stranded : 0);
      } else if (result.why == execution_end::relaunch) {
        rotation.set_free();
      } else {
        rotation.pass(result.successor);
        if (fake_launcher{&execution}.relaunch() != 0)
          rotation.lose();
      }
      EXPECT_LE(execution.relaunches, 1u);
      EXPECT_TRUE(result.why != execution_end::stop || execution.relaunches == 0)
          << "it would relaunch itself without end";
      while (execution.children.load() != 0 || detained[k].load()) // a relaunch waits for every child
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      if (execution.relaunches == 0)
        return;
    }
  }

  execution_result serve_execution(std::uint32_t k, const graph_rotation &rotation, fake_execution &execution) {
    execution_result result;
    graph_block image(layout_.image_bytes);
    std::memcpy(image.data(), block(), layout_.image_bytes);
    const graph_state_view view(layout_, image.data(), block());
    graph_scheduler_state<fake_launcher> graphs(view, base.params.ring, fake_launcher{&execution});
    graphs.begin_execution();
    rotation.begin(view.state.execution);
    std::uint32_t poller_ends = 0;
    std::thread poller([&] {
      completion_poller<yielding_thread_group, thread_scope_system> h(view, base.params.ring);
      while (load_acquire<std::uint32_t, kGraphScope>(poller_ends) == 0) {
        h.round();
        std::this_thread::sleep_for(std::chrono::microseconds(10));
      }
    });
    const table_handler_set table(base.params.index, base.params.handlers);
    const handler_set handlers(table, graphs, rotation, k, result);
    no_helpers<yielding_thread_group> helpers;
    workspace d(base.params.ring.slot_size);
    loop<handler_set, false, transport>(base.params, 0, d.loop, transport(base.params.ring, view), handlers, helpers)
        .run(1);
    store_release<std::uint32_t, kGraphScope>(poller_ends, std::uint32_t{1});
    poller.join();
    std::memcpy(block(), image.data(), layout_.image_bytes);
    return result;
  }

  struct workspace {
    explicit workspace(std::uint32_t slot_size) {
      const std::uint32_t stage = round16(slot_size);
      memory.resize(2 * stage / sizeof(word16));
      loop.in = reinterpret_cast<std::uint8_t *>(memory.data());
      loop.out = loop.in + stage;
      loop.staging_bytes = stage;
    }
    loop_workspace loop{};
    std::vector<word16> memory;
  };

  std::vector<cudaq_function_entry_t> entries_;
  function_index index_;
  std::vector<std::uint64_t> handlers_;
  graph_plan plan_;
  graph_layout layout_;
  graph_block block_{0};
  graph_workers workers_;
  const std::uint32_t members_;
  std::atomic<int> serving_{0}; ///< members that have not left
  std::vector<std::thread> threads_;
};

} // namespace cudaq::realtime::test

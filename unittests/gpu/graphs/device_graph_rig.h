// SPDX-License-Identifier: Apache-2.0
// A graph scheduler with its graphs, contexts and function table, and traffic that checks the answers.
#pragma once

#include "unittests/gpu/graphs/device_graphs.h"
#include "unittests/gpu/support/checked_device_functions.h"
#include "unittests/support/slots_under_way.h"

#include <algorithm>

namespace cudaq::realtime::test {

/// Needs a GPU that can launch graphs from the device. Without one the test is skipped; it fails if a GPU is required.
class device_graph_test : public gpu_test {
protected:
  explicit device_graph_test(int devices_needed = 1) : gpu_test(devices_needed) {}

  void prepare() override { need_device_graphs(); }
};

/// A route that requests are sent to.
struct graph_target {
  std::uint32_t function_id = 0;
  std::uint64_t key = 0;
  std::uint32_t instances = 1;    ///< graphs of this function id and key; 0: a device call of checked function id - 1
  graph_task task{};              ///< the fields that graph_set does not set
  std::uint32_t not_uploaded = 0; ///< number of instances, from the first on, that are not uploaded
};

inline graph_target graph_of(std::uint32_t id, std::uint64_t key = 0, std::uint32_t instances = 1) {
  graph_target t;
  t.function_id = id, t.key = key, t.instances = instances;
  return t;
}
inline graph_target call_of(std::uint32_t id) { return graph_of(id, 0, 0); }

/// Records, graphs, contexts and the function table of some targets. Created while no kernel runs that ends only when
/// it is stopped.
class graph_set {
public:
  graph_set(std::vector<graph_target> what, std::uint32_t slot_size, std::uint32_t messages, bool publishes = false,
            bool one_context = false)
      : targets(std::move(what)), records_dev_(kCheckedFunctions) {
    CUDA_EXPECT_OK(preload_graph_kernels());
    std::vector<checked_record> records(kCheckedFunctions);
    for (std::size_t t = 0; t < targets.size(); ++t) {
      served_.push_back(std::make_unique<device_array<std::uint32_t>>(messages));
      records[record_of(t)].served = served_.back()->get;
      records[record_of(t)].size = messages;
    }
    records_dev_.upload(records);
    const side_stream stream;
    CUDA_EXPECT_OK(use_checked_records(records_dev_.get, stream.get));
    std::size_t graphs = 0;
    for (const graph_target &t : targets)
      graphs += t.instances;
    contexts_ = std::make_unique<device_array<GraphIOContextV2>>(std::max<std::size_t>(graphs, 1));
    for (std::size_t t = 0; t < targets.size(); ++t)
      add(t, slot_size, publishes, one_context, stream.get);
    table_dev = std::make_unique<device_array<cudaq_function_entry_t>>(entries);
  }
  ~graph_set() {
    for (const cudaq_function_entry_t &e : entries)
      if (e.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH)
        cudaGraphExecDestroy(e.handler.graph_exec);
  }
  graph_set(const graph_set &) = delete;
  graph_set &operator=(const graph_set &) = delete;

  /// The index of target t's record. A device call uses the record of its checked function.
  std::uint32_t record_of(std::size_t t) const {
    return targets[t].instances == 0 ? targets[t].function_id - 1
                                     : kCheckedFunctions - 1 - static_cast<std::uint32_t>(t);
  }
  /// The record of each target. Called after the scheduler has ended.
  std::vector<checked_record> records() const {
    const std::vector<checked_record> all = records_dev_.download();
    std::vector<checked_record> out;
    for (std::size_t t = 0; t < targets.size(); ++t)
      out.push_back(all[record_of(t)]);
    return out;
  }

  const std::vector<graph_target> targets;
  std::vector<cudaq_function_entry_t> entries;
  std::vector<void *> contexts; ///< indexed like `entries`
  std::unique_ptr<device_array<cudaq_function_entry_t>> table_dev;

private:
  void add(std::size_t t, std::uint32_t slot_size, bool publishes, bool one_context, cudaStream_t stream) {
    const graph_target &target = targets[t];
    if (target.instances == 0) {
      const std::uint32_t at = static_cast<std::uint32_t>(handler::checked) + target.function_id - 1;
      entries.push_back(device_entry(target.function_id, known_addresses(false)[at]));
      contexts.push_back(nullptr);
    }
    for (std::uint32_t i = 0; i < target.instances; ++i) {
      cudaq_function_entry_t entry{};
      entry.function_id = target.function_id;
      entry.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
      entry.routing_key = target.key;
      graph_task task = target.task;
      task.io_dev = contexts_->get + (one_context ? 0 : graphs_++);
      task.publishes = publishes;
      task.record_dev = records_dev_.get + record_of(t);
      task.function_id = target.function_id;
      task.key = target.key == 0 ? kAnyKey : target.key;
      task.max_result_len = std::min(slot_size, kGraphSlotBytes) - CUDAQ_RPC_HEADER_SIZE;
      CUDA_EXPECT_OK(make_graph(task, i >= target.not_uploaded, stream, &entry.handler.graph_exec));
      entries.push_back(entry);
      contexts.push_back(task.io_dev);
    }
  }

  device_array<checked_record> records_dev_;
  std::vector<std::unique_ptr<device_array<std::uint32_t>>> served_;
  std::unique_ptr<device_array<GraphIOContextV2>> contexts_;
  std::size_t graphs_ = 0;
};

struct scheduler_options {
  std::uint32_t members = 0;
  bool own_streams = false;
  bool publishes = false;
  std::uint32_t ordering = CUDAQ_ORDERING_FIFO;
  bool one_context = false; ///< created by the function that takes a single context
  bool later = false;       ///< not created by the constructor, but by create()
};

/// A context of the C functions for the graphs of a graph_set, on a ring in mapped memory.
class graph_scheduler {
public:
  graph_scheduler(const host_ring &ring, const graph_set &graphs, scheduler_options o = {})
      : ring_(ring), graphs_(graphs) {
    shutdown = mapped_word<int>();
    stats = mapped_word<std::uint64_t>();
    if (!o.later)
      create(o);
  }
  void create(const scheduler_options &o) {
    const cudaq_ringbuffer_t &r = ring_.ring;
    const std::uint32_t num_slots = ring_.shape().num_slots;
    if (o.one_context) {
      created = cudaq_create_dispatch_graph_regular(
          r.rx_flags, r.tx_flags, r.rx_data, r.tx_data, r.rx_stride_sz, r.tx_stride_sz, graphs_.table_dev->get,
          graphs_.entries.size(), graphs_.contexts[0], shutdown, stats, num_slots, 1, 32, stream.get, &get);
      return;
    }
    cudaq_dispatch_graph_params_t p{};
    p.struct_size = sizeof(p);
    p.ordering = o.ordering;
    p.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
    p.graph_io_kind = o.publishes ? CUDAQ_GRAPH_IO_PUBLISHING : CUDAQ_GRAPH_IO_FORWARDED;
    p.num_schedulers = o.members;
    p.own_streams = o.own_streams;
    cudaq_dispatch_launch_params_t launch{};
    launch.struct_size = sizeof(launch);
    launch.rx_flags = r.rx_flags, launch.tx_flags = r.tx_flags;
    launch.rx_data = r.rx_data, launch.tx_data = r.tx_data;
    launch.rx_stride_sz = r.rx_stride_sz, launch.tx_stride_sz = r.tx_stride_sz;
    launch.function_table = graphs_.table_dev->get, launch.func_count = graphs_.entries.size();
    launch.shutdown_flag = shutdown, launch.stats = stats;
    launch.num_slots = num_slots, launch.stream = stream.get;
    p.launch = &launch;
    p.graph_io_ctxs = graphs_.contexts.data();
    created = cudaq_create_dispatch_graph_v2(&p, &get);
  }
  ~graph_scheduler() {
    if (get == nullptr)
      return;
    if (running_)
      stop();
    CUDA_EXPECT_OK(cudaq_destroy_dispatch_graph(get));
  }
  graph_scheduler(const graph_scheduler &) = delete;
  graph_scheduler &operator=(const graph_scheduler &) = delete;

  void start() {
    CUDA_ASSERT_OK(created);
    store_release(*shutdown, 0);
    CUDA_ASSERT_OK(cudaq_launch_dispatch_graph(get, stream.get));
    running_ = true;
  }
  /// Ends the process if the scheduler does not end in time.
  void stop(std::chrono::nanoseconds limit = kDeadline) {
    store_release(*shutdown, 1);
    running_ = false;
    const cudaError_t ended = stream.wait(limit);
    if (ended != cudaSuccess) {
      std::fprintf(stderr, "the scheduler did not end: %s; the process ends\n", cudaGetErrorName(ended));
      std::_Exit(1);
    }
  }

  side_stream stream;
  int *shutdown = nullptr;
  std::uint64_t *stats = nullptr;
  cudaq_dispatch_graph_context *get = nullptr;
  cudaError_t created = cudaErrorUnknown;

private:
  const host_ring &ring_;
  const graph_set &graphs_;
  bool running_ = false;
};

/// Sends requests to the targets of a set in ring order and checks the answers. Used by one thread.
class graph_traffic {
public:
  struct slot_note {
    std::uint32_t target = 0, sequence = 0, request_id = 0;
    std::chrono::steady_clock::time_point sent;
    bool busy = false;
  };

  graph_traffic(const host_ring &ring, const graph_set &graphs, std::uint32_t seed = 1)
      : ring_(ring), graphs_(graphs), notes_(ring.shape().num_slots), sent_to_(graphs.targets.size()), random_(seed) {}

  /// Sends `messages` requests, at most `deep` of them at the same time. choose(m) returns the target of message m.
  template <class Choose>
  void run(std::uint32_t messages, std::uint32_t deep, Choose &&choose) {
    const std::uint32_t n = ring_.shape().num_slots;
    std::uint32_t sent = 0, collected = 0;
    slots_under_way under_way;
    auto progress = std::chrono::steady_clock::now();
    while (collected < messages) {
      bool moved = false;
      if (sent < messages && under_way.size() < deep && !notes_[next_].busy &&
          cudaq_host_ringbuffer_slot_available(&ring_.ring, next_) == 1) {
        send(next_, choose(sent));
        under_way.add(next_);
        next_ = (next_ + 1) % n;
        ++sent;
        moved = true;
      }
      const std::uint32_t taken = under_way.collect([this](std::uint32_t slot) { return collect(slot); });
      collected += taken;
      moved = moved || taken != 0;
      const auto now = std::chrono::steady_clock::now();
      if (moved)
        progress = now;
      else if (now - progress > kDeadline) {
        ADD_FAILURE() << "no progress: sent " << sent << ", collected " << collected << " of " << messages;
        return;
      }
    }
  }

  /// Sends one request to target t in the next slot of the ring. Returns the slot.
  std::uint32_t put(std::uint32_t t) {
    const std::uint32_t slot = next_;
    EXPECT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring_.ring, slot) == 1; }));
    send(slot, t);
    next_ = (next_ + 1) % ring_.shape().num_slots;
    return slot;
  }
  /// Takes the answer in `slot`. Returns false if there is no answer yet.
  bool collect(std::uint32_t slot) {
    if (cudaq_host_ringbuffer_poll_tx_flag(&ring_.ring, slot, nullptr) != CUDAQ_TX_READY)
      return false;
    take(slot);
    return true;
  }
  /// Polls for the answer in `slot` without yielding the CPU.
  bool await(std::uint32_t slot) {
    for (std::uint64_t looks = 0; !collect(slot); ++looks)
      if (looks % 4096 == 0 && looks != 0 && std::chrono::steady_clock::now() - notes_[slot].sent > kDeadline) {
        ADD_FAILURE() << "no answer in slot " << slot;
        return false;
      }
    return true;
  }

  /// Called after the scheduler has ended. `exclusive`: the graphs served the requests of each target one at a time and
  /// in order.
  void expect_clean(bool exclusive = true) const {
    EXPECT_EQ(wrong, 0u) << last_wrong;
    const std::vector<checked_record> records = graphs_.records();
    for (std::size_t t = 0; t < records.size(); ++t) {
      EXPECT_EQ(records[t].calls, t == failing ? 0 : sent_to_[t]) << "target " << t;
      EXPECT_EQ(records[t].corrupt, 0u) << "target " << t;
      EXPECT_EQ(records[t].doubled, 0u) << "target " << t;
      EXPECT_TRUE(!exclusive || records[t].out_of_order == 0) << records[t].out_of_order << ", target " << t;
      EXPECT_TRUE(!exclusive || records[t].side_by_side == 0) << records[t].side_by_side << ", target " << t;
    }
  }

  std::int32_t expected_status = 0; ///< of the answers of target `failing`, which no graph serves
  std::uint32_t failing = ~0u;
  std::uint64_t wrong = 0;
  std::string last_wrong;
  std::vector<std::vector<std::uint64_t>> latency_ns; ///< one list per target; only targets below its size are measured
  std::uint32_t next_slot() const { return next_; }

private:
  void send(std::uint32_t slot, std::uint32_t t) {
    const graph_target &target = graphs_.targets[t];
    const std::uint32_t key_bytes = target.instances == 0 ? 0 : kKeyBytes;
    const std::uint32_t max_size =
        std::min(ring_.shape().slot_size, kGraphSlotBytes) - CUDAQ_RPC_HEADER_SIZE - key_bytes;
    slot_note &note = notes_[slot];
    note = {t, static_cast<std::uint32_t>(sent_to_[t]++), static_cast<std::uint32_t>(random_()), {}, true};
    const std::uint32_t size = kCheckedHeader + static_cast<std::uint32_t>(random_()) % (max_size - kCheckedHeader + 1);
    std::uint8_t payload[kGraphSlotBytes];
    std::memcpy(payload, &target.key, key_bytes);
    fill_frame(payload + key_bytes, size, note.sequence, kRequestSalt);
    CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring_.ring, slot, target.function_id, payload,
                                                            size + key_bytes, note.request_id,
                                                            ~std::uint64_t{note.request_id}));
    note.sent = std::chrono::steady_clock::now();
    cudaq_host_ringbuffer_signal_slot(&ring_.ring, slot);
  }

  void take(std::uint32_t slot) {
    const auto seen = std::chrono::steady_clock::now();
    slot_note &note = notes_[slot];
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    std::uint32_t sequence = 0;
    const auto complain = [&](const char *what, std::int64_t value) {
      ++wrong;
      last_wrong = std::string(what) + " " + std::to_string(value) + ", slot " + std::to_string(slot) + ", target " +
                   std::to_string(note.target) + ", sequence " + std::to_string(note.sequence);
    };
    if (cudaq_host_ringbuffer_read_rpc_response(&ring_.ring, slot, &header, &result) != CUDAQ_OK)
      complain("no frame", 0);
    else if (header.request_id != note.request_id || header.ptp_timestamp != ~std::uint64_t{note.request_id})
      complain("the answer to another request", header.request_id);
    else if (note.target == failing ? header.status != expected_status : header.status != 0)
      complain("status", header.status);
    else if (note.target != failing &&
             (!intact_frame(result, header.result_len, result_salt(graphs_.targets[note.target].function_id),
                            sequence) ||
              sequence != note.sequence))
      complain("a torn result", sequence);
    if (note.target < latency_ns.size())
      latency_ns[note.target].push_back(
          static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(seen - note.sent).count()));
    note.busy = false;
    cudaq_host_ringbuffer_clear_slot(&ring_.ring, slot);
  }

  const host_ring &ring_;
  const graph_set &graphs_;
  std::vector<slot_note> notes_;
  std::vector<std::uint64_t> sent_to_;
  std::mt19937 random_;
  std::uint32_t next_ = 0;
};

/// Random targets, at most `deep` requests at the same time.
inline void run_mixed(const ring_shape &shape, std::vector<graph_target> targets, std::uint32_t messages,
                      std::uint32_t deep, scheduler_options o = {}, bool exclusive = true) {
  const host_ring ring(shape, CUDAQ_MEMORY_MAPPED);
  const graph_set graphs(std::move(targets), shape.slot_size, messages, o.publishes, o.one_context);
  graph_scheduler scheduler(ring, graphs, o);
  ASSERT_NO_FATAL_FAILURE(scheduler.start());
  graph_traffic load(ring, graphs);
  std::mt19937 random(3);
  const auto n = static_cast<std::uint32_t>(graphs.targets.size());
  load.run(messages, deep, [&](std::uint32_t) { return static_cast<std::uint32_t>(random()) % n; });
  scheduler.stop();
  load.expect_clean(exclusive);
  EXPECT_EQ(load_acquire(*scheduler.stats), messages);
}

/// The value below which the fraction `part` of the values lies.
inline std::uint64_t percentile(std::vector<std::uint64_t> values, double part) {
  if (values.empty())
    return 0;
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What the host prepares for the graph scheduler: its state, in one block of device memory, and its kernel argument.
//
//   image    The member that holds the token changes it, and passes it on with the token. The member works on a copy in
//            shared memory if the image has at most kMaxSharedImage bytes.
//     state      one graph_scheduler_words
//     graphs     one graph_instance for each GRAPH_LAUNCH entry of the table
//     pools      one graph_pool for each route: the instances of one (function id, routing key)
//     queues     one wait_queue for each function, with ANY ordering for each route: its requests are launched in order
//     held       one bit for each slot; set while its request is accepted and its rx flag is not cleared
//   after the image, always in device memory
//     jobs       one graph_job for each slot: links the requests of a wait queue
//     done_words one completion word for each instance
//     rotation   the token
#pragma once

#include "cudaq/realtime/detail/kernel_abi/device_params.h"

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kNoGraph = 0xFFFFFFFFu;  ///< end of a list: no instance, no queue, no job
inline constexpr std::uint32_t kUnlisted = 0xFFFFFFFEu; ///< a queue that is in no list
inline constexpr std::uint32_t kMaxMembers = 32;        ///< most members of a rotation
/// Default, from measurements: with fewer members requests wait for slow graphs, with more the polls cost more.
inline constexpr std::uint32_t kUsualMembers = 8;
inline constexpr std::uint32_t kPassAtLaunches = 100;   ///< launches after which a member looks for a successor
inline constexpr std::uint32_t kMaxLaunches = 116;      ///< limit of an execution; the runtime allows 120
inline constexpr std::uint32_t kMaxSharedImage = 16384; ///< larger images stay in device memory
/// How long a stop without a dispatcher waits for graphs: the default grace period of dispatchers.
inline constexpr std::uint64_t kUsualGraceNs = 5000000000;
/// The time that the schedulers get after the grace period to answer late requests and to end.
inline constexpr std::uint64_t kEndAfterGraceNs = 1000000000;

/// Device graphs come with compute capability 9.0.
constexpr bool has_device_graphs(int major) { return major >= 9; }

/// Phase of an instance. The scheduler changes it from idle to in_flight and from completed to idle. The poller changes
/// it from in_flight to completed.
enum class graph_phase : std::uint32_t { idle, in_flight, completed };

/// One graph of the table.
struct alignas(16) graph_instance {
  std::uint64_t exec;
  std::uint64_t io; ///< device address of its GraphIOContext, or of a GraphIOContextV2 for a publishing graph
  std::uint64_t launch_number; ///< of the last launch; the completion word holds it when that launch has completed
  std::uint32_t pool;
  std::uint32_t next;      ///< next instance in the pool's list of idle instances
  std::uint32_t slot;      ///< of the request of the last launch
  std::uint32_t phase;     ///< graph_phase
  std::uint32_t execution; ///< number of the execution that launched it last
  std::uint32_t publishes; ///< 1: a publishing graph, which sets the ring's tx flag itself
  std::uint32_t sibling;   ///< next instance with the same context, in a circular list
  std::uint32_t proven;    ///< 1: a launch of `exec` has succeeded
};
static_assert(sizeof(graph_instance) == 64);

/// The instances of one route. The list of idle instances is in the order of their completion: the instance that has
/// been idle longest is launched first. An instance is not idle while another instance in flight uses its context.
struct alignas(16) graph_pool {
  std::uint32_t first_idle, last_idle;
  std::uint32_t queue;
  std::uint32_t idle;  ///< length of the list
  std::uint32_t taken; ///< instances that are not in the list
  /// ns; the first time since the last success or completion that all idle instances were refused. 0: no such time.
  std::uint64_t refused_since;
  std::uint64_t next_try; ///< ns; after a refusal: pump() does not try before this time
};
static_assert(sizeof(graph_pool) == 48);

/// Requests that wait for an instance, in the order in which they were accepted.
struct wait_queue {
  std::uint32_t first_job, last_job;
  std::uint32_t next_waiting; ///< next in the list of queues whose first job has an idle instance, or kUnlisted
  std::uint32_t route;        ///< of the first job
};

/// A request in a wait queue.
struct graph_job {
  std::uint32_t next; ///< slot of the next job in the queue
  std::uint32_t route;
};

/// The findings of a stop about graphs, for the host: the scheduler posts them. In mapped memory if there is a
/// dispatcher, else in the block.
struct alignas(16) graph_report {
  std::uint64_t silent;       ///< graphs that have ended without their signal
  std::uint64_t silent_graph; ///< graph_in_slot of the last of them
  std::uint64_t late_graph;   ///< graph_in_slot of one that the stop waits for after the grace period; 0: there is none
  std::uint64_t triggered;    ///< launches of the triggered graph
  std::uint64_t trigger_error; ///< cudaError_t of its last launch, also if that failed for good
};
/// A graph (its number among the graphs of the table) and the slot of its request, in one word. Never 0.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint64_t graph_in_slot(std::uint32_t graph, std::uint32_t slot) {
  return (std::uint64_t{graph} + 1) << 32 | slot;
}

/// A requested stop. Reset for each run.
struct graph_stop_words {
  std::uint64_t grace_end; ///< ns; end of the grace period; 0: it has not begun
  std::uint32_t requested; ///< 1: a stop is requested
  std::uint32_t over;      ///< 1: the grace period is over
};

/// The status of a DEVICE_CALL handler that asks for a launch of the triggered graph: the public constant
/// CUDAQ_DISPATCH_STATUS_TRIGGER_GRAPH.
inline constexpr std::int32_t kTriggerStatus = 0x12A6E5;

/// The graph that handlers trigger. It has no request: nothing shows when it has ended. Until a requested launch has
/// succeeded, or failed for good, no further request is served.
struct graph_trigger_words {
  std::uint64_t exec;          ///< 0: there is none
  std::uint64_t refused_since; ///< as in graph_pool
  std::uint64_t next_try;
  std::uint32_t wanted; ///< 1: a handler has asked for a launch
  std::uint32_t proven; ///< 1: a launch has succeeded
};

/// The words of the scheduler. During a run the poller writes `completed`, the scheduler the rest.
struct graph_scheduler_words {
  loop_report counts;
  std::uint64_t polls;
  std::uint32_t cursor;
  std::uint32_t accepted;                             ///< requests that wait or are in flight
  std::uint32_t in_flight;                            ///< of these, the requests whose graph was launched
  std::uint32_t completed;                            ///< number of completions
  std::uint32_t collected;                            ///< number of completions that the scheduler has handled
  std::uint32_t first_waiting, last_waiting, waiting; ///< list of the queues that a launch can serve, and its length
  std::uint32_t execution;                            ///< number of executions that have held the token
  std::uint32_t launches;                             ///< successful launches of this execution
  std::uint32_t mine;                                 ///< of these, the launches whose completion is not collected
  std::uint32_t doubt; ///< 1: launches were refused for long without a success since: the runtime's limit may be lower
  std::uint32_t retry_soon; ///< see graph_scheduler_state::retries_soon
  graph_stop_words stop;
  graph_trigger_words trigger;
  graph_report found; ///< the same as *report
  graph_report *report = nullptr;
  std::uint64_t grace_ns; ///< how long a stop waits for waiting requests and for graphs in flight
};

/// Where the parts of the block are, in bytes from its beginning.
struct graph_layout {
  std::uint32_t num_graphs = 0, num_pools = 0, num_queues = 0, num_slots = 0;
  std::uint32_t graphs = 0, pools = 0, queues = 0, held = 0;
  std::uint32_t image_bytes = 0; ///< a multiple of 16
  std::uint64_t jobs = 0, done_words = 0, rotation = 0, bytes = 0;

  CUDAQ_REALTIME_HOST_DEVICE bool shared() const { return image_bytes <= kMaxSharedImage; }
};

/// Whether a member can take the token. The member writes it itself.
enum class graph_presence : std::uint32_t {
  away,  ///< no: it is not on the device, or it has the token
  there, ///< yes: it is resident and has all its launches left
  lost,  ///< never again: it could not relaunch itself
};

/// The token, and the presence of each member. Initialised to zero, except the token.
struct alignas(128) graph_rotation_words {
  alignas(128) std::uint32_t token;                  ///< number of the resident member that holds it, or kToken...
  alignas(128) std::uint32_t presence[kMaxMembers];  ///< graph_presence
  alignas(128) std::uint32_t execution[kMaxMembers]; ///< number of each member's last execution that held the token
};
inline constexpr std::uint32_t kTokenShut = 0xFFFFFFFDu; ///< not all members are launched yet: no member takes it
inline constexpr std::uint32_t kTokenFree = 0xFFFFFFFEu; ///< the first member that finds it takes it
inline constexpr std::uint32_t kTokenEnd = 0xFFFFFFFFu;  ///< all members end

inline graph_layout make_graph_layout(std::uint32_t num_graphs, std::uint32_t num_pools, std::uint32_t num_queues,
                                      std::uint32_t num_slots) {
  const auto up = [](std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; };
  graph_layout l;
  l.num_graphs = num_graphs, l.num_pools = num_pools, l.num_queues = num_queues, l.num_slots = num_slots;
  std::uint64_t at = up(sizeof(graph_scheduler_words), 16);
  const auto place = [&](std::uint64_t bytes, std::uint64_t align) {
    at = up(at, align);
    const std::uint64_t here = at;
    at += bytes;
    return here;
  };
  l.graphs = static_cast<std::uint32_t>(place(num_graphs * sizeof(graph_instance), 16));
  l.pools = static_cast<std::uint32_t>(place(num_pools * sizeof(graph_pool), 16));
  l.queues = static_cast<std::uint32_t>(place(num_queues * sizeof(wait_queue), 16));
  l.held = static_cast<std::uint32_t>(place(up(num_slots, 32) / 8, 16));
  at = up(at, 16);
  l.image_bytes = static_cast<std::uint32_t>(at);
  l.jobs = place(num_slots * sizeof(graph_job), 128);
  l.done_words = place(num_graphs * sizeof(std::uint64_t), 128);
  l.rotation = place(sizeof(graph_rotation_words), 128);
  l.bytes = up(at, 128);
  return l;
}

/// Argument of a scheduler's kernel, by value.
struct graph_params {
  dispatch_params dispatch;
  graph_layout layout;
  std::uint8_t *block = nullptr;
  std::uint32_t number = 0, members = 1; ///< of the rotation
};

} // namespace cudaq::realtime::detail

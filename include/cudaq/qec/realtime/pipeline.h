/* SPDX-License-Identifier: Apache-2.0 */
// The realtime QEC pipeline: requests from a ring through a GPU stage and an optional CPU stage back into the ring.
//
//   realtime_pipeline p(config);
//   p.set_gpu_stage(...); p.set_cpu_stage(...); p.set_completion_handler(...);
//   p.start();
//   ring_buffer_injector in = p.create_injector();     // or an FPGA, with config.external_ringbuffer
//   in.submit(function_id, payload, size, request_id);
//   p.stop();
//
// Data flow, threads, ready flags, framing and stop: docs/pipeline.md. Experimental: names may still change.
//
// Threads: configuration, start and stop may be called from any thread, one call after another, but not from a
// callback of the same pipeline. All other functions may be called at any time from any thread, unless their text
// says otherwise. Errors of the system or of the library are thrown as std::runtime_error with the reason.
#ifndef CUDAQ_QEC_REALTIME_PIPELINE_H
#define CUDAQ_QEC_REALTIME_PIPELINE_H

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#if defined(__GNUC__)
#define CUDAQ_QEC_REALTIME_API __attribute__((visibility("default")))
#else
#define CUDAQ_QEC_REALTIME_API
#endif

namespace cudaq::qec::realtime::experimental {

/// CPUs of the pipeline's threads; -1: not pinned. start throws if the system refuses a CPU.
struct core_pinning {
  int dispatcher = -1;
  int consumer = -1;
  int worker_base = -1; ///< worker i runs on worker_base + i
};

/// How the pipeline's threads wait.
enum class wait_policy {
  automatic = 0,  ///< spin if this process may use a CPU for every thread and one producer, else spin_yield
  spin = 1,       ///< lowest latency, each thread keeps a CPU busy
  spin_yield = 2, ///< spins briefly, then yields between polls
  block = 3,      ///< spins briefly, then sleeps up to 500 us between polls
};

/// Memory of the pipeline's own ring.
enum class ring_memory {
  automatic = 0, ///< pinned and mapped if there is a CUDA device, else host
  host = 1,      ///< plain memory; host stages only
  mapped = 2,    ///< pinned and mapped; the constructor throws if that fails
};

struct pipeline_stage_config {
  int num_workers = 8;           ///< 1 to 64
  int buffers = 1;               ///< requests that a worker has at the same time, 1 to 4; more than 1: host stages only
  int num_slots = 32;            ///< 1 to 16777216
  std::size_t slot_size = 16384; ///< bytes, header included; slots of the own ring are this far apart, rounded up to 64
  core_pinning cores;
  /// The caller's cudaq_ringbuffer_t ("external ring"), which must outlive the pipeline. nullptr: the pipeline makes
  /// its own ring.
  void *external_ringbuffer = nullptr;

  wait_policy wait = wait_policy::automatic;
  ring_memory memory = ring_memory::automatic;
  int device_id = 0; ///< of mapped memory
  /// How long stop waits for submitted requests; external ring: for accepted ones. 290 years and more mean without
  /// limit. Half a second later stop answers what is still open. A stage that runs cannot be ended: on an external ring
  /// its slot may then have the next request, so it must not write to response_buffer any more. Choose a time above
  /// that of the longest stage and deferred answer, or stop the producer first.
  std::uint64_t grace_period_ns = 5000000000u;
};

/// The argument of a host stage: a request, and the buffer for its answer.
struct host_stage_call {
  int worker_id;
  int origin_slot;
  const void *payload; ///< in the slot, 8-byte aligned; valid until the response is written
  std::size_t payload_size;
  void *response_buffer; ///< without a CPU stage: the host stage writes the result here
  std::size_t max_response_size;
  /// Out, 0 on entry: number of bytes written to response_buffer, or FRAMED_RESPONSE.
  std::size_t response_size;
};

/// The GPU stage of one worker: a graph or a host stage. All workers of a pipeline are of one kind.
struct gpu_worker_resources {
  /// Launched for each request, by the dispatcher's thread or, while further requests wait, by the worker's. The ring
  /// must be in mapped memory. Without a CPU stage the graph writes its response frame to the slot.
  cudaGraphExec_t graph_exec = nullptr;
  cudaStream_t stream = nullptr; ///< nullptr: the worker gets one
  /// Called before the stage with the slot's device address (plain memory: the host address). Graphs: on the
  /// dispatcher's thread, so all requests wait for it, unless pre_launch_on_worker is set. Host stages: on the worker's
  /// thread, with no stream.
  void (*pre_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream) = nullptr;
  void *pre_launch_data = nullptr;
  /// Called after the launch; with a host stage after its return, unless it failed. Graphs with this hook are always
  /// launched by the dispatcher's thread, which calls it.
  void (*post_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream) = nullptr;
  void *post_launch_data = nullptr;
  std::uint32_t function_id = 0; ///< requests that this worker serves; several workers may serve the same
  void *user_context = nullptr;  ///< passed to the CPU stage

  /// Replaces the graph; runs on the worker's thread. Returns 0, or an error: the request then ends, and its
  /// completion has the error. A stage that still works after its return sets ready_flag when it is done. After an
  /// error or an exception no part of it may run any more, since the next request follows immediately. If stop gives
  /// up a request whose stage still runs, the caller must wait for that stage.
  int (*host_stage_fn)(void *user_data, host_stage_call *call) = nullptr;
  void *host_stage_data = nullptr;
  // For a host stage that works on a device between its calls; not for graphs. All get host_stage_data; each may be
  // nullptr. They are callbacks of the pipeline: they cannot configure, start or stop it (std::logic_error). begin and
  // end run in start and stop. A callback that ends its thread (pthread_exit) ends the process, as all those of the
  // library.
  /// start calls it before the first request, and passes its exceptions on.
  void (*stage_begin_fn)(void *user_data) = nullptr;
  /// If stage_begin_fn has returned (or is nullptr), stop calls this after the last request; so does a start that fails
  /// later. Returns true if nothing of the stage runs any more. Else stop reports it, keeps the memory, and the next
  /// stop calls it again; after such a start, too, the pipeline must be stopped. An exception counts as false.
  bool (*stage_end_fn)(void *user_data) = nullptr;
  /// Called from time to time while the worker waits for ready_flag. Not 0: the stage will never set it. The request is
  /// answered DEVICE_FAULT, and its completion has the value as its error; cudaErrorUnknown for an exception. nullptr:
  /// the worker waits until stop.
  int (*stage_error_fn)(void *user_data) = nullptr;
  /// Notified mode: the CPU stage is called once for each request, when this output is ready. nullptr: poll mode.
  const void *gpu_output = nullptr;
  std::size_t gpu_output_size = 0;
  /// Notified mode: the stage sets it to 1 when the output is ready. The worker claims it (2), and resets it to 0
  /// when the output may be overwritten. nullptr: the output is ready when host_stage_fn returns. A graph must have a
  /// flag, in mapped memory. No two workers may have the same.
  volatile int *ready_flag = nullptr;
  /// Graphs: host address of a cudaq::realtime::GraphIOContext in mapped memory, or nullptr. The dispatcher writes the
  /// slot's addresses there before each launch, for a graph that reads the request in place.
  void *io_ctx = nullptr;
  /// Graphs: while further requests wait, the worker's thread calls pre_launch_fn, directly before it launches the
  /// graph. Hooks of different workers then run at the same time, in any order of their requests; those of one worker
  /// never overlap. For hooks that share nothing among workers, such as a copy to the worker's own buffer. Without
  /// effect if the dispatcher makes all launches (post_launch_fn, no CPU stage, wait_policy::block).
  bool pre_launch_on_worker = false;
};

/// start calls it once per worker and passes its exceptions on. It cannot configure, start or stop the pipeline
/// (std::logic_error). The objects it returns must live until stop has returned.
/// With `buffers` above 1 start calls it for each buffer, with the ids 0 to num_workers * buffers - 1: worker w has the
/// buffers w, w + num_workers, and so on. Each has its own output and ready_flag; those of one worker have the same
/// function_id, and their callbacks run on one thread. worker_id of host_stage_call and cpu_stage_context is this id.
/// While the output of one is awaited, the worker passes the next request to another, if no other worker is idle.
using gpu_stage_factory = std::function<gpu_worker_resources(int worker_id)>;

/// The argument of a CPU stage: one request and the output of its GPU stage.
struct cpu_stage_context {
  int worker_id;
  int origin_slot;
  const void *gpu_output; ///< nullptr in poll mode
  std::size_t gpu_output_size;
  void *response_buffer; ///< after the 24-byte response header
  std::size_t max_response_size;
  void *user_context; ///< gpu_worker_resources::user_context

  std::uint64_t generation; ///< identifies this request, for complete_deferred with a generation
  const void *payload;      ///< the request; the response overwrites it on an in-place ring, such as the own ring
  std::size_t payload_size;
};

/// Returns the number of bytes written to response_buffer, FRAMED_RESPONSE, or DEFERRED_COMPLETION. The bytes are never
/// read as a header, whatever they are: status 0 and their number go before them. In poll mode 0 means that there is no
/// result yet; an empty result is then given by FRAMED_RESPONSE or by complete_deferred.
using cpu_stage_callback = std::function<std::size_t(const cpu_stage_context &ctx)>;

/// Returned by a CPU stage: the worker goes on to the next request, and this slot stays open until complete_deferred.
static constexpr std::size_t DEFERRED_COMPLETION = SIZE_MAX;

/// Returned by a stage that has written a response header itself, directly before response_buffer or at its beginning:
/// the answer has the status and the length of that header. Without a header there it is NO_RESPONSE.
static constexpr std::size_t FRAMED_RESPONSE = SIZE_MAX - 1;

/// The argument of the completion handler: an answered request.
struct completion {
  std::uint64_t request_id; ///< as submitted; external ring: the 32 bits of the frame
  int slot;
  bool success;   ///< no CUDA error, and the response's status is not a protocol error
  int cuda_error; ///< or the error of a host stage; 0: no error

  int status = 0; ///< of the response
  /// The result, valid during the call. nullptr on an external ring: its consumer has the answer already.
  const void *response = nullptr;
  std::size_t response_size = 0;
};

/// The consumer thread calls it and frees the slot after its return, so it must not call a submit that waits for a
/// slot. On an external ring the answer is published by then or a moment later, and the workers wait if the handler
/// is late by 1024 requests (or four rings, if that is more). Its exceptions are counted and dropped.
using completion_callback = std::function<void(const completion &c)>;

/// Result of the last stop.
struct stop_report {
  bool drained = true;         ///< all submitted requests were completed, and all threads ended
  std::uint64_t given_up = 0;  ///< requests answered SHUTTING_DOWN
  std::uint64_t left_over = 0; ///< requests that are still in their slots; the next start serves them
  /// Threads that did not end: those in a callback that does not return; the dispatcher, if it gets no core; and one
  /// for a graph that still runs. The memory they use is kept. Call stop again.
  int stuck_threads = 0;
  std::string text; ///< empty if drained; else what did not end, and where
};

class realtime_pipeline;

/// Puts requests into the pipeline's own ring. Any number of injectors may be used at the same time, each by one
/// thread at a time. The pipeline must outlive them.
class CUDAQ_QEC_REALTIME_API ring_buffer_injector {
public:
  ~ring_buffer_injector();
  ring_buffer_injector(ring_buffer_injector &&) noexcept;
  ring_buffer_injector &operator=(ring_buffer_injector &&) noexcept;
  ring_buffer_injector(const ring_buffer_injector &) = delete;
  ring_buffer_injector &operator=(const ring_buffer_injector &) = delete;

  /// False: all slots are busy, the pipeline is stopped, or a fault of the device has ended its graphs. Before the
  /// first start or stop, requests wait in the ring. Throws std::invalid_argument if the payload does not fit into a
  /// slot.
  bool try_submit(std::uint32_t function_id, const void *payload, std::size_t payload_size, std::uint64_t request_id);
  /// The same, but waits for a free slot. Throws std::runtime_error if the pipeline is stopped, or its device fails,
  /// before or during the wait.
  void submit(std::uint32_t function_id, const void *payload, std::size_t payload_size, std::uint64_t request_id);
  /// Number of submits that had to wait.
  std::uint64_t backpressure_stalls() const;

private:
  friend class realtime_pipeline;
  struct state;
  explicit ring_buffer_injector(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

class CUDAQ_QEC_REALTIME_API realtime_pipeline {
public:
  /// Allocates the ring, or binds the caller's. Throws std::invalid_argument that names the wrong field; counts and
  /// sizes are checked before anything is allocated.
  explicit realtime_pipeline(const pipeline_stage_config &config);
  /// Calls stop first. Throws nothing.
  ~realtime_pipeline();
  realtime_pipeline(const realtime_pipeline &) = delete;
  realtime_pipeline &operator=(const realtime_pipeline &) = delete;

  // Call these before start; std::logic_error while it runs. An empty function removes the stage.
  void set_gpu_stage(gpu_stage_factory factory);
  /// Without a CPU stage (GPU-only mode) the GPU stage writes the answer.
  void set_cpu_stage(cpu_stage_callback callback);
  void set_completion_handler(completion_callback handler);

  /// Throws std::logic_error if there is no GPU stage, in GPU-only mode with an external ring, if the pipeline runs
  /// already, or if a thread of the last run is still stuck; std::invalid_argument if the factory returned resources
  /// that are not allowed. After an exception nothing runs, except a stage whose stage_end_fn has returned false.
  void start();
  /// Stops the pipeline; see docs/pipeline.md. May be called again; does nothing when everything has ended. It needs no
  /// memory. Throws only std::logic_error, if a callback of this pipeline calls it.
  void stop();
  stop_report last_stop() const;
  /// State of slots, workers and dispatcher as text.
  std::string dump() const;

  /// Throws std::logic_error with an external ring.
  ring_buffer_injector create_injector();

  struct Stats {
    std::uint64_t submitted; ///< external ring: received, including those dropped or refused, which never complete
    std::uint64_t completed; ///< successfully or not
    std::uint64_t dispatched;
    std::uint64_t backpressure_stalls;
  };
  /// Takes no lock.
  Stats stats() const;

  /// Answers the deferred request of a slot, from any thread; also while its CPU stage runs, if that call defers it.
  /// The caller has written a response header as for FRAMED_RESPONSE, because this call has no size. Has no effect if
  /// a stop has answered the request meanwhile. Throws std::out_of_range if the slot does not exist, std::logic_error
  /// if the slot has no deferred request (a second completion). Answers the request that the slot has now: a caller
  /// that may be late must use the form with a generation.
  void complete_deferred(int slot);
  /// The same, but writes the header from `response_size` and `status`. Throws std::invalid_argument if `status` is
  /// INT32_MIN.
  void complete_deferred(int slot, std::size_t response_size, int status = 0);
  /// The same for exactly one request. False: it was answered already, for example by stop, and this call had no
  /// effect.
  bool complete_deferred(int slot, std::uint64_t generation, std::size_t response_size, int status);

  struct ring_buffer_bases {
    std::uint8_t *rx_data_host;
    std::uint8_t *rx_data_dev;
  };
  ring_buffer_bases ringbuffer_bases() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace cudaq::qec::realtime::experimental

#endif

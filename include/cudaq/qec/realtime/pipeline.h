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
// Threads: configuring, start and stop may be called from any thread, one after another; not from a callback of the same
// pipeline. Everything else may be called at any time from any thread unless its text says otherwise. What the system or
// the library refuses is thrown as std::runtime_error, with the reason.
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

/// CPUs of the pipeline's threads; -1: not pinned. A CPU that the system refuses is an error of start.
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

/// Where the pipeline's own ring lies.
enum class ring_memory {
  automatic = 0, ///< pinned and mapped where there is a CUDA device, else host
  host = 1,      ///< plain memory; host stages only
  mapped = 2,    ///< pinned and mapped, or the constructor throws
};

struct pipeline_stage_config {
  int num_workers = 8; ///< 1 to 64
  int num_slots = 32;
  std::size_t slot_size = 16384; ///< bytes, header included; slots of the own ring are this far apart, rounded up to 64
  core_pinning cores;
  /// A cudaq_ringbuffer_t of the caller's, which must outlive the pipeline; nullptr: the pipeline has its own.
  void *external_ringbuffer = nullptr;

  wait_policy wait = wait_policy::automatic;
  ring_memory memory = ring_memory::automatic;
  int device_id = 0;                           ///< of mapped memory
  std::uint64_t grace_period_ns = 5000000000u; ///< how long stop waits for what has been submitted
};

/// One call of a host stage: a request, and room for its answer.
struct host_stage_call {
  int worker_id;
  int origin_slot;
  const void *payload; ///< in the slot, 8-byte aligned; valid until the response is written
  std::size_t payload_size;
  void *response_buffer; ///< pipelines without a CPU stage: the result goes here
  std::size_t max_response_size;
  std::size_t response_size; ///< out: bytes written to response_buffer, 0 on entry
};

/// What one worker works with. A worker has a graph or a host stage; all workers of a pipeline are of one kind.
struct gpu_worker_resources {
  /// Launched by the dispatcher for each request. Needs a ring in mapped memory. Without a CPU stage the graph writes its
  /// response frame to the slot.
  cudaGraphExec_t graph_exec = nullptr;
  cudaStream_t stream = nullptr; ///< nullptr: the worker gets one
  /// Called before the stage with the device's address of the slot (plain memory: the host's); a host stage has no stream. On the dispatcher's thread
  /// for graphs (every request waits for it), else on the worker's.
  void (*pre_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream) = nullptr;
  void *pre_launch_data = nullptr;
  /// Called behind the launch; behind the return of a host stage that has not failed.
  void (*post_launch_fn)(void *user_data, void *slot_dev, cudaStream_t stream) = nullptr;
  void *post_launch_data = nullptr;
  std::uint32_t function_id = 0; ///< requests that this worker serves; several workers may serve the same
  void *user_context = nullptr;  ///< handed to the CPU stage

  /// Plays the graph, on the worker's thread. Returns 0, or an error that ends the request: its completion carries it. A
  /// stage that returns before it has ended sets ready_flag when it has; behind an error, or an exception, nothing of it
  /// may run: the next request follows at once. What runs when stop gives its request up is the caller's to wait for.
  int (*host_stage_fn)(void *user_data, host_stage_call *call) = nullptr;
  void *host_stage_data = nullptr;
  /// Notified mode: the CPU stage is called once for each request, when this output is there. nullptr: poll mode.
  const void *gpu_output = nullptr;
  std::size_t gpu_output_size = 0;
  /// Notified mode: the stage sets it to 1 when the output is there; the worker claims it (2) and sets it back to 0 when
  /// the output may be overwritten. nullptr with a host stage: the output is there when the function returns; a graph must have one, in mapped memory.
  volatile int *ready_flag = nullptr;
  /// Graphs: host address of a cudaq::realtime::GraphIOContext in mapped memory, or nullptr. Before each launch the
  /// dispatcher writes the addresses of the slot there, for a graph that reads the request in place.
  void *io_ctx = nullptr;
};

/// Called once per worker during start, which passes on what it throws; it cannot configure, start or stop the pipeline
/// (std::logic_error). What it returns must live until stop has returned.
using gpu_stage_factory = std::function<gpu_worker_resources(int worker_id)>;

/// What a CPU stage sees of one request.
struct cpu_stage_context {
  int worker_id;
  int origin_slot;
  const void *gpu_output; ///< nullptr in poll mode
  std::size_t gpu_output_size;
  void *response_buffer; ///< behind the 24-byte response header
  std::size_t max_response_size;
  void *user_context; ///< gpu_worker_resources::user_context

  std::uint64_t generation; ///< of this request: for the complete_deferred that cannot mistake a slot's next request
  const void *payload;      ///< the request; overwritten by the response on an in-place ring, as the pipeline's own is
  std::size_t payload_size;
};

/// Bytes written to response_buffer. Poll mode: 0 if there is no result yet, so that an empty result can only be given by
/// complete_deferred. Or DEFERRED_COMPLETION.
using cpu_stage_callback = std::function<std::size_t(const cpu_stage_context &ctx)>;

/// The worker goes on to the next request; this one's slot stays open until complete_deferred.
static constexpr std::size_t DEFERRED_COMPLETION = SIZE_MAX;

/// A request that has been answered.
struct completion {
  std::uint64_t request_id; ///< as submitted; external ring: the 32 bits of the frame
  int slot;
  bool success;   ///< no CUDA error, and the response's status is no protocol error
  int cuda_error; ///< or the error of a host stage; 0: none

  int status = 0; ///< of the response
  /// The result, valid during the call. nullptr on an external ring, where the answer is somebody else's already.
  const void *response = nullptr;
  std::size_t response_size = 0;
};

/// Called by the consumer thread, which gives the slot back when the call has returned: a submit that waits for a slot has no
/// place in it. On an external ring the answer is out by then or a moment later, and a handler that is 1024 requests (or
/// four rings, if that is more) behind holds the workers up. What it throws is counted and dropped.
using completion_callback = std::function<void(const completion &c)>;

/// What the last stop found.
struct stop_report {
  bool drained = true;         ///< everything submitted was completed, and every thread ended
  std::uint64_t given_up = 0;  ///< answered SHUTTING_DOWN
  std::uint64_t left_over = 0; ///< still in their slots; the next start serves them
  /// Did not end: threads in a callback that did not come back, and the dispatcher if it has no core, or a graph that
  /// still runs. What they use stays; stop may be called again.
  int stuck_threads = 0;
  std::string text; ///< empty if drained; else what and where
};

class realtime_pipeline;

/// Puts requests into the pipeline's own ring. Any number of injectors may be used side by side, each by one thread at a
/// time. The pipeline must outlive them.
class CUDAQ_QEC_REALTIME_API ring_buffer_injector {
public:
  ~ring_buffer_injector();
  ring_buffer_injector(ring_buffer_injector &&) noexcept;
  ring_buffer_injector &operator=(ring_buffer_injector &&) noexcept;
  ring_buffer_injector(const ring_buffer_injector &) = delete;
  ring_buffer_injector &operator=(const ring_buffer_injector &) = delete;

  /// False: all slots are busy, or the pipeline is stopped. Before the first start, or stop, requests wait in the ring.
  /// Throws std::invalid_argument if the payload does not fit in a slot.
  bool try_submit(std::uint32_t function_id, const void *payload, std::size_t payload_size, std::uint64_t request_id);
  /// Waits for a free slot. Throws std::runtime_error when the pipeline is or gets stopped.
  void submit(std::uint32_t function_id, const void *payload, std::size_t payload_size, std::uint64_t request_id);
  /// How many submits had to wait.
  std::uint64_t backpressure_stalls() const;

private:
  friend class realtime_pipeline;
  struct state;
  explicit ring_buffer_injector(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

class CUDAQ_QEC_REALTIME_API realtime_pipeline {
public:
  /// Allocates the ring, or binds the caller's. Throws std::invalid_argument with the field that cannot be.
  explicit realtime_pipeline(const pipeline_stage_config &config);
  /// Stops it first.
  ~realtime_pipeline();
  realtime_pipeline(const realtime_pipeline &) = delete;
  realtime_pipeline &operator=(const realtime_pipeline &) = delete;

  // Before start; std::logic_error while it runs. An empty function takes the stage back.
  void set_gpu_stage(gpu_stage_factory factory);
  /// None: GPU-only mode, the answer is the GPU stage's own.
  void set_cpu_stage(cpu_stage_callback callback);
  void set_completion_handler(completion_callback handler);

  /// Throws std::logic_error: no GPU stage; GPU-only mode with an external ring; it runs already; or a thread of the last
  /// run is still stuck. std::invalid_argument: what the factory returned cannot be. On an exception nothing runs.
  void start();
  /// Ends it; see docs/pipeline.md. May be called again, and is a no-op once everything has ended. Throws std::logic_error
  /// if called from a callback of this pipeline, nothing else.
  void stop();
  stop_report last_stop() const;
  /// Slots, workers and dispatcher, as text.
  std::string dump() const;

  /// Throws std::logic_error with an external ring.
  ring_buffer_injector create_injector();

  struct Stats {
    std::uint64_t submitted; ///< external ring: taken up, also what the dispatcher has dropped and so never completes
    std::uint64_t completed; ///< successfully or not
    std::uint64_t dispatched;
    std::uint64_t backpressure_stalls;
  };
  /// Without a lock.
  Stats stats() const;

  /// Answers the deferred request of a slot, from any thread; also while its CPU stage is being called, if that call
  /// defers it. Its response header stands in front of response_buffer, or first in it. What a stop has answered meanwhile is left alone.
  /// Throws std::out_of_range if there is no such slot, std::logic_error if it has no deferred request (a second
  /// completion). It takes whatever request the slot has: who may be late uses the form with a generation.
  void complete_deferred(int slot);
  /// The same; the header is written from `response_size` and `status`. std::invalid_argument if that is INT32_MIN.
  void complete_deferred(int slot, std::size_t response_size, int status = 0);
  /// The same for exactly one request. False, and nothing happened: it has been answered already, by stop for instance.
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

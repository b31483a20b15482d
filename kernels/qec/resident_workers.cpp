// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/realtime/resident_workers.h"

#include "cudaq/qec/realtime/resident_mailbox.cuh"
#include "kernels/qec/device_memory.h"
#include "lib/base/cpu_relax.h"
#include "lib/base/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

namespace cudaq::qec::realtime::gpu {

using cudaq::realtime::detail::device_guard;
using cudaq::realtime::detail::load_acquire;
using cudaq::realtime::detail::store_release;
using experimental::gpu_worker_resources;
using experimental::host_stage_call;

namespace {

const resident_config &checked(const resident_config &c, const resident_launcher &launch) {
  const auto refuse = [](const std::string &text) { throw std::invalid_argument("resident workers: " + text); };
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max() / 2;
  if (c.num_workers < 1 || c.num_workers > 64)
    refuse("num_workers is " + std::to_string(c.num_workers) + ", it must be 1 to 64");
  if (c.payload_bytes > kMost)
    refuse("payload_bytes is " + std::to_string(c.payload_bytes) + ", it must be at most 2 GiB");
  if (c.output_bytes < 1 || c.output_bytes > kMost)
    refuse("output_bytes is " + std::to_string(c.output_bytes) + ", it must be 1 byte to 2 GiB");
  if (c.memory_kind != CUDAQ_MEMORY_AUTO && c.memory_kind != CUDAQ_MEMORY_DEVICE_RX &&
      c.memory_kind != CUDAQ_MEMORY_MAPPED)
    refuse("memory_kind is " + std::to_string(c.memory_kind) +
           ", it must be CUDAQ_MEMORY_AUTO, CUDAQ_MEMORY_DEVICE_RX or CUDAQ_MEMORY_MAPPED");
  if (c.timeout_ns == 0)
    refuse("timeout_ns is 0, so no block could begin in time");
  if (!launch)
    refuse("launch is empty; resident_launch (resident_kernel.cuh) makes one from a stage");
  return c;
}

/// Slot i of the ring is the mailbox of worker i; the slot after the last worker's tells all blocks to end.
class mailbox_ring {
public:
  explicit mailbox_ring(const resident_config &c) {
    cudaq_ringbuffer_options_t o;
    cudaq_ringbuffer_options_init(&o, sizeof(o));
    o.memory_kind = c.memory_kind;
    o.num_slots = static_cast<std::uint32_t>(c.num_workers) + 1;
    o.slot_size = static_cast<std::uint32_t>(CUDAQ_RPC_HEADER_SIZE + c.payload_bytes);
    o.device_id = c.device_id;
    if (cudaq_ringbuffer_create(&o, &memory_, &ring) != CUDAQ_OK)
      throw std::runtime_error(std::string("resident workers: mailboxes: ") + cudaq_last_error_message());
  }
  ~mailbox_ring() { cudaq_ringbuffer_destroy(memory_); }
  mailbox_ring(const mailbox_ring &) = delete;
  mailbox_ring &operator=(const mailbox_ring &) = delete;

  cudaq_ringbuffer_info_t info() const {
    cudaq_ringbuffer_info_t said{};
    said.struct_size = sizeof(said);
    cudaq_ringbuffer_get_info(memory_, &said);
    return said;
  }
  cudaq_ringbuffer_t ring{};

private:
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
};

/// Work on it does not wait for the legacy stream.
class own_stream {
public:
  own_stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "resident workers: a stream"); }
  ~own_stream() { cudaStreamDestroy(stream_); }
  own_stream(const own_stream &) = delete;
  own_stream &operator=(const own_stream &) = delete;
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

} // namespace

class resident_workers::impl {
public:
  impl(const resident_config &config, resident_launcher launch)
      : config_(config), launch_(std::move(launch)), box_(config), outputs_(output_stride() * workers()),
        states_(sizeof(resident_state) * workers()) {
    for (std::uint32_t id = 0; id < workers(); ++id)
      workers_.emplace_back(*this, id);
    require(launch_(boxes(), 0, stream_.get()), "resident workers: loading the kernel");
  }
  impl(const impl &) = delete;
  impl &operator=(const impl &) = delete;

  cudaq_ringbuffer_info_t info() const { return box_.info(); }

  gpu_worker_resources resources(int id, std::uint32_t function_id, void *user_context) {
    if (id < 0 || id >= config_.num_workers)
      throw std::out_of_range("resident workers: worker " + std::to_string(id) + " does not exist; there are " +
                              std::to_string(config_.num_workers));
    worker &w = workers_[static_cast<std::size_t>(id)];
    gpu_worker_resources r;
    r.function_id = function_id;
    r.user_context = user_context;
    r.host_stage_fn = &impl::post;
    r.host_stage_data = &w;
    r.stage_begin_fn = [](void *data) { static_cast<worker *>(data)->of.begin(*static_cast<worker *>(data)); };
    r.stage_end_fn = [](void *data) { return static_cast<worker *>(data)->of.end(*static_cast<worker *>(data)); };
    r.stage_error_fn = &impl::error_of;
    r.gpu_output = outputs_.host<std::uint8_t>() + w.id * output_stride();
    r.gpu_output_size = config_.output_bytes;
    r.ready_flag = &state(w.id).ready;
    return r;
  }

  /// For the destructor. False: the memory must stay, for blocks that run or for a pipeline that was not stopped.
  bool end_for_good() {
    const std::lock_guard lock(control_);
    return end_blocks() && num_in_use_ == 0;
  }

private:
  enum class blocks { none, run, must_end };
  struct worker {
    worker(impl &all, std::uint32_t number) : of(all), id(number) {}
    impl &of;
    const std::uint32_t id;
    bool in_use = false; ///< by a pipeline that runs
  };

  /// The pipeline begins worker after worker: the first one launches the blocks of all, and waits until they run.
  void begin(worker &w) {
    const std::lock_guard lock(control_);
    if (w.in_use)
      throw std::logic_error("resident workers: worker " + std::to_string(w.id) +
                             " serves a pipeline already, or another worker of this one");
    if (blocks_ != blocks::run)
      launch_blocks();
    w.in_use = true;
    ++num_in_use_;
  }
  /// The last worker ends the blocks of all. False: they still run.
  bool end(worker &w) {
    const std::lock_guard lock(control_);
    if (num_in_use_ == 1 && !end_blocks())
      return false;
    w.in_use = false;
    --num_in_use_;
    return true;
  }

  void launch_blocks() {
    if (blocks_ == blocks::must_end && kernel() == cudaErrorNotReady)
      throw std::runtime_error("resident workers: blocks of an earlier start have not ended");
    const device_guard here(config_.device_id);
    require(here.error(), "resident workers: making the device current");
    failed_.store(0);
    for (std::size_t id = 0; id < workers(); ++id)
      states_.host<resident_state>()[id] = {};
    store_release<std::uint64_t>(box_.ring.rx_flags_host[workers()], 0);
    cudaq::realtime::detail::fence_posted_stores();
    blocks_ = blocks::must_end; // a launcher that fails may have launched
    if (const cudaError_t refused = launch_(boxes(), static_cast<unsigned>(workers()), stream_.get());
        refused != cudaSuccess) {
      end_blocks();
      require(refused, "resident workers: launching the blocks");
    }
    await_begin();
    blocks_ = blocks::run;
  }
  /// Tells all blocks to end, and waits for that. False: they still run, or wait for room on the device.
  bool end_blocks() noexcept {
    if (blocks_ == blocks::none)
      return true;
    cudaq_host_ringbuffer_signal_slot(&box_.ring, static_cast<std::uint32_t>(workers()));
    const bool ended = wait_for([&] { return kernel() != cudaErrorNotReady; });
    blocks_ = ended ? blocks::none : blocks::must_end;
    return ended;
  }
  resident_mailboxes boxes() const {
    return {box_.ring.rx_flags,
            box_.ring.rx_data,
            box_.ring.rx_stride_sz,
            outputs_.device<std::uint8_t>(),
            output_stride(),
            states_.device<resident_state>(),
            static_cast<std::uint32_t>(workers())};
  }

  /// Returns the last value of done().
  template <class Done>
  bool wait_for(Done &&done) const {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    bool is_done = done();
    while (!is_done && static_cast<std::uint64_t>((clock::now() - begin).count()) < config_.timeout_ns) {
      cudaq::realtime::detail::cpu_relax();
      is_done = done();
    }
    return is_done;
  }
  void await_begin() {
    std::size_t begun = 0;
    wait_for([&] {
      while (begun < workers() && load_acquire(state(begun).began) != 0)
        ++begun;
      return begun == workers() || kernel() != cudaErrorNotReady;
    });
    if (begun == workers())
      return;
    const cudaError_t found = kernel();
    end_blocks();
    throw std::runtime_error(
        "resident workers: " + std::to_string(begun) + " of " + std::to_string(workers()) + " blocks run" +
        (found == cudaErrorNotReady ? "; kernels that run on the device leave no room for the others"
                                    : std::string(", then the kernel has ended: ") + cudaGetErrorString(found)));
  }
  /// cudaErrorNotReady: it runs, or waits for room on the device.
  cudaError_t kernel() const { return cudaq::realtime::detail::query_stream(config_.device_id, stream_.get()); }
  std::size_t workers() const { return static_cast<std::size_t>(config_.num_workers); }
  std::size_t output_stride() const { return (config_.output_bytes + 63) / 64 * 64; }
  resident_state &state(std::size_t id) const { return states_.host<resident_state>()[id]; }
  /// The stage of a worker: runs on its thread.
  static int post(void *data, host_stage_call *call) {
    const auto &w = *static_cast<worker *>(data);
    impl &self = w.of;
    if (const int failed = self.failed_.load(); failed != 0)
      return failed;
    if (call->payload_size > self.config_.payload_bytes || // a slot may have room for more
        cudaq_host_ringbuffer_write_rpc_request(&self.box_.ring, w.id, 0, call->payload,
                                                static_cast<std::uint32_t>(call->payload_size), 0, 0) != CUDAQ_OK)
      return cudaErrorInvalidValue;
    cudaq_host_ringbuffer_signal_slot(&self.box_.ring, w.id);
    return 0;
  }
  /// 0: the blocks run. Any thread.
  static int error_of(void *data) {
    impl &self = static_cast<worker *>(data)->of;
    const cudaError_t said = self.kernel();
    if (said != cudaErrorNotReady)
      self.failed_.store(said == cudaSuccess ? cudaErrorLaunchFailure : said); // cudaSuccess: they have ended
    return self.failed_.load();
  }

  const resident_config config_;
  const resident_launcher launch_;
  mailbox_ring box_;
  mapped_block outputs_, states_;
  std::deque<worker> workers_;
  own_stream stream_;
  cudaq::realtime::detail::shared_word<int> failed_; ///< a CUDA error after which no block takes a request
  std::mutex control_;                               ///< for the members below, and worker::in_use
  blocks blocks_ = blocks::none;
  std::uint32_t num_in_use_ = 0;
};

resident_workers::resident_workers(const resident_config &config, resident_launcher launch) {
  const device_guard here(checked(config, launch).device_id);
  require(here.error(), "resident workers: making the device current");
  impl_ = std::make_unique<impl>(config, std::move(launch));
}

resident_workers::~resident_workers() {
  if (!impl_->end_for_good())
    static_cast<void>(impl_.release());
}

gpu_worker_resources resident_workers::resources(int id, std::uint32_t function_id, void *user_context) const {
  return impl_->resources(id, function_id, user_context);
}

cudaq_ringbuffer_info_t resident_workers::mailbox_info() const { return impl_->info(); }

} // namespace cudaq::qec::realtime::gpu

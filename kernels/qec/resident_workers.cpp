// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/realtime/resident_workers.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "cudaq/realtime/detail/base/slot_memory.h"

#include "cudaq/qec/realtime/resident_mailbox.cuh"
#include "kernels/qec/kernel_loading.h"
#include "kernels/qec/request_memory.h"
#include "lib/base/cuda_device.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
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
  constexpr std::size_t kMax = std::numeric_limits<std::uint32_t>::max() / 2;
  if (c.num_workers < 1 || c.num_workers > 64)
    refuse("num_workers is " + std::to_string(c.num_workers) + ", it must be 1 to 64");
  if (c.payload_bytes > kMax)
    refuse("payload_bytes is " + std::to_string(c.payload_bytes) + ", it must be at most 2 GiB");
  if (c.output_bytes < 1 || c.output_bytes > kMax)
    refuse("output_bytes is " + std::to_string(c.output_bytes) + ", it must be 1 byte to 2 GiB");
  if (!is_kind_for_requests(c.memory_kind))
    refuse("memory_kind is " + std::to_string(c.memory_kind) +
           ", it must be CUDAQ_MEMORY_AUTO, CUDAQ_MEMORY_DEVICE_RX or CUDAQ_MEMORY_MAPPED");
  if (c.timeout_ns == 0)
    refuse("timeout_ns is 0, so no block could begin in time");
  if (!launch)
    refuse("launch is empty; resident_launch (resident_kernel.cuh) makes one from a stage");
  return c;
}

/// Before any memory is allocated: a launcher that refuses, or cannot load, must not make the constructor free memory,
/// which waits for the kernels of the device.
resident_launcher loaded(const resident_config &c, resident_launcher launch) {
  const auto workers = static_cast<std::uint32_t>(c.num_workers);
  const auto one = std::make_shared<resident_launcher>(std::move(launch)); // also if it keeps what it has loaded
  load_kernels(c.device_id, "resident workers", [one, workers] {
    resident_mailboxes none{};
    none.workers = workers;
    return (*one)(none, 0, cudaStreamPerThread);
  });
  return [one](const resident_mailboxes &boxes, unsigned blocks, cudaStream_t stream) {
    return (*one)(boxes, blocks, stream);
  };
}

} // namespace

class resident_workers::impl {
public:
  impl(const resident_config &config, resident_launcher launch)
      : config_(config), launch_(loaded(config, std::move(launch))),
        box_("resident workers: mailboxes", config.memory_kind, static_cast<std::uint32_t>(config.num_workers) + 1,
             config.payload_bytes, config.device_id),
        outputs_(output_stride() * workers()), states_(sizeof(resident_state) * workers()) {
    for (std::uint32_t id = 0; id < workers(); ++id)
      workers_.emplace_back(*this, id);
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

  /// For the destructor. False: the memory must stay, for blocks that run or for a pipeline that was not stopped; or
  /// because the last start found other kernels that leave no room: freeing would wait for them.
  bool end_for_good() {
    const std::lock_guard lock(control_);
    if (!end_blocks() || num_in_use_ != 0)
      return false;
    if (found_no_room_)
      stream_.reset(); // there are few, and this does not wait
    return !found_no_room_;
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
  /// The last worker ends the blocks of all. False: they still run, or wait for room.
  bool end(worker &w) {
    const std::lock_guard lock(control_);
    if (!w.in_use) { // its begin has thrown: blocks of that launch may still wait for room
      const bool ended = num_in_use_ != 0 || end_blocks();
      found_no_room_ = found_no_room_ && !ended;
      return ended;
    }
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
    for (std::size_t flag = 0; flag <= workers(); ++flag) // blocks that ended early may have left a request
      store_release<std::uint64_t>(box_.ring.rx_flags_host[flag], 0);
    cudaq::realtime::detail::fence_posted_stores();
    blocks_ = blocks::must_end; // a launcher that fails may have launched
    if (const cudaError_t refused = launch_(boxes(), static_cast<unsigned>(workers()), stream_->get());
        refused != cudaSuccess) {
      end_blocks();
      require(refused, "resident workers: launching the blocks");
    }
    await_begin();
    found_no_room_ = false;
    blocks_ = blocks::run;
  }
  /// Tells all blocks to end, and waits for that. False: they still run, or wait for room on the device.
  bool end_blocks() noexcept {
    if (blocks_ == blocks::none)
      return true;
    cudaq_host_ringbuffer_signal_slot(&box_.ring, static_cast<std::uint32_t>(workers()));
    const bool ended = spin_until(config_.timeout_ns, [&] { return kernel() != cudaErrorNotReady; });
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

  void await_begin() {
    std::size_t begun = 0;
    spin_until(config_.timeout_ns, [&] {
      while (begun < workers() && load_acquire(state(begun).began) != 0)
        ++begun;
      return begun == workers() || kernel() != cudaErrorNotReady;
    });
    if (begun == workers())
      return;
    const cudaError_t found = kernel();
    found_no_room_ = found == cudaErrorNotReady;
    end_blocks();
    throw std::runtime_error(
        "resident workers: " + std::to_string(begun) + " of " + std::to_string(workers()) + " blocks run" +
        (found == cudaErrorNotReady ? "; kernels that run on the device leave no room for the others"
                                    : std::string(", then the kernel has ended: ") + cudaGetErrorString(found)));
  }
  /// cudaErrorNotReady: it runs, or waits for room on the device.
  cudaError_t kernel() const { return cudaq::realtime::detail::query_stream(config_.device_id, stream_->get()); }
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
        !self.box_.write(w.id, call->payload, call->payload_size))
      return cudaErrorInvalidValue;
    cudaq_host_ringbuffer_signal_slot(&self.box_.ring, w.id);
    return 0;
  }
  /// 0: the blocks run. Any thread.
  static int error_of(void *data) {
    impl &self = static_cast<worker *>(data)->of;
    const cudaError_t state = self.kernel();
    if (state != cudaErrorNotReady)
      self.failed_.store(state == cudaSuccess ? cudaErrorLaunchFailure : state); // cudaSuccess: they have ended
    return self.failed_.load();
  }

  const resident_config config_;
  const resident_launcher launch_;
  request_ring box_; ///< slot i is the mailbox of worker i; the slot after the last worker's tells all blocks to end
  mapped_block outputs_, states_;
  std::deque<worker> workers_;
  std::optional<own_stream> stream_{std::in_place, "resident workers"};
  cudaq::realtime::detail::shared_word<int> failed_; ///< a CUDA error after which no block takes a request
  std::mutex control_;                               ///< for the members below, and worker::in_use
  blocks blocks_ = blocks::none;
  bool found_no_room_ = false;
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

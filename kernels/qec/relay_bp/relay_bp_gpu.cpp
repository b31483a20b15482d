// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/relay_bp/relay_bp_gpu.h"

#include "cudaq/realtime/detail/base/flag_word.h"
#include "kernels/qec/device_memory.h"
#include "kernels/qec/relay_bp/relay_bp_instances.h"
#include "lib/base/cpu_relax.h"
#include "lib/base/cuda_device.h"
#include "lib/qec/decoders/stop_check.h"
#include "lib/qec/decoding/dem.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime::gpu {
namespace {

using cudaq::realtime::detail::claim_word;
using cudaq::realtime::detail::device_guard;
using cudaq::realtime::detail::load_relaxed;
using cudaq::realtime::detail::store_relaxed;
using cudaq::realtime::detail::store_release;

/// How long a kernel may take to end after it was cancelled or its time has passed.
constexpr std::uint64_t kPatienceNs = 2000000000;
/// Polls for the answer between two queries of the state of the kernel, which are CUDA calls.
constexpr std::uint32_t kPollsPerQuery = 4096;

/// The kernel has this much shared memory of its own in a cluster.
constexpr std::size_t kStaticBytes = (sizeof(relay_job) + 127) / 128 * 128;

cudaDeviceProp properties_of(int device_id) {
  cudaDeviceProp found{};
  require(cudaGetDeviceProperties(&found, device_id), "properties of the device");
  return found;
}

/// Shared memory of a block of a cluster.
std::size_t cluster_block_bytes(const cudaDeviceProp &device, const relay_bp_gpu_limits &limits) {
  const std::size_t bytes = std::min(device.sharedMemPerBlockOptin, limits.shared_bytes);
  return bytes - std::min(bytes, kStaticBytes);
}

/// The current device, without what others have taken.
relay_gpu empty_gpu(const cudaDeviceProp &device) {
  const auto multiprocessors = static_cast<std::uint32_t>(device.multiProcessorCount);
  relay_gpu gpu{device.name, multiprocessors, {}, {}};
  gpu.max_chains.add(multiprocessors, 1);
  for (std::uint32_t blocks = 2; blocks <= kMaxParts && device.major >= 9; blocks *= 2) {
    unsigned chains = 0;
    require(max_relay_chains(blocks, cluster_block_bytes(device, {}), chains), "clusters of the device");
    gpu.max_chains.add(chains, blocks);
  }
  return gpu;
}

relay_layout layout_of(const tanner_graph &graph, const relay_bp_options &options, const cudaDeviceProp &device,
                       const relay_gpu &gpu, const relay_bp_gpu_limits &limits) {
  const auto to_try = relay_blocks_to_try(gpu, options.ensemble, limits.blocks);
  if (to_try.failed())
    throw std::runtime_error(to_try.text());
  const auto with_blocks = [&](std::uint32_t blocks) {
    const std::size_t bytes = cluster_block_bytes(device, limits);
    return relay_layout(graph, options,
                        {blocks == 0 ? std::min(device.sharedMemPerBlockOptin, limits.shared_bytes) : bytes, blocks});
  };
  if (limits.blocks == 0)
    if (relay_layout found = with_blocks(1); found.variant() == relay_variant::cluster)
      return found; // it would not be quicker in parts
  for (const std::uint32_t blocks : *to_try) {
    if (relay_layout found = with_blocks(blocks); is_cluster(found.variant()))
      return found;
    if (limits.blocks > 1)
      throw std::runtime_error("blocks is " + std::to_string(blocks) +
                               ", and the model does not fit into the shared memory of so many blocks");
  }
  return with_blocks(0);
}

} // namespace

/// The device memory of a layout, the blocks, and their mailbox.
class relay_bp_gpu::impl {
public:
  impl(relay_layout made, const cudaDeviceProp &device)
      : layout(std::move(made)), job_(layout.job()),
        description_(std::string(device.name) + ", " + std::to_string(job_.chains) +
                     (job_.chains == 1 ? " chain, " : " chains, ") + std::to_string(job_.chains * job_.parts) + " of " +
                     std::to_string(device.multiProcessorCount) + " multiprocessors, " + layout.variant_text()) {}
  /// Called while the device is current. Not in the constructor: what is there after a failure is freed with the rest.
  void allocate(int device_id) {
    upload();
    resident_config config;
    config.num_workers = 1;
    config.payload_bytes = sizeof(relay_request) + job_.total_words * sizeof(std::uint32_t);
    config.output_bytes = job_.record_bytes();
    config.device_id = device_id;
    config.timeout_ns = kPatienceNs;
    payload_.resize((config.payload_bytes + 7) / 8);
    workers_ = std::make_unique<resident_workers>(config, launch_relay_bp(job_, layout.variant()));
    worker_ = workers_->resources(0, 0, nullptr);
  }
  /// Launches the blocks, and waits until they run.
  void begin() { worker_.stage_begin_fn(worker_.host_stage_data); }
  /// Waits some seconds for the end of the blocks. False: they have not ended, so their memory stays.
  bool end() noexcept {
    try {
      return workers_ == nullptr || worker_.stage_end_fn(worker_.host_stage_data);
    } catch (...) {
      return false;
    }
  }

  /// The same without waiting.
  bool has_ended() noexcept {
    return workers_ == nullptr || (worker_.stage_error_fn(worker_.host_stage_data) != 0 && end());
  }

  decode_status solve(std::span<const std::uint8_t> syndrome, const decode_control &control,
                      relay_record &answer) noexcept {
    if (fault_ != 0)
      return decode_status::internal_error;
    auto *const request = reinterpret_cast<relay_request *>(payload_.data());
    const std::uint64_t now = control.deadline_ns == kNoDeadline ? 0 : monotonic_ns();
    if (control.deadline_ns <= now)
      return decode_status::deadline;
    number_ = number_after(number_, [this] { store_relaxed(*cancel_.host<std::uint32_t>(), 0u); });
    *request = {control.deadline_ns == kNoDeadline ? UINT64_MAX : control.deadline_ns - now, number_, 0};
    layout.pack_syndrome(syndrome, {reinterpret_cast<std::uint32_t *>(request + 1), job_.total_words});
    experimental::host_stage_call call{};
    call.payload = payload_.data();
    call.payload_size = sizeof(relay_request) + job_.total_words * sizeof(std::uint32_t);
    fault_ = worker_.host_stage_fn(worker_.host_stage_data, &call);
    if (fault_ != 0 || !await(control))
      return decode_status::internal_error;
    answer = *record();
    store_release(*worker_.ready_flag, 0); // the output is read until the next request
    switch (answer.status) {
    case relay_status::deadline:
      return decode_status::deadline;
    case relay_status::cancelled:
      return decode_status::cancelled;
    case relay_status::complete:
      break;
    }
    return answer.found != 0 ? decode_status::ok : decode_status::not_converged;
  }
  const relay_record *record() const noexcept { return static_cast<const relay_record *>(worker_.gpu_output); }
  std::span<const std::uint32_t> solution() const noexcept {
    return {reinterpret_cast<const std::uint32_t *>(record() + 1), job_.total_column_groups};
  }
  int fault() const noexcept { return fault_; }
  const std::string &description() const noexcept { return description_; }

private:
  void upload() {
    parts_.reserve(16);
    // A block whose copy fails is in parts_, too: it is kept with the rest.
    const auto add = [&](auto... contents) {
      parts_.emplace_back().make(contents...);
      return parts_.back().as<void>();
    };
    const auto add_copy = [&](const auto &values) {
      using value = typename std::remove_reference_t<decltype(values)>::value_type;
      return values.empty() ? add(std::size_t{0})
                            : add(static_cast<const void *>(values.data()), values.size() * sizeof(value));
    };
    const auto put = [&](auto &pointer, const auto &values) {
      pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(add_copy(values));
    };
    put(job_.cuts, layout.cuts);
    put(job_.sends_to, layout.sends_to);
    put(job_.checks, layout.checks);
    put(job_.group_of_row, layout.group_of_row);
    put(job_.column_groups, layout.column_groups);
    if (has_messages_in_device(layout.variant()))
      job_.places = add_copy(layout.places);
    else
      job_.places = add_copy(layout.short_places);
    put(job_.log_odds, layout.log_odds);
    put(job_.units, layout.units);
    put(job_.column_at, layout.column_at);
    put(job_.scales, layout.scales);
    put(job_.gammas, layout.gammas);
    const std::size_t chains = job_.chains;
    job_.team = static_cast<relay_team *>(add(sizeof(relay_team)));
    job_.syndrome = static_cast<std::uint32_t *>(add(job_.total_words * sizeof(std::uint32_t)));
    job_.records = static_cast<std::uint8_t *>(add(chains * job_.record_bytes()));
    if (has_values_in_device(layout.variant()))
      job_.values = static_cast<float *>(add(3 * chains * job_.total_column_lanes() * sizeof(float)));
    if (has_messages_in_device(layout.variant()))
      job_.messages = static_cast<float *>(add(chains * job_.total_cells * sizeof(float)));
    cancel_ = mapped_block(sizeof(std::uint32_t));
    job_.cancel = cancel_.device<std::uint32_t>();
  }

  /// Waits for the answer. Passes a cancelled control on to the kernel. False: there will be none.
  bool await(const decode_control &control) noexcept {
    std::uint64_t gives_up = kNoDeadline;
    bool cancelled = false;
    for (std::uint32_t poll = 1; !claim_word(*worker_.ready_flag, 1, 2); ++poll) {
      cudaq::realtime::detail::cpu_relax();
      if (control.cancel != nullptr && !cancelled && load_relaxed(*control.cancel) != 0) {
        cancelled = true;
        store_relaxed(*cancel_.host<std::uint32_t>(), number_);
      }
      if (poll % kPollsPerQuery != 0)
        continue;
      const std::uint64_t now = monotonic_ns();
      if (gives_up == kNoDeadline && (cancelled || now >= control.deadline_ns))
        gives_up = now + kPatienceNs;
      fault_ = worker_.stage_error_fn(worker_.host_stage_data);
      if (fault_ == 0 && now >= gives_up)
        fault_ = cudaErrorLaunchTimeout;
      if (fault_ != 0)
        return false;
    }
    return true;
  }

public:
  const relay_layout layout;

private:
  relay_job job_;
  std::vector<device_block> parts_;
  mapped_block cancel_;
  std::vector<std::uint64_t> payload_;
  const std::string description_;
  std::unique_ptr<resident_workers> workers_;
  experimental::gpu_worker_resources worker_;
  std::uint32_t number_ = 0;
  int fault_ = 0;
};

namespace {

/// Never destroyed: at the end of the process kernels may still run, and freeing memory would wait for them.
relay_instances &all_instances() {
  static relay_instances &all = *new relay_instances;
  return all;
}

/// Its blocks have their room on the device.
relay_layout layout_with_room(const tanner_graph &graph, const relay_bp_options &options, int device_id,
                              const cudaDeviceProp &device, const relay_bp_gpu_limits &limits) {
  for (relay_gpu gpu = empty_gpu(device);;) {
    gpu.taken = all_instances().taken(device_id);
    relay_layout found = layout_of(graph, options, device, gpu, limits);
    if (all_instances().take(device_id, gpu, found.job().chains, found.job().parts))
      return found;
  }
}

} // namespace

relay_bp_gpu::relay_bp_gpu(const tanner_graph &graph, const relay_bp_options &options, int device_id,
                           const relay_bp_gpu_limits &limits)
    : device_id_(device_id) {
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "counting the CUDA devices");
  if (device_id >= devices)
    throw std::runtime_error("device " + std::to_string(device_id) + " is not there: the machine has " +
                             std::to_string(devices) + " CUDA device(s)");
  const device_guard here(device_id);
  require(here.error(), "making the device current");
  for (const double p : graph.probability)
    log_odds_.push_back(log_odds(p));
  correction_.reserve(graph.num_columns());
  all_instances().begin(device_id);
  std::optional<relay_job> job; // with room on the device
  try {
    if (all_instances().waits_for_room(device_id))
      throw std::runtime_error("the blocks of an earlier decoder wait for room: kernels that run on the device leave "
                               "no room");
    load_kernels(device_id, "relay-bp-gpu", &load_relay_bp, limits.load_limit);
    const cudaDeviceProp device = properties_of(device_id);
    relay_layout layout = layout_with_room(graph, options, device_id, device, limits);
    job = layout.job();
    impl_ = std::make_shared<impl>(std::move(layout), device);
    impl_->allocate(device_id);
    impl_->begin();
  } catch (...) {
    end(job, false);
    throw;
  }
}

relay_bp_gpu::~relay_bp_gpu() {
  const device_guard here(device_id_);
  impl_->end();
  end(impl_->layout.job(), true);
}

void relay_bp_gpu::end(const std::optional<relay_job> &job, bool frees) {
  relay_instances::instance last;
  if (job)
    last = {nullptr, job->chains, job->parts};
  if (impl_ != nullptr)
    last.has_ended = [ended = impl_.get()] { return ended->has_ended(); };
  last.memory = std::move(impl_);
  all_instances().end(device_id_, std::move(last), frees);
}

decode_status relay_bp_gpu::solve(std::span<const std::uint8_t> syndrome, const decode_control &control) noexcept {
  correction_.clear();
  weight_ = 0;
  last_ = {};
  const decode_status status = impl_->solve(syndrome, control, last_);
  if (last_.found != 0) {
    impl_->layout.columns_of(impl_->solution(), correction_);
    for (const std::uint32_t column : correction_)
      weight_ += log_odds_[column];
  }
  return status;
}

const relay_layout &relay_bp_gpu::layout() const noexcept { return impl_->layout; }
const std::string &relay_bp_gpu::description() const noexcept { return impl_->description(); }
std::string relay_bp_gpu::fault() const {
  const int found = impl_->fault();
  return found == 0 ? "" : cudaGetErrorString(static_cast<cudaError_t>(found));
}

} // namespace cudaq::qec::realtime::gpu

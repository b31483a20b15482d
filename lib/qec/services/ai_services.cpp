// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/realtime/ai_predecoder_service.h"

#include "cudaq/realtime/detail/base/flag_word.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace cudaq::qec::realtime::experimental {

using cudaq::realtime::detail::claim_word;
using cudaq::realtime::detail::load_acquire;
using cudaq::realtime::detail::store_release;

namespace {

constexpr std::size_t round16(std::size_t n) { return (n + 15) / 16 * 16; }
constexpr int kIdle = 0, kReady = 1, kProcessing = 2; ///< values of an entry's ready flag

} // namespace

ai_decoder_service::ai_decoder_service(std::unique_ptr<inference_engine> engine, std::shared_ptr<service_device> device,
                                       void **device_mailbox_slot)
    : engine_(std::move(engine)), device_(std::move(device)) {
  if (engine_ == nullptr || device_ == nullptr || device_mailbox_slot == nullptr)
    throw std::invalid_argument("ai_decoder_service: engine, device or device_mailbox_slot is NULL");
  const auto has = [&](bool input) {
    return std::any_of(engine_->tensors().begin(), engine_->tensors().end(),
                       [&](const tensor_info &t) { return t.is_input == input; });
  };
  if (!has(true) || !has(false))
    throw std::invalid_argument(std::string("ai_decoder_service: ") + engine_->name() + " has no " +
                                (has(true) ? "output" : "input"));
  queue_.mailbox = device_mailbox_slot;
  try {
    bind_tensors();
  } catch (...) {
    free_memory();
    throw;
  }
}

ai_decoder_service::~ai_decoder_service() {
  if (graph_ != nullptr)
    device_->destroy(graph_);
  free_memory();
}

void ai_decoder_service::free_memory() noexcept {
  for (const tensor_binding &b : bindings_)
    device_->free(b.d_buffer);
  device_->free_shared(no_request_);
}

void ai_decoder_service::bind_tensors() {
  no_request_ = device_->allocate_shared(sizeof(void *));
  for (std::size_t i = 0; i < engine_->tensors().size(); ++i) {
    const tensor_info &t = engine_->tensors()[i];
    tensor_binding &b = bindings_.emplace_back();
    b = {t.name, nullptr, t.size_bytes(), t.is_input};
    b.d_buffer = device_->allocate(t.memory_bytes());
    engine_->bind(i, b.d_buffer);
    if (b.is_input && queue_.input == nullptr) {
      queue_.input = static_cast<std::uint8_t *>(b.d_buffer);
      queue_.input_bytes = b.size_bytes;
    }
    if (!b.is_input && queue_.output == nullptr) {
      queue_.output = static_cast<const std::uint8_t *>(b.d_buffer);
      queue_.output_bytes = b.size_bytes;
    }
  }
}

void ai_decoder_service::set_graph_io(const cudaq::realtime::GraphIOContext *graph_io_dev) {
  if (queue_.depth != 0)
    throw std::logic_error(
        "ai_decoder_service: set_graph_io: a predecoder service has no GPU answer; use ai_decoder_service");
  queue_.io = graph_io_dev;
}

cudaError_t ai_decoder_service::enqueue(const service_queue &queue, cudaStream_t stream) {
  cudaError_t error = device_->enqueue_input(queue, stream);
  if (error == cudaSuccess)
    error = engine_->enqueue(stream);
  return error == cudaSuccess ? device_->enqueue_output(queue, stream) : error;
}

void ai_decoder_service::capture_graph(bool device_launch) {
  service_queue idle = queue_; // the warm-up must not serve the last request again, which the mailbox still names
  idle.io = nullptr;
  idle.mailbox = static_cast<void *const *>(no_request_.device);
  const cudaGraphExec_t made =
      device_->capture([&](cudaStream_t stream) { return enqueue(idle, stream); },
                       [this](cudaStream_t stream) { return enqueue(queue_, stream); }, device_launch);
  if (graph_ != nullptr)
    device_->destroy(graph_);
  graph_ = made;
}

const ai_decoder_service::tensor_binding &ai_decoder_service::binding(const std::string &name) const {
  for (const tensor_binding &b : bindings_)
    if (b.name == name)
      return b;
  throw std::out_of_range("ai_decoder_service: " + std::string(engine_->name()) + " has no tensor \"" + name + "\"");
}

ai_predecoder_service::ai_predecoder_service(std::unique_ptr<inference_engine> engine,
                                             std::shared_ptr<service_device> with, void **device_mailbox_slot,
                                             int queue_depth)
    : ai_decoder_service(std::move(engine), std::move(with), device_mailbox_slot) {
  if (queue_depth < 1)
    throw std::invalid_argument("ai_predecoder_service: queue_depth must be at least 1, it is " +
                                std::to_string(queue_depth));
  const auto depth = static_cast<std::size_t>(queue_depth);
  queue_.depth = queue_depth;
  queue_.output_stride = round16(queue_.output_bytes);
  try {
    flags_ = device().allocate_shared(depth * sizeof(int));
    frames_ = device().allocate_shared(depth * sizeof(void *));
    sizes_ = device().allocate_shared(depth * sizeof(std::uint32_t));
    outputs_ = device().allocate_shared(depth * queue_.output_stride);
    control_ = device().allocate_shared(2 * sizeof(int));
    tail_ = static_cast<int *>(device().allocate(sizeof(int)));
  } catch (...) {
    for (const auto &memory : {flags_, frames_, sizes_, outputs_, control_})
      device().free_shared(memory);
    throw;
  }
  queue_.ready = static_cast<volatile int *>(flags_.device);
  queue_.frames = static_cast<void **>(frames_.device);
  queue_.sizes = static_cast<std::uint32_t *>(sizes_.device);
  queue_.outputs = static_cast<std::uint8_t *>(outputs_.device);
  queue_.stop = static_cast<volatile int *>(control_.device);
  queue_.refused = static_cast<int *>(control_.device) + 1;
  queue_.tail = tail_;
}

ai_predecoder_service::~ai_predecoder_service() {
  stop(); // a graph may wait for an entry, and freeing waits for the graph
  for (const auto &memory : {flags_, frames_, sizes_, outputs_, control_})
    device().free_shared(memory);
  device().free(tail_);
}

void ai_predecoder_service::set_ring(const realtime_pipeline::ring_buffer_bases &bases, std::size_t stride) {
  ring_ = bases;
  ring_stride_ = stride;
}

// Only the thread that holds the entry of job n can hand it out, and it increases n before it releases the entry. So
// if n is unchanged after the claim, the entry holds job n. Otherwise it holds a later job; it is given back and
// claimed when that job is due.
bool ai_predecoder_service::poll_next_job(predecoder_job &out_job) {
  const std::uint64_t job = load_acquire(polled_);
  const auto at = static_cast<int>(job % static_cast<std::uint64_t>(queue_.depth));
  if (!claim_word(ready()[at], kReady, kProcessing))
    return false;
  if (load_acquire(polled_) != job) {
    store_release(ready()[at], kReady);
    return false;
  }
  store_release(polled_, job + 1);
  void *const frame = static_cast<void **>(frames_.host)[at];
  out_job = {at, frame,
             static_cast<const std::uint8_t *>(outputs_.host) + static_cast<std::size_t>(at) * queue_.output_stride, -1,
             static_cast<const std::uint32_t *>(sizes_.host)[at]};
  out_job.poll_ts_ns =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  if (ring_stride_ != 0) {
    const std::size_t offset =
        reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(ring_.rx_data_dev);
    out_job.origin_slot = static_cast<int>(offset / ring_stride_);
    out_job.ring_buffer_ptr = ring_.rx_data_host + offset;
  }
  return true;
}

void ai_predecoder_service::release_job(int slot_idx) {
  if (slot_idx < 0 || slot_idx >= queue_.depth || load_acquire(ready()[slot_idx]) != kProcessing)
    throw std::logic_error("ai_predecoder_service: release_job: entry " + std::to_string(slot_idx) + " is not claimed");
  store_release(ready()[slot_idx], kIdle);
}

int ai_predecoder_service::pending() const {
  int n = 0;
  for (int i = 0; i < queue_.depth; ++i)
    n += load_acquire(ready()[i]) != kIdle;
  return n;
}

void ai_predecoder_service::stop() { store_release(static_cast<volatile int *>(control_.host)[0], 1); }
int ai_predecoder_service::refused() const { return load_acquire(static_cast<volatile int *>(control_.host)[1]); }

} // namespace cudaq::qec::realtime::experimental

// SPDX-License-Identifier: Apache-2.0
// TEST DOUBLE: see gpu_roce_double.h.
#include "unittests/contrib/gpu_roce/double/gpu_roce_double.h"

#include <algorithm>
#include <hololink/operators/gpu_roce_transceiver/gpu_roce_transceiver.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

namespace cudaq::realtime::test {
namespace {
std::unique_ptr<gpu_roce_script> script = std::make_unique<gpu_roce_script>();

void wait_while(const std::atomic<bool> &waits) {
  while (waits)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
} // namespace

gpu_roce_script &gpu_roce_double() { return *script; }
void gpu_roce_double_reset() {
  const std::vector<void *> left = script->not_destroyed;
  for (void *const object : left)
    delete static_cast<hololink::operators::GpuRoceTransceiver *>(object);
  script = std::make_unique<gpu_roce_script>();
}

} // namespace cudaq::realtime::test

namespace hololink::operators {
using namespace cudaq::realtime::test;

struct GpuRoceTransceiver::played {
  gpu_roce_log given;
  std::vector<std::uint8_t> rx, tx;
  std::vector<std::uint64_t> rx_flags, tx_flags;
  std::atomic<bool> done{false};
};

GpuRoceTransceiver::GpuRoceTransceiver(const char *ibv_name, unsigned ibv_port, unsigned tx_ibv_qp, uint32_t gpu_id,
                                       size_t cu_frame_size, size_t cu_page_size, unsigned pages, const char *peer_ip,
                                       const bool forward, const bool rx_only, const bool tx_only) {
  if (script->construct_throws)
    throw std::runtime_error("pipe call failed.");
  if (script->construct_throws_number)
    throw 7;
  played_ = new played;
  played_->given = {.device = ibv_name,
                    .peer_ip = peer_ip,
                    .port = ibv_port,
                    .remote_qp = tx_ibv_qp,
                    .pages = pages,
                    .gpu = gpu_id,
                    .frame_size = cu_frame_size,
                    .page_size = cu_page_size,
                    .forward = forward,
                    .rx_only = rx_only,
                    .tx_only = tx_only};
  script->last = played_->given;
  script->not_destroyed.push_back(this);
  ++script->constructed;
}

GpuRoceTransceiver::~GpuRoceTransceiver() {
  wait_while(script->destroy_waits);
  std::erase(script->not_destroyed, static_cast<void *>(this));
  delete played_;
  ++script->destroyed;
}

bool GpuRoceTransceiver::start() {
  ++script->starts_under_way;
  wait_while(script->start_waits);
  --script->starts_under_way;
  (void)cudaSetDevice(static_cast<int>(played_->given.gpu)); // as the original does
  if (script->start_throws)
    throw std::runtime_error("start threw");
  const std::size_t bytes = played_->given.page_size * played_->given.pages;
  played_->rx.resize(bytes), played_->tx.resize(bytes);
  played_->rx_flags.resize(played_->given.pages), played_->tx_flags.resize(played_->given.pages);
  ++script->starts;
  return !script->start_fails;
}

void GpuRoceTransceiver::blocking_monitor() {
  ++script->monitors;
  while (!played_->done || script->monitor_stays) {
    if (script->monitor_throws)
      throw std::runtime_error("poll returned ret=-1, errno=9.");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void GpuRoceTransceiver::close() {
  played_->done = true;
  ++script->closes;
}

uint32_t GpuRoceTransceiver::get_qp_number() { return kDoubleQueuePair; }
uint32_t GpuRoceTransceiver::get_rkey() { return kDoubleKey; }
uint64_t GpuRoceTransceiver::external_frame_memory() { return 0; }
uint8_t *GpuRoceTransceiver::get_rx_ring_data_addr() { return played_->rx.data(); }
size_t GpuRoceTransceiver::get_rx_ring_stride_sz() { return played_->given.page_size; }
uint32_t GpuRoceTransceiver::get_rx_ring_stride_num() { return played_->given.pages - (script->fewer_pages ? 1 : 0); }
uint64_t *GpuRoceTransceiver::get_rx_ring_flag_addr() { return played_->rx_flags.data(); }
uint8_t *GpuRoceTransceiver::get_tx_ring_data_addr() { return played_->tx.data(); }
size_t GpuRoceTransceiver::get_tx_ring_stride_sz() { return played_->given.page_size; }
uint32_t GpuRoceTransceiver::get_tx_ring_stride_num() { return played_->given.pages; }
uint64_t *GpuRoceTransceiver::get_tx_ring_flag_addr() { return played_->tx_flags.data(); }
void GpuRoceTransceiver::set_cpu_ring_buffers(bool enable) { script->last.cpu = enable; }
void *GpuRoceTransceiver::get_doca_gpu_dev_qp(unsigned sensor_id) {
  return sensor_id == 0 && !script->no_gpu_queue_pair ? played_ : nullptr;
}

extern "C" doca_error_t GpuRoceTransceiverPrepareKernel(cudaStream_t, struct doca_gpu_dev_verbs_qp *qp,
                                                        size_t frame_size, uint32_t cu_page_mkey, uint32_t cuda_blocks,
                                                        uint32_t cuda_threads) {
  script->last.prepared_frame_size = frame_size;
  script->last.prepared_key = cu_page_mkey;
  script->last.prepared_threads = cuda_blocks * cuda_threads;
  return qp == nullptr || script->prepare_fails ? DOCA_ERROR_BAD_STATE : DOCA_SUCCESS;
}

} // namespace hololink::operators

extern "C" {

using cudaq::realtime::test::gpu_roce_double;

static thread_local int current_device = 0;

static cudaError_t cuda_result(const char *function) {
  return gpu_roce_double().cuda_fails == function ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  *device = current_device;
  return cuda_result("cudaGetDevice");
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **symbol, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
  *symbol = nullptr;
  *found = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) {
  *value = gpu_roce_double().integrated ? 1 : 0;
  return cuda_result("cudaDeviceGetAttribute");
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cuda_result("cudaStreamSynchronize"); }
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  if (const cudaError_t error = cuda_result("cudaHostAlloc"))
    return error;
  *memory = ::operator new(bytes);
  ++gpu_roce_double().cuda_blocks;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *memory) {
  ::operator delete(memory);
  --gpu_roce_double().cuda_blocks;
  return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t) { return "an error of the test double"; }

} // extern "C"

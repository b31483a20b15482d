// SPDX-License-Identifier: Apache-2.0
#include "contrib/gpu_roce/sensor_link.h"

#include "cudaq/realtime/detail/base/entered_device.h"

#include <cuda_runtime_api.h>
#include <endian.h>
#include <hololink/operators/gpu_roce_transceiver/gpu_roce_transceiver.hpp>

namespace cudaq::realtime::detail {
namespace {

using hololink::operators::GpuRoceTransceiver;

expected<> cuda_failed(const char *call, cudaError_t error) {
  return make_reason(CUDAQ_ERR_CUDA, "%s: %s", call, cudaGetErrorString(error));
}

} // namespace

expected<> sensor_link::open(const gpu_roce_options &options, const std::string &peer_ip, std::uint32_t remote_qp,
                             std::unique_ptr<sensor_link> &out) {
  entered_device device; // the sensor bridge changes the current device
  if (const cudaError_t error = device.enter(static_cast<int>(options.gpu)))
    return cuda_failed("making the device current", error);
  std::unique_ptr<sensor_link> link(new sensor_link(options));
  if (expected<> result = link->start(peer_ip, remote_qp); result.failed())
    return result;
  if (options.unified)
    if (expected<> result = link->make_context(); result.failed())
      return result;
  out = std::move(link);
  return {};
}

expected<> sensor_link::start(const std::string &peer_ip, std::uint32_t remote_qp) {
  constexpr unsigned kPort = 1;
  const bool ring = !options_.unified && !options_.forward;
  // A unified server answers from pages of the same memory region, because the sensor bridge tells no other key.
  const unsigned pages = options_.num_pages * (options_.unified ? 2 : 1);
  auto *const made =
      new GpuRoceTransceiver(options_.device.c_str(), kPort, remote_qp, options_.gpu, options_.frame_size(),
                             options_.page_size, pages, peer_ip.c_str(), options_.forward, ring, ring);
  made->set_cpu_ring_buffers(options_.cpu);
  if (!made->start()) // `made` is not destroyed: see open
    return make_reason(CUDAQ_ERR_INTERNAL,
                       "the sensor bridge did not start on --device %s, --gpu %u; it writes the reason to stderr",
                       options_.device.c_str(), options_.gpu);
  transceiver_ = made;
  if (made->get_rx_ring_stride_num() != pages || made->get_rx_ring_stride_sz() != options_.page_size)
    return make_reason(CUDAQ_ERR_INTERNAL, "the sensor bridge made %u pages of %zu bytes, not %u of %u",
                       made->get_rx_ring_stride_num(), made->get_rx_ring_stride_sz(), pages, options_.page_size);
  return {};
}

expected<> sensor_link::make_context() {
  int integrated = 0;
  if (const cudaError_t error =
          cudaDeviceGetAttribute(&integrated, cudaDevAttrIntegrated, static_cast<int>(options_.gpu)))
    return cuda_failed("cudaDeviceGetAttribute", error);
  void *const queue_pair = transceiver_->get_doca_gpu_dev_qp(0);
  if (queue_pair == nullptr)
    return {CUDAQ_ERR_INTERNAL, "the sensor bridge has no queue pair for the GPU"};
  // Posts the receive requests. For the other shapes start has done that.
  if (hololink::operators::GpuRoceTransceiverPrepareKernel(nullptr, static_cast<doca_gpu_dev_verbs_qp *>(queue_pair),
                                                           options_.frame_size(), htobe32(key()), 1,
                                                           kQueueEntries) != DOCA_SUCCESS)
    return {CUDAQ_ERR_INTERNAL, "the sensor bridge did not post the receive requests"};
  if (const cudaError_t error = cudaStreamSynchronize(nullptr))
    return cuda_failed("cudaStreamSynchronize", error);
  void *memory = nullptr;
  if (const cudaError_t error =
          cudaHostAlloc(&memory, sizeof(gpu_roce_context), cudaHostAllocMapped | cudaHostAllocPortable))
    return cuda_failed("cudaHostAlloc", error);
  context_ = new (memory) gpu_roce_context{.magic = kGpuRoceContextMagic,
                                           .num_pages = options_.num_pages,
                                           .page_size = options_.page_size,
                                           .frame_size = options_.frame_size(),
                                           .key = key(),
                                           .blue_flame = integrated ? 0u : 1u,
                                           .queue_pair = queue_pair,
                                           .pages = transceiver_->get_rx_ring_data_addr(),
                                           .pages_remote = buffer_address(),
                                           .received = 0,
                                           .sent = 0};
  return {};
}

sensor_link::~sensor_link() {
  entered_device device;
  (void)device.enter(static_cast<int>(options_.gpu));
  delete transceiver_;
  if (context_ != nullptr)
    (void)cudaFreeHost(context_);
}

void sensor_link::monitor() { transceiver_->blocking_monitor(); }
void sensor_link::close() { transceiver_->close(); }
std::uint32_t sensor_link::queue_pair() const { return transceiver_->get_qp_number(); }
std::uint32_t sensor_link::key() const { return transceiver_->get_rkey(); }
std::uint64_t sensor_link::buffer_address() const { return transceiver_->external_frame_memory(); }

cudaq_ringbuffer_t sensor_link::ring() const {
  cudaq_ringbuffer_t ring{};
  ring.rx_flags = transceiver_->get_rx_ring_flag_addr();
  ring.tx_flags = transceiver_->get_tx_ring_flag_addr();
  ring.rx_data = transceiver_->get_rx_ring_data_addr();
  ring.tx_data = transceiver_->get_tx_ring_data_addr();
  ring.rx_stride_sz = transceiver_->get_rx_ring_stride_sz();
  ring.tx_stride_sz = transceiver_->get_tx_ring_stride_sz();
  if (options_.cpu) {
    ring.rx_flags_host = ring.rx_flags;
    ring.tx_flags_host = ring.tx_flags;
    ring.rx_data_host = ring.rx_data;
    ring.tx_data_host = ring.tx_data;
  }
  return ring;
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// TEST DOUBLE. Declarations of this project in place of the header of this name of the Holoscan sensor bridge: what the
// provider gpu-roce uses of it, with the signatures of commit 1a1febe (2.7.0). The functions follow a script
// (gpu_roce_double.h). No adapter, no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

enum doca_error { DOCA_SUCCESS = 0, DOCA_ERROR_BAD_STATE = 11 };
using doca_error_t = doca_error;
struct doca_gpu_dev_verbs_qp;

namespace hololink::operators {

class GpuRoceTransceiver {
public:
  GpuRoceTransceiver(const char *ibv_name, unsigned ibv_port, unsigned tx_ibv_qp, uint32_t gpu_id, size_t cu_frame_size,
                     size_t cu_page_size, unsigned pages, const char *peer_ip, const bool forward, const bool rx_only,
                     const bool tx_only);
  ~GpuRoceTransceiver();

  void blocking_monitor();
  bool start();
  void close();

  uint32_t get_qp_number();
  uint32_t get_rkey();
  uint64_t external_frame_memory();

  uint8_t *get_rx_ring_data_addr();
  size_t get_rx_ring_stride_sz();
  uint32_t get_rx_ring_stride_num();
  uint64_t *get_rx_ring_flag_addr();
  uint8_t *get_tx_ring_data_addr();
  size_t get_tx_ring_stride_sz();
  uint32_t get_tx_ring_stride_num();
  uint64_t *get_tx_ring_flag_addr();

  void set_cpu_ring_buffers(bool enable);
  void *get_doca_gpu_dev_qp(unsigned sensor_id);

private:
  struct played;
  played *played_;
};

extern "C" doca_error_t GpuRoceTransceiverPrepareKernel(cudaStream_t stream, struct doca_gpu_dev_verbs_qp *qp,
                                                        size_t frame_size, uint32_t cu_page_mkey, uint32_t cuda_blocks,
                                                        uint32_t cuda_threads);

} // namespace hololink::operators

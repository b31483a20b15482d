// SPDX-License-Identifier: Apache-2.0
// How a kernel gives a send request to the adapter, over the functions of DOCA GPUNetIO. The file that includes this
// one has included its headers: those of the open repository are enough.
#pragma once

#include "contrib/gpu_roce/send_request.h"

namespace cudaq::realtime::detail {

class send_queue {
public:
  /// `storage`: where the send requests are. BlueFlame copies a request from shared memory to the adapter.
  __device__ send_queue(void *queue_pair, bool blue_flame, const void *storage)
      : queue_pair_(static_cast<doca_gpu_dev_verbs_qp *>(queue_pair)), blue_flame_(blue_flame),
        in_shared_memory_(__isShared(storage)) {}

  __device__ std::uint32_t queue_shifted() const { return queue_pair_->sq_num_shift8; }

  __device__ void send(send_request &request, std::uint64_t index) {
    // The adapter reads the request from the queue if it has not taken the BlueFlame write.
    auto *const entry = reinterpret_cast<send_request *>(
        doca_gpu_dev_verbs_get_wqe_ptr(queue_pair_, static_cast<std::uint16_t>(index)));
    *entry = request;
    doca_gpu_dev_verbs_mark_wqes_ready<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA>(queue_pair_, index, index);
    if (!blue_flame_)
      doca_gpu_dev_verbs_submit<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS,
                                DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO>(queue_pair_, index + 1);
    else if (in_shared_memory_) {
#if __CUDA_ARCH__ >= 900
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // the request's bytes, for the copy of BlueFlame
#endif
      doca_gpu_dev_verbs_submit_bf<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>(
          queue_pair_, index + 1, reinterpret_cast<doca_gpu_dev_verbs_wqe *>(&request));
    } else
      doca_gpu_dev_verbs_submit<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS,
                                DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB>(queue_pair_, index + 1);
  }

  /// Waits until the copy of BlueFlame has read the request.
  __device__ void finish_send() {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
  }

private:
  doca_gpu_dev_verbs_qp *queue_pair_;
  bool blue_flame_, in_shared_memory_;
};

} // namespace cudaq::realtime::detail

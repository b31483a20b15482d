// SPDX-License-Identifier: Apache-2.0
// The queues of an mlx5 adapter, as the hooks use them. The receive side is only in the full DOCA SDK: the open
// repository has neither a receive queue nor the header that is included here.
#pragma once

#include <doca_gpunetio_dev_verbs_twosided.cuh>

#include "contrib/gpu_roce/send_queue.cuh"
#include "contrib/gpu_roce/sensor_session.h"

namespace cudaq::realtime::detail {

class adapter_queues : public send_queue {
public:
  __device__ adapter_queues(const gpu_roce_context &context, const void *storage)
      : send_queue(context.queue_pair, context.blue_flame != 0, storage),
        queue_pair_(static_cast<doca_gpu_dev_verbs_qp *>(context.queue_pair)) {
    const doca_gpu_dev_verbs_cq *const queue = doca_gpu_dev_verbs_qp_get_cq_rq(queue_pair_);
    entries_ = queue->cqe_daddr;
    num_entries_ = queue->cqe_num;
  }

  /// The adapter writes the entries round and round, and inverts the owner bit with each lap. So the bit tells whether
  /// an entry is of this lap: no other word needs to be read before it.
  __device__ bool poll(std::uint64_t index, queue_entry &out) {
    std::uint8_t *const entry = entries_ + (index & (num_entries_ - 1)) * kEntryBytes;
    const std::uint32_t last =
        big_endian(doca_gpu_dev_verbs_load_relaxed_sys_global(reinterpret_cast<std::uint32_t *>(entry + kLastWordAt)));
    const std::uint32_t lap = (index & num_entries_) != 0 ? 1 : 0;
    const std::uint32_t opcode = last >> 4 & 0xF;
    if ((last & 1) != lap || opcode == kInvalid)
      return false;
    doca_gpu_dev_verbs_fence_acquire<
        DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>(); // the frame was written before its completion
    out = {opcode, big_endian(*reinterpret_cast<const std::uint32_t *>(entry + kImmediateAt))};
    return true;
  }

  __device__ void repost(std::uint64_t index) {
    doca_gpu_dev_verbs_submit<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU,
                              DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB, DOCA_GPUNETIO_VERBS_QP_RQ>(queue_pair_,
                                                                                                    index + 1);
  }

private:
  // mlx5_cqe64 of rdma-core's mlx5dv.h. The last word: counter (16 bits), signature (8), opcode (4), format (3), owner.
  static constexpr std::uint32_t kEntryBytes = 64, kImmediateAt = 36, kLastWordAt = 60, kInvalid = 15;

  doca_gpu_dev_verbs_qp *queue_pair_;
  std::uint8_t *entries_;
  std::uint64_t num_entries_;
};

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
// TEST DOUBLE. Declarations of this project in place of the header of this name of the DOCA SDK, which is not public.
// They are what the device hooks of gpu-roce use. The names and arguments of the send side are those of the open
// repository NVIDIA-DOCA/gpunetio, 2.0.1. The receive side is declared as the sensor bridge 2.7.0 uses it. The hooks
// are compiled and device-linked against it, and never run.
#pragma once

#include <cstdint>

enum doca_gpu_dev_verbs_resource_sharing_mode { DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA = 1 };
enum doca_gpu_dev_verbs_sync_scope { DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS = 0, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU = 1 };
enum doca_gpu_dev_verbs_nic_handler {
  DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO = 0,
  DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB = 2
};
enum doca_gpu_dev_verbs_qp_type { DOCA_GPUNETIO_VERBS_QP_SQ = 0, DOCA_GPUNETIO_VERBS_QP_RQ = 1 };

struct doca_gpu_dev_verbs_wqe {
  std::uint8_t inl_data[64];
} __attribute__((__aligned__(8)));
struct doca_gpu_dev_verbs_cq {
  std::uint8_t *cqe_daddr;
  std::uint32_t cq_num;
  std::uint32_t cqe_num;
};
struct doca_gpu_dev_verbs_qp {
  std::uint32_t sq_num_shift8;
  std::uint8_t *sq_wqe_daddr;
  doca_gpu_dev_verbs_cq cq_rq;
};

__device__ inline doca_gpu_dev_verbs_cq *doca_gpu_dev_verbs_qp_get_cq_rq(doca_gpu_dev_verbs_qp *qp) {
  return &qp->cq_rq;
}
__device__ inline doca_gpu_dev_verbs_wqe *doca_gpu_dev_verbs_get_wqe_ptr(doca_gpu_dev_verbs_qp *qp,
                                                                         std::uint16_t wqe_idx) {
  return reinterpret_cast<doca_gpu_dev_verbs_wqe *>(qp->sq_wqe_daddr) + wqe_idx % 64;
}
__device__ inline std::uint32_t doca_gpu_dev_verbs_load_relaxed_sys_global(std::uint32_t *ptr) { return *ptr; }

template <doca_gpu_dev_verbs_sync_scope Scope>
__device__ void doca_gpu_dev_verbs_fence_acquire() {}
template <doca_gpu_dev_verbs_resource_sharing_mode Mode>
__device__ void doca_gpu_dev_verbs_mark_wqes_ready(doca_gpu_dev_verbs_qp *, std::uint64_t, std::uint64_t) {}
template <doca_gpu_dev_verbs_resource_sharing_mode Mode, doca_gpu_dev_verbs_sync_scope Scope,
          doca_gpu_dev_verbs_nic_handler Handler, doca_gpu_dev_verbs_qp_type Queue = DOCA_GPUNETIO_VERBS_QP_SQ>
__device__ void doca_gpu_dev_verbs_submit(doca_gpu_dev_verbs_qp *, std::uint64_t) {}
template <doca_gpu_dev_verbs_resource_sharing_mode Mode, doca_gpu_dev_verbs_sync_scope Scope>
__device__ void doca_gpu_dev_verbs_submit_bf(doca_gpu_dev_verbs_qp *, std::uint64_t, doca_gpu_dev_verbs_wqe *) {}

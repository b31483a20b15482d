// SPDX-License-Identifier: Apache-2.0
// The send side of the device hooks against the headers of the open repository NVIDIA-DOCA/gpunetio. Compiled only.
#include <doca_gpunetio_device.h>

#include "contrib/gpu_roce/send_queue.cuh"

using namespace cudaq::realtime::detail;

__global__ void gpu_roce_send_check_kernel(void *queue_pair, std::uint64_t index) {
  __shared__ send_request request;
  send_queue queue(queue_pair, true, &request);
  make_send_request(request, index, queue.queue_shifted(), &index, sizeof(index), 0, 0);
  queue.send(request, index);
  queue.finish_send();
}

// SPDX-License-Identifier: Apache-2.0
#include "unittests/gpu/graphs/host_graphs.h"

#include "cudaq/realtime/daemon/dispatcher/kernel_types.h"
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/support/checked_payload.h"

namespace cudaq::realtime::test {
namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ void wait(std::uint64_t ns) {
  for (const std::uint64_t begin = nanoseconds(); nanoseconds() - begin < ns;)
    __nanosleep(200);
}

__device__ void add(std::uint64_t &word) { atomicAdd(reinterpret_cast<unsigned long long *>(&word), 1ull); }

/// Does the same as check_traffic in handlers.cu. Returns the length of the result. All lanes write the result's
/// filling.
__device__ std::uint32_t answer_checked(const graph_task &task, const std::uint8_t *payload, std::uint32_t arg_len,
                                        std::uint8_t *result) {
  std::uint32_t sequence = 0;
  memcpy(&sequence, payload, sizeof(sequence));
  const std::uint32_t size = checked_result_size(sequence, task.slot_size - CUDAQ_RPC_HEADER_SIZE);
  const std::uint8_t salt = result_salt(task.function + 1);
  for (std::uint32_t i = kCheckedHeader + threadIdx.x; i < size; i += blockDim.x)
    result[i] = filling(sequence, i, salt);
  if (threadIdx.x != 0)
    return size;
  checked_record &record = *task.record;
  if (atomicAdd(&record.inside, 1u) != 0)
    add(record.side_by_side);
  if (!intact_frame(payload, arg_len, kRequestSalt, sequence) || sequence >= record.size) {
    add(record.corrupt);
  } else {
    if (atomicAdd(&record.served[sequence], 1u) != 0)
      add(record.doubled);
    if (atomicExch(&record.expected, sequence + 1) != sequence)
      add(record.out_of_order);
    write_checked_header(result, size, sequence, salt);
  }
  add(record.calls);
  atomicSub(&record.inside, 1u);
  return size;
}

/// Run by one warp. It copies the slot first, because in place the answer overwrites the request.
__global__ void graph_task_kernel(graph_task task) {
  __shared__ alignas(16) std::uint64_t frame[kMaxGraphSlot / 8];
  const auto *rx = static_cast<const std::uint8_t *>(task.io != nullptr ? task.io->rx_slot : *task.mailbox);
  if (rx == nullptr)
    return;
  std::uint8_t *tx = nullptr;
  if (task.io != nullptr)
    tx = task.io->tx_slot;
  else
    tx = task.ring->tx_data + (rx - task.ring->rx_data) / task.ring->rx_stride_sz * task.ring->tx_stride_sz;
  if (task.delay_ns != 0)
    wait(task.delay_ns);
  const auto *words = reinterpret_cast<const std::uint64_t *>(task.staged != nullptr ? task.staged : rx);
  for (std::uint32_t i = threadIdx.x; i < task.slot_size / 8; i += blockDim.x)
    frame[i] = words[i];
  __syncthreads();
  const auto &request = *reinterpret_cast<const cudaq_rpc_header_t *>(frame);
  const auto *payload = reinterpret_cast<const std::uint8_t *>(frame) + CUDAQ_RPC_HEADER_SIZE;
  if (task.traps && frame[CUDAQ_RPC_HEADER_SIZE / 8] == kTrapWord)
    asm volatile("trap;");
  std::uint32_t result_len = 0;
  if (task.record != nullptr && request.arg_len >= kCheckedHeader)
    result_len = answer_checked(task, payload, request.arg_len, tx + CUDAQ_RPC_HEADER_SIZE);
  if (threadIdx.x == 0) {
    auto *out = reinterpret_cast<std::uint64_t *>(tx);
    out[0] = CUDAQ_RPC_MAGIC_RESPONSE | static_cast<std::uint64_t>(static_cast<std::uint32_t>(task.status)) << 32;
    out[1] = result_len | static_cast<std::uint64_t>(request.request_id) << 32;
    out[2] = request.ptp_timestamp;
  }
  __syncthreads(); // the flag is written after the parts of the answer of all lanes
  if (threadIdx.x != 0)
    return;
  if (task.raises)
    detail::store_release<std::uint64_t>(*task.io->tx_flag, task.io->tx_flag_value);
  if (task.ready != nullptr)
    detail::store_release<std::uint64_t>(*task.ready, 1);
}

__global__ void wait_kernel(std::uint64_t ns) { wait(ns); }

} // namespace

cudaError_t launch_graph_task(const graph_task &task, cudaStream_t stream) {
  graph_task_kernel<<<1, 32, 0, stream>>>(task);
  return cudaGetLastError();
}

cudaError_t launch_wait(std::uint64_t ns, cudaStream_t stream) {
  wait_kernel<<<1, 1, 0, stream>>>(ns);
  return cudaGetLastError();
}

} // namespace cudaq::realtime::test

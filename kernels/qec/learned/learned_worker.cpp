// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/learned/learned_worker.h"

#include "kernels/qec/learned/fused_network.h"
#include "lib/base/cuda_device.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime::gpu {

namespace {
/// Of the words of a shot.
std::size_t shot_bytes(const predecoder_layout &layout) { return layout.dense_words() * sizeof(std::uint64_t); }
} // namespace

learned_worker::learned_worker(std::shared_ptr<const device_network> network, staging how, std::size_t slot_size)
    : gpu_worker(how, slot_size, CUDAQ_RPC_HEADER_SIZE + shot_bytes(network->job().layout),
                 network->job().layout.bytes()),
      network_(std::move(network)), memory_(network_->job()) {
  network_shot shot = memory_.shot();
  shot.from = source();
  shot.output = output_dev();
  if (has_staging())
    shot.readable = static_cast<std::uint32_t>(shot_bytes(network_->job().layout));
  capture([&](cudaStream_t stream) { return launch_shot(network_->job(), shot, true, stream); });
}

std::unique_ptr<resident_workers> resident_networks(int workers, std::shared_ptr<const device_network> network,
                                                    std::size_t slot_size, int device_id,
                                                    cudaq_memory_kind_t memory_kind) {
  struct resident_memory {
    std::shared_ptr<const device_network> network;
    std::vector<network_memory> of_workers;
    device_block shots;
  };
  const network_job &job = network->job();
  resident_config config;
  config.num_workers = workers;
  config.payload_bytes = std::max(slot_size - CUDAQ_RPC_HEADER_SIZE, shot_bytes(job.layout));
  config.output_bytes = job.layout.bytes();
  config.device_id = device_id;
  config.memory_kind = memory_kind;
  const auto memory = std::make_shared<resident_memory>();
  std::vector<network_shot> shots;
  std::vector<fused_meeting *> meetings;
  for (int worker = 0; worker < workers; ++worker) {
    shots.push_back(memory->of_workers.emplace_back(job).shot());
    shots.back().readable = static_cast<std::uint32_t>(config.payload_bytes);
    meetings.push_back(shots.back().meeting);
  }
  memory->shots = device_block(static_cast<const void *>(shots.data()), shots.size() * sizeof(network_shot));
  memory->network = std::move(network);
  const auto launch = launch_resident_network(job, memory->shots.as<network_shot>());
  const std::size_t words = fused_meeting::bytes(job.fused.row_blocks);
  const auto start = [memory, launch, meetings, words](const resident_mailboxes &boxes, unsigned blocks,
                                                       cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    for (std::size_t k = 0; blocks != 0 && error == cudaSuccess && k < meetings.size(); ++k) // those of the last start
      error = cudaq::realtime::detail::zero_by_copies(meetings[k], words, stream);
    return error == cudaSuccess ? launch(boxes, blocks, stream) : error;
  };
  return std::make_unique<resident_workers>(config, start);
}

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/learned/learned_worker.h"

#include <utility>

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
  capture([&](cudaStream_t stream) { return launch_network(network_->job(), shot, true, stream); });
}

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/qec/gpu_worker.h"
#include "kernels/qec/learned/learned_engine.h"

#include <memory>

namespace cudaq::qec::realtime::gpu {

/// A worker of the pipeline: its graph takes packed events to the form of predecoder_output.h.
class learned_worker final : public gpu_worker {
public:
  /// slot_size: of the ring. With dma staging a request's payload may be at most one shot in whole words.
  learned_worker(std::shared_ptr<const device_network> network, staging how, std::size_t slot_size);

private:
  std::shared_ptr<const device_network> network_;
  network_memory memory_;
};

/// The same on blocks that stay on the GPU: each worker has those of a shot. The network is of the resident
/// form, for so many shots at once. slot_size: of the ring. Throws std::runtime_error.
std::unique_ptr<resident_workers> resident_networks(int workers, std::shared_ptr<const device_network> network,
                                                    std::size_t slot_size, int device_id,
                                                    cudaq_memory_kind_t memory_kind = CUDAQ_MEMORY_AUTO);

} // namespace cudaq::qec::realtime::gpu

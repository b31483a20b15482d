// SPDX-License-Identifier: Apache-2.0
// The learned predecoder on a GPU: as an inference_engine, and as a predecoder that waits for its GPU; learned_worker.h
// has a worker of the pipeline. All of them give the same bytes for the same shot. CUDA errors are thrown as
// std::runtime_error.
#pragma once

#include "kernels/qec/device_memory.h"
#include "kernels/qec/learned/network_kernels.h"
#include "lib/qec/decoding/learned/memory_lattice.h"
#include "lib/qec/decoding/learned/predecoder_network.h"
#include "lib/qec/decoding/predecoder.h"

#include "cudaq/qec/realtime/gpu_services.h"

#include <memory>
#include <string>

namespace cudaq::qec::realtime::gpu {

/// How a shot runs: as a chain of kernels, or by blocks that wait for each other (fused_network.h), in one launch or on
/// the GPU from start to stop.
enum class network_form : std::uint8_t { chain, fused, resident };

/// A network for one model of errors in the memory of the current device, for all shots there. Constant after it is
/// made: threads share it.
class device_network {
public:
  /// shots_at_once: as plan_layers and plan_fused. Throws std::runtime_error, also for a network or a grid that the
  /// kernels do not take, and for a device before compute capability 9.0.
  device_network(const predecoder_network &network, const memory_lattice &lattice, predecoder_layout layout,
                 std::uint32_t shots_at_once = 1, network_form form = network_form::chain);
  [[nodiscard]] const network_job &job() const noexcept { return job_; }

private:
  network_job job_;
  device_block detector_at_, cell_at_, constant_, first_, middle_, biases_, head_, effects_, lists_;
};
/// The network in a file of weights, for a model. Throws std::runtime_error.
[[nodiscard]] std::shared_ptr<const device_network> load_device_network(const std::string &file,
                                                                        const decoder_model &model);

/// The memory of a shot between its kernels. One shot at a time.
class network_memory {
public:
  explicit network_memory(const network_job &job);
  [[nodiscard]] network_shot shot() const;

private:
  device_block values_[2], state_, meeting_;
};
/// Puts a shot on the stream, in the form of the network. overlap: as launch_network.
cudaError_t launch_shot(const network_job &job, const network_shot &shot, bool overlap, cudaStream_t stream);

/// The engine of learned_predecoder_engine (gpu_services.h).
[[nodiscard]] std::unique_ptr<experimental::inference_engine>
make_learned_engine(std::shared_ptr<const device_network> network);

/// "model" as a predecoder of the CPU that calls the GPU. Each call launches a graph and waits for it, at most 5 s.
class learned_gpu_predecoder final : public predecoder {
public:
  explicit learned_gpu_predecoder(std::shared_ptr<const device_network> network);
  ~learned_gpu_predecoder() override;
  const char *name() const noexcept override { return "model"; }
  const char *fault() const noexcept override { return fault_; }

protected:
  std::uint32_t residual_of(std::span<const std::uint64_t> fired, std::span<std::uint64_t> frame,
                            std::span<std::uint64_t> residual) noexcept override;

private:
  class in_flight;
  std::unique_ptr<in_flight> shot_;
  const char *fault_ = nullptr;
};

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// The learned predecoder on a GPU: as a worker of the pipeline, as an inference_engine, and as a predecoder that waits
// for its GPU. All of them give the same bytes for the same shot. CUDA errors are thrown as std::runtime_error.
#pragma once

#include "kernels/qec/gpu_worker.h"
#include "kernels/qec/learned/network_kernels.h"
#include "lib/qec/decoding/learned/memory_lattice.h"
#include "lib/qec/decoding/learned/predecoder_network.h"
#include "lib/qec/decoding/predecoder.h"

#include "cudaq/qec/realtime/inference_engine.h"

#include <memory>
#include <string>

namespace cudaq::qec::realtime::gpu {

/// A network for one model of errors in the memory of the current device, for all shots there. Constant after it is
/// made: threads share it.
class device_network {
public:
  /// Throws std::runtime_error, also for a network or a grid that the kernels do not take, and for a device before
  /// compute capability 9.0.
  device_network(const predecoder_network &network, const memory_lattice &lattice, predecoder_layout layout);
  [[nodiscard]] const network_job &job() const noexcept { return job_; }

private:
  network_job job_;
  device_block detector_at_, constant_, first_, middle_, biases_, head_, effects_, lists_;
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
  device_block values_[2], state_;
};

/// A worker of the pipeline: its graph takes packed events to the form of predecoder_output.h.
class learned_worker final : public gpu_worker {
public:
  /// slot_size: of the ring. With dma staging a request's payload may be at most one shot in whole words.
  learned_worker(std::shared_ptr<const device_network> network, staging how, std::size_t slot_size);

private:
  std::shared_ptr<const device_network> network_;
  network_memory memory_;
};

/// Tensors: `events`, UINT8 [1, bytes of a shot], packed; `residual`, UINT8 [1, layout.bytes()], as predecoder_output.h
/// has it; `logits`, FLOAT32 [1, layers, width, width, 3]. A shot without events leaves the logits as they are.
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

// SPDX-License-Identifier: Apache-2.0
#include "tools/pipeline/pipeline_gpu.h"

#include "kernels/qec/learned/learned_worker.h"
#include "kernels/qec/learned/network_plan.h"
#include "lib/qec/decoding/learned/learned_predecoder.h"
#include "tools/services/device_service.h"

#include <optional>

namespace cudaq::realtime::tools {
namespace {

namespace gpu = cudaq::qec::realtime::gpu;

/// The network of the engine. Throws usage_error also for one that no GPU takes: another machine would not help.
std::optional<qec::learned_model> network_of(const pipeline_shots &shots) {
  if (!qec::is_learned_predecoder(shots.engine()))
    return std::nullopt;
  const qec::shot_set &set = shots.shots();
  const std::string file(qec::learned_predecoder_file(shots.engine()));
  auto model = qec::read_learned_model(file, qec::decoder_model(set.dem_text));
  if (model.failed())
    throw usage_error(set.name + ": model predecoder: " + model.text());
  if (const auto packed = gpu::pack_network(model->network); packed.failed())
    throw usage_error("--device gpu: the network " + file + ": " + packed.text());
  return std::move(*model);
}

class predecoding_stage final : public gpu_stage {
public:
  predecoding_stage(const pipeline_options &o, const pipeline_shots &shots, int workers, std::size_t slot_size) {
    const std::optional<qec::learned_model> network = network_of(shots);
    open_gpu(o.gpu);
    const qec::shot_set &set = shots.shots();
    const qec::predecoder_layout layout{static_cast<std::uint32_t>(set.num_detectors),
                                        static_cast<std::uint32_t>(set.num_observables)};
    const gpu::staging how = o.staging == "dma"      ? gpu::staging::dma
                             : o.staging == "mapped" ? gpu::staging::mapped
                                                     : gpu::staging::automatic;
    if (network) {
      const bool is_resident = o.staging == "resident";
      const auto form = is_resident                   ? gpu::network_form::resident
                        : o.plan.starts_with("fused") ? gpu::network_form::fused
                                                      : gpu::network_form::chain;
      const std::uint32_t at_once = is_resident || o.plan.ends_with("rate") ? static_cast<std::uint32_t>(workers) : 1;
      network_ = std::make_shared<const gpu::device_network>(network->network, network->lattice, network->layout,
                                                             at_once, form);
      if (is_resident) {
        resident_ = gpu::resident_networks(workers, network_, slot_size, o.gpu);
        return;
      }
      for (int id = 0; id < workers; ++id)
        workers_.push_back(std::make_unique<gpu::learned_worker>(network_, how, slot_size));
      return;
    }
    std::shared_ptr<const gpu::device_graph> graph;
    if (shots.engine() == "local") {
      const auto on_host = qec::detector_graph::from_text(set.dem_text);
      if (on_host.failed())
        throw usage_error(on_host.text());
      graph = std::make_shared<gpu::device_graph>(*on_host);
    }
    graph_ = graph;
    if (o.staging == "resident") {
      resident_ = gpu::resident_predecoders(workers, layout, graph.get(), slot_size, o.gpu);
      return;
    }
    for (int id = 0; id < workers; ++id)
      workers_.push_back(std::make_unique<gpu::predecoding_worker>(layout, graph, how, slot_size));
  }
  qec::experimental::gpu_worker_resources resources(int id, std::uint32_t function_id, void *user_context) override {
    return resident_ != nullptr ? resident_->resources(id, function_id, user_context)
                                : workers_[static_cast<std::size_t>(id)]->resources(function_id, user_context);
  }
  [[nodiscard]] std::unique_ptr<qec::predecoder> offline_engine() override {
    return network_ == nullptr ? nullptr : std::make_unique<gpu::learned_gpu_predecoder>(network_);
  }
  [[nodiscard]] const char *staging() const override {
    if (resident_ == nullptr)
      return workers_.front()->has_staging() ? "copied by DMA" : "read in their slots";
    return resident_->mailbox_info().memory_kind == CUDAQ_MEMORY_DEVICE_RX
               ? "written to GPU memory, for resident blocks"
               : "copied to mapped memory, for resident blocks";
  }

private:
  std::shared_ptr<const gpu::device_graph> graph_;
  std::shared_ptr<const gpu::device_network> network_;    ///< null: another engine
  std::vector<std::unique_ptr<gpu::gpu_worker>> workers_; ///< none with resident blocks
  std::unique_ptr<gpu::resident_workers> resident_;
};

} // namespace

std::unique_ptr<gpu_stage> make_gpu_stage(const pipeline_options &options, const pipeline_shots &shots, int workers,
                                          std::size_t slot_size) {
  return std::make_unique<predecoding_stage>(options, shots, workers, slot_size);
}

} // namespace cudaq::realtime::tools

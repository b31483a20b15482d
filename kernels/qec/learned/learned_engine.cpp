// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/learned/learned_engine.h"

#include "kernels/qec/learned/fused_network.h"
#include "kernels/qec/learned/network_plan.h"
#include "kernels/qec/request_memory.h"
#include "lib/qec/decoding/learned/learned_predecoder.h"

#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"

#include <algorithm>
#include <new>
#include <vector>

namespace cudaq::qec::realtime::gpu {

using cudaq::realtime::detail::device_guard;
using experimental::tensor_info;
using experimental::tensor_type;

namespace {

constexpr std::uint64_t kLimitNs = 5'000'000'000; ///< of one shot
const std::string kOwner = "model predecoder on the GPU";

template <class T>
device_block upload(const std::vector<T> &from) {
  return device_block(static_cast<const void *>(from.data()), from.size() * sizeof(T));
}

/// A property of the current device.
std::size_t of_device(cudaDeviceAttr attribute, const char *what) {
  int device = 0, value = 0;
  require(cudaGetDevice(&device), "cudaGetDevice");
  require(cudaDeviceGetAttribute(&value, attribute, device), what);
  return static_cast<std::size_t>(value);
}

packed_network packed_or_throw(const predecoder_network &network) {
  if (of_device(cudaDevAttrComputeCapabilityMajor, "the compute capability") < 9)
    throw std::runtime_error(kOwner + ": the GPU has a compute capability below 9.0");
  expected<packed_network> packed = pack_network(network);
  if (packed.failed())
    throw std::runtime_error(kOwner + ": " + packed.text());
  return std::move(*packed);
}

layer_plan plan_or_throw(padded_grid grid, std::uint32_t shots_at_once) {
  const auto at_once = [](const layer_plan &plan) {
    std::uint32_t clusters = 0;
    require(max_layer_clusters(plan, clusters), "the occupancy of a layer");
    return clusters;
  };
  const auto processors = of_device(cudaDevAttrMultiProcessorCount, "the number of multiprocessors");
  const expected<layer_plan> plan =
      plan_layers(grid, static_cast<std::uint32_t>(processors),
                  of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin, "shared memory"), at_once, shots_at_once);
  if (plan.failed())
    throw std::runtime_error(kOwner + ": " + plan.text());
  return *plan;
}

fused_plan fused_plan_or_throw(padded_grid grid, std::size_t words, std::uint32_t shots_at_once, bool stay) {
  const auto at_once = [&](const fused_plan &plan) {
    std::uint32_t blocks = 0;
    require(max_fused_blocks(plan, words, blocks), "the occupancy of the fused kernel");
    return blocks;
  };
  const fused_plan plan =
      plan_fused(grid, of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin, "shared memory") - kFusedOwnBytes, words,
                 at_once, shots_at_once, stay);
  if (plan.rows == 0)
    throw std::runtime_error(kOwner +
                             ": the fused kernel needs a GPU of compute capability 9.0 with room for all blocks of " +
                             std::to_string(stay ? shots_at_once : 1) + " shot(s) of this grid at a time");
  return plan;
}

std::vector<network_effect> effects_of(const memory_lattice &lattice) {
  std::vector<network_effect> effects;
  for (std::size_t cell = 0; cell < lattice.grid.cells(); ++cell)
    for (const auto &plane : lattice.effects)
      effects.push_back({plane[cell].first, plane[cell].detectors, plane[cell].observables});
  return effects;
}

std::size_t shot_words_bytes(const predecoder_layout &layout) { return layout.dense_words() * sizeof(std::uint64_t); }

} // namespace

device_network::device_network(const predecoder_network &network, const memory_lattice &lattice,
                               predecoder_layout layout, std::uint32_t shots_at_once, network_form form) {
  const packed_network packed = packed_or_throw(network);
  job_.grid = padded(lattice.grid);
  job_.layout = layout;
  const bool is_fused = form != network_form::chain;
  if (is_fused)
    job_.fused = fused_plan_or_throw(job_.grid, layout.dense_words(), shots_at_once, form == network_form::resident);
  else
    job_.plan = plan_or_throw(job_.grid, shots_at_once);
  job_.middles = packed.middles;
  job_.threshold = network.threshold();
  std::ranges::copy(packed.head_biases, job_.head_biases);
  const auto put = [](device_block &block, const auto &values, auto &at) {
    block = upload(values);
    at = block.as<std::remove_pointer_t<std::remove_reference_t<decltype(at)>>>();
  };
  put(detector_at_, detectors_by_place(lattice), job_.detector_at);
  if (is_fused)
    put(cell_at_, cells_by_place(job_.grid, job_.fused.places(job_.grid)), job_.cell_at);
  put(constant_, constant_part(network, lattice), job_.constant);
  put(first_, packed.first, job_.first);
  put(middle_, is_fused ? packed.fused_middle : packed.middle, job_.middle);
  put(biases_, packed.biases, job_.biases);
  put(head_, is_fused ? packed.fused_head : packed.head, job_.head);
  put(effects_, effects_of(lattice), job_.effects);
  put(lists_, lattice.lists, job_.lists);
}

std::shared_ptr<const device_network> load_device_network(const std::string &file, const decoder_model &model) {
  const expected<learned_model> read = read_learned_model(file, model);
  if (read.failed())
    throw std::runtime_error(kOwner + ": " + read.text());
  return std::make_shared<const device_network>(read->network, read->lattice, read->layout);
}

network_memory::network_memory(const network_job &job)
    : state_(network_state::bytes(job.layout)), meeting_(fused_meeting::bytes(job.fused.row_blocks)) {
  const bool is_fused = job.fused.rows != 0;
  const std::size_t values_of_layer =
      is_fused ? job.fused.value(job.grid, kNetworkChannels / kOctet, 0) : job.grid.value(kGroups, 0);
  for (device_block &values : values_)
    values = device_block(values_of_layer * sizeof(std::uint16_t));
}

network_shot network_memory::shot() const {
  network_shot shot;
  for (int k : {0, 1})
    shot.values[k] = values_[k].as<std::uint16_t>();
  shot.state = state_.as<network_state>();
  shot.meeting = meeting_.as<fused_meeting>();
  return shot;
}

cudaError_t launch_shot(const network_job &job, const network_shot &shot, bool overlap, cudaStream_t stream) {
  return job.fused.rows != 0 ? launch_fused_network(job, shot, true, stream)
                             : launch_network(job, shot, overlap, stream);
}

namespace {

class learned_engine final : public experimental::inference_engine {
public:
  explicit learned_engine(std::shared_ptr<const device_network> network)
      : network_(std::move(network)), memory_(network_->job()), shot_(memory_.shot()) {
    const network_job &job = network_->job();
    const auto size = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    tensors_ = {{"events", tensor_type::uint8, {1, size(job.layout.input_bytes())}, true},
                {"residual", tensor_type::uint8, {1, size(job.layout.bytes())}, false},
                {"logits",
                 tensor_type::float32,
                 {1, size(job.grid.layers), size(job.grid.width), size(job.grid.width), predecoder_network::kOutputs},
                 false}};
  }
  const char *name() const noexcept override { return "learned predecoder"; }
  const std::vector<tensor_info> &tensors() const noexcept override { return tensors_; }
  void bind(std::size_t index, void *device_memory) override {
    if (index == 0)
      shot_.payload = static_cast<const std::uint64_t *>(device_memory);
    else if (index == 1)
      shot_.output = static_cast<std::uint8_t *>(device_memory);
    else
      shot_.logits = static_cast<float *>(device_memory);
  }
  // Without overlap: kernels on the GPU may launch a graph of it.
  cudaError_t enqueue(cudaStream_t stream) override {
    if (shot_.payload == nullptr || shot_.output == nullptr)
      throw std::runtime_error("learned predecoder: a tensor has no memory; bind all of them first");
    return launch_shot(network_->job(), shot_, false, stream);
  }

private:
  std::shared_ptr<const device_network> network_;
  network_memory memory_;
  network_shot shot_;
  std::vector<tensor_info> tensors_;
};

} // namespace

std::unique_ptr<experimental::inference_engine> make_learned_engine(std::shared_ptr<const device_network> network) {
  return std::make_unique<learned_engine>(std::move(network));
}

std::unique_ptr<experimental::inference_engine> learned_predecoder_engine(const std::string &weights,
                                                                          std::string_view dem_text, int device_id) {
  const device_guard here(device_id);
  require(here.error(), (kOwner + ": making the device current").c_str());
  try {
    return make_learned_engine(load_device_network(weights, decoder_model(dem_text)));
  } catch (const std::bad_alloc &) {
    throw std::runtime_error(kOwner + ": the network or its grid does not fit into memory");
  }
}

/// What the kernels use, and the graph. It stays if the GPU does not end.
class learned_gpu_predecoder::in_flight {
public:
  explicit in_flight(std::shared_ptr<const device_network> network)
      : network_(std::move(network)), memory_(network_->job()), stream_(kOwner),
        events_(std::max<std::size_t>(shot_words_bytes(network_->job().layout), sizeof(std::uint64_t))),
        output_(network_->job().layout.bytes()) {
    require(cudaGetDevice(&device_), "cudaGetDevice");
    network_shot shot = memory_.shot();
    shot.payload = events_.device<std::uint64_t>();
    shot.output = output_.device<std::uint8_t>();
    const auto made = cudaq::realtime::capture_graph(
        graph_, [&](cudaStream_t stream) { return launch_shot(network_->job(), shot, true, stream); });
    if (!made)
      throw std::runtime_error(kOwner + ": " + made.text);
  }
  [[nodiscard]] const predecoder_layout &layout() const { return network_->job().layout; }
  [[nodiscard]] bool is_over() const {
    return cudaq::realtime::detail::query_stream(device_, stream_.get()) != cudaErrorNotReady;
  }
  /// Null: the output is that of this shot.
  const char *run(std::span<const std::uint64_t> fired) {
    const device_guard here(device_);
    std::ranges::copy(fired, events_.host<std::uint64_t>());
    cudaError_t found = here.error();
    if (found == cudaSuccess)
      found = cudaGraphLaunch(graph_.exec(), stream_.get());
    if (found == cudaSuccess &&
        !spin_until(kLimitNs, [&] { return (found = cudaStreamQuery(stream_.get())) != cudaErrorNotReady; }))
      return "the network has not ended in 5 s";
    if (found != cudaSuccess)
      return cudaGetErrorString(found);
    return header().status == 0 ? nullptr : "the network has refused the shot";
  }
  [[nodiscard]] const predecoder_header &header() const { return *output_.host<predecoder_header>(); }
  [[nodiscard]] const std::uint64_t *words(std::size_t offset) const {
    return reinterpret_cast<const std::uint64_t *>(output_.host<std::uint8_t>() + offset);
  }

private:
  std::shared_ptr<const device_network> network_;
  network_memory memory_;
  own_stream stream_;
  mapped_block events_, output_;
  int device_ = 0;
  cudaq::realtime::captured_graph graph_;
};

learned_gpu_predecoder::learned_gpu_predecoder(std::shared_ptr<const device_network> network)
    : predecoder(network->job().layout), shot_(std::make_unique<in_flight>(std::move(network))) {}

learned_gpu_predecoder::~learned_gpu_predecoder() {
  if (!shot_->is_over())
    static_cast<void>(shot_.release());
}

std::uint32_t learned_gpu_predecoder::residual_of(std::span<const std::uint64_t> fired, std::span<std::uint64_t> frame,
                                                  std::span<std::uint64_t> residual) noexcept {
  if (fault_ == nullptr)
    fault_ = shot_->run(fired);
  if (fault_ != nullptr) {
    std::ranges::copy(fired, residual.begin());
    return 0;
  }
  std::copy_n(shot_->words(layout().frame_offset()), frame.size(), frame.begin());
  std::copy_n(shot_->words(layout().dense_offset()), residual.size(), residual.begin());
  return shot_->header().matched;
}

} // namespace cudaq::qec::realtime::gpu

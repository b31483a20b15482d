// SPDX-License-Identifier: Apache-2.0
// The decoder model-gpu as a plug-in, so that the library of decoders needs no CUDA: a network on the GPU, and then
// pymatching on the thread that decodes.
#include "kernels/qec/decoder_plugin_parts.h"
#include "kernels/qec/learned/learned_engine.h"
#include "kernels/qec/learned/network_plan.h"
#include "lib/base/cuda_device.h"
#include "lib/qec/decoders/offline_decoder.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/learned/learned_predecoder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::gpu {
namespace {

struct plugin_instance {
  plugin_instance(std::unique_ptr<learned_gpu_predecoder> first, std::unique_ptr<decoder> second)
      : network(first.get()), shot(first->layout().input_bytes()), both(std::move(first), std::move(second)) {}
  const predecoder *network; ///< of `both`
  std::vector<std::uint8_t> shot;
  offline_decoder both;
};

/// Throws the reason of a refusal.
plugin_instance *make_instance(const cudaq_qec_decoder_model_t &given) {
  decoder_settings settings = settings_of(given);
  const std::string file = settings.text("weights", "");
  const auto device = static_cast<int>(settings.number("device", 0, 0, 255));
  if (const expected<> result = settings.check(); result.failed())
    throw std::runtime_error(result.text());
  if (file.empty())
    throw std::runtime_error("weights is missing: the file of a network");
  const std::string_view text(given.dem_text, given.dem_size);
  const auto model = read_learned_model(file, decoder_model(text));
  if (model.failed())
    throw std::runtime_error(model.text());
  if (const auto packed = pack_network(model->network); packed.failed())
    throw std::runtime_error(file + ": " + packed.text());
  decoder_result matcher = make_decoder("pymatching", text);
  if (!matcher)
    throw std::runtime_error(matcher.error);
  try {
    const cudaq::realtime::detail::device_guard here(device);
    require(here.error(), "making the device current");
    auto network = std::make_shared<const device_network>(model->network, model->lattice, model->layout);
    return new plugin_instance(std::make_unique<learned_gpu_predecoder>(std::move(network)),
                               std::move(matcher.instance));
  } catch (const std::exception &failure) {
    throw machine_error(failure.what());
  }
}

std::int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, std::size_t error_size) {
  return create_decoder("model-gpu", &make_instance, model, decoder, error, error_size);
}

/// After a failure of the GPU matching alone would answer, and no status would show it: an error instead.
std::int32_t decode(void *decoder, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                    double *) {
  auto &instance = *static_cast<plugin_instance *>(decoder);
  decode_status status = pack_events({events, num_events}, instance.network->layout().num_detectors, instance.shot);
  if (status == decode_status::ok)
    status = instance.both.decode(instance.shot);
  if (instance.network->fault() != nullptr)
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  if (instance.both.has_solution())
    std::ranges::copy(instance.both.observables(), observables);
  return static_cast<std::int32_t>(status);
}

void destroy(void *decoder) { delete static_cast<plugin_instance *>(decoder); }

} // namespace
} // namespace cudaq::qec::realtime::gpu

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  namespace gpu = cudaq::qec::realtime::gpu;
  static const cudaq_qec_decoder_plugin_t table = {CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   sizeof(cudaq_qec_decoder_plugin_t),
                                                   "model-gpu",
                                                   &gpu::create,
                                                   &gpu::decode,
                                                   &gpu::destroy,
                                                   nullptr,
                                                   nullptr,
                                                   nullptr,
                                                   CUDAQ_QEC_ERRORS_COMPONENTS,
                                                   0,
                                                   nullptr};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : nullptr;
}

// SPDX-License-Identifier: Apache-2.0
// The decoder relay-bp-gpu as a plug-in, so that the library of decoders needs no CUDA.
#include "kernels/qec/decoder_plugin_parts.h"
#include "kernels/qec/relay_bp/relay_bp_gpu.h"
#include "lib/qec/decoders/propagation/column_answer.h"
#include "lib/qec/decoders/propagation/graph_syndrome.h"
#include "lib/qec/decoders/stop_check.h"

#include <bit>
#include <string>

namespace cudaq::qec::realtime::gpu {
namespace {

struct plugin_instance {
  plugin_instance(tanner_graph made, const relay_bp_options &options, int device_id, std::uint32_t blocks)
      : graph(std::move(made)), syndrome(graph), solver(graph, options, device_id, {blocks, SIZE_MAX}) {}
  const tanner_graph graph;
  graph_syndrome syndrome;
  relay_bp_gpu solver;
};

/// Throws the reason of a refusal.
plugin_instance *make_instance(const cudaq_qec_decoder_model_t &model) {
  decoder_settings settings = settings_of(model);
  const relay_bp_options options = relay_bp_options_of(settings, true);
  const auto device = static_cast<int>(settings.number("device", 0, 0, 255));
  const auto blocks = static_cast<std::uint32_t>(settings.number("blocks", 0, 0, kMaxParts));
  if (const expected<> result = settings.check(); result.failed())
    throw std::runtime_error(result.text());
  if (blocks != 0 && !std::has_single_bit(blocks))
    throw std::runtime_error("blocks is " + std::to_string(blocks) + ", it must be 1, 2, 4 or 8 (0: automatic)");
  auto graph = tanner_graph::from_text({model.dem_text, model.dem_size});
  if (graph.failed())
    throw std::runtime_error(graph.text());
  try {
    return new plugin_instance(std::move(*graph), options, device, blocks);
  } catch (const std::exception &failure) {
    throw machine_error(failure.what());
  }
}

std::int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *error, std::size_t error_size) {
  return create_decoder("relay-bp-gpu", &make_instance, model, decoder, error, error_size);
}

std::int32_t decode_until(void *decoder, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                          double *weight, const cudaq_qec_decode_control_t *control) {
  auto &instance = *static_cast<plugin_instance *>(decoder);
  if (!instance.syndrome.set_events({events, num_events}))
    return CUDAQ_QEC_DECODE_NO_SOLUTION;
  const decode_status status =
      instance.solver.solve(instance.syndrome.bytes(), {control->deadline_ns, control->cancel});
  if (status == decode_status::not_converged)
    return CUDAQ_QEC_DECODE_NOT_CONVERGED;
  if (instance.solver.has_solution() && (status == decode_status::ok || status == decode_status::deadline)) {
    decode_details details;
    (void)answer_columns(instance.graph, instance.solver.correction(), instance.solver.weight(), status,
                         {observables, (instance.graph.num_observables + 7) / 8}, &details);
    *weight = details.weight;
  }
  return static_cast<std::int32_t>(status);
}

std::int32_t decode(void *decoder, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                    double *weight) {
  const cudaq_qec_decode_control_t unlimited{sizeof unlimited, kNoDeadline, nullptr};
  return decode_until(decoder, events, num_events, observables, weight, &unlimited);
}

std::size_t columns(void *decoder, std::uint64_t *columns, std::size_t max) {
  auto &instance = *static_cast<plugin_instance *>(decoder);
  return instance.graph.list_errors(instance.solver.correction(), {columns, max});
}

void destroy(void *decoder) { delete static_cast<plugin_instance *>(decoder); }

} // namespace
} // namespace cudaq::qec::realtime::gpu

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  namespace gpu = cudaq::qec::realtime::gpu;
  static const cudaq_qec_decoder_plugin_t table = {CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   sizeof(cudaq_qec_decoder_plugin_t),
                                                   "relay-bp-gpu",
                                                   &gpu::create,
                                                   &gpu::decode,
                                                   &gpu::destroy,
                                                   nullptr,
                                                   &gpu::columns,
                                                   &gpu::decode_until,
                                                   CUDAQ_QEC_ERRORS_WHOLE,
                                                   0,
                                                   nullptr};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : nullptr;
}

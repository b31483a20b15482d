// SPDX-License-Identifier: Apache-2.0
// A plug-in that throws. The setting `in` names the function, `what` the type: std, int, or own. In decode and edges it
// throws if detector 0 fires; else decode flips observable 0, and edges gives an edge of the first event.
#include "cudaq/qec/decoding/decoder_plugin.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace {

struct own_type {};

struct throwing {
  std::string in, what;
  bool edges_throw = false;
  std::size_t events = 0;
  std::uint64_t first = 0;

  void visit(const char *function) const {
    if (in != function)
      return;
    if (what == "std")
      throw std::runtime_error("no more beans");
    if (what == "int")
      throw 7;
    throw own_type{};
  }
};

std::int32_t create(const cudaq_qec_decoder_model_t *model, void **decoder, char *, std::size_t) {
  auto *const made = new throwing;
  for (std::size_t k = 0; k < model->num_settings; ++k)
    (std::strcmp(model->settings[k].key, "in") == 0 ? made->in : made->what) = model->settings[k].value;
  const throwing settings = *made;
  if (settings.in == "create")
    delete made;
  settings.visit("create");
  *decoder = made;
  return CUDAQ_QEC_DECODE_OK;
}

std::int32_t decode(void *decoder, const std::uint64_t *events, std::size_t num_events, std::uint8_t *observables,
                    double *) {
  auto &self = *static_cast<throwing *>(decoder);
  const bool bad = num_events != 0 && events[0] == 0;
  observables[0] = 1;
  if (bad)
    self.visit("decode");
  self.edges_throw = bad;
  self.events = num_events;
  self.first = num_events != 0 ? events[0] : 0;
  return CUDAQ_QEC_DECODE_OK;
}

std::size_t edges(void *decoder, cudaq_qec_correction_edge_t *edges, std::size_t) {
  const auto &self = *static_cast<throwing *>(decoder);
  if (self.edges_throw)
    self.visit("edges");
  if (self.events != 0)
    edges[0] = {self.first, CUDAQ_QEC_BOUNDARY};
  return self.events != 0 ? 1 : 0;
}

void destroy(void *decoder) {
  const throwing self = *static_cast<throwing *>(decoder);
  delete static_cast<throwing *>(decoder);
  self.visit("destroy");
}

} // namespace

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(std::uint32_t) {
  static const cudaq_qec_decoder_plugin_t table = {CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   sizeof table,
                                                   "throwing",
                                                   create,
                                                   decode,
                                                   destroy,
                                                   edges,
                                                   nullptr,
                                                   nullptr,
                                                   0,
                                                   0,
                                                   nullptr};
  return &table;
}

// SPDX-License-Identifier: Apache-2.0
// What the decoder plug-ins of this folder share: their settings, and how they refuse.
#pragma once

#include "cudaq/qec/decoding/decoder_plugin.h"
#include "lib/qec/decoders/decoder_name.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

namespace cudaq::qec::realtime::gpu {

/// What the GPU, or the memory of this machine, refuses.
struct machine_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline decoder_settings settings_of(const cudaq_qec_decoder_model_t &model) {
  decoder_settings::list given;
  for (std::size_t i = 0; i < model.num_settings; ++i)
    given.emplace_back(model.settings[i].key, model.settings[i].value);
  return decoder_settings(std::move(given));
}

/// `create` of a plug-in: what `make` throws is the reason of the refusal.
template <class Make>
std::int32_t create_decoder(const char *name, const Make &make, const cudaq_qec_decoder_model_t *model, void **decoder,
                            char *error, std::size_t error_size) {
  try {
    *decoder = make(*model);
    return CUDAQ_QEC_DECODE_OK;
  } catch (const std::exception &failure) {
    const std::string text = std::string(name) + " decoder: " + failure.what();
    const std::size_t length = std::min(text.size(), error_size - 1);
    std::memcpy(error, text.data(), length);
    error[length] = '\0';
    return dynamic_cast<const machine_error *>(&failure) != nullptr ? CUDAQ_QEC_DECODE_INTERNAL_ERROR
                                                                    : CUDAQ_QEC_DECODE_NOT_SUPPORTED;
  }
}

} // namespace cudaq::qec::realtime::gpu

/* SPDX-License-Identifier: Apache-2.0 */
// The GPU half of the AI services: the device and the engines. In libcudaq-qec-realtime-gpu.so (target
// cudaq::qec-realtime-gpu), which a build with nvcc makes. See docs/pipeline.md.
#ifndef CUDAQ_QEC_REALTIME_GPU_SERVICES_H
#define CUDAQ_QEC_REALTIME_GPU_SERVICES_H

#include "cudaq/qec/realtime/inference_engine.h"
#include "cudaq/qec/realtime/pipeline.h"

#include <memory>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime::gpu {

/// The CUDA device with this number, for services of any thread. The caller's current device is not changed, now or by
/// the services. Throws std::runtime_error.
CUDAQ_QEC_REALTIME_API std::shared_ptr<experimental::service_device> cuda_service_device(int device_id = 0);

/// An engine without a model: the output is the input, `bytes` of UINT8. It is for measurements without an inference
/// (SKIP_TRT in the specification). Throws std::invalid_argument for 0 bytes.
CUDAQ_QEC_REALTIME_API std::unique_ptr<experimental::inference_engine> passthrough_engine(std::size_t bytes);

/// The network in a file of weights (docs/predecoding.md) for one detector error model, on that device, which needs
/// compute capability 9.0 and some 115 KiB of shared memory for a block. dem_text: a memory of the rotated surface code
/// with Stim's coordinates; it is not used after the return. Tensors, each with batch 1:
///
///   events    UINT8 [1, bytes]    in: one bit for each detector, as in a row of Stim's b8
///   residual  UINT8 [1, bytes]    out: counts, observables and events that are left, as the decode stage reads them
///   logits    FLOAT32 [1, rounds + 1, d + 1, d + 1, 3]    out; a shot without events leaves them as they are
///
/// The same shot gives the same bits. The caller's current device is not changed. Throws std::runtime_error: the file,
/// the model or the device do not suit, or memory is missing.
CUDAQ_QEC_REALTIME_API std::unique_ptr<experimental::inference_engine>
learned_predecoder_engine(const std::string &weights, std::string_view dem_text, int device_id = 0);

/// True if the library was built with TensorRT.
CUDAQ_QEC_REALTIME_API bool tensorrt_available() noexcept;

struct model_options {
  /// An *.onnx file with its weights inside, or a serialized engine; both need TensorRT. Or "passthrough:N":
  /// passthrough_engine(N).
  std::string model;
  /// Where the engine of an ONNX model is saved: a folder, or a file. Empty: not saved.
  std::string save;
  int device_id = 0;
};
/// Opens a model. Building the engine of an ONNX model takes seconds to minutes; a saved engine is used again if it was
/// built from the same model, for the same GPU, by the same version. *note (may be null) gets the reason why a saved
/// engine was not used, or was not saved. The caller's current device is not changed. Throws std::runtime_error with
/// TensorRT's messages, also if the library was built without TensorRT.
CUDAQ_QEC_REALTIME_API std::unique_ptr<experimental::inference_engine> open_model(const model_options &options,
                                                                                  std::string *note = nullptr);

} // namespace cudaq::qec::realtime::gpu

#endif

// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/tensorrt_engine.h"

#include "cudaq/qec/realtime/gpu_services.h"

#include "contrib/tensorrt/engine_files.h"
#include "contrib/tensorrt/tensor_shapes.h"
#include "kernels/qec/device_memory.h"
#include "lib/base/cuda_device.h"

#include <NvInfer.h>
#include <NvOnnxParser.h>

#include <mutex>
#include <stdexcept>
#include <utility>

namespace cudaq::qec::realtime::gpu {
namespace {

using experimental::tensor_info;

// tensor_type_of depends on these numbers.
static_assert(static_cast<int>(nvinfer1::DataType::kFLOAT) == 0 && static_cast<int>(nvinfer1::DataType::kHALF) == 1 &&
              static_cast<int>(nvinfer1::DataType::kINT8) == 2 && static_cast<int>(nvinfer1::DataType::kINT32) == 3 &&
              static_cast<int>(nvinfer1::DataType::kBOOL) == 4 && static_cast<int>(nvinfer1::DataType::kUINT8) == 5 &&
              static_cast<int>(nvinfer1::DataType::kFP8) == 6 && static_cast<int>(nvinfer1::DataType::kBF16) == 7 &&
              static_cast<int>(nvinfer1::DataType::kINT64) == 8);
static_assert(NV_TENSORRT_MAJOR >= 10, "explicit batch, strong typing and enqueueV3");

/// Collects TensorRT's error messages for the text of an exception.
class error_log final : public nvinfer1::ILogger {
public:
  void log(Severity severity, const char *text) noexcept override {
    if (severity > Severity::kERROR || text == nullptr)
      return;
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (text_.size() < kMax)
        text_.append(text_.empty() ? "" : "; ").append(text);
    } catch (...) { // no memory: the message is lost, but the call that caused it still fails
      return;
    }
  }
  std::string take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(text_, std::string());
  }

private:
  static constexpr std::size_t kMax = 4000;
  std::mutex mutex_; // TensorRT logs from its own threads
  std::string text_;
};

[[noreturn]] void fail(error_log &log, const std::string &what) {
  const std::string logged = log.take();
  throw std::runtime_error("TensorRT: " + what + (logged.empty() ? "" : ": " + logged));
}
void require(bool ok, error_log &log, const std::string &what) {
  if (!ok)
    fail(log, what);
}
template <class T>
std::unique_ptr<T> owned(T *made, error_log &log, const char *what) {
  require(made != nullptr, log, std::string(what) + " failed");
  return std::unique_ptr<T>(made);
}

std::vector<std::int64_t> shape_of(const nvinfer1::Dims &dims, error_log &log, const std::string &name) {
  require(dims.nbDims >= 0 && dims.nbDims <= nvinfer1::Dims::MAX_DIMS, log, "tensor \"" + name + "\" has no shape");
  return {dims.d, dims.d + dims.nbDims};
}
nvinfer1::Dims dims_of(const std::vector<std::int64_t> &shape) {
  nvinfer1::Dims dims{};
  dims.nbDims = static_cast<std::int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), dims.d);
  return dims;
}

/// Makes the device current for its lifetime.
class on_device {
public:
  explicit on_device(int id) : guard_(id) { gpu::require(guard_.error(), "making the device current"); }

private:
  cudaq::realtime::detail::device_guard guard_;
};

/// A deserialized engine with one context. Members are destroyed in reverse: context, engine, runtime.
class tensorrt_engine final : public experimental::inference_engine {
public:
  tensorrt_engine(error_log &log, int device_id, std::span<const std::uint8_t> serialized)
      : log_(log), device_id_(device_id),
        runtime_(owned(nvinfer1::createInferRuntime(log_), log_, "createInferRuntime")),
        engine_(owned(runtime_->deserializeCudaEngine(serialized.data(), serialized.size()), log_,
                      "loading the engine (was it built for another TensorRT or GPU?)")),
        context_(owned(engine_->createExecutionContext(), log_, "createExecutionContext")) {
    const std::int32_t n = engine_->getNbIOTensors();
    for (std::int32_t i = 0; i < n; ++i)
      add_tensor(engine_->getIOTensorName(i));
    // The outputs have shapes only after all inputs have theirs.
    const char *unknown = nullptr;
    require(context_->inferShapes(1, &unknown) == 0, log_,
            unknown == nullptr ? std::string("inferring shapes failed")
                               : "the shape of input \"" + std::string(unknown) + "\" is unknown");
    for (tensor_info &t : tensors_)
      fix_shape(t);
    bound_.resize(tensors_.size());
    log_.take(); // drops messages of calls that succeeded
  }
  ~tensorrt_engine() override {
    const cudaq::realtime::detail::device_guard guard(device_id_); // its objects free memory of that device
    context_.reset();
    engine_.reset();
    runtime_.reset();
  }

  const char *name() const noexcept override { return "TensorRT engine"; }
  const std::vector<tensor_info> &tensors() const noexcept override { return tensors_; }
  void bind(std::size_t index, void *device_memory) override {
    if (index >= tensors_.size())
      throw std::runtime_error("TensorRT: bind: there is no tensor " + std::to_string(index));
    const std::string &name = tensors_[index].name;
    require(context_->setTensorAddress(name.c_str(), device_memory), log_, "binding tensor \"" + name + "\" failed");
    bound_[index] = device_memory != nullptr;
  }
  cudaError_t enqueue(cudaStream_t stream) override {
    for (std::size_t i = 0; i < bound_.size(); ++i)
      if (!bound_[i])
        throw std::runtime_error("TensorRT: tensor \"" + tensors_[i].name + "\" is not bound; call bind first");
    if (!context_->enqueueV3(stream)) {
      cudaGetLastError(); // clears a CUDA error; TensorRT's message holds it
      fail(log_, "enqueueV3 failed");
    }
    return cudaSuccess;
  }

private:
  void add_tensor(const char *raw_name) {
    require(raw_name != nullptr, log_, "a tensor has no name");
    const std::string name = raw_name;
    const bool is_input = engine_->getTensorIOMode(raw_name) == nvinfer1::TensorIOMode::kINPUT;
    const nvinfer1::DataType type = engine_->getTensorDataType(raw_name);
    const auto known = tensor_type_of(static_cast<int>(type));
    require(known.has_value(), log_,
            "tensor \"" + name + "\" has a type (" + std::to_string(static_cast<int>(type)) +
                ") that is smaller than a byte or unknown to this library");
    require(engine_->getTensorLocation(raw_name) == nvinfer1::TensorLocation::kDEVICE, log_,
            "tensor \"" + name + "\" is a shape tensor in host memory; tensors must be in device memory");
    require(engine_->getTensorFormat(raw_name) == nvinfer1::TensorFormat::kLINEAR, log_,
            "tensor \"" + name + "\" is not row-major; build the engine with linear formats");
    std::vector<std::int64_t> shape = shape_of(engine_->getTensorShape(raw_name), log_, name);
    if (is_input) {
      const std::vector<std::int64_t> pinned = pinned_shape(name, shape);
      require(pinned == shape || context_->setInputShape(raw_name, dims_of(pinned)), log_,
              "tensor \"" + name + "\" cannot have 1 in each dynamic dimension: the engine was built for other sizes");
      shape = pinned;
    }
    tensors_.push_back({name, *known, std::move(shape), is_input});
  }
  void fix_shape(tensor_info &t) {
    if (t.is_input)
      return;
    t.shape = shape_of(context_->getTensorShape(t.name.c_str()), log_, t.name);
    for (const std::int64_t dimension : t.shape)
      require(dimension > 0, log_,
              "the shape of output \"" + t.name + "\" depends on the values of the inputs; it must be fixed");
    require(context_->getMaxOutputSize(t.name.c_str()) <= static_cast<std::int64_t>(t.memory_bytes()), log_,
            "output \"" + t.name + "\" takes more memory than its shape needs");
  }

  error_log &log_;
  int device_id_;
  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::ICudaEngine> engine_;
  std::unique_ptr<nvinfer1::IExecutionContext> context_;
  std::vector<tensor_info> tensors_;
  std::vector<bool> bound_;
};

class tensorrt_maker final : public engine_maker {
public:
  tensorrt_maker(error_log &log, int device_id) : log_(log), device_id_(device_id) {}

  std::string version() const override {
    const auto n = [](std::int32_t part) { return std::to_string(part); };
    return "tensorrt-" + n(getInferLibMajorVersion()) + "." + n(getInferLibMinorVersion()) + "." +
           n(getInferLibPatchVersion()) + "." + n(getInferLibBuildVersion()) + "-onnx" + n(getNvOnnxParserVersion()) +
           kRecipe;
  }
  int compute_capability() const override {
    int major = 0, minor = 0;
    gpu::require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_id_), "the device");
    gpu::require(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device_id_), "the device");
    return major * 10 + minor;
  }
  std::string device_name() const override {
    cudaDeviceProp properties{};
    gpu::require(cudaGetDeviceProperties(&properties, device_id_), "the device");
    return properties.name;
  }

  std::vector<std::uint8_t> build(std::span<const std::uint8_t> model) override {
    const auto builder = owned(nvinfer1::createInferBuilder(log_), log_, "createInferBuilder");
    nvinfer1::NetworkDefinitionCreationFlags flags = 0;
#if NV_TENSORRT_MAJOR < 11 // from 11 on all networks are strongly typed
    // TensorRT keeps the types of the model: its own choice of precision miscompiles quantized models.
    flags |= 1U << static_cast<unsigned>(nvinfer1::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
#endif
    const auto network = owned(builder->createNetworkV2(flags), log_, "createNetworkV2");
    const auto parser = owned(nvonnxparser::createParser(*network, log_), log_, "createParser");
    // The parser looks for weights in separate files next to this name. They are not part of the key of a kept engine,
    // so the name makes sure that no such file is found.
    if (!parser->parse(model.data(), model.size(), "/dev/null/model.onnx"))
      fail(log_, "the ONNX model could not be parsed" + parser_errors(*parser));
    const auto config = owned(builder->createBuilderConfig(), log_, "createBuilderConfig");
    pin_dimensions(*builder, *network, *config);
    const auto made = owned(builder->buildSerializedNetwork(*network, *config), log_, "building the engine");
    const auto *at = static_cast<const std::uint8_t *>(made->data());
    log_.take(); // drops messages of calls that succeeded
    return {at, at + made->size()};
  }
  std::unique_ptr<experimental::inference_engine> load(std::span<const std::uint8_t> serialized) override {
    return std::make_unique<tensorrt_engine>(log_, device_id_, serialized);
  }

private:
  /// Increase it when build() makes a different engine from the same model.
  static constexpr const char *kRecipe = "-r1";

  static std::string parser_errors(const nvonnxparser::IParser &parser) {
    std::string text;
    for (int i = 0; i < parser.getNbErrors(); ++i)
      if (const nvonnxparser::IParserError *const e = parser.getError(i); e != nullptr && e->desc() != nullptr)
        text += (text.empty() ? ": node " : "; node ") + std::to_string(e->node()) + ": " + e->desc();
    return text;
  }
  /// Makes inputs and outputs row-major, and fixes dynamic dimensions to 1 in the only optimisation profile.
  void pin_dimensions(nvinfer1::IBuilder &builder, nvinfer1::INetworkDefinition &network,
                      nvinfer1::IBuilderConfig &config) {
    constexpr nvinfer1::TensorFormats kRowMajor = 1U << static_cast<unsigned>(nvinfer1::TensorFormat::kLINEAR);
    nvinfer1::IOptimizationProfile *profile = nullptr; // owned by the builder
    for (std::int32_t i = 0; i < network.getNbInputs(); ++i) {
      nvinfer1::ITensor *const input = network.getInput(i);
      require(input != nullptr && input->getName() != nullptr, log_, "an input has no name");
      input->setAllowedFormats(kRowMajor);
      const std::vector<std::int64_t> shape = shape_of(input->getDimensions(), log_, input->getName());
      const std::vector<std::int64_t> pinned = pinned_shape(input->getName(), shape);
      if (pinned == shape)
        continue;
      if (profile == nullptr)
        profile = builder.createOptimizationProfile();
      require(profile != nullptr, log_, "createOptimizationProfile failed");
      using enum nvinfer1::OptProfileSelector;
      for (const auto which : {kMIN, kOPT, kMAX})
        require(profile->setDimensions(input->getName(), which, dims_of(pinned)), log_,
                std::string("pinning the dimensions of input \"") + input->getName() + "\" failed");
    }
    for (std::int32_t i = 0; i < network.getNbOutputs(); ++i)
      if (nvinfer1::ITensor *const output = network.getOutput(i); output != nullptr)
        output->setAllowedFormats(kRowMajor);
    require(profile == nullptr || config.addOptimizationProfile(profile) >= 0, log_,
            "TensorRT refused the optimisation profile");
  }

  error_log &log_;
  int device_id_;
};

} // namespace

bool tensorrt_available() noexcept { return true; }

std::unique_ptr<experimental::inference_engine> open_tensorrt_engine(const tensorrt_options &options,
                                                                     std::string *note) {
  const on_device device(options.device_id);
  // TensorRT keeps the first logger of a process until the process ends (getLogger) and does not own it. So there is
  // one logger, and it is never destroyed. Messages of engines that are opened in parallel may be mixed.
  static error_log &log = *new error_log;
  tensorrt_maker maker(log, options.device_id);
  opened_engine opened = open_engine(maker, {options.model, options.save});
  if (note != nullptr)
    *note = opened.note;
  return std::move(opened.engine);
}

} // namespace cudaq::qec::realtime::gpu

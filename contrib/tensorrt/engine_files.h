// SPDX-License-Identifier: Apache-2.0
// Model files and the engines built from them: the facts that a saved engine depends on, and when it may be used again.
// Nothing here depends on TensorRT; tests replace the engine_maker.
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include "cudaq/qec/realtime/inference_engine.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// Builds and loads engines for one GPU: TensorRT, or a test's fake. Used by one thread at a time. Failures are
/// thrown as std::runtime_error with the library's message.
class engine_maker {
public:
  virtual ~engine_maker() = default;
  /// Name, full version, and everything else that decides how an engine is built: "tensorrt-10.3.0.26-onnx100300".
  virtual std::string version() const = 0;
  /// Compute capability of the GPU: major * 10 + minor.
  virtual int compute_capability() const = 0;
  /// Name of the GPU: an engine is tuned for one GPU model.
  virtual std::string device_name() const = 0;
  /// Builds a serialized engine from an ONNX model. Takes seconds to minutes.
  virtual std::vector<std::uint8_t> build(std::span<const std::uint8_t> model) = 0;
  virtual std::unique_ptr<experimental::inference_engine> load(std::span<const std::uint8_t> serialized) = 0;
};

/// Everything that a saved engine depends on. Another version, GPU or model gives another key.
struct engine_key {
  std::string version;
  int compute_capability = 0;
  std::string device_name;
  std::uint64_t model_bytes = 0;
  std::uint64_t model_hash = 0; ///< FNV-1a of all bytes of the model file

  /// Version and GPU: "tensorrt-10.3.0.26-onnx100300 sm90 NVIDIA H200".
  std::string machine() const;
  /// machine(), then hash and size of the model.
  std::string text() const;
  /// "d13.tensorrt-10.3.0.26-onnx100300.sm90.NVIDIA_H200.0123456789abcdef.engine" for "/models/d13.onnx".
  std::string file_name(const std::string &model_path) const;
};
engine_key make_engine_key(const engine_maker &maker, std::span<const std::uint8_t> model);

/// The file of a saved engine: "CUDAQENG", u32 bytes of the key, u32 0, u64 bytes and u64 FNV-1a of the engine,
/// key().text(), engine.
std::vector<std::uint8_t> pack_engine(const engine_key &key, std::span<const std::uint8_t> serialized);
bool is_packed_engine(std::span<const std::uint8_t> file) noexcept;
struct packed_engine {
  std::string key;
  std::span<const std::uint8_t> serialized; ///< in the file's bytes
};
/// Errors: the reserved word is not 0, the file is cut off, or its bytes do not fit its hash.
expected<packed_engine> unpack_engine(std::span<const std::uint8_t> file);

/// Reads the whole file. Errors name the path and the system's reason; an empty file is an error.
expected<std::vector<std::uint8_t>> read_file(const std::string &path);
/// A reader of `path` sees the old file or the whole new file, also if several processes write it at the same time or
/// one of them dies. A reason has the system's error.
expected<> write_file_atomically(const std::string &path, std::span<const std::uint8_t> bytes);

struct engine_files {
  std::string model; ///< *.onnx: is built; any other file: a serialized engine, or one that pack_engine made
  /// Where the engine of an ONNX model is saved: a folder (the key gives the file name) or a file. Empty: not saved.
  std::string save;
};
enum class engine_source {
  file,  ///< `model` is an engine
  saved, ///< built by an earlier call
  built, ///< built by this call
};
struct opened_engine {
  std::unique_ptr<experimental::inference_engine> engine;
  engine_source source = engine_source::file;
  std::string note; ///< why a saved engine was not used or the engine was not saved; else empty
};

/// Loads a saved engine if its key is the same and its bytes fit its hash; otherwise builds the engine and replaces the
/// file. If the maker cannot load a right file, the engine is built but the file stays: the reason may be temporary. If
/// `model` is itself a saved engine, these cases are errors. Throws std::runtime_error.
opened_engine open_engine(engine_maker &maker, const engine_files &files);

} // namespace cudaq::qec::realtime

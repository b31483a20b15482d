// SPDX-License-Identifier: Apache-2.0
// Model files and the engines that are built from them: what a saved engine depends on, and when it may be used again.
// Nothing here knows TensorRT; a test plays the maker.
#pragma once

#include "lib/qec/decoding/or_error.h"

#include "cudaq/qec/realtime/inference_engine.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// Builds and loads engines for one GPU: TensorRT, or a test's fake. By one thread at a time. What fails is thrown as
/// std::runtime_error with the library's own words.
class engine_maker {
public:
  virtual ~engine_maker() = default;
  /// Name and full version, and whatever else decides how an engine is built: "tensorrt-10.3.0.26-onnx100300".
  virtual std::string version() const = 0;
  /// Of the GPU: major * 10 + minor.
  virtual int compute_capability() const = 0;
  /// Of the GPU: an engine is tuned for one model of them.
  virtual std::string device_name() const = 0;
  /// An ONNX model to a serialized engine. Takes seconds to minutes.
  virtual std::vector<std::uint8_t> build(std::span<const std::uint8_t> model) = 0;
  virtual std::unique_ptr<experimental::inference_engine> load(std::span<const std::uint8_t> serialized) = 0;
};

/// What a saved engine depends on. Another version, GPU or model is another key.
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

/// A saved engine: "CUDAQENG", u32 bytes of the key, u32 0, u64 bytes and u64 FNV-1a of the engine, key().text(),
/// engine.
std::vector<std::uint8_t> pack_engine(const engine_key &key, std::span<const std::uint8_t> serialized);
bool is_packed_engine(std::span<const std::uint8_t> file) noexcept;
struct packed_engine {
  std::string key;
  std::span<const std::uint8_t> serialized; ///< in the file's bytes
};
/// Errors: cut off, or other bytes than were saved.
or_error<packed_engine> unpack_engine(std::span<const std::uint8_t> file);

/// The whole file. Errors name the path and what the system says; an empty file is one.
or_error<std::vector<std::uint8_t>> read_file(const std::string &path);
/// Whoever opens `path` sees the old file or the whole new one, also when processes write it side by side or one dies.
/// Returns what the system refuses, or nothing.
std::string write_file_atomically(const std::string &path, std::span<const std::uint8_t> bytes);

struct engine_files {
  std::string model; ///< *.onnx: built; anything else: a serialized engine, or one that was saved here
  /// Where the engine of an ONNX model is kept: a folder (the key names the file) or a file. Empty: nowhere.
  std::string save;
};
enum class engine_source {
  file,  ///< `model` is an engine
  saved, ///< built by an earlier call
  built, ///< by this call
};
struct opened_engine {
  std::unique_ptr<experimental::inference_engine> engine;
  engine_source source = engine_source::file;
  std::string note; ///< why a saved engine was not taken, or none was saved; empty: neither
};

/// A saved engine is loaded if its key is the same and its bytes are those that were saved; else the engine is built
/// again and replaces it. One that the maker cannot load all the same is built again, too, and left: what is in the way
/// may pass. Without the model the same findings are refusals. Throws std::runtime_error.
opened_engine open_engine(engine_maker &maker, const engine_files &files);

} // namespace cudaq::qec::realtime

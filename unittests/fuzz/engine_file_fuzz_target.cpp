// SPDX-License-Identifier: Apache-2.0
// The input is the file of a saved engine. If its first byte is 'h' the rest is a file whose hash the target corrects,
// so that inputs with a right hash are found, too. A file that is accepted has its parts in its own bytes.
#include "lib/qec/services/engine_files.h"
#include "unittests/fuzz/fuzz_input.h"

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

constexpr std::size_t kHeader = 32, kKeyBytes = 8, kHash = 24;

/// Writes the FNV-1a of the engine into the header.
void correct_hash(std::vector<std::uint8_t> &file) {
  std::uint32_t key_bytes = 0;
  std::memcpy(&key_bytes, file.data() + kKeyBytes, sizeof(key_bytes));
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t at = kHeader + key_bytes; at < file.size(); ++at)
    hash = (hash ^ file[at]) * 0x100000001b3u;
  std::memcpy(file.data() + kHash, &hash, sizeof(hash));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const bool with_right_hash = size > kHeader && data[0] == 'h';
  std::vector<std::uint8_t> file(data + (with_right_hash ? 1 : 0), data + size);
  if (with_right_hash)
    correct_hash(file);
  const auto unpacked = unpack_engine(file);
  if (unpacked.failed()) {
    require(unpacked.text().find("saved engine") != std::string::npos, "a refusal has a reason");
    return 0;
  }
  require(is_packed_engine(file), "only a packed engine is unpacked");
  require(kHeader + unpacked->key.size() + unpacked->serialized.size() == file.size(), "the parts fill the file");
  require(unpacked->serialized.data() + unpacked->serialized.size() == file.data() + file.size(),
          "the engine is the end of the file");

  engine_key key;
  key.version = unpacked->key;
  const std::vector<std::uint8_t> packed = pack_engine(key, unpacked->serialized);
  const auto again = unpack_engine(packed);
  require(again.ok() && again->key == key.text() && std::ranges::equal(again->serialized, unpacked->serialized),
          "an engine survives packing and unpacking");
  require(key.file_name("/models/" + unpacked->key + ".onnx").find('/') == std::string::npos,
          "the file name of a key has no folder");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "contrib/tensorrt/engine_files.h"

#include "lib/base/content_hash.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace cudaq::qec::realtime {
namespace {

using cudaq::realtime::detail::fnv1a_64;

static_assert(std::endian::native == std::endian::little, "a saved engine is read without byte swaps");

struct file_header {
  char magic[8];
  std::uint32_t key_bytes;
  std::uint32_t zero;
  std::uint64_t engine_bytes;
  std::uint64_t engine_hash;
};
static_assert(sizeof(file_header) == 32);
constexpr const char *kModel = " model "; ///< in a key, after the machine
constexpr char kMagic[8] = {'C', 'U', 'D', 'A', 'Q', 'E', 'N', 'G'};

std::string hex(std::uint64_t n) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- != 0; n >>= 4)
    text[i] = "0123456789abcdef"[n & 15];
  return text;
}

std::string system_error_text(const char *what, const std::string &path) {
  const int error = errno;
  return std::string(what) + " " + path + ": " + std::generic_category().message(error);
}

bool is_onnx(const std::string &path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".onnx";
}

/// A file that is being written. The destructor deletes it unless it was renamed.
class temporary_file {
public:
  explicit temporary_file(const std::string &beside) : path_(beside + ".XXXXXX") { fd_ = ::mkstemp(path_.data()); }
  ~temporary_file() {
    if (fd_ >= 0)
      ::close(fd_);
    if (!path_.empty())
      ::unlink(path_.c_str());
  }
  temporary_file(const temporary_file &) = delete;
  temporary_file &operator=(const temporary_file &) = delete;

  bool made() {
    if (fd_ < 0)
      path_.clear();
    return fd_ >= 0;
  }
  bool write(std::span<const std::uint8_t> bytes) const {
    while (!bytes.empty()) {
      const ::ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        return false;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return ::fchmod(fd_, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) == 0 && ::fsync(fd_) == 0;
  }
  bool rename_to(const std::string &path) {
    if (::rename(path_.c_str(), path.c_str()) != 0)
      return false;
    path_.clear();
    return true;
  }

private:
  std::string path_;
  int fd_ = -1;
};

struct saved_engine {
  std::unique_ptr<experimental::inference_engine> engine; ///< nullptr: `why`
  std::string why;
  bool is_wanted = false; ///< key and bytes of the file are right, even if it could not be loaded
};

/// Loads the engine of the file if it has this key.
saved_engine load_saved(engine_maker &maker, const std::string &path, const engine_key &key) {
  const auto file = read_file(path);
  if (file.failed())
    return {nullptr, file.text()};
  const auto packed = unpack_engine(*file);
  if (packed.failed())
    return {nullptr, path + ": " + packed.text()};
  if (packed->key != key.text())
    return {nullptr, path + ": saved for " + packed->key + ", wanted for " + key.text()};
  try {
    return {maker.load(packed->serialized), "", true};
  } catch (const std::runtime_error &e) {
    return {nullptr, path + ": " + e.what(), true};
  }
}

opened_engine open_serialized(engine_maker &maker, const std::string &path, std::span<const std::uint8_t> file) {
  if (!is_packed_engine(file))
    return {maker.load(file), engine_source::file, ""};
  const auto packed = unpack_engine(file);
  if (packed.failed())
    throw std::runtime_error(path + ": " + packed.text());
  const std::string here = make_engine_key(maker, {}).machine();
  if (packed->key.rfind(here + kModel, 0) != 0)
    throw std::runtime_error(path + ": saved for " + packed->key + ", but this is " + here +
                             "; build it again from its ONNX model");
  return {maker.load(packed->serialized), engine_source::file, ""};
}

} // namespace

std::string engine_key::machine() const {
  return version + " sm" + std::to_string(compute_capability) + " " + device_name;
}

std::string engine_key::text() const {
  return machine() + kModel + hex(model_hash) + " " + std::to_string(model_bytes);
}

std::string engine_key::file_name(const std::string &model_path) const {
  std::string name = std::filesystem::path(model_path).stem().string() + "." + version + ".sm" +
                     std::to_string(compute_capability) + "." + device_name + "." + hex(model_hash) + ".engine";
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::strchr("._-", c) == nullptr)
      c = '_';
  return name;
}

engine_key make_engine_key(const engine_maker &maker, std::span<const std::uint8_t> model) {
  return {maker.version(), maker.compute_capability(), maker.device_name(), model.size(), fnv1a_64(model)};
}

std::vector<std::uint8_t> pack_engine(const engine_key &key, std::span<const std::uint8_t> serialized) {
  const std::string text = key.text();
  file_header header{{}, static_cast<std::uint32_t>(text.size()), 0, serialized.size(), fnv1a_64(serialized)};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  std::vector<std::uint8_t> file(sizeof(header) + text.size() + serialized.size());
  std::memcpy(file.data(), &header, sizeof(header));
  std::copy(serialized.begin(), serialized.end(), std::copy(text.begin(), text.end(), file.begin() + sizeof(header)));
  return file;
}

bool is_packed_engine(std::span<const std::uint8_t> file) noexcept {
  return file.size() >= sizeof(kMagic) && std::memcmp(file.data(), kMagic, sizeof(kMagic)) == 0;
}

expected<packed_engine> unpack_engine(std::span<const std::uint8_t> file) {
  file_header header;
  if (file.size() < sizeof(header) || !is_packed_engine(file))
    return reason("the file is not a saved engine");
  std::memcpy(&header, file.data(), sizeof(header));
  const std::size_t rest = file.size() - sizeof(header);
  if (header.zero != 0)
    return reason("the saved engine is of a newer form; build it again");
  if (header.key_bytes > rest || rest - header.key_bytes != header.engine_bytes)
    return reason("the saved engine is cut off; build it again");
  const auto key = file.subspan(sizeof(header), header.key_bytes);
  const auto serialized = file.subspan(sizeof(header) + header.key_bytes);
  if (fnv1a_64(serialized) != header.engine_hash)
    return reason("the saved engine is damaged: its bytes do not fit its hash; build it again");
  return packed_engine{std::string(key.begin(), key.end()), serialized};
}

expected<std::vector<std::uint8_t>> read_file(const std::string &path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : 0;
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(path, ignored))
    return reason(in ? path + " is a folder, expected a file" : system_error_text("cannot open", path));
  if (size <= 0)
    return reason(path + " is empty");
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  in.seekg(0);
  in.read(reinterpret_cast<char *>(bytes.data()), size);
  if (!in)
    return reason(system_error_text("cannot read", path));
  return bytes;
}

expected<> write_file_atomically(const std::string &path, std::span<const std::uint8_t> bytes) {
  temporary_file file(path); // in the same folder, so that the rename is not a copy
  if (!file.made() || !file.write(bytes) || !file.rename_to(path))
    return reason(system_error_text("cannot write", path));
  return {};
}

opened_engine open_engine(engine_maker &maker, const engine_files &files) {
  const auto model = read_file(files.model);
  if (model.failed())
    throw std::runtime_error(model.text());
  if (!is_onnx(files.model)) {
    opened_engine opened = open_serialized(maker, files.model, *model);
    if (!files.save.empty())
      opened.note = files.model + " is an engine already: nothing is kept in " + files.save;
    return opened;
  }

  const engine_key key = make_engine_key(maker, *model);
  std::error_code ignored;
  std::filesystem::path saved = files.save;
  if (std::filesystem::is_directory(saved, ignored))
    saved /= key.file_name(files.model);
  if (std::filesystem::equivalent(saved, files.model, ignored))
    throw std::runtime_error("the engine would be saved in " + saved.string() +
                             ", which is the model; choose another path");
  saved_engine kept;
  if (!files.save.empty() && std::filesystem::exists(saved, ignored))
    kept = load_saved(maker, saved.string(), key);
  if (kept.engine != nullptr)
    return {std::move(kept.engine), engine_source::saved, ""};
  const std::vector<std::uint8_t> serialized = maker.build(*model);
  opened_engine opened{maker.load(serialized), engine_source::built, kept.why};
  if (!files.save.empty() && !kept.is_wanted)
    if (expected<> result = write_file_atomically(saved.string(), pack_engine(key, serialized)); result.failed())
      opened.note += (opened.note.empty() ? "" : "; ") + result.text();
  return opened;
}

} // namespace cudaq::qec::realtime

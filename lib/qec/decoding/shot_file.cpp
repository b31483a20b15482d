// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/shot_file.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <stdexcept>
#include <system_error>

namespace cudaq::qec::realtime {
namespace {

namespace fs = std::filesystem;

// Far above any recorded set: a damaged .meta must not make the program allocate all memory.
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 32;

// Thrown inside this file only; load_shot_set turns it into an error text.
struct file_error : std::runtime_error {
  file_error(const fs::path &file, const std::string &text) : std::runtime_error(file.string() + ": " + text) {}
};

template <typename Bytes>
Bytes read_file(const fs::path &file) {
  std::error_code code;
  const std::uintmax_t size = fs::file_size(file, code);
  if (code)
    throw file_error(file, code.message());
  std::ifstream stream(file, std::ios::binary);
  Bytes bytes;
  bytes.resize(static_cast<std::size_t>(size));
  if (!stream ||
      !stream.read(static_cast<char *>(static_cast<void *>(bytes.data())), static_cast<std::streamsize>(size)))
    throw file_error(file, "cannot be read");
  return bytes;
}

class meta_file {
public:
  explicit meta_file(fs::path file) : file_(std::move(file)) {
    const auto text = read_file<std::string>(file_);
    std::size_t line_number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      ++line_number;
      if (line.empty() || line[0] == '#')
        continue;
      const std::size_t equals = line.find('=');
      if (equals == std::string::npos)
        throw file_error(file_, "line " + std::to_string(line_number) + " is not key=value");
      values_[line.substr(0, equals)] = line.substr(equals + 1);
    }
    if (count("format") != 1)
      throw file_error(file_, "format is not 1, the only known format");
  }

  const std::string &text(const std::string &key) const {
    const auto found = values_.find(key);
    if (found == values_.end())
      throw file_error(file_, "has no key " + key);
    return found->second;
  }

  std::uint64_t count(const std::string &key) const {
    const auto value = number<std::uint64_t>(key);
    if (value > kMaxCount)
      throw file_error(file_, key + " is larger than 2^32");
    return value;
  }

  template <typename Number>
  Number number(const std::string &key) const {
    const std::string &digits = text(key);
    Number value{};
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc{} || end != digits.data() + digits.size())
      throw file_error(file_, key + "=" + digits + " is not a number");
    return value;
  }

private:
  fs::path file_;
  std::map<std::string, std::string> values_;
};

std::vector<std::uint8_t> read_rows(const fs::path &file, std::uint64_t rows, std::uint64_t bits) {
  const std::uint64_t row_bytes = (bits + 7) / 8;
  auto bytes = read_file<std::vector<std::uint8_t>>(file);
  if (bytes.size() != rows * row_bytes) // both below 2^33: no overflow
    throw file_error(file, "has " + std::to_string(bytes.size()) + " bytes, expected " + std::to_string(rows) +
                               " rows of " + std::to_string(row_bytes));
  if (bits % 8 != 0)
    for (std::uint64_t row = 0; row < rows; ++row)
      if (bytes[static_cast<std::size_t>((row + 1) * row_bytes - 1)] >> (bits % 8) != 0)
        throw file_error(file, "row " + std::to_string(row) + " sets a bit past bit " + std::to_string(bits - 1));
  return bytes;
}

shot_set load(const fs::path &folder, const std::string &name) {
  const meta_file meta(folder / (name + ".meta"));
  shot_set set;
  set.name = name;
  set.distance = meta.count("distance");
  set.rounds = meta.count("rounds");
  set.noise = meta.number<double>("noise");
  set.shots = meta.count("shots");
  set.num_detectors = meta.count("num_detectors");
  set.num_observables = meta.count("num_observables");
  set.offline_logical_errors = meta.count("offline_logical_errors");
  set.dem_text = read_file<std::string>(folder / (name + ".dem"));
  set.detections = read_rows(folder / (name + ".dets.b8"), set.shots, set.num_detectors);
  set.observables = read_rows(folder / (name + ".obs.b8"), set.shots, set.num_observables);
  set.predictions = read_rows(folder / (name + ".pred.b8"), set.shots, set.num_observables);
  return set;
}

} // namespace

std::string shot_set_name(std::uint64_t distance, std::string_view noise) {
  return "surface_z_d" + std::to_string(distance) + "_p" + std::string(noise);
}

std::vector<std::string> list_shot_sets(const fs::path &folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (at->path().extension() == ".meta")
      names.push_back(at->path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

or_error<shot_set> load_shot_set(const fs::path &folder, std::string_view name) {
  try {
    return load(folder, std::string(name));
  } catch (const std::exception &failure) {
    return or_error<shot_set>::failure(failure.what());
  }
}

} // namespace cudaq::qec::realtime

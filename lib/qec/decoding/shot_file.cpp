// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/shot_file.h"

#include "lib/qec/decoding/dem.h"

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

// Thrown inside this file only; the exported functions turn it into an error text.
struct file_error : std::runtime_error {
  file_error(const std::string &file, const std::string &text) : std::runtime_error(file + ": " + text) {}
};

template <typename Bytes>
Bytes read_file(const std::string &file) {
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
  meta_file(std::string file, const std::string &text) : file_(std::move(file)) {
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
  std::string file_;
  std::map<std::string, std::string> values_;
};

void check_rows(const std::string &file, const std::vector<std::uint8_t> &bytes, std::uint64_t rows,
                std::uint64_t bits) {
  const std::uint64_t row_bytes = (bits + 7) / 8;
  if (bytes.size() != rows * row_bytes) // both below 2^33: no overflow
    throw file_error(file, "has " + std::to_string(bytes.size()) + " bytes, expected " + std::to_string(rows) +
                               " rows of " + std::to_string(row_bytes));
  if (bits % 8 != 0)
    for (std::uint64_t row = 0; row < rows; ++row)
      if (bytes[static_cast<std::size_t>((row + 1) * row_bytes - 1)] >> (bits % 8) != 0)
        throw file_error(file, "row " + std::to_string(row) + " sets a bit past bit " + std::to_string(bits - 1));
}

/// What the manifest has: all numbers of the set.
void take_manifest(const std::string &file, const std::string &text, shot_set &set) {
  const meta_file meta(file, text);
  set.distance = meta.count("distance");
  set.rounds = meta.count("rounds");
  set.noise = meta.number<double>("noise");
  if (!(set.noise >= 0 && set.noise <= 1))
    throw file_error(file, "noise=" + meta.text("noise") + " is not between 0 and 1");
  set.shots = meta.count("shots");
  set.num_detectors = meta.count("num_detectors");
  if (set.num_detectors == 0)
    throw file_error(file, "num_detectors is 0: a shot has at least one detector");
  set.num_observables = meta.count("num_observables");
  set.offline_logical_errors = meta.count("offline_logical_errors");
}

/// Without a manifest: the numbers that the model and the size of the file give.
void take_sizes(const std::string &prefix, shot_set &set) {
  const auto model = parse_dem(set.dem_text);
  if (model.failed())
    throw file_error(prefix + ".dem", model.text());
  set.num_detectors = model->num_detectors;
  set.num_observables = model->num_observables;
  if (set.num_detectors == 0)
    throw file_error(prefix + ".dem", "the model has no detectors: a shot has at least one");
  set.shots = set.detections.size() / set.detection_bytes();
}

shot_set make(const std::string &prefix, shot_files files) {
  shot_set set;
  set.name = fs::path(prefix).filename().string();
  set.dem_text = std::move(files.dem);
  set.detections = std::move(files.detections);
  set.observables = std::move(files.observables);
  set.predictions = std::move(files.predictions);
  if (files.meta)
    take_manifest(prefix + ".meta", *files.meta, set);
  else
    take_sizes(prefix, set);
  check_rows(prefix + ".dets.b8", set.detections, set.shots, set.num_detectors);
  if (files.meta || !set.observables.empty())
    check_rows(prefix + ".obs.b8", set.observables, set.shots, set.num_observables);
  if (files.meta || !set.predictions.empty())
    check_rows(prefix + ".pred.b8", set.predictions, set.shots, set.num_observables);
  if (!files.meta && set.has_observables() && set.has_predictions())
    for (std::uint64_t shot = 0; shot < set.shots; ++shot)
      set.offline_logical_errors += !std::ranges::equal(set.prediction_row(shot), set.observable_row(shot));
  return set;
}

shot_files read_files(const std::string &prefix) {
  using bytes = std::vector<std::uint8_t>;
  shot_files files;
  if (fs::exists(prefix + ".meta"))
    files.meta = read_file<std::string>(prefix + ".meta");
  files.dem = read_file<std::string>(prefix + ".dem");
  files.detections = read_file<bytes>(prefix + ".dets.b8");
  if (files.meta || fs::exists(prefix + ".obs.b8"))
    files.observables = read_file<bytes>(prefix + ".obs.b8");
  if (files.meta || fs::exists(prefix + ".pred.b8"))
    files.predictions = read_file<bytes>(prefix + ".pred.b8");
  return files;
}

} // namespace

std::string shot_set_name(std::uint64_t distance, std::string_view noise) {
  return "surface_z_d" + std::to_string(distance) + "_p" + std::string(noise);
}

std::vector<std::string> list_shot_sets(const fs::path &folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (const fs::path &file = at->path(); file.extension() == ".b8" && file.stem().extension() == ".dets")
      names.push_back(file.stem().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

expected<shot_set> make_shot_set(const std::string &prefix, shot_files files) {
  try {
    return make(prefix, std::move(files));
  } catch (const std::exception &failure) {
    return reason(failure.what());
  }
}

expected<shot_set> load_shot_set(const fs::path &folder, std::string_view name) {
  const std::string prefix = (folder / name).string();
  try {
    return make(prefix, read_files(prefix));
  } catch (const std::exception &failure) {
    return reason(failure.what());
  }
}

} // namespace cudaq::qec::realtime

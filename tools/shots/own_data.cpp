// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/own_data.h"

#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/shots/shot_stream.h"
#include "tools/common/output_file.h"
#include "tools/common/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

using qec::number_of;

constexpr std::size_t kMaxBytes = std::size_t{1} << 32; ///< of one file, unpacked

struct shot_rows {
  std::vector<std::uint8_t> detections, observables;
  std::string shot; ///< shot_reader::shot_text()
};

/// All shots of a file. `bits`: the numbers of bits that each shot must have.
shot_rows read_rows(const shot_source &source, const char *option, qec::shot_bits bits) {
  if (source.path == "-")
    throw usage_error(fmt::format("{} -: this subcommand repeats the shots, so it needs a file", option));
  refuse_output_file(option, source.path);
  qec::shot_reader reader(source.path, source.shot_format(), bits, std::string(option) + "_format");
  const auto bytes_of = [](std::uint64_t count) { return static_cast<std::size_t>((count + 7) / 8); };
  std::vector<std::uint8_t> detectors(bytes_of(bits.detectors)), observables(bytes_of(bits.observables));
  shot_rows rows;
  rows.shot = reader.shot_text();
  while (reader.read(detectors, observables)) {
    if (rows.detections.size() + rows.observables.size() + detectors.size() + observables.size() > kMaxBytes)
      throw usage_error(fmt::format("{} {}: more than 4 GiB of shots; give a part of them", option, source.path));
    rows.detections.insert(rows.detections.end(), detectors.begin(), detectors.end());
    rows.observables.insert(rows.observables.end(), observables.begin(), observables.end());
  }
  return rows;
}

} // namespace

qec::shot_format shot_source::shot_format() const {
  if (!format.empty())
    return qec::find_shot_format(format).value();
  const std::string ending = std::filesystem::path(path).extension().string();
  return qec::find_shot_format(ending.empty() ? "" : ending.substr(1)).value_or(qec::shot_format::text01);
}

std::string read_dem_file(const std::string &path) {
  refuse_output_file("--dem", path);
  std::ifstream file(path, std::ios::binary);
  std::string text;
  try {
    if (file)
      text.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::exception &) { // a folder: libstdc++ throws, and sets errno
    file.setstate(std::ios::failbit);
  }
  if (!file)
    throw usage_error(fmt::format("--dem {}: cannot be read: {}", path, std::strerror(errno)));
  return text;
}

std::string no_detectors_text(const own_data &data) {
  return fmt::format("--dem {}: the model has no detectors: a shot has at least one", data.dem);
}

qec::shot_set load_own_shots(const own_data &data) {
  if (!data.in.given())
    throw usage_error("--dem: the shots are missing; name their file with --in");
  if (data.obs_in.given() && data.in_includes_appended_observables)
    throw usage_error("--obs_in, --in_includes_appended_observables: the observables can be in one place only");
  qec::shot_set set;
  set.name = std::filesystem::path(data.dem).filename().string();
  set.dem_text = read_dem_file(data.dem);
  const auto model = qec::parse_dem(set.dem_text);
  if (model.failed())
    throw usage_error(fmt::format("--dem {}: {}", data.dem, model.text()));
  if (model->num_detectors == 0)
    throw usage_error(no_detectors_text(data));
  set.num_detectors = model->num_detectors;
  set.num_observables = model->num_observables;
  try {
    const bool appended = data.in_includes_appended_observables;
    shot_rows in = read_rows(data.in, "--in", {set.num_detectors, appended ? set.num_observables : 0});
    set.detections = std::move(in.detections);
    set.shots = set.detections.size() / set.detection_bytes();
    if (set.shots == 0)
      throw usage_error(fmt::format("{}: there are no shots", data.in.path));
    const auto observables_of = [&set, &in](const shot_source &source, const char *option) {
      if (!source.given())
        return std::vector<std::uint8_t>{};
      auto rows = read_rows(source, option, {0, set.num_observables}).observables;
      if (rows.size() != set.shots * set.observable_bytes())
        throw usage_error(fmt::format("{} {}: {}, but --in has {} of {} (is the model that of the shots?)", option,
                                      source.path, number_of(rows.size() / set.observable_bytes(), "shot"), set.shots,
                                      in.shot));
      return rows;
    };
    set.observables = appended ? std::move(in.observables) : observables_of(data.obs_in, "--obs_in");
    set.predictions = observables_of(data.predictions, "--predictions");
  } catch (const qec::shot_file_error &error) {
    throw usage_error(error.what());
  }
  if (set.has_observables() && set.has_predictions())
    for (std::uint64_t shot = 0; shot < set.shots; ++shot)
      set.offline_logical_errors += !std::ranges::equal(set.prediction_row(shot), set.observable_row(shot));
  return set;
}

std::string describe(const qec::shot_set &set) {
  return (set.distance == 0 ? "" : fmt::format("d={}, {} rounds, p={}, ", set.distance, set.rounds, set.noise)) +
         fmt::format("{}, repeated; {} = {} per request{}", number_of(set.shots, "recorded shot"),
                     number_of(set.num_detectors, "detector"), number_of(set.detection_bytes(), "byte"),
                     set.num_observables == 1 ? "" : fmt::format("; {} observables", set.num_observables));
}

double error_rate::rate() const noexcept {
  return trials == 0 ? 0 : static_cast<double>(errors) / static_cast<double>(trials);
}

error_rate::interval error_rate::interval_95() const noexcept {
  if (trials == 0)
    return {0, 1};
  constexpr double z = 1.959964;
  const double n = static_cast<double>(std::min(trials, different_shots)), p = rate();
  const double middle = p + z * z / (2 * n), half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {errors == 0 ? 0 : (middle - half) / (1 + z * z / n),
          errors == trials ? 1 : (middle + half) / (1 + z * z / n)};
}

std::string error_rate::text() const {
  const auto [low, high] = interval_95();
  return fmt::format("{} of {}, rate {:.3g} (95 %: {:.3g} to {:.3g})", errors, trials, rate(), low, high);
}

bool unanswered_shots::add(qec::decode_status status) noexcept {
  not_converged += status == qec::decode_status::not_converged ? 1 : 0;
  at_deadline += status == qec::decode_status::deadline ? 1 : 0;
  return status == qec::decode_status::not_converged || status == qec::decode_status::deadline;
}

void unanswered_shots::operator+=(const unanswered_shots &more) noexcept {
  not_converged += more.not_converged;
  at_deadline += more.at_deadline;
}

std::string unanswered_shots::text(std::uint64_t shots, const char *unit) const {
  return fmt::format("{} of {}: {} not converged, {} at the deadline", total(), number_of(shots, unit), not_converged,
                     at_deadline);
}

std::string unanswered_shots::verdict(std::uint64_t shots, const std::string &expected) const {
  if (total() == 0)
    return fmt::format("ok: every shot answered once, every answer as {}", expected);
  if (total() >= shots)
    return fmt::format("no correction was checked: the decoder has no answer to {}", text(shots));
  return fmt::format("ok, but the decoder has no answer to {}; every other answer as {}", text(shots), expected);
}

std::string without_answer_text(std::uint64_t count, const char *unit) {
  return count == 0 ? "" : fmt::format("; with {} without an answer", number_of(count, unit));
}

} // namespace cudaq::realtime::tools

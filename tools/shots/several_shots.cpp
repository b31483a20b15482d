// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/several_shots.h"

#include "tools/common/report.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint64_t kLongestLine = std::uint64_t{1} << 24; ///< that is looked at

constexpr std::uint64_t kManyDetectors = std::uint64_t{1} << 60; ///< more than a file has bits

/// At most kManyDetectors: a stream has no end, so the text may say any number of repetitions.
std::uint64_t detectors_of_text(const qec::repeating_model &model) {
  const std::uint64_t rest = model.head_detectors() + model.tail_detectors(), body = model.body_detectors();
  if (rest > kManyDetectors || (body != 0 && model.repetitions() > (kManyDetectors - rest) / body))
    return kManyDetectors;
  return rest + model.repetitions() * body;
}

/// Head, whole repetitions and tail, in any unit.
bool has_parts(std::uint64_t size, std::uint64_t head, std::uint64_t body, std::uint64_t tail) {
  return size >= head + tail && (size - head - tail) % body == 0;
}

/// Bytes of rows.
std::uint64_t row_bytes(const std::vector<std::uint64_t> &rounds) {
  return std::accumulate(rounds.begin(), rounds.end(), std::uint64_t{0},
                         [](std::uint64_t sum, std::uint64_t detectors) { return sum + (detectors + 7) / 8; });
}

qec::expected<> check_b8(const std::string &path, std::uint64_t size, const qec::repeating_model &model) {
  const std::uint64_t detectors = detectors_of_text(model), shot = (detectors + 7) / 8;
  const std::uint64_t head = row_bytes(model.head()), body = row_bytes(model.body()), tail = row_bytes(model.tail());
  if (size == 0 || size % shot != 0 || has_parts(size, head, body, tail))
    return {};
  return qec::reason(
      fmt::format("--in {}: {} bytes are {} of {} detectors in {} bytes, as Stim writes b8, and no experiment of "
                  "rounds in whole bytes: head of {}, repetitions of {}, tail of {} bytes. {}",
                  path, size, size == shot ? "a shot" : fmt::format("{} shots", size / shot), detectors, shot, head,
                  body, tail, advice_for_shots(model)));
}

qec::expected<> check_lines(const std::string &path, std::uint64_t size, const qec::repeating_model &model) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t line = 0;
  int c = file.get();
  for (; c == '0' || c == '1'; c = file.get())
    if (++line > kLongestLine)
      return {};
  if (c != '\n' || line == 0 || size < 2 * (line + 1) - 1 ||
      size % (line + 1) % line != 0) // the last line may have no end
    return {};
  std::uint64_t round = 0;
  while (model.first_detector(round) < line)
    ++round;
  const bool ends_inside = model.first_detector(round) != line;
  if (line != detectors_of_text(model) && !(ends_inside && is_experiment(model, line)))
    return {};
  if (round <= 1 && !ends_inside) // lines of one round each
    return {};
  return qec::reason(fmt::format("--in {}: {} lines of {} detectors, each a whole experiment: these are shots. {}{}",
                                 path, (size + 1) / (line + 1), line, advice_for_shots(model),
                                 ends_inside
                                     ? ""
                                     : fmt::format(". If they are one experiment in lines of {} rounds, write each "
                                                   "round as a line, or give it on stdin",
                                                   round)));
}

} // namespace

bool is_experiment(const qec::repeating_model &model, std::uint64_t detectors) {
  return has_parts(detectors, model.head_detectors(), model.body_detectors(), model.tail_detectors());
}

std::string advice_for_shots(const qec::repeating_model &model) {
  const std::uint64_t detectors = detectors_of_text(model);
  return fmt::format("--stream reads one experiment. Shots are decoded without --stream, by windows with --decoder "
                     "sliding-window. One shot as a line of 01 is an input of --stream; b8 becomes lines by `stim "
                     "convert --in_format b8 --out_format 01 --bits_per_shot {}`",
                     detectors == kManyDetectors ? "BITS_OF_A_SHOT" : std::to_string(detectors));
}

qec::expected<> check_one_experiment(const shot_source &in, const qec::repeating_model &model) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(in.path, error))
    return {};
  const std::uint64_t size = std::filesystem::file_size(in.path, error);
  if (error)
    return {};
  return in.shot_format() == qec::shot_format::b8 ? check_b8(in.path, size, model) : check_lines(in.path, size, model);
}

qec::shot_format stream_format(const char *option, const shot_source &source) {
  const qec::shot_format format = source.shot_format();
  if (format != qec::shot_format::text01 && format != qec::shot_format::b8)
    throw usage_error(fmt::format("{} {}: the format {} has whole shots; --stream takes 01 and b8", option, source.path,
                                  qec::name_of(format)));
  return format;
}

void read_one_row(qec::shot_reader &from, std::span<std::uint8_t> row) {
  std::vector<std::uint8_t> more(row.size());
  if (!from.read({}, row) || from.read({}, more))
    throw usage_error(
        fmt::format("{}: {} shots, but a stream is one experiment", from.name(), from.shots() == 0 ? "no" : "several"));
}

} // namespace cudaq::realtime::tools

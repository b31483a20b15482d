// SPDX-License-Identifier: Apache-2.0
#include "tools/shots/shot_plan.h"

#include "lib/qec/decoding/decoding_config.h"
#include "tools/common/clock.h"
#include "tools/common/machine.h"
#include "tools/common/report.h"
#include "tools/common/terminal.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <random>
#include <utility>

namespace cudaq::realtime::tools {

shot_plan::shot_plan(const qec::shot_set &shots, std::uint64_t seed, const recorded_readout *readout)
    : shots_(shots), readout_(readout), order_(static_cast<std::size_t>(shots.shots)), expected_(shots.predictions) {
  if (order_.empty())
    throw usage_error(fmt::format("{} has no shots", shots.name));
  std::iota(order_.begin(), order_.end(), 0u);
  if (seed != 0)
    std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed));
}

void shot_plan::decode_offline(decode_service &service, bool use_offline) {
  const std::size_t bytes = shots_.observable_bytes();
  std::vector<std::uint8_t> answers(order_.size() * bytes);
  statuses_.assign(order_.size(), qec::decode_status::ok);
  offline_unanswered_ = {};
  const std::uint64_t begin = now_ns();
  progress display({"offline decode", "shots", shots_.shots});
  for (std::uint32_t shot = 0; shot < shots_.shots; ++shot) {
    if (shot % kShotsPerProgress == 0)
      display.show(shot, now_ns());
    std::string fault;
    const auto status =
        service.decode(shots_.detection_row(shot), std::span(answers).subspan(shot * bytes, bytes), &fault);
    statuses_[shot] = status;
    if (status != qec::decode_status::ok && !offline_unanswered_.add(status))
      throw usage_error(fmt::format("{}: shot {} cannot be decoded: {}", shots_.name, shot,
                                    qec::decode_status_text(status, fault.c_str())));
  }
  offline_ns_per_shot_ = static_cast<double>(now_ns() - begin) / static_cast<double>(shots_.shots);
  offline_differences_ = 0;
  for (std::uint32_t shot = 0; shot < shots_.shots; ++shot)
    if (shots_.has_predictions() && expected_status(shot) == qec::decode_status::ok &&
        !std::ranges::equal(shots_.prediction_row(shot), std::span(answers).subspan(shot * bytes, bytes)))
      ++offline_differences_;
  compare_with_reference(service.decoder_name(), answers);
  expects_offline_ = use_offline;
  if (use_offline)
    expected_ = std::move(answers);
}

bool shot_plan::expect_answers_of(decode_service &service, std::uint64_t count, std::chrono::nanoseconds limit) {
  if (const char *const refusal = service.refuses_probabilities(); readout_ != nullptr && refusal != nullptr)
    throw usage_error(fmt::format("--readout: {}", refusal));
  const std::size_t bytes = shots_.observable_bytes();
  const std::uint64_t needed = std::min<std::uint64_t>(count, order_.size());
  std::vector<std::uint8_t> answers(order_.size() * bytes);
  std::vector<qec::decode_status> statuses(order_.size(), qec::decode_status::ok);
  progress display({"expected answers", "shots", needed});
  const std::uint64_t begin = now_ns();
  for (std::uint64_t k = 0; k < needed; ++k) {
    const std::uint64_t now = now_ns();
    if (now - begin > static_cast<std::uint64_t>(limit.count()))
      return false;
    if (k % kShotsPerProgress == 0)
      display.show(k, now);
    const std::uint32_t shot = shot_of(k);
    const auto known = readout_ != nullptr ? readout_->list(shot) : qec::shot_probabilities{};
    statuses[shot] = service.decode(shots_.detection_row(shot), std::span(answers).subspan(shot * bytes, bytes),
                                    nullptr, nullptr, known);
    if (statuses[shot] == qec::decode_status::deadline && limit != std::chrono::nanoseconds::max())
      return false;
  }
  expected_ = std::move(answers);
  statuses_ = std::move(statuses);
  expects_offline_ = true;
  return true;
}

error_rate shot_plan::errors_without_readout(decode_service &service, std::uint64_t count) const {
  error_rate rate{0, std::min<std::uint64_t>(count, order_.size())};
  std::vector<std::uint8_t> answer(shots_.observable_bytes());
  progress display({"hard bits", "shots", rate.trials});
  for (std::uint64_t k = 0; k < rate.trials; ++k) {
    if (k % kShotsPerProgress == 0)
      display.show(k, now_ns());
    const std::uint32_t shot = shot_of(k);
    const qec::decode_status status = service.decode(shots_.detection_row(shot), answer);
    rate.errors += status != qec::decode_status::ok || !std::ranges::equal(answer, shots_.observable_row(shot));
  }
  return rate;
}

void shot_plan::compare_with_reference(const std::string &decoder_name, std::span<const std::uint8_t> answers) {
  reference_errors_ = {};
  if (!shots_.has_observables())
    return;
  std::unique_ptr<qec::decoder> matching;
  if (!shots_.has_predictions() && decoder_name != "pymatching" && qec::pymatching_available())
    matching = qec::make_decoder("pymatching", shots_.dem_text).instance;
  if (!shots_.has_predictions() && matching == nullptr)
    return;
  const std::size_t bytes = shots_.observable_bytes();
  std::vector<std::uint8_t> matched(bytes);
  progress display({"reference", "shots", shots_.shots});
  for (std::uint32_t shot = 0; shot < shots_.shots; ++shot) {
    if (shot % kShotsPerProgress == 0)
      display.show(shot, now_ns());
    // A shot that matching cannot decode is one of its errors.
    const bool is_matched =
        matching == nullptr || matching->decode_bits(shots_.detection_row(shot), matched) == qec::decode_status::ok;
    const auto reference = matching != nullptr ? std::span<const std::uint8_t>(matched) : shots_.prediction_row(shot);
    const auto truth = shots_.observable_row(shot);
    const bool wrong = expected_status(shot) != qec::decode_status::ok ||
                       !std::ranges::equal(answers.subspan(shot * bytes, bytes), truth);
    const bool reference_wrong = !is_matched || !std::ranges::equal(reference, truth);
    reference_errors_.with += wrong;
    reference_errors_.without += reference_wrong;
    reference_errors_.only_with += wrong && !reference_wrong;
    reference_errors_.only_without += reference_wrong && !wrong;
  }
  reference_errors_.shots = shots_.shots;
}

std::string find_data_folder(const std::string &given) {
  if (!given.empty()) {
    if (!std::filesystem::is_directory(given))
      throw usage_error(fmt::format("--data {}: no such folder", given));
    return given;
  }
  std::vector<std::string> places;
  if (const char *set = std::getenv("CUDAQ_REALTIME_DATA"); set != nullptr && *set != '\0')
    places.emplace_back(set);
  places.push_back(program_folder() + "/../share/cudaq-realtime/data");
  places.emplace_back(CUDAQ_REALTIME_SOURCE_DATA);
  for (const std::string &place : places)
    if (!qec::list_shot_sets(place).empty())
      return place;
  throw usage_error(fmt::format("no recorded shots found in {}; name their folder with --data (in the source tree: "
                                "tools/data)",
                                fmt::join(places, ", ")));
}

qec::shot_set load_shots(const std::string &folder, const std::string &config, const std::string &noise) {
  const qec::decoding_config *const named = qec::find_decoding_config(config);
  auto loaded = qec::load_shot_set(
      folder, named != nullptr ? named->shot_set_name(noise)
                               : qec::shot_set_name(static_cast<unsigned>(std::stoul(config.substr(1))), noise));
  if (loaded.failed())
    throw no_shot_set(loaded.text(), folder, config, noise);
  return std::move(*loaded);
}

usage_error no_shot_set(const std::string &reason, const std::string &folder, const std::string &config,
                        const std::string &noise) {
  const auto names = qec::list_shot_sets(folder);
  const std::string more =
      qec::find_decoding_config(config) != nullptr
          ? fmt::format("sets of all configurations: make_data.py --pipeline FOLDER --noise {} (it is beside the "
                        "recorded sets), then --data FOLDER",
                        noise)
          : "for other codes give your own model and shots: --dem FILE --in FILE";
  return usage_error(fmt::format("--config {}: {}\nsets in {}: {}\n{}", config, reason, folder,
                                 names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), more));
}

std::string config_file_hint(const std::string &path) {
  const bool is_distance = path.size() > 1 && path[0] == 'd' &&
                           std::ranges::all_of(path.substr(1), [](char c) { return c >= '0' && c <= '9'; });
  return is_distance || qec::find_decoding_config(path) != nullptr
             ? fmt::format(" ({} is the name of a decoding configuration for demo, pipeline and emulate; here --config "
                           "is a file)",
                           path)
             : "";
}

} // namespace cudaq::realtime::tools

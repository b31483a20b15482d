// SPDX-License-Identifier: Apache-2.0
#include "tools/decode/gap_output.h"

#include "tools/shots/own_data.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

[[noreturn]] void refuse_gaps(const std::string &path, int why) {
  throw usage_error(fmt::format("--confidence {}: {}", path, std::strerror(why)));
}

} // namespace

gap_file::gap_file(const std::string &path) : path_(path) {
  if (path.empty())
    return;
  file_.reset(std::fopen(path.c_str(), "wbe"));
  if (file_ == nullptr)
    refuse_gaps(path, errno);
}

void gap_file::write(std::span<const double> gaps) {
  static_assert(std::endian::native == std::endian::little);
  if (has_binary_gaps(path_)) {
    text_.append(reinterpret_cast<const char *>(gaps.data()), gaps.size_bytes());
    return;
  }
  for (std::size_t k = 0; k < gaps.size(); ++k)
    text_ += (k == 0 ? "" : " ") + (std::isnan(gaps[k]) ? "nan" : fmt::format("{:.9g}", gaps[k]));
  text_ += '\n';
}

void gap_file::flush() {
  if (file_ == nullptr)
    return;
  if (std::fwrite(text_.data(), 1, text_.size(), file_.get()) != text_.size() || std::fflush(file_.get()) != 0)
    refuse_gaps(path_, errno);
  text_.clear();
}

void gap_curve::add(std::span<const double> gaps, bool is_wrong) {
  double least = HUGE_VAL;
  bool is_known = true;
  for (const double gap : gaps) {
    is_known = is_known && !std::isnan(gap);
    least = std::min(least, gap);
  }
  counts *of = &unknown_;
  if (is_known)
    of = &bins_[least < kStep * kMaxBin ? static_cast<std::uint64_t>(least / kStep) : kMaxBin];
  for (counts *const one : {of, &all_}) {
    ++one->shots;
    one->wrong += is_wrong;
  }
}

std::string gap_curve::text(bool has_truth) const {
  std::string text;
  if (unknown_.shots != 0)
    text += fmt::format("gaps            {} shots have one that is not known; they are discarded with every limit\n",
                        unknown_.shots);
  constexpr double kShares[] = {0, 0.01, 0.05, 0.1, 0.25};
  double before = -1;
  for (const double share : kShares) {
    // The highest limit that discards no more than this share.
    counts kept{all_.shots - unknown_.shots, all_.wrong - unknown_.wrong};
    double limit = 0;
    for (auto at = bins_.begin(); at != bins_.end(); ++at) {
      const auto next = std::next(at);
      const auto discarded = static_cast<double>(all_.shots - kept.shots + at->second.shots);
      if (next == bins_.end() || discarded > share * static_cast<double>(all_.shots))
        break;
      kept.shots -= at->second.shots;
      kept.wrong -= at->second.wrong;
      limit = static_cast<double>(next->first) * kStep;
    }
    if (std::exchange(before, limit) == limit)
      continue;
    text += fmt::format("gap >= {:<8} {} of {} shots{}\n", limit, kept.shots, all_.shots,
                        has_truth ? ": " + error_rate{kept.wrong, kept.shots}.text() : "");
  }
  return text;
}

json gap_curve::report(bool has_truth) const {
  json curve = json::array();
  counts kept{all_.shots - unknown_.shots, all_.wrong - unknown_.wrong};
  for (const auto &[steps, of] : bins_) {
    json row = {{"least_gap", static_cast<double>(steps) * kStep}, {"kept", kept.shots}};
    if (has_truth)
      row["wrong"] = kept.wrong;
    curve.push_back(std::move(row));
    kept.shots -= of.shots;
    kept.wrong -= of.wrong;
  }
  return {{"unknown", unknown_.shots}, {"curve", std::move(curve)}};
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// The input is the text of a file of tied errors, with its head or without, for a model of seven errors. It is refused
// with a line, or its groups are those of different errors; then the rates are learned, or an error has no effect.
#include "lib/qec/learning/learned_rates.h"
#include "unittests/fuzz/fuzz_input.h"

#include <cmath>
#include <set>

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.01) D0 D1\nerror(0.1) D1\nerror(1e-9) D0 D1 L0\n"
                               "error(1e-9) D1 D2\nerror(0) D2\nerror(0.02) D2\n";
constexpr std::uint32_t kCrc32 = 0x3740a469;

event_counts some_counts(const detector_error_model &model) {
  event_counts counts(*parity_sets::of(model));
  for (std::uint32_t k = 0; k < 2000; ++k) {
    const auto shot = static_cast<std::uint8_t>(k * 2654435761U >> 29 & k >> 1);
    require(counts.add({&shot, 1}) == decode_status::ok, "three detectors");
  }
  counts.flush();
  return counts;
}

void check(std::vector<std::vector<std::uint64_t>> groups) {
  static const detector_error_model model = *parse_dem(kModel);
  static const event_counts counts = some_counts(model);
  std::set<std::uint64_t> seen;
  bool all_known = true;
  for (const auto &group : groups)
    for (const std::uint64_t error : group) {
      require(seen.insert(error).second, "an error is in one group, once");
      all_known = all_known && error < 7 && error != 5;
    }
  const auto rates = learn_rates(model, counts, {.tied = std::move(groups)});
  require(rates.ok() == all_known, "errors of the model are tied, others are refused: " + rates.text());
  if (rates.failed())
    return;
  require(rates->errors.size() == 6, "each error with an effect has a rate");
  for (const learned_rate &one : rates->errors)
    require(one.rate > 0 && one.rate < 0.5 && std::isfinite(one.sigma) && one.low <= one.high, "a rate is one");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  for (const std::string &whole : {text, "cudaq-realtime-tied 1\nmodel 3740a469\n" + text}) {
    auto groups = parse_tied(whole, kCrc32);
    if (groups.ok())
      check(std::move(*groups));
    else
      require(groups.text().starts_with("line "), "a refusal names the line: " + groups.text());
  }
  require(parse_tied("cudaq-realtime-tied 1\nmodel 00000000\n" + text, kCrc32).failed(), "another model is refused");
  return 0;
}

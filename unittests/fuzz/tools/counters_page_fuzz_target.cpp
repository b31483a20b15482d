// SPDX-License-Identifier: Apache-2.0
// The input is the page of counters that a server gives to `top`. It is refused with a text, or its numbers are counts
// and each decoder is there once.
#include "tools/top/counters_reader.cpp"
#include "unittests/fuzz/fuzz_input.h"

#include <set>

using namespace cudaq::realtime::tools;
using cudaq::realtime::test::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string page(reinterpret_cast<const char *>(data), size);
  server_counters counters;
  try {
    counters = parse_counters(page);
  } catch (const std::runtime_error &refused) {
    require(std::string_view(refused.what()).starts_with("it does not give the counters of a server"), refused.what());
    return 0;
  }
  require(page.ends_with(kEndOfCounters), "a page that was cut is refused");
  constexpr std::uint64_t kMax = 1'000'000'000'000'000'000;
  require(counters.processed < kMax && counters.in_flight < kMax && counters.reloads < kMax, "counts");
  std::set<std::uint64_t> ids;
  for (const counted_decoder &d : counters.decoders) {
    require(ids.insert(d.id).second, "each decoder is there once");
    require(d.requests < kMax && d.waiting < kMax && d.latency_sum_ns >= 0, "counts of a decoder");
    for (const auto &[bound_ns, requests] : d.latency)
      require(bound_ns >= 0 && requests < kMax, "a bucket has a bound");
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "tools/top/top.h"

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/top/top_sample.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kHomeAndClear = "\x1b[H\x1b[J";

bool rewrites() {
  const char *const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

server_counters first_reading(const std::string &path) {
  try {
    return parse_counters(read_counters(path));
  } catch (const reading_interrupted &) {
    throw;
  } catch (const std::runtime_error &e) {
    throw usage_error(fmt::format("--counters {}: {}; the server must run, with the same --counters", path, e.what()));
  }
}

/// Returns early after Ctrl-C.
void sleep_until(std::uint64_t time_ns) {
  while (!interrupt_guard::interrupted()) {
    const std::uint64_t now = now_ns();
    if (now >= time_ns)
      return;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<std::uint64_t>(time_ns - now, 50'000'000)));
  }
}

} // namespace

int run_top(const top_options &o, const output &out) {
  const interrupt_guard guard;
  json samples = json::array();
  std::string problem;
  const auto report = [&] {
    return out.finish({{"counters", o.counters}, {"interval_seconds", o.interval_s}, {"samples", samples}}, problem,
                      kExitRefused,
                      o.count == 0 ? run_end{interrupt_guard::interrupted(), ""} // its normal end
                                   : ended(interrupt_guard::interrupted(), samples.size(), o.count, "readings"));
  };
  try {
    server_counters before = first_reading(o.counters);
    std::uint64_t read_at = now_ns();
    const bool terminal = rewrites();
    for (std::uint64_t shown = 0; o.count == 0 || shown < o.count; ++shown) {
      sleep_until(read_at + static_cast<std::uint64_t>(o.interval_s * 1e9));
      if (interrupt_guard::interrupted())
        break;
      server_counters now = parse_counters(read_counters(o.counters));
      const std::uint64_t at = now_ns();
      const server_sample sample = sample_between(before, now, static_cast<double>(at - read_at) * 1e-9);
      before = std::move(now);
      read_at = at;
      out.text("{}{}", terminal ? kHomeAndClear : "", sample_text(sample));
      if (std::fflush(stdout) != 0) // finish() says so
        break;
      if (o.count != 0)
        samples.push_back(sample_json(sample));
    }
  } catch (const reading_interrupted &) { // the report says so
  } catch (const usage_error &) {
    throw;
  } catch (const std::runtime_error &e) {
    problem = fmt::format("--counters {}: {}", o.counters, e.what());
  }
  return report();
}

} // namespace cudaq::realtime::tools

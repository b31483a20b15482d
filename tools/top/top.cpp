// SPDX-License-Identifier: Apache-2.0
#include "tools/top/top.h"

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/top/terminal_keys.h"
#include "tools/top/top_sample.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

/// 3: dropped_bad_magic has the drops of the transport, too; 2: failed_one_shots is gone, as in serve.
constexpr int kTopSchemaVersion = 3;

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
  } catch (const usage_error &) {
    throw;
  } catch (const std::runtime_error &e) {
    throw std::runtime_error(
        fmt::format("{}; a server (serve) or a router (route) must run, with the same --counters", e.what()));
  }
}

/// Returns early after Ctrl-C and a key: q ends, a space reads at once. False: q was pressed.
bool wait_until(std::uint64_t time_ns, terminal_keys &keys) {
  for (std::uint64_t now = now_ns(); !interrupt_guard::interrupted() && now < time_ns; now = now_ns()) {
    const char key = keys.wait(std::min<std::uint64_t>(time_ns - now, 50'000'000));
    if (key == 'q' || key == ' ')
      return key != 'q';
  }
  return true;
}

/// The line above a reading.
std::string header(const std::string &counters, bool with_keys) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char clock[32];
  std::strftime(clock, sizeof clock, "%F %T", &local);
  return fmt::format("{}  {}{}\n", clock, counters, with_keys ? "  (q: end, space: read now)" : "");
}

} // namespace

int run_top(const top_options &o, const output &out) {
  const interrupt_guard guard;
  json samples = json::array();
  std::string problem;
  bool ended_early = false; // by a key
  const auto report = [&] {
    return out.finish({{"schema_version", kTopSchemaVersion},
                       {"counters", o.counters},
                       {"interval_seconds", o.interval_s},
                       {"samples", samples}},
                      problem, kExitRefused,
                      o.count == 0 || ended_early
                          ? run_end{ended_early || interrupt_guard::interrupted(), ""} // its normal end
                          : ended(interrupt_guard::interrupted(), samples.size(), o.count, "readings"));
  };
  try {
    server_counters before = first_reading(o.counters);
    std::uint64_t read_at = now_ns();
    const bool terminal = rewrites() && !out.uses_stdout_for_json();
    terminal_keys keys(terminal);
    for (std::uint64_t shown = 0; o.count == 0 || shown < o.count; ++shown) {
      const bool goes_on = wait_until(read_at + static_cast<std::uint64_t>(o.interval_s * 1e9), keys);
      if (!goes_on || interrupt_guard::interrupted()) {
        ended_early = !goes_on && o.count != 0;
        break;
      }
      server_counters now = parse_counters(read_counters(o.counters));
      const std::uint64_t at = now_ns();
      const server_sample sample = sample_between(before, now, static_cast<double>(at - read_at) * 1e-9);
      before = std::move(now);
      read_at = at;
      out.text("{}{}{}", terminal ? kHomeAndClear : "", header(o.counters, keys.are_read()), sample_text(sample));
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

// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/serve_config.h"

#include "lib/qec/decoding/whole_file.h"
#include "lib/qec/server/record/record_file.h"
#include "tools/common/log_line.h"
#include "tools/common/output_file.h"
#include "tools/common/report.h"
#include "tools/serve/background_task.h"
#include "tools/shots/shot_plan.h"

#include <charconv>
#include <exception>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <utility>

namespace cudaq::realtime::tools {

namespace server_ns = cudaq::qec::realtime;

config_text read_config(const char *option, const std::string &path) {
  auto text = server_ns::read_whole_file(path);
  if (text.failed())
    refuse(text.status() != CUDAQ_ERR_INVALID_ARG, fmt::format("{} {}{}", option, text.text(), config_file_hint(path)));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return {std::move(*text), folder.empty() ? "." : folder};
}

section_overrides::section_overrides(const std::string &record, bool has_realtime, realtime_setup &realtime)
    : has_realtime_(has_realtime), realtime_(realtime) {
  if (record.empty())
    return;
  const std::size_t colon = record.rfind(':');
  const std::string_view digits =
      colon == std::string::npos ? std::string_view() : std::string_view(record).substr(colon + 1);
  const bool has_number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  record_.file = has_number ? record.substr(0, colon) : record;
  if (has_number) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), record_.requests);
    if (error != std::errc() || record_.requests == 0 || record_.requests > server_ns::kMaxRecords)
      throw usage_error(
          fmt::format("--record {}: {} requests; accepted: 1 to {}", record, digits, server_ns::kMaxRecords));
  }
  if (record_.file.empty())
    throw usage_error(fmt::format("--record {}: the name of the file is missing", record));
  record_.file = std::filesystem::absolute(record_.file).string();
}

void section_overrides::apply(server_ns::server_config &config) const {
  if (has_realtime_ && config.realtime != server_ns::realtime_config{})
    print_log("realtime: the section of the configuration is not used: --realtime stands above it\n");
  if (!record_.file.empty()) {
    if (!config.record.file.empty())
      print_log("record: the section of the configuration is not used: --record stands above it\n");
    config.record = record_;
  }
  realtime_.adjust(config);
}

std::optional<server_ns::loaded_config> load_until_end(const char *option, const std::string &path,
                                                       signal_events &signals, const server_ns::config_change &change) {
  refuse_output_file(option, path);
  struct result {
    std::optional<server_ns::loaded_config> loaded;
    std::exception_ptr failure;
  };
  const auto kept = std::make_shared<result>();
  auto task = std::make_unique<background_task>(
      [kept, option, &path, change] {
        try {
          const config_text file = read_config(option, path);
          auto loaded = server_ns::load_config(file.yaml, file.folder, change);
          if (loaded.failed())
            refuse(loaded.status() != CUDAQ_ERR_INVALID_ARG, fmt::format("{} {}: {}", option, path, loaded.text()));
          kept->loaded = std::move(*loaded);
        } catch (const std::exception &) {
          kept->failure = std::current_exception();
        }
      },
      [&signals] { signals.wake(); });
  while (!task->ended() && !signals.end_is_wanted()) {
    pollfd fd{signals.descriptor(), POLLIN, 0};
    poll(&fd, 1, -1);
    signals.clear();
  }
  if (!task->ended()) {
    (void)task.release(); // its destructor would wait
    return {};
  }
  if (kept->failure)
    std::rethrow_exception(kept->failure);
  return std::move(kept->loaded);
}

} // namespace cudaq::realtime::tools

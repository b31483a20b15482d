// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/serve_config.h"

#include "lib/qec/decoding/whole_file.h"
#include "tools/common/output_file.h"
#include "tools/common/report.h"
#include "tools/serve/background_task.h"
#include "tools/shots/shot_plan.h"

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

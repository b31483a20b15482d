// SPDX-License-Identifier: Apache-2.0
#include "tools/services/provider_service.h"

#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "lib/base/library_file.h"
#include "lib/base/similar_words.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"
#include "tools/common/report.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <thread>

namespace cudaq::realtime::tools {

bool is_provider_path(const std::string &name) { return name.find('/') != std::string::npos || name.ends_with(".so"); }

std::string provider_library(const std::string &name) {
  if (is_provider_path(name))
    return name;
  std::string dashes = name, underscores = name;
  std::replace(dashes.begin(), dashes.end(), '_', '-');
  std::replace(underscores.begin(), underscores.end(), '-', '_');
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const std::string &spelling : {dashes, name}) {
    const std::string file = "libcudaq-realtime-bridge-" + spelling + ".so";
    for (const std::string &beside :
         {std::string("."), std::string(CUDAQ_TOOL_LIBRARY_FOLDER), "../lib/transport/" + underscores})
      if (const auto path = folder / beside / file; std::filesystem::exists(path, ignored))
        return path.lexically_normal();
  }
  return "libcudaq-realtime-bridge-" + dashes + ".so";
}

detail::expected<void *> open_provider(const std::string &library) { return detail::check_and_load_library(library); }

const std::string &chosen_transport(const std::string &option, const std::string &configured) {
  if (option.empty() && configured.empty())
    throw usage_error("--transport is missing, and the configuration has no transport.provider; give one, such as udp");
  return option.empty() ? configured : option;
}

cudaq_wait_policy_t wait_policy_of(const std::string &word, bool few_cores) {
  if (word == "spin")
    return CUDAQ_WAIT_SPIN;
  return word == "block" || (word == "auto" && few_cores) ? CUDAQ_WAIT_BLOCK : CUDAQ_WAIT_SPIN_YIELD;
}

constexpr std::string_view kLibraryBegins = "libcudaq-realtime-bridge-";

/// The providers of this project that are installed or built beside the program.
static std::vector<std::string> own_providers() {
  std::vector<std::string> names;
  for (const char *name : {"cpu_roce", "gpu-roce", "roce", "shm", "ucx", "udp"})
    if (provider_library(name).find('/') != std::string::npos)
      names.emplace_back(name);
  return names;
}

/// `text`: that of the library, which begins with the function and repeats the provider.
static std::string why_not_created(const std::string &library, std::string text) {
  std::string name = std::filesystem::path(library).filename().string();
  const bool is_own = name.starts_with(kLibraryBegins) && name.ends_with(".so");
  if (is_own)
    name = name.substr(kLibraryBegins.size(), name.size() - kLibraryBegins.size() - 3);
  if (is_own && library.find('/') == std::string::npos && text.find("cannot be loaded") != std::string::npos)
    return fmt::format("--transport {}: there is no provider of this name; there are {}. Give one of them, or the path "
                       "of a library ({} was not found).{}",
                       name, fmt::join(own_providers(), ", "), library,
                       detail::did_you_mean(detail::similar_words(name, own_providers())));
  const std::string function = "cudaq_bridge_create_from_library: ", call = ": create: ", own = name + " create: ";
  if (text.starts_with(function))
    text.erase(0, function.size());
  if (const std::size_t at = text.find(call); text.starts_with("provider ") && at != std::string::npos)
    text.erase(0, at + call.size());
  if (text.starts_with(own))
    text.erase(0, own.size());
  return fmt::format("--transport {}: {}", is_own ? name : library, text);
}

/// Options that the provider does not take, and a file that is no provider, are the user's to change. What else the
/// provider's create refuses, such as a port in use, is the system's.
[[noreturn]] static void refuse_to_create(const std::string &library, cudaq_status_t status, const std::string &text) {
  const std::string why = why_not_created(library, text);
  if (status == CUDAQ_ERR_INVALID_ARG || text.find(": create") == std::string::npos)
    throw usage_error(why);
  throw api_error(why);
}

/// The words of the line whose keys are not among these, a space before each.
static std::string endpoint_words_except(const std::string &endpoint, const std::vector<std::string> &keys) {
  std::istringstream words(endpoint);
  std::string found;
  for (std::string word; words >> word;)
    if (std::find(keys.begin(), keys.end(), word.substr(0, word.find('='))) == keys.end())
      found += " " + word;
  return found;
}

/// Providers of this project ignore options that they do not know, as those of the existing system do. Here a mistyped
/// option is refused.
static bool has_strict_options(const std::string &library) {
  for (const char *const name : {"udp", "roce", "shm", "ucx", "cpu-roce", "gpu-roce"})
    if (library.ends_with(fmt::format("libcudaq-realtime-bridge-{}.so", name)))
      return true;
  return false;
}

std::string endpoint_value(const std::string &endpoint, const std::string &key, const std::string &otherwise) {
  std::istringstream words(endpoint);
  for (std::string word; words >> word;)
    if (word.starts_with(key + "="))
      return word.substr(key.size() + 1);
  return otherwise;
}

std::string bridge_banner(const std::string &endpoint) {
  const std::string qp = endpoint_value(endpoint, "qp", ""), key = endpoint_value(endpoint, "rkey", ""),
                    address = endpoint_value(endpoint, "buffer_addr", "");
  if (qp.empty() || key.empty() || address.empty())
    return "";
  return fmt::format("=== Bridge Ready ===\nQP Number: {}\nRKey: {}\nBuffer Addr: {}", qp, key, address);
}

std::string provider_service::ready_words(const std::string &own) const {
  const std::string of_client = endpoint_value(endpoint_, "slots", ""); // of a transport that has a ring for each
  return fmt::format("port={} transport={} dispatch={} slots={}{} slot_size={}{}{}",
                     endpoint_value(endpoint_, "port", "0"), endpoint_value(endpoint_, "transport", "unnamed"), shape(),
                     num_slots(), of_client.empty() ? "" : " client_slots=" + of_client, slot_bytes(), own,
                     endpoint_words_except(endpoint_, {"port", "transport", "dispatch", "slots", "slot_size"}));
}

provider_service::provider_service(const std::string &library, const std::vector<std::string> &args,
                                   cudaq_wait_policy_t wait)
    : library_(library), control_(new control_words) {
  try {
    std::vector<std::string> texts = args;
    if (has_strict_options(library))
      texts.emplace_back("--strict");
    std::vector<char *> pointers;
    for (std::string &text : texts)
      pointers.push_back(text.data());
    const int count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
    if (const cudaq_status_t status =
            cudaq_bridge_create_from_library(&bridge_, library.c_str(), count, pointers.data());
        status != CUDAQ_OK)
      refuse_to_create(library, status, cudaq_last_error_message());
    endpoint_ = endpoint_now();
    require_ok(cudaq_bridge_get_ring_geometry(bridge_, &config_.num_slots, &config_.slot_size),
               "cudaq_bridge_get_ring_geometry");
    create_dispatcher(wait);
  } catch (...) {
    release();
    throw;
  }
}

std::string provider_service::endpoint_now() const {
  char endpoint[1024] = "";
  return cudaq_bridge_get_endpoint_info(bridge_, endpoint, sizeof endpoint) == CUDAQ_OK ? endpoint : "";
}

void provider_service::create_dispatcher(cudaq_wait_policy_t wait) {
  const cudaq_status_t ring = cudaq_bridge_get_transport_context(bridge_, RING_BUFFER, &ring_);
  unified_ = ring == CUDAQ_ERR_UNSUPPORTED;
  if (unified_)
    require_ok(cudaq_bridge_get_cpu_dataplane(bridge_, &dataplane_), "cudaq_bridge_get_cpu_dataplane");
  else
    require_ok(ring, "cudaq_bridge_get_transport_context");
  config_.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  config_.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  config_.kernel_type = unified_ ? CUDAQ_KERNEL_UNIFIED : CUDAQ_KERNEL_REGULAR;
  config_.skip_tx_markers = unified_ ? 0 : 1;
  dispatcher_options_ = default_options();
  dispatcher_options_.wait_policy = wait;
  dispatcher_options_.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  require_ok(cudaq_dispatch_manager_create(&manager_), "cudaq_dispatch_manager_create");
  require_ok(cudaq_dispatcher_create(manager_, &config_, &dispatcher_), "cudaq_dispatcher_create");
  if (unified_)
    require_ok(cudaq_dispatcher_set_cpu_dataplane(dispatcher_, &dataplane_), "cudaq_dispatcher_set_cpu_dataplane");
  else
    require_ok(cudaq_dispatcher_set_ringbuffer(dispatcher_, &ring_), "cudaq_dispatcher_set_ringbuffer");
  require_ok(cudaq_dispatcher_set_control(dispatcher_, &control_->shutdown, &control_->processed),
             "cudaq_dispatcher_set_control");
  require_ok(cudaq_dispatcher_set_options(dispatcher_, &dispatcher_options_), "cudaq_dispatcher_set_options");
  // A transport may carry less than a slot: a longer answer would be cut on the wire.
  const std::string frame = endpoint_value(endpoint_, "frame_size", "");
  std::uint32_t bytes = 0;
  if (std::from_chars(frame.data(), frame.data() + frame.size(), bytes).ec == std::errc() && bytes > 24)
    require_ok(cudaq_dispatcher_set_max_result_bytes(dispatcher_, bytes - 24), "cudaq_dispatcher_set_max_result_bytes");
}

provider_service::~provider_service() { release(); }

bool provider_service::release() noexcept {
  if (dispatcher_ != nullptr && cudaq_dispatcher_destroy(dispatcher_) != CUDAQ_OK)
    return false; // a handler still runs: it uses the ring and the control words
  dispatcher_ = nullptr;
  if (manager_ != nullptr)
    cudaq_dispatch_manager_destroy(manager_);
  manager_ = nullptr;
  if (bridge_ != nullptr)
    cudaq_bridge_destroy(bridge_); // disconnects first
  bridge_ = nullptr;
  delete control_;
  control_ = nullptr;
  return true;
}

void provider_service::serve(std::uint32_t function_id, cudaq_host_handler_v2_t handler, void *user) {
  require_ok(cudaq_dispatcher_set_host_handler_v2(dispatcher_, function_id, handler, user, nullptr),
             "cudaq_dispatcher_set_host_handler_v2");
}

void provider_service::place(int core, int realtime_priority) {
  dispatcher_options_.dispatcher_core = core;
  dispatcher_options_.realtime_priority = realtime_priority;
  require_ok(cudaq_dispatcher_set_options(dispatcher_, &dispatcher_options_), "cudaq_dispatcher_set_options");
}

void provider_service::start() { require_ok(cudaq_dispatcher_start(dispatcher_), "cudaq_dispatcher_start"); }

bool provider_service::connect(std::uint64_t timeout_ns) {
  if (!connected_) { // without memory below it is called again, and an instance connects once
    const cudaq_status_t status = cudaq_bridge_connect_timeout(bridge_, timeout_ns);
    if (status != CUDAQ_ERR_TIMEOUT)
      require_ok(status, "cudaq_bridge_connect_timeout");
    connected_ = status == CUDAQ_OK;
  }
  if (connected_)
    endpoint_ = endpoint_now(); // some transports know their numbers only now
  return connected_;
}

void provider_service::launch() { require_ok(cudaq_bridge_launch(bridge_), "cudaq_bridge_launch"); }

cudaq_status_t provider_service::complete(const cudaq_host_job_t &job, std::int32_t status,
                                          std::uint32_t result_len) noexcept {
  return cudaq_host_complete_deferred(dispatcher_, &job, status, result_len);
}

bool provider_service::flush(std::uint64_t timeout_ns) {
  if (unified_)
    return true;
  const std::uint64_t begin = now_ns();
  for (std::uint32_t slot = 0; slot < config_.num_slots;) {
    if (cudaq_host_ringbuffer_slot_available(&ring_, slot) != 0) {
      ++slot;
      continue;
    }
    if (now_ns() - begin > timeout_ns)
      return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

bool provider_service::stop(std::uint64_t timeout_ns) {
  constexpr std::uint64_t kMinFlushNs = 100'000'000, kMaxFlushNs = 1'000'000'000;
  const std::uint64_t begin = now_ns();
  const cudaq_status_t stopped = cudaq_dispatcher_stop_timeout(dispatcher_, timeout_ns);
  if (stopped == CUDAQ_ERR_TIMEOUT)
    return false;
  require_ok(stopped, "cudaq_dispatcher_stop_timeout");
  const std::uint64_t spent = now_ns() - begin;
  flush(std::clamp(timeout_ns - std::min(timeout_ns, spent), kMinFlushNs,
                   kMaxFlushNs)); // requests that arrive meanwhile get no answer, as after a disconnect
  require_ok(cudaq_bridge_disconnect(bridge_), "cudaq_bridge_disconnect");
  return true;
}

std::uint64_t provider_service::processed() const {
  std::uint64_t packets = 0;
  require_ok(cudaq_dispatcher_get_processed(dispatcher_, &packets), "cudaq_dispatcher_get_processed");
  return packets;
}

cudaq_dispatcher_stats_t provider_service::stats() const {
  cudaq_dispatcher_stats_t stats{};
  stats.struct_size = sizeof stats;
  require_ok(cudaq_dispatcher_get_stats(dispatcher_, &stats), "cudaq_dispatcher_get_stats");
  return stats;
}

} // namespace cudaq::realtime::tools

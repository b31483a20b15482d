// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/udp/udp_options.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kMostKept = std::uint64_t{1} << 30; // bytes of kept answers

/// An option with a number as value.
struct number_option {
  std::string_view name;
  std::uint64_t least, most;
  std::uint64_t value;
  bool given = false;
};

/// The options before they are checked against each other.
class option_reader {
public:
  explicit option_reader(udp_options &out) : out_(out) {}

  status_or_reason read(int argc, char *const *argv) {
    const std::vector<std::string_view> words(argv, argv + std::max(argc, 0));
    const bool lenient = std::find(words.begin(), words.end(), "--lenient") != words.end();
    for (std::size_t at = 0; at < words.size(); ++at) {
      const std::size_t equals = words[at].find('=');
      const std::string_view name = words[at].substr(0, equals);
      std::optional<std::string_view> value;
      if (equals != std::string_view::npos)
        value = words[at].substr(equals + 1);
      if (bool *const flag = flag_named(name)) {
        if (value)
          return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: this option has no value", text(words[at]).c_str());
        *flag = true;
        continue;
      }
      number_option *const number = number_named(name);
      if (number == nullptr && name != "--bind") {
        if (lenient)
          continue;
        return make_reason(CUDAQ_ERR_INVALID_ARG, "'%s': the udp provider has no such option%s",
                           text(words[at]).c_str(),
                           name.substr(0, 2) == "--" ? "; --lenient ignores unknown options"
                                                     : "; options begin with --, and the first is argv[0]");
      }
      if (!value && at + 1 < words.size())
        value = words[++at];
      if (!value)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: the value is missing", text(name).c_str());
      if (number == nullptr)
        out_.bind_address = text(*value);
      else if (status_or_reason refused = set(*number, *value))
        return refused;
    }
    return store();
  }

private:
  enum which {
    kPort,
    kNumSlots,
    kSlotSize,
    kReplayWindow,
    kMaxPeers,
    kPeerTimeoutMs,
    kBusyPollUs,
    kCore,
    kReceiveBuffer
  };

  static std::string text(std::string_view view) { return std::string(view); }

  bool *flag_named(std::string_view name) {
    if (name == "--pinned-rings")
      return &out_.pinned_rings;
    if (name == "--unified")
      return &out_.unified;
    if (name == "--busy-reply")
      return &out_.busy_reply;
    return name == "--lenient" ? &lenient_ : nullptr;
  }
  number_option *number_named(std::string_view name) {
    const auto found = std::find_if(std::begin(numbers_), std::end(numbers_),
                                    [&](const number_option &option) { return option.name == name; });
    return found == std::end(numbers_) ? nullptr : found;
  }

  static status_or_reason set(number_option &option, std::string_view value) {
    std::uint64_t number = 0;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code != std::errc{} || end != value.data() + value.size() || number < option.least || number > option.most)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': a number from %llu to %llu is accepted",
                         text(option.name).c_str(), text(value).c_str(), static_cast<unsigned long long>(option.least),
                         static_cast<unsigned long long>(option.most));
    option.value = number;
    option.given = true;
    return {};
  }

  status_or_reason store() {
    out_.port = static_cast<std::uint32_t>(numbers_[kPort].value);
    out_.num_slots = static_cast<std::uint32_t>(numbers_[kNumSlots].value);
    out_.slot_size = static_cast<std::uint32_t>(numbers_[kSlotSize].value);
    out_.replay_window = static_cast<std::uint32_t>(numbers_[kReplayWindow].value);
    out_.max_peers = static_cast<std::uint32_t>(numbers_[kMaxPeers].value);
    out_.peer_timeout_ms = numbers_[kPeerTimeoutMs].value;
    out_.busy_poll_us = numbers_[kBusyPollUs].value;
    if (numbers_[kCore].given)
      out_.core = static_cast<int>(numbers_[kCore].value);
    out_.receive_buffer = static_cast<std::uint32_t>(numbers_[kReceiveBuffer].value);
    if ((out_.replay_window & (out_.replay_window - 1)) != 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "--replay-window %u: 0 or a power of two is accepted",
                         out_.replay_window);
    const std::uint64_t kept = std::uint64_t{out_.replay_window} * out_.max_peers * out_.slot_size;
    if (kept > kMostKept)
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "--replay-window %u: with --max-peers %u and --slot-size %u the kept answers need %llu bytes; "
                         "at most %llu are accepted",
                         out_.replay_window, out_.max_peers, out_.slot_size, static_cast<unsigned long long>(kept),
                         static_cast<unsigned long long>(kMostKept));
    for (const which ring_only : {kBusyPollUs, kCore})
      if (out_.unified && numbers_[ring_only].given)
        return make_reason(CUDAQ_ERR_INVALID_ARG,
                           "%s: with --unified the provider has no thread; set this of the dispatcher",
                           text(numbers_[ring_only].name).c_str());
    for (const which window_only : {kMaxPeers, kPeerTimeoutMs})
      if (out_.replay_window == 0 && numbers_[window_only].given)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: peers are only remembered with --replay-window",
                           text(numbers_[window_only].name).c_str());
    return {};
  }

  udp_options &out_;
  bool lenient_ = false;
  number_option numbers_[9] = {
      // in the order of `which`
      {"--port", 0, 65535, out_.port},
      {"--num-slots", 1, 65536, out_.num_slots},
      {"--slot-size", CUDAQ_RPC_HEADER_SIZE, kLargestDatagram, out_.slot_size},
      {"--replay-window", 0, 65536, out_.replay_window},
      {"--max-peers", 1, 65536, out_.max_peers},
      {"--peer-timeout-ms", 1, 86400000, out_.peer_timeout_ms},
      {"--busy-poll-us", 0, UINT64_MAX / 2000, out_.busy_poll_us},
      {"--core", 0, 1023, 0},
      {"--receive-buffer", 0, 1u << 30, out_.receive_buffer},
  };
};

} // namespace

status_or_reason parse_udp_options(int argc, char *const *argv, udp_options &out) {
  if (argc > 0 && argv == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc %d: argv is NULL", argc);
  for (int i = 0; i < argc; ++i)
    if (argv[i] == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "argv[%d]: is NULL", i);
  return option_reader(out).read(argc, argv);
}

} // namespace cudaq::realtime::detail

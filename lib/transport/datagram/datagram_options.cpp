// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kMostKept = std::uint64_t{1} << 30; // bytes of kept answers

std::string text(std::string_view view) { return std::string(view); }

template <class Options>
auto *named(Options &options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto &o) { return o.name == name; });
  return found == options.end() ? nullptr : &*found;
}

} // namespace

option_reader::option_reader(datagram_options &out, bool with_peers) : out_(out), with_peers_(with_peers) {
  numbers_ = {
      {"--port", 0, 65535, &out.port},
      {"--num-slots", 1, 65536, &out.num_slots},
      {"--slot-size", CUDAQ_RPC_HEADER_SIZE, kLargestDatagram, &out.slot_size},
      {"--replay-window", 0, 65536, &out.replay_window},
      {"--max-peers", 1, 65536, &out.max_peers},
      {"--peer-timeout-ms", 1, 86400000, &out.peer_timeout_ms},
      {"--busy-poll-us", 0, UINT64_MAX / 2000, &out.busy_poll_us},
      {"--core", 0, 1023, &out.core},
      {"--receive-buffer", 0, 1u << 30, &out.receive_buffer},
  };
  choices_ = {{"--bind", {}, &out.bind_address}};
  flags_ = {{"--pinned-rings", &out.pinned_rings},
            {"--unified", &out.unified},
            {"--busy-reply", &out.busy_reply},
            {"--lenient", &lenient_}};
}

status_or_reason option_reader::read(int argc, char *const *argv) {
  if (argc > 0 && argv == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc %d: argv is NULL", argc);
  for (int i = 0; i < argc; ++i)
    if (argv[i] == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "argv[%d]: is NULL", i);
  if (status_or_reason refused = read_words(std::vector<std::string_view>(argv, argv + std::max(argc, 0))))
    return refused;
  return check();
}

status_or_reason option_reader::read_words(const std::vector<std::string_view> &words) {
  const bool lenient = std::find(words.begin(), words.end(), "--lenient") != words.end();
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::size_t equals = words[at].find('=');
    const std::string_view name = words[at].substr(0, equals);
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos)
      value = words[at].substr(equals + 1);
    if (const flag_option *const flag = named(flags_, name)) {
      if (value)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: this option has no value", text(words[at]).c_str());
      *flag->value = true;
      continue;
    }
    if (named(numbers_, name) == nullptr && named(choices_, name) == nullptr) {
      if (lenient)
        continue;
      return make_reason(CUDAQ_ERR_INVALID_ARG, "'%s': the %s provider has no such option%s", text(words[at]).c_str(),
                         out_.provider.c_str(),
                         name.substr(0, 2) == "--" ? "; --lenient ignores unknown options"
                                                   : "; options begin with --, and the first is argv[0]");
    }
    if (!value && at + 1 < words.size())
      value = words[++at];
    if (!value)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: the value is missing", text(name).c_str());
    if (status_or_reason refused = set(name, *value))
      return refused;
  }
  return {};
}

status_or_reason option_reader::set(std::string_view name, std::string_view value) {
  if (const choice_option *const choice = named(choices_, name)) {
    if (!choice->words.empty() && std::find(choice->words.begin(), choice->words.end(), value) == choice->words.end()) {
      std::string accepted;
      for (const std::string_view word : choice->words)
        accepted += (accepted.empty() ? "" : ", ") + text(word);
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': one of %s is accepted", text(name).c_str(),
                         text(value).c_str(), accepted.c_str());
    }
    *choice->value = text(value);
    return {};
  }
  number_option &option = *named(numbers_, name);
  const bool hex = value.substr(0, 2) == "0x";
  const std::string_view digits = value.substr(hex ? 2 : 0);
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number, hex ? 16 : 10);
  if (code != std::errc{} || end != digits.data() + digits.size() || number < option.least || number > option.most)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s '%s': a number from %llu to %llu is accepted", text(name).c_str(),
                       text(value).c_str(), static_cast<unsigned long long>(option.least),
                       static_cast<unsigned long long>(option.most));
  std::visit([number](auto *to) { *to = static_cast<std::remove_reference_t<decltype(*to)>>(number); }, option.value);
  option.given = true;
  return {};
}

bool option_reader::given(std::string_view name) const { return named(numbers_, name)->given; }

status_or_reason option_reader::check() const {
  if ((out_.replay_window & (out_.replay_window - 1)) != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--replay-window %u: 0 or a power of two is accepted",
                       out_.replay_window);
  // With peers that are remembered in any case, a slot of each is kept, too.
  const std::uint64_t kept =
      (std::uint64_t{out_.replay_window} + (with_peers_ ? 1 : 0)) * out_.max_peers * out_.slot_size;
  if (kept > kMostKept)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--replay-window %u: with --max-peers %u and --slot-size %u the kept answers need %llu bytes; "
                       "at most %llu are accepted",
                       out_.replay_window, out_.max_peers, out_.slot_size, static_cast<unsigned long long>(kept),
                       static_cast<unsigned long long>(kMostKept));
  for (const std::string_view ring_only : {"--busy-poll-us", "--core"})
    if (out_.unified && given(ring_only))
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "%s: with --unified the provider has no thread; set this of the dispatcher",
                         text(ring_only).c_str());
  for (const std::string_view window_only : {"--max-peers", "--peer-timeout-ms"})
    if (!with_peers_ && out_.replay_window == 0 && given(window_only))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: peers are only remembered with --replay-window",
                         text(window_only).c_str());
  return {};
}

} // namespace cudaq::realtime::detail

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_options.h"

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kMaxKept = std::uint64_t{1} << 30; // bytes of kept answers

} // namespace

option_reader::option_reader(datagram_options &out, bool with_peers)
    : option_parser(out.provider), out_(out), with_peers_(with_peers) {
  add_number("--port", 0, 65535, out.port);
  add_number("--num-slots", 1, 65536, out.num_slots);
  add_number("--slot-size", CUDAQ_RPC_HEADER_SIZE, kLargestDatagram, out.slot_size);
  add_number("--replay-window", 0, 65536, out.replay_window);
  add_number("--max-peers", 1, 65536, out.max_peers);
  add_number("--peer-timeout-ms", 1, 86400000, out.peer_timeout_ms);
  add_number("--busy-poll-us", 0, UINT64_MAX / 2000, out.busy_poll_us);
  add_number("--core", 0, 1023, out.core);
  add_number("--receive-buffer", 0, 1u << 30, out.receive_buffer);
  add_choice("--bind", {}, out.bind_address);
  add_flag("--pinned-rings", out.pinned_rings);
  add_flag("--unified", out.unified);
  add_flag("--busy-reply", out.busy_reply);
}

expected<> option_reader::read(int argc, char *const *argv) {
  if (expected<> result = parse(argc, argv); result.failed())
    return result;
  out_.ignored_words = ignored_words();
  return check();
}

expected<> option_reader::check() const {
  if ((out_.replay_window & (out_.replay_window - 1)) != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--replay-window %u: 0 or a power of two is accepted",
                       out_.replay_window);
  // With peers that are remembered in any case, a slot of each is kept, too.
  const std::uint64_t kept =
      (std::uint64_t{out_.replay_window} + (with_peers_ ? 1 : 0)) * out_.max_peers * out_.slot_size;
  if (kept > kMaxKept)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--replay-window %u: with --max-peers %u and --slot-size %u the kept answers need %llu bytes; "
                       "at most %llu are accepted",
                       out_.replay_window, out_.max_peers, out_.slot_size, static_cast<unsigned long long>(kept),
                       static_cast<unsigned long long>(kMaxKept));
  for (const std::string_view ring_only : {"--busy-poll-us", "--core"})
    if (out_.unified && given(ring_only))
      return make_reason(CUDAQ_ERR_INVALID_ARG,
                         "%s: with --unified the provider has no thread; set this of the dispatcher",
                         std::string(ring_only).c_str());
  for (const std::string_view window_only : {"--max-peers", "--peer-timeout-ms"})
    if (!with_peers_ && out_.replay_window == 0 && given(window_only))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: peers are only remembered with --replay-window",
                         std::string(window_only).c_str());
  return {};
}

} // namespace cudaq::realtime::detail

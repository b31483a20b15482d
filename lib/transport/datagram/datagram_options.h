// SPDX-License-Identifier: Apache-2.0
// The options that all providers over datagrams have, and how options are read. docs/transport/transport_udp.md
// describes them.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cudaq::realtime::detail {

/// Most payload bytes of a UDP datagram over IPv4.
inline constexpr std::uint32_t kLargestDatagram = 65507;

struct datagram_options {
  std::string provider = "udp"; ///< its name
  std::string bind_address = "127.0.0.1";
  std::uint32_t port = 0; ///< 0: the system chooses one
  std::uint32_t num_slots = 8;
  std::uint32_t slot_size = 256; ///< most bytes of a frame
  bool pinned_rings = false;
  bool unified = false;
  bool busy_reply = false;
  std::uint32_t replay_window = 0; ///< request ids that are remembered for each peer, a power of two; 0: none
  std::uint32_t max_peers = 64;    ///< that are remembered
  std::uint64_t peer_timeout_ms = 60000;
  std::uint64_t busy_poll_us = 50;
  int core = CUDAQ_CORE_ANY;
  std::uint32_t receive_buffer = 0; ///< bytes; 0: the system's default

  std::string thread_name() const { return "cudaq-" + provider; }
};

/// Parses `--name value` and `--name=value`; numbers are decimal, or hexadecimal with 0x. An unknown option is refused,
/// or ignored if --lenient is among them. The reason names the option, its value, and what is accepted; what the
/// options are read into is then unspecified.
class option_reader {
public:
  /// Reads the options that all have. `with_peers`: the provider remembers peers also without a replay window.
  option_reader(datagram_options &out, bool with_peers);

  // Further options of a provider. The names and the values must live as long as the reader.
  void add_number(std::string_view name, std::uint64_t least, std::uint64_t most, std::uint32_t &value) {
    numbers_.push_back({name, least, most, &value});
  }
  /// One of these words.
  void add_choice(std::string_view name, std::vector<std::string_view> words, std::string &value) {
    choices_.push_back({name, std::move(words), &value});
  }
  status_or_reason read(int argc, char *const *argv);

private:
  struct number_option {
    std::string_view name;
    std::uint64_t least, most;
    std::variant<std::uint32_t *, std::uint64_t *, int *> value;
    bool given = false;
  };
  struct choice_option {
    std::string_view name;
    std::vector<std::string_view> words; ///< empty: any text
    std::string *value;
  };
  struct flag_option {
    std::string_view name;
    bool *value;
  };

  status_or_reason read_words(const std::vector<std::string_view> &words);
  status_or_reason set(std::string_view name, std::string_view value);
  status_or_reason check() const;
  bool given(std::string_view name) const;

  datagram_options &out_;
  const bool with_peers_;
  bool lenient_ = false;
  std::vector<number_option> numbers_;
  std::vector<choice_option> choices_;
  std::vector<flag_option> flags_;
};

} // namespace cudaq::realtime::detail

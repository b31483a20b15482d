// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/server_query.h"

#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/server/session/wire_requests.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"

#include <algorithm>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

/// A server that does not know the query may drop it: without an answer the run goes on after this time. One that
/// knows it may have no core for a second on a busy machine.
constexpr std::uint64_t kPatienceNs = 2'000'000'000;

constexpr std::size_t kLongestName = 1024; ///< names have some settings

/// Whether a text of the other side may be shown on a terminal.
bool is_printable(const std::string &text) {
  return text.size() <= kLongestName && std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

} // namespace

std::vector<std::uint8_t> about_decoder(std::optional<std::uint64_t> id) {
  std::vector<std::uint8_t> payload;
  for (int byte = 0; id && byte < 8; ++byte)
    payload.push_back(static_cast<std::uint8_t>(*id >> (8 * byte)));
  return payload;
}

std::optional<query_answer> query_server(link &to, const emulate_options &o, std::uint32_t &next_id,
                                         std::uint32_t function, std::span<const std::uint8_t> payload) {
  const std::uint64_t begin = now_ns();
  const std::uint64_t patience = std::min(kPatienceNs, static_cast<std::uint64_t>(o.timeout_s * 1e9));
  const std::uint32_t id = next_id;
  const std::size_t other_size = to.counters().other_size;
  std::optional<query_answer> answered;
  bool sent = false;
  to.accept_any_size(true);
  do {
    if (!sent && (sent = to.send(id, function, payload, begin)))
      ++next_id;
    if (const std::optional<link_answer> answer = to.receive(); answer && answer->header.request_id == id) {
      answered = {answer->header.status, {answer->result.begin(), answer->result.end()}};
      break;
    }
    if (!to.alive())
      throw api_error(to.end_text());
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  } while (to.counters().other_size == other_size && now_ns() - begin < patience);
  to.accept_any_size(false);
  if (sent && !answered)
    to.give_up(id);
  return answered;
}

std::string query_name(link &to, const emulate_options &o, std::uint32_t &next_id) {
  const bool by_id = o.protocol == "server";
  std::string name;
  for (std::size_t k = 0; k < (by_id ? o.decoder_ids.size() : 1); ++k) {
    const auto id = by_id ? std::optional(o.decoder_ids[k]) : std::nullopt;
    const auto answer = query_server(to, o, next_id, qec::kNameFunctionId, about_decoder(id));
    if (!answer || answer->status != 0)
      return "";
    const std::string named(answer->result.begin(), answer->result.end());
    if (!is_printable(named) || (k != 0 && named != name))
      return "";
    name = named;
  }
  return name;
}

std::string with_decode_limit(const std::string &name) {
  return qec::with_setting(name, "deadline_us", std::to_string(kServedDecodeUs));
}

qec::expected<> check_served_decoder(const std::string &name, bool in_this_process) {
  const auto parsed = qec::decoder_name::parse(name);
  if (parsed.failed())
    return parsed.reason();
  if (!in_this_process && name.find("heralds=") != std::string::npos)
    return qec::reason("it reads a file of heralds");
  if (!in_this_process && name.find("predecoder=model=") != std::string::npos)
    return qec::reason("it reads the file of a network");
  std::string window;
  const auto settings = parsed->settings.rest();
  for (const auto &[key, value] : settings) {
    if (key == "deadline_us" || (key == "inner" && value.find("deadline_us=") != std::string::npos))
      return qec::reason("it has a deadline, so its answers depend on time");
    if (key == "inner")
      window = value;
  }
  if (parsed->name == "race" || window.starts_with("race("))
    return qec::reason("the answers of a race depend on time");
  const auto has_path = [](const std::string &text) {
    return text.find('/') != std::string::npos || text.find(".so") != std::string::npos;
  };
  if (!in_this_process && (has_path(parsed->name) || has_path(window)))
    return qec::reason("it is a plug-in");
  return {};
}

bool take_slot_size_of_server(std::unique_ptr<link> &to, emulate_options &o, bool size_is_given,
                              std::size_t payload_bytes, const std::function<std::unique_ptr<link>()> &open) {
  const std::size_t theirs = to->counters().other_size;
  if (theirs == 0 || theirs == o.slot_size)
    return false;
  if (size_is_given)
    throw usage_error(
        fmt::format("--slot-size is {}, and the server has slots of {} bytes: leave the option out, or give "
                    "--slot-size {}",
                    o.slot_size, theirs, theirs));
  if (theirs < CUDAQ_RPC_HEADER_SIZE + payload_bytes)
    throw usage_error(
        fmt::format("{}: the server has slots of {} bytes, and a request of this model needs {}: start the "
                    "server with a larger --slot-size",
                    to->describe(), theirs, CUDAQ_RPC_HEADER_SIZE + payload_bytes));
  o.slot_size = static_cast<std::uint32_t>(theirs);
  to.reset(); // its port is free for the next one
  to = open();
  return true;
}

std::string size_advice(const emulate_options &o) {
  return fmt::format("if the server runs, its READY line must say slot_size={}: give the other number to one side with "
                     "--slot-size",
                     o.slot_size);
}

} // namespace cudaq::realtime::tools

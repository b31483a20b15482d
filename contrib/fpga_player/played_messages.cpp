// SPDX-License-Identifier: Apache-2.0
#include "contrib/fpga_player/played_messages.h"

#include "tools/shots/shot_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

std::vector<std::uint8_t> frame_of(std::uint32_t function, std::uint32_t number,
                                   std::span<const std::uint8_t> payload) {
  const cudaq_rpc_header_t header = {CUDAQ_RPC_MAGIC_REQUEST, function, static_cast<std::uint32_t>(payload.size()),
                                     number, 0};
  std::vector<std::uint8_t> frame(sizeof header + payload.size());
  std::memcpy(frame.data(), &header, sizeof header);
  std::ranges::copy(payload, frame.begin() + sizeof header);
  return frame;
}

void add_shots(const playback_options &o, played_messages &all) {
  const qec::shot_set shots =
      o.data.given() ? load_own_shots(o.data) : load_shots(find_data_folder(o.data_folder), o.config, o.noise);
  const shot_plan plan(shots, o.seed);
  all.name = shots.name;
  for (std::uint32_t k = 0; k < o.num_messages; ++k) {
    const std::uint32_t shot = plan.shot_of(k);
    all.frames.push_back(frame_of(kDecodeFunctionId, k, shots.detection_row(shot)));
    if (shots.has_predictions()) {
      const auto row = plan.expected_row(shot);
      all.expected.emplace_back(row.begin(), row.end());
    }
  }
}

void add_made_up_bytes(const playback_options &o, played_messages &all) {
  all.name = fmt::format("{} made-up bytes for {}", o.payload_size, o.function);
  std::vector<std::uint8_t> payload(o.payload_size);
  for (std::uint32_t k = 0; k < o.num_messages; ++k) {
    for (std::size_t i = 0; i < payload.size(); ++i)
      payload[i] = static_cast<std::uint8_t>(k + 3 * i);
    all.frames.push_back(frame_of(fnv1a_hash(o.function.c_str()), k, payload));
    for (std::uint8_t &byte : payload)
      ++byte;
    all.expected.push_back(payload);
  }
}

constexpr std::size_t kTimeAt = offsetof(cudaq_rpc_header_t, ptp_timestamp);

} // namespace

played_messages make_messages(const playback_options &o) {
  played_messages all;
  if (o.payload_size == 0)
    add_shots(o, all);
  else
    add_made_up_bytes(o, all);
  if (o.forward)
    all.expected = all.frames;
  return all;
}

std::string why_wrong(const playback_options &o, const played_messages &messages, std::uint32_t number,
                      const recorded_answer &answer) {
  if (o.forward) { // the FPGA has written its time into the message
    std::vector<std::uint8_t> got = answer.bytes;
    const std::vector<std::uint8_t> &sent = messages.expected[number];
    if (got.size() < sent.size())
      return fmt::format("the answer has {} bytes, the message {}", got.size(), sent.size());
    std::fill_n(got.begin() + kTimeAt, sizeof(std::uint64_t), std::uint8_t{0});
    return std::equal(sent.begin(), sent.end(), got.begin()) ? "" : "the answer is not the message";
  }
  cudaq_rpc_response_t header;
  std::memcpy(&header, answer.bytes.data(), sizeof header);
  if (header.magic != CUDAQ_RPC_MAGIC_RESPONSE)
    return fmt::format("the answer begins with {:#x}, not with the magic number of a response",
                       std::uint32_t{header.magic});
  if (header.status != 0)
    return fmt::format("status {}", std::int32_t{header.status});
  if (header.result_len > answer.bytes.size() - sizeof header)
    return fmt::format("a result of {} bytes does not fit into the answer", std::uint32_t{header.result_len});
  if (messages.expected.empty())
    return "";
  const auto result = std::span(answer.bytes).subspan(sizeof header, header.result_len);
  return std::ranges::equal(result, messages.expected[number]) ? "" : "the result is not the expected one";
}

} // namespace cudaq::realtime::tools

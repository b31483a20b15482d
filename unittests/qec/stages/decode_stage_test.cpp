// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/stages/decode_stage.h"
#include "unittests/qec/qec_test_support.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace cudaq::qec::realtime::test {
namespace {

/// A predecoder's output, written by hand.
struct handmade {
  handmade(predecoder_layout of, const std::vector<std::uint32_t> &events, const std::vector<std::uint64_t> &frame)
      : layout(of), words((of.bytes() + 7) / 8) {
    auto *base = reinterpret_cast<std::uint8_t *>(words.data());
    header.num_events = static_cast<std::uint32_t>(events.size());
    std::memcpy(base, &header, sizeof(header));
    std::ranges::copy(std::as_bytes(std::span(frame)), reinterpret_cast<std::byte *>(base + layout.frame_offset()));
    std::ranges::copy(std::as_bytes(std::span(events)), reinterpret_cast<std::byte *>(base + layout.events_offset()));
  }
  void set_header(predecoder_header changed) { std::memcpy(words.data(), &changed, sizeof(changed)); }

  predecoder_layout layout;
  predecoder_header header{};
  std::vector<std::uint64_t> words;
};

struct stage_answer {
  decode_status status;
  DecodeResponse head;
  std::vector<std::uint64_t> words;
};

stage_answer run(decode_stage &stage, const handmade &input) {
  std::vector<std::uint8_t> out(stage.response_bytes() + 8, 0xEE);
  std::size_t size = 0;
  stage_answer response{stage.run(input.words.data(), out.data(), stage.response_bytes(), size), {}, {}};
  std::memcpy(&response.head, out.data(), sizeof(response.head));
  EXPECT_EQ(size, response.status == decode_status::ok ? stage.response_bytes() : sizeof(DecodeResponse));
  EXPECT_EQ(out.back(), 0xEE) << "bytes after the result were written";
  if (response.status == decode_status::ok) {
    response.words.resize((stage.response_bytes() - sizeof(response.head)) / 8);
    std::memcpy(response.words.data(), out.data() + sizeof(response.head), response.words.size() * 8);
  }
  return response;
}

class DecodeStage : public testing::TestWithParam<std::string> {};

TEST_P(DecodeStage, AnswerIsFrameXorMatching) {
  decode_stage stage(make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D0 D1 L1\nerror(0.1) D1\n"));
  const predecoder_layout layout = stage.layout();
  for (std::uint64_t frame = 0; frame < 4; ++frame) {
    const stage_answer response = run(stage, handmade(layout, {0, 1}, {frame}));
    EXPECT_EQ(response.status, decode_status::ok);
    EXPECT_EQ(response.words, std::vector<std::uint64_t>{frame ^ 2});
    EXPECT_EQ(response.head.total_corrections, std::popcount(frame ^ 2));
    EXPECT_EQ(response.head.converged, 1);
    EXPECT_EQ(run(stage, handmade(layout, {}, {frame})).words, std::vector<std::uint64_t>{frame});
  }
}

// Known failure 33.
TEST_P(DecodeStage, ObservablesAtTheBoundariesOfWords) {
  for (const std::uint64_t count : {1u, 31u, 32u, 33u, 63u, 64u, 65u, 130u}) {
    if (GetParam() == "lookup" && count > 21)
      continue; // larger than its tables
    const std::uint64_t last = count - 1;
    decode_stage stage(make_or_throw(GetParam(), "error(0.1) D0 L" + std::to_string(last) + "\nerror(0.1) D0 D1\n"));
    std::vector<std::uint64_t> expected(stage.layout().frame_words());
    ASSERT_EQ(expected.size(), (count + 63) / 64);
    std::vector<std::uint64_t> frame = expected;
    frame[0] = 1;
    expected[last / 64] ^= std::uint64_t{1} << (last % 64);
    expected[0] ^= 1;
    EXPECT_EQ(run(stage, handmade(stage.layout(), {0}, frame)).words, expected) << count;
  }
}

// Known failure 17.
TEST_P(DecodeStage, ErrorsAreReportedAndTheNextShotDecodesRight) {
  // D2 and D3 are a component without a boundary.
  decode_stage stage(make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D2 D3 L0\n"));
  const predecoder_layout layout = stage.layout();
  const auto expect = [&](const handmade &input, decode_status status) {
    const stage_answer response = run(stage, input);
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.head.converged, 0);
    EXPECT_EQ(run(stage, handmade(layout, {0}, {0})).words, std::vector<std::uint64_t>{1});
  };
  expect(handmade(layout, {2}, {0}), decode_status::no_solution);
  expect(handmade(layout, {0, 4}, {0}), decode_status::bad_detector_index);
  expect(handmade(layout, {1, 1}, {0}), decode_status::duplicate_detector_index);
  handmade refused(layout, {}, {0});
  refused.set_header({static_cast<std::int32_t>(decode_status::bad_detector_index), 0, 0, 0});
  expect(refused, decode_status::bad_detector_index);
  handmade endless(layout, {}, {0});
  endless.set_header({0, UINT32_MAX, 0, 0});
  expect(endless, decode_status::duplicate_detector_index);
}

TEST_P(DecodeStage, AnswersInAFrameWithTheStatus) {
  decode_stage stage(make_or_throw(GetParam(), "error(0.1) D0 L0\nerror(0.1) D1 D2\n"));
  std::vector<std::uint8_t> slot(CUDAQ_RPC_HEADER_SIZE + stage.response_bytes());
  const auto answer = [&](const std::vector<std::uint32_t> &events, std::size_t room) {
    const handmade input(stage.layout(), events, {0});
    const std::size_t size = stage.answer(input.words.data(), slot.data() + CUDAQ_RPC_HEADER_SIZE, room);
    cudaq_rpc_response_t header;
    std::memcpy(&header, slot.data(), sizeof(header));
    EXPECT_EQ(header.magic, CUDAQ_RPC_MAGIC_RESPONSE);
    EXPECT_EQ(header.result_len, size);
    return std::pair(static_cast<decode_status>(header.status), size);
  };
  EXPECT_EQ(answer({0}, 16), std::pair(decode_status::ok, std::size_t{16}));
  EXPECT_EQ(answer({1}, 16), std::pair(decode_status::no_solution, std::size_t{8}));
  EXPECT_EQ(answer({0}, 15), std::pair(decode_status::buffer_too_small, std::size_t{0}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecodeStage, testing::ValuesIn(decoder_kinds()), kind_name);

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The exchanges of the files in golden, byte by byte.
#include "unittests/qec/server/confidence/server_gaps_support.h"
#include "unittests/qec/server/readout/server_readout_support.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/qec/stream/stream_readout_support.h"
#include "unittests/support/program_paths.h"

#include <fstream>
#include <sstream>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

constexpr std::size_t kHeaderBytes = 24;

bytes from_hex(const std::string &text) {
  bytes out;
  for (std::size_t k = 0; k + 1 < text.size(); k += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(k, 2), nullptr, 16)));
  return out;
}

std::uint32_t word_at(const bytes &frame, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, frame.data() + offset, sizeof word);
  return word;
}

struct golden_exchange {
  std::string name;
  bytes request, answer;
};

const std::string kFrames = CUDAQ_TEST_GOLDEN_FRAMES, kStreamFrames = CUDAQ_TEST_GOLDEN_STREAM_FRAMES,
                  kReadoutFrames = CUDAQ_TEST_GOLDEN_READOUT_FRAMES, kGapsFrames = CUDAQ_TEST_GOLDEN_GAPS_FRAMES;

std::vector<golden_exchange> golden_exchanges(const std::string &path) {
  std::ifstream file(path);
  std::vector<golden_exchange> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, request, answer;
    if (line.starts_with("#") || !(words >> name >> request >> answer))
      continue;
    all.push_back({name, from_hex(request), from_hex(answer)});
  }
  return all;
}

void expect_golden_answers(decoding_server &server, const std::string &path, std::size_t count) {
  const auto exchanges = golden_exchanges(path);
  ASSERT_EQ(exchanges.size(), count);
  for (const golden_exchange &e : exchanges) {
    const bytes payload(e.request.begin() + kHeaderBytes, e.request.end());
    ASSERT_EQ(word_at(e.request, 8), payload.size()) << e.name;
    const full_answer got = call(server, word_at(e.request, 4), payload);
    EXPECT_EQ(got.status, static_cast<std::int32_t>(word_at(e.answer, 4))) << e.name;
    EXPECT_EQ(got.result, bytes(e.answer.begin() + kHeaderBytes, e.answer.end())) << e.name;
  }
}

TEST(ServerWire, AnswersTheGoldenFramesByteByByte) {
  auto unit = unit_for(rotated_model(10));
  unit->identity()->name = "lookup";
  std::vector<decoder_setup> setups = one_setup({.id = 3}, std::move(unit));
  setups.push_back({{.id = 5}, unit_for(rotated_model(10), {}, 0, "lookup:depth=1")});
  decoding_server server(std::move(setups));
  expect_golden_answers(server, kFrames, 22);
}

TEST(ServerWire, AnswersTheGoldenFramesOfAStreamByteByByte) {
  decoding_server server(one_setup({.id = 4}, stream_unit_for(rotated_stream_model(3))));
  expect_golden_answers(server, kStreamFrames, 28);
}

TEST(ServerWire, AnswersTheGoldenFramesOfAReadoutByteByByte) {
  std::vector<decoder_setup> setups = one_setup({.id = 6}, readout_unit());
  setups.push_back({{.id = 3}, unit_for(rotated_model(10))});
  setups.push_back({{.id = 4}, stream_unit_for(rotated_stream_model(3))});
  const std::string chain = chain_dem();
  setups.push_back(
      {{.id = 7},
       stream_unit_with(chain, {.decoder = "bp-osd", .commit = 2, .buffer = 2, .readout = chain_table(chain)})});
  decoding_server server(std::move(setups));
  expect_golden_answers(server, kReadoutFrames, 56);
}

TEST(ServerWire, AnswersTheGoldenFramesWithGapsByteByByte) {
  decoding_server server(one_setup({.id = 8}, gaps_unit()));
  expect_golden_answers(server, kGapsFrames, 11);
}

TEST(ServerWire, IsOnItsPageWithFramesOfTheExchanges) {
  std::string frames;
  for (const std::string &path : {kFrames, kStreamFrames, kReadoutFrames, kGapsFrames}) {
    std::ifstream file(path);
    frames.append(std::istreambuf_iterator<char>(file), {});
  }
  std::ifstream page(CUDAQ_TEST_WIRE_PAGE);
  std::size_t found = 0;
  bool below = false;
  for (std::string line; std::getline(page, line);) {
    below = line.starts_with("#") ? line == "## Golden frames" : below;
    if (below && line.find(" 52515543") != std::string::npos) {
      EXPECT_NE(frames.find("\n" + line + "\n"), std::string::npos) << line;
      ++found;
    }
  }
  EXPECT_EQ(found, 20u);
}

// Bytes after the fields are ignored in the functions of the existing system, and refused in the others.
TEST(ServerWire, RefusesEveryLengthThatIsTooShortOrNotOfItsFunction) {
  const struct {
    std::uint32_t function;
    bytes payload;
    server_status when_longer;
  } requests[] = {{kEnqueueFunctionId, enqueue_payload(3, 0, "101010101"), server_status::ok},
                  {kGetCorrectionsFunctionId, get_payload(3, 10), server_status::ok},
                  {kResetFunctionId, reset_payload(3), server_status::ok},
                  {kBeginTailFunctionId, begin_tail_payload(3, 1), server_status::bad_request},
                  {kGetCommittedFunctionId, committed_payload(3, 1), server_status::bad_request}};
  for (const auto &[function, whole, when_longer] : requests) {
    ASSERT_EQ(read_request(function, whole).status, server_status::ok);
    bytes longer = whole;
    longer.push_back(0);
    EXPECT_EQ(read_request(function, longer).status, when_longer);
    EXPECT_EQ(read_request(function, longer).request.bits.size(), read_request(function, whole).request.bits.size());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto shorter = std::span(whole).first(size);
      EXPECT_EQ(read_request(function, shorter).status, server_status::bad_request) << size;
      EXPECT_EQ(read_request(function, shorter).knows_decoder, size >= 8) << size;
    }
  }
  EXPECT_EQ(read_request(0x12345678, reset_payload(3)).status, server_status::bad_request);
  EXPECT_FALSE(read_request(0x12345678, reset_payload(3)).knows_decoder);
}

TEST(ServerWire, RefusesFieldsOutOfRange) {
  bytes flag = get_payload(3, 10);
  flag[16] = 2;
  EXPECT_EQ(read_request(kGetCorrectionsFunctionId, flag).status, server_status::bad_request);
  for (std::size_t at = 16; at < 24; ++at) {
    bytes spoilt = committed_payload(3, 1, 0, true);
    ASSERT_EQ(read_request(kGetCommittedFunctionId, spoilt).status, server_status::ok);
    spoilt[at] = 2;
    EXPECT_EQ(read_request(kGetCommittedFunctionId, spoilt).status, server_status::bad_request) << at;
  }
  // A number of bits whose bytes wrap to the length of the payload.
  for (const std::uint64_t count : {~std::uint64_t{0}, ~std::uint64_t{0} - 7, kMaxEnqueuedBits + 1}) {
    bytes payload = enqueue_payload(3, 0, "");
    std::memcpy(payload.data() + 24, &count, sizeof count);
    EXPECT_EQ(read_request(kEnqueueFunctionId, payload).status, server_status::bad_request) << count;
  }
  EXPECT_EQ(read_request(kEnqueueFunctionId, enqueue_payload(3, 0, std::string(kMaxEnqueuedBits, '1'))).status,
            server_status::ok);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Golden byte vectors for every message of docs/message_protocol.md, written and read by both sides.
#include "cudaq/realtime/detail/ring/frame.h"
#include "unittests/support/host_fixture.h"

namespace cudaq::realtime::test {
namespace {

using bytes = std::vector<std::uint8_t>;
using detail::read_header;
using detail::request;
using detail::response;
using detail::write_header;

/// The first n bytes of a slot.
bytes slot_bytes(const std::uint8_t *slot, std::size_t n) { return {slot, slot + n}; }

/// The bytes that the slot helper writes for a request.
bytes written_request(std::uint32_t id, const bytes &payload, std::uint32_t request_id, std::uint64_t time) {
  host_ring ring({1, 128, false});
  CUDAQ_EXPECT_OK(cudaq_host_ringbuffer_write_rpc_request(
      &ring.ring, 0, id, payload.data(), static_cast<std::uint32_t>(payload.size()), request_id, time));
  return slot_bytes(ring.rx_slot(0), 24 + payload.size());
}

bytes payload_of(std::initializer_list<bytes> arguments) {
  bytes all;
  for (const bytes &a : arguments)
    all.insert(all.end(), a.begin(), a.end());
  return all;
}

const bytes kRequestHeader{0x52, 0x51, 0x55, 0x43, 0x78, 0x56, 0x34, 0x12, 0x08, 0x00, 0x00, 0x00,
                           0x0D, 0x0C, 0x0B, 0x0A, 0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01};
const bytes kResponseHeader{0x53, 0x51, 0x55, 0x43, 0xFE, 0xFF, 0xFF, 0xFF, 0x05, 0x00, 0x00, 0x00,
                            0x0D, 0x0C, 0x0B, 0x0A, 0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01};

// Known failure 39.
TEST(Frame, RequestHeaderHasTheBytesOfTheTable) {
  alignas(8) std::uint8_t slot[24];
  write_header(slot, request{CUDAQ_RPC_MAGIC_REQUEST, 0x12345678, 8, 0x0A0B0C0D, 0x0123456789ABCDEFull});
  EXPECT_EQ(slot_bytes(slot, 24), kRequestHeader);
  const request back = read_header<request>(slot);
  EXPECT_EQ(back.magic, RPC_MAGIC_REQUEST);
  EXPECT_EQ(back.function_id, 0x12345678u);
  EXPECT_EQ(back.arg_len, 8u);
  EXPECT_EQ(back.request_id, 0x0A0B0C0Du);
  EXPECT_EQ(back.ptp_timestamp, 0x0123456789ABCDEFull);
}

TEST(Frame, ResponseHeaderHasTheBytesOfTheTable) {
  alignas(8) std::uint8_t slot[24];
  write_header(slot, response{CUDAQ_RPC_MAGIC_RESPONSE, -2, 5, 0x0A0B0C0D, 0x0123456789ABCDEFull});
  EXPECT_EQ(slot_bytes(slot, 24), kResponseHeader);
  const response back = read_header<response>(slot);
  EXPECT_EQ(back.status, -2);
  EXPECT_EQ(back.result_len, 5u);
  EXPECT_EQ(back.ptp_timestamp, 0x0123456789ABCDEFull);
}

TEST(Frame, PublicPackedStructsReadTheSameBytes) {
  cudaq_rpc_header_t request_c;
  RPCHeader request_cxx;
  std::memcpy(&request_c, kRequestHeader.data(), 24);
  std::memcpy(&request_cxx, kRequestHeader.data(), 24);
  const std::uint32_t id = request_c.function_id, id_cxx = request_cxx.function_id;
  const std::uint64_t time = request_c.ptp_timestamp, time_cxx = request_cxx.ptp_timestamp;
  EXPECT_EQ(id, 0x12345678u);
  EXPECT_EQ(id_cxx, id);
  EXPECT_EQ(time, 0x0123456789ABCDEFull);
  EXPECT_EQ(time_cxx, time);
  cudaq_rpc_response_t response_c;
  RPCResponse response_cxx;
  std::memcpy(&response_c, kResponseHeader.data(), 24);
  std::memcpy(&response_cxx, kResponseHeader.data(), 24);
  const std::int32_t status = response_c.status, status_cxx = response_cxx.status;
  EXPECT_EQ(status, -2);
  EXPECT_EQ(status_cxx, -2);
}

TEST(Frame, ResponseEchoesIdAndTimestampOfItsRequest) {
  alignas(8) std::uint8_t slot[24];
  detail::write_response(slot, {CUDAQ_RPC_MAGIC_REQUEST, 1, 2, 0xFFFFFFFF, 0x8000000000000001ull},
                         CUDAQ_RPC_ERR_SCHEMA_MISMATCH, 0);
  EXPECT_EQ(slot_bytes(slot, 24), (bytes{0x53, 0x51, 0x55, 0x43, 0x0E, 0xFC, 0xFF, 0xFF, 0, 0, 0, 0,
                                         0xFF, 0xFF, 0xFF, 0xFF, 1,    0,    0,    0,    0, 0, 0, 0x80}));
}

// Example 1 of docs/message_protocol.md: an int32 count and a float threshold.
TEST(Frame, RequestOfIntAndFloatHasTheBytesOfTheExample) {
  const bytes payload = payload_of({{0x05, 0, 0, 0}, {0, 0, 0xC0, 0x3F}}); // 5, 1.5f
  EXPECT_EQ(written_request(0x12345678, payload, 0x0A0B0C0D, 0x0123456789ABCDEFull),
            payload_of({kRequestHeader, payload}));
  const float threshold = 1.5f;
  EXPECT_EQ(std::memcmp(&threshold, payload.data() + 4, 4), 0);
}

// Example 2: 128 packed bits and their number. The arguments begin at bytes 24 and 40.
TEST(Frame, RequestOfPackedBitsHasTheBytesOfTheExample) {
  cudaq_handler_schema_t schema{};
  schema.num_args = 2;
  schema.args[0] = make_type_desc(TYPE_BIT_PACKED, 128);
  schema.args[1] = make_type_desc(TYPE_UINT32, 1);
  EXPECT_EQ(schema.args[0].size_bytes, 16u);
  EXPECT_EQ(argument_offset(schema, 1), 16u);
  bytes payload(20);
  payload[0] = 0x01;  // bit 0
  payload[1] = 0x80;  // bit 15
  payload[15] = 0x40; // bit 126
  payload[16] = 128;
  const bytes frame = written_request(0xA1B2C3D4, payload, 1, 2);
  EXPECT_EQ(slot_bytes(frame.data(), 24),
            (bytes{0x52, 0x51, 0x55, 0x43, 0xD4, 0xC3, 0xB2, 0xA1, 20, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(slot_bytes(frame.data() + 24, 20), payload);
  EXPECT_EQ(frame[40], 128);
}

// The two response examples: a correction byte, and a correction byte with a float, without padding.
TEST(Frame, ResponsesHaveTheBytesOfTheExamples) {
  host_ring ring({2, 64, false});
  const bytes one{0x53, 0x51, 0x55, 0x43, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0x03};
  const bytes two{0x53, 0x51, 0x55, 0x43, 0, 0, 0, 0, 5, 0,    0, 0, 8,    0,   0,
                  0,    9,    0,    0,    0, 0, 0, 0, 0, 0x01, 0, 0, 0x40, 0x3F};
  std::memcpy(ring.ring.tx_data_host, one.data(), one.size());
  std::memcpy(ring.ring.tx_data_host + ring.ring.tx_stride_sz, two.data(), two.size());
  cudaq_rpc_response_t header;
  const void *result = nullptr;
  CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, 0, &header, &result));
  const std::uint32_t id = header.request_id;
  EXPECT_EQ(id, 7u);
  EXPECT_EQ(*static_cast<const std::uint8_t *>(result), 3);
  CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring.ring, 1, &header, &result));
  const std::uint32_t length = header.result_len;
  EXPECT_EQ(length, 5u);
  float confidence = 0;
  std::memcpy(&confidence, static_cast<const std::uint8_t *>(result) + 1, 4);
  EXPECT_EQ(confidence, 0.75f);
}

TEST(Frame, SentinelsHaveTheirValues) {
  EXPECT_EQ(CUDAQ_TX_FLAG_IN_FLIGHT, 0xEEEEEEEEEEEEEEEEull);
  EXPECT_EQ(CUDAQ_TX_FLAG_ERROR_TAG << CUDAQ_TX_FLAG_ERROR_SHIFT, 0xDEAD000000000000ull);
}

// Known failure 39.
TEST(Types, HaveTheIdsOfTheTableAndSizes) {
  const struct {
    std::uint8_t id, want;
    std::uint32_t element;
  } types[] = {{TYPE_UINT8, 0x10, 1},         {TYPE_INT32, 0x11, 4},       {TYPE_INT64, 0x12, 8},
               {TYPE_FLOAT32, 0x13, 4},       {TYPE_FLOAT64, 0x14, 8},     {TYPE_UINT32, 0x15, 4},
               {TYPE_ARRAY_UINT8, 0x20, 1},   {TYPE_ARRAY_INT32, 0x21, 4}, {TYPE_ARRAY_FLOAT32, 0x22, 4},
               {TYPE_ARRAY_FLOAT64, 0x23, 8}, {TYPE_BIT_PACKED, 0x30, 0}};
  for (const auto &t : types) {
    EXPECT_EQ(t.id, t.want);
    EXPECT_EQ(payload_element_bytes(t.id), t.element) << int{t.id};
  }
  for (std::uint32_t bits = 0; bits < 70; ++bits)
    EXPECT_EQ(make_type_desc(TYPE_BIT_PACKED, bits).size_bytes, (bits + 7) / 8) << bits;
  EXPECT_EQ(make_type_desc(TYPE_BIT_PACKED, 0xFFFFFFFFu).size_bytes, 0x20000000u);
}

// Known failure 39.
TEST(Fnv1a, HasTheVectorsOfItsReference) {
  EXPECT_EQ(fnv1a_hash(""), 0x811c9dc5u);
  EXPECT_EQ(fnv1a_hash("a"), 0xe40c292cu);
  EXPECT_EQ(fnv1a_hash("b"), 0xe70c2de5u);
  EXPECT_EQ(fnv1a_hash("foobar"), 0xbf9cf968u);
  EXPECT_EQ(fnv1a_hash("chongo was here!\n"), 0xd49930d5u);
  EXPECT_EQ(fnv1a_hash("\xff"), 0x7a0b824eu) << "bytes are unsigned";
  static_assert(fnv1a_hash("a") == 0xe40c292cu, "must be usable at compile time");
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The receivers of a sensor bridge against its published logic. docs/transport/hsb_cosim.md says what agrees.
#include "contrib/gpu_roce/sensor_session.h"
#include "unittests/contrib/hsb_cosim/hsb_cosim_fixture.h"
#include "unittests/transport/cpu_roce/cpu_roce_rig.h"
#include "unittests/transport/roce/roce_golden.h"

namespace cudaq::realtime::test {
namespace {

/// A request whose argument fills the window.
byte_vector request_of(std::size_t size, std::uint32_t id) {
  return request_frame(id, window_of(size - sizeof(cudaq_rpc_header_t), static_cast<std::uint8_t>(id)));
}

TEST_F(HsbCosim, RegistersAreWrittenAndReadByOurControlPackets) {
  EXPECT_TRUE(bridge.write(kVp + tools::vp::rkey, 0x89ABCDEF));
  EXPECT_EQ(bridge.read(kVp + tools::vp::rkey), 0x89ABCDEFu);
  EXPECT_EQ(bridge.read(tools::kVersionRegister).value_or(0) & 0xFFFF, 0x2606u);
}

TEST_F(HsbCosim, RoceTakesWindowsOfOnePacket) {
  program(128);
  for (std::uint32_t k = 0; k < 2 * kPages; ++k) {
    const byte_vector window = window_of(128, static_cast<std::uint8_t>(k));
    const std::vector<ethernet_frame> frames = writes_of(window);
    ASSERT_EQ(frames.size(), 1u);
    const roce_packet packet = packet_of(frames[0]);
    EXPECT_EQ(packet.opcode, uc_opcode::write_only_immediate);
    EXPECT_EQ(packet.psn, k);
    EXPECT_EQ(packet.address, k % kPages * kPageBytes);
    EXPECT_EQ(packet.immediate, k % kPages | k << 12);
    EXPECT_EQ(take(frames), window);
  }
  EXPECT_EQ(counters.messages.value(), 2 * kPages);
}

/// The packets of sensor_bridge.txt whose names begin so. The file is for tests without the logic:
/// roce_packet_test.cpp.
void expect_recorded(const std::string &name, const std::vector<ethernet_frame> &frames) {
  std::vector<golden_packet> recorded = golden_packets("sensor_bridge.txt");
  std::erase_if(recorded, [&](const golden_packet &p) { return !p.name.starts_with(name); });
  ASSERT_EQ(recorded.size(), frames.size()) << name;
  for (std::size_t k = 0; k < frames.size(); ++k) {
    const byte_vector bytes = frames[k].bytes();
    EXPECT_EQ(recorded[k].ip, byte_vector(bytes.begin() + tools::kEthernetBytes, bytes.end())) << recorded[k].name;
  }
}

TEST_F(HsbCosim, TheRecordedPacketsOfShortWindowsAreThoseOfTheLogic) {
  program(128);
  std::vector<ethernet_frame> frames = writes_of(window_of(128, 1));
  bridge.set_next_packet_number(k24Bits);
  for (const std::uint8_t k : {std::uint8_t{2}, std::uint8_t{3}}) {
    const std::vector<ethernet_frame> more = writes_of(window_of(128, k));
    frames.insert(frames.end(), more.begin(), more.end());
  }
  expect_recorded("short", frames);
}

TEST_F(HsbCosim, TheRecordedPacketsOfALongWindowAreThoseOfTheLogic) {
  program(384);
  std::vector<ethernet_frame> frames = writes_of(window_of(384, 4));
  ASSERT_EQ(frames.size(), 3u);
  frames.pop_back(); // the metadata has the time
  expect_recorded("long", frames);
}

TEST_F(HsbCosim, RoceTakesWindowsOfSeveralPacketsAndTheirMetadata) {
  program(384);
  for (std::uint32_t k = 0; k < kPages + 1; ++k) {
    const byte_vector window = window_of(384, static_cast<std::uint8_t>(k));
    const std::vector<ethernet_frame> frames = writes_of(window);
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_EQ(packet_of(frames[0]).opcode, uc_opcode::write_only);
    EXPECT_EQ(packet_of(frames[2]).psn, 3 * k + 2);
    byte_vector page = take(frames);
    ASSERT_EQ(page.size(), window.size() + kUnit) << "a block of metadata follows the window";
    page.resize(window.size());
    EXPECT_EQ(page, window);
  }
}

TEST_F(HsbCosim, RoceDropsTheFirstWindowAfterAChangeOfItsLength) {
  program(128);
  EXPECT_EQ(take(writes_of(window_of(128, 1))), window_of(128, 1));
  program(384);
  EXPECT_TRUE(take(writes_of(window_of(384, 2))).empty()) << "its first packets are missing";
  EXPECT_EQ(counters.messages.value(), 1u);
  EXPECT_EQ(take(writes_of(window_of(384, 3))).size(), 384u + kUnit);
}

TEST_F(HsbCosim, RoceFindsALossAcrossTheWrapOfTheNumbers) {
  program(128);
  bridge.set_next_packet_number(k24Bits - 1);
  EXPECT_EQ(take(writes_of(window_of(128, 1))), window_of(128, 1));
  const auto lost = writes_of(window_of(128, 2));
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(packet_of(lost[0]).psn, k24Bits);
  const auto next = writes_of(window_of(128, 3));
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(packet_of(next[0]).psn, 0u);
  EXPECT_EQ(take(next), window_of(128, 3));
  EXPECT_EQ(counters.packets_lost.value(), 1u);
}

TEST_F(HsbCosim, RoceDropsAWindowWithAHoleAcrossTheWrapOfTheNumbers) {
  program(384);
  bridge.set_next_packet_number(k24Bits - 1);
  std::vector<ethernet_frame> frames = writes_of(window_of(384, 1));
  ASSERT_EQ(frames.size(), 3u);
  frames.erase(frames.begin() + 1); // 0xFFFFFF
  EXPECT_TRUE(take(frames).empty());
  EXPECT_EQ(counters.messages_broken.value(), 1u);
  EXPECT_FALSE(take(writes_of(window_of(384, 2))).empty());
}

/// What an adapter does with a write: its bytes are in the memory, and an immediate is a completion.
struct adapter_memory {
  std::span<std::uint8_t> bytes;
  void write(const roce_packet &packet) const {
    ASSERT_LE(packet.address + packet.payload.size(), bytes.size());
    std::copy(packet.payload.begin(), packet.payload.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(packet.address));
  }
};

TEST_F(HsbCosim, CpuRoceAnswersWindowsThroughItsDoubleAndTheSensorGetsTheAnswers) {
  cpu_roce_options options = rig_options();
  options.sensor_bridge = true;
  options.num_slots = kPages;
  options.slot_size = kPageBytes;
  options.frame_size = 64;
  exchange_rig rig(options);
  pass_answers_on();
  program(384);
  for (std::uint32_t k = 0; k < kPages + 2; ++k) {
    const byte_vector request = request_of(384, 70 + k);
    for (const ethernet_frame &f : writes_of(request)) {
      const roce_packet packet = packet_of(f);
      adapter_memory{rig.adapter->memory.requests}.write(packet);
      if (!has_immediate(packet.opcode))
        continue;
      const std::lock_guard<std::mutex> lock(rig.adapter->mutex);
      auto &pair = *rig.adapter->pairs.back();
      --pair.receives;
      pair.completions.push_back({rdma_completion::kind::request, packet.immediate,
                                  static_cast<std::uint32_t>(packet.payload.size()), nullptr});
    }
    ASSERT_EQ(rig.exchange.poll(), std::optional(k % kPages));
    EXPECT_TRUE(std::equal(request.begin(), request.end(), rig.memory.rx_slot(k % kPages)));
    rig.answer(k % kPages, 70 + k, 8);
    const byte_vector answer = rig.adapter->take_frame();
    ASSERT_EQ(answer.size(), options.frame_size);
    bridge.give(frame_of(send_of(answer, k)));
    EXPECT_EQ(bridge.sent_to_sensor(), answer);
  }
}

struct scripted_adapter {
  static inline std::vector<queue_entry> completions;
  static inline std::vector<byte_vector> sent;
  const gpu_roce_context &context;
  scripted_adapter(const gpu_roce_context &c, const void *) : context(c) {}
  bool poll(std::uint64_t index, queue_entry &out) {
    if (index >= completions.size())
      return false;
    out = completions[index];
    return true;
  }
  std::uint32_t queue_shifted() { return kQp << 8; }
  void send(send_request &request, std::uint64_t) {
    const auto *const inline_bytes = reinterpret_cast<const std::uint8_t *>(&request.word[5]);
    sent.emplace_back(inline_bytes, inline_bytes + context.frame_size);
  }
  void repost(std::uint64_t) {}
  void finish_send() {}
};

TEST_F(HsbCosim, TheSessionOfGpuRoceAnswersWindowsAndTheSensorGetsTheAnswers) {
  constexpr std::uint32_t kBytes = 128, kAnswer = 32;
  using session = sensor_session<scripted_adapter>;
  byte_vector pages(2 * kPages * kBytes);
  gpu_roce_context context{};
  context.magic = kGpuRoceContextMagic;
  context.num_pages = kPages;
  context.page_size = kBytes;
  context.frame_size = kAnswer;
  context.pages = pages.data();
  volatile int shutdown = 0;
  alignas(16) std::uint8_t storage[256];
  session *const s = session::attach(storage, &context, &shutdown);
  ASSERT_NE(s, nullptr);
  pass_answers_on();
  program(kBytes, 256, kBytes);
  for (std::uint32_t k = 0; k < kPages + 2; ++k) {
    const byte_vector request = request_of(kBytes, 90 + k);
    for (const ethernet_frame &f : writes_of(request)) {
      const roce_packet packet = packet_of(f);
      adapter_memory{std::span(pages).first(kPages * kBytes)}.write(packet);
      if (has_immediate(packet.opcode))
        scripted_adapter::completions.push_back({session::kWriteWithImmediate, packet.immediate});
    }
    ASSERT_EQ(scripted_adapter::completions.size(), k + 1);
    void *got = nullptr, *response = nullptr;
    ASSERT_TRUE(s->poll(&got, &response));
    EXPECT_EQ(std::memcmp(got, request.data(), kBytes), 0);
    const byte_vector answer = window_of(kAnswer, static_cast<std::uint8_t>(k + 1));
    std::memcpy(response, answer.data(), kAnswer);
    s->publish(response);
    ASSERT_EQ(scripted_adapter::sent.size(), k + 1);
    bridge.give(frame_of(send_of(scripted_adapter::sent.back(), k)));
    EXPECT_EQ(bridge.sent_to_sensor(), answer);
  }
}

TEST_F(HsbCosim, TheSensorGetsAnswersOfRoceOfAnyNumberOfPackets) {
  pass_answers_on();
  const byte_vector answer = window_of(640, 5);
  const std::span<const std::uint8_t> all = answer;
  EXPECT_TRUE(bridge.give(frame_of(send_of(all.first(256), 0, uc_opcode::send_first))).empty());
  EXPECT_TRUE(bridge.give(frame_of(send_of(all.subspan(256, 256), 1, uc_opcode::send_middle))).empty());
  EXPECT_TRUE(bridge.give(frame_of(send_of(all.subspan(512), 2, uc_opcode::send_last))).empty());
  EXPECT_EQ(bridge.sent_to_sensor(), answer);
}

TEST_F(HsbCosim, AnAnswerWaitsInTheBridgeIfNoThresholdIsSet) {
  ASSERT_TRUE(bridge.write(kToSensor, 1));
  bridge.give(frame_of(send_of(window_of(64, 1), 0)));
  EXPECT_TRUE(bridge.sent_to_sensor().empty());
}

TEST_F(HsbCosim, TheSensorGetsAnAnswerWithAnyNumberAndAnyIcrc) {
  pass_answers_on();
  const byte_vector answer = window_of(64, 9);
  ethernet_frame f = frame_of(send_of(answer, 77));
  EXPECT_TRUE(bridge.give(f).empty());
  EXPECT_EQ(bridge.sent_to_sensor(), answer);
  f.payload.back() ^= 0xFF;
  EXPECT_TRUE(bridge.give(f).empty());
  EXPECT_EQ(bridge.sent_to_sensor(), answer);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What an adapter with a reliable connection (RC) gets from the published logic of the sensor bridge.
#include "unittests/contrib/hsb_cosim/hsb_cosim_fixture.h"

namespace cudaq::realtime::test {
namespace {

struct acknowledgement {
  std::uint32_t qp = 0, psn = 0, msn = 0;
  std::uint8_t syndrome = 0;
  icrc_finding icrc = icrc_finding::wrong;
  std::uint16_t source_port = 0, destination_port = 0;
};
constexpr std::uint8_t kAck = 0x1F, kSequenceNak = 0x60, kRnrNak = 0x20;

class HsbCosimReliable : public HsbCosim {
protected:
  static constexpr std::uint32_t kAdapterQp = 0x1A, kRnrTimer = 7;
  void SetUp() override {
    HsbCosim::SetUp();
    ASSERT_TRUE(bridge.write(kHostQp, kAdapterQp | kRnrTimer << 24));
    ASSERT_TRUE(bridge.write(kAcknowledge, 0x25)); // acknowledge, check numbers, RNR
    pass_answers_on();
  }
  /// A SEND of an adapter that wants an acknowledgement.
  std::optional<acknowledgement> send(std::uint32_t psn, std::uint16_t identification = 0, std::size_t size = 64) {
    const byte_vector bytes = window_of(size, static_cast<std::uint8_t>(psn));
    ethernet_frame f = frame_of(send_of(bytes, psn), identification);
    f.payload[0] &= 0x1F; // RC
    f.payload[8] |= 0x80;
    seal_with_icrc(path_of(f), f.payload);
    std::optional<acknowledgement> ack;
    for (const ethernet_frame &answer : bridge.give(f)) {
      const byte_vector &p = answer.payload;
      if (answer.destination_port != kRocePort || p.size() != kBthBytes + 4 + kIcrcBytes || p[0] != 0x11)
        continue;
      EXPECT_FALSE(ack) << "two acknowledgements";
      EXPECT_EQ(answer.identification, identification);
      ack = {big_endian_32(&p[4]) & k24Bits,  big_endian_32(&p[8]) & k24Bits,
             big_endian_32(&p[12]) & k24Bits, p[12],
             check_icrc(path_of(answer), p),  answer.source_port,
             answer.destination_port};
    }
    return ack;
  }
};

TEST_F(HsbCosimReliable, AnAcknowledgementComesToThePortOfRoceFromThePortOfTheAdapter) {
  const std::optional<acknowledgement> ack = send(0);
  ASSERT_TRUE(ack);
  EXPECT_EQ(ack->qp, kAdapterQp);
  EXPECT_EQ(ack->psn, 0u);
  EXPECT_EQ(ack->msn, 1u);
  EXPECT_EQ(ack->syndrome, kAck);
  EXPECT_EQ(ack->destination_port, kRocePort);
  EXPECT_EQ(ack->source_port, kHostPort) << "not the bridge's own";
  EXPECT_EQ(ack->icrc, icrc_finding::verified);
  for (std::uint32_t psn = 1; psn < 4; ++psn) {
    const std::optional<acknowledgement> next = send(psn);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->psn, psn);
    EXPECT_EQ(next->msn, psn + 1);
  }
}

TEST_F(HsbCosimReliable, AnAcknowledgementHasTheIdentificationOfThePacketAndItsIcrcIsThenPartlyChecked) {
  for (const std::uint16_t identification : {std::uint16_t{0x6D58}, std::uint16_t{0xFFFF}}) {
    const std::optional<acknowledgement> ack = send(identification == 0x6D58 ? 0 : 1, identification);
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->icrc, icrc_finding::partly);
  }
}

TEST_F(HsbCosimReliable, AGapIsReportedOnceAndTheSensorGetsTheRepeatedPackets) {
  ASSERT_TRUE(send(0));
  const std::optional<acknowledgement> nak = send(2);
  ASSERT_TRUE(nak);
  EXPECT_EQ(nak->syndrome, kSequenceNak);
  EXPECT_EQ(nak->psn, 1u) << "the number that is missing";
  EXPECT_FALSE(send(3)) << "reported already";
  EXPECT_EQ(send(1).value_or(acknowledgement{}).syndrome, kAck);
  EXPECT_EQ(send(2).value_or(acknowledgement{}).syndrome, kAck);
  byte_vector sent = window_of(64, 0);
  for (const std::uint8_t psn : {std::uint8_t{1}, std::uint8_t{2}}) {
    const byte_vector next = window_of(64, psn);
    sent.insert(sent.end(), next.begin(), next.end());
  }
  EXPECT_EQ(bridge.sent_to_sensor(), sent);
}

TEST_F(HsbCosimReliable, AGapAcrossTheWrapOfTheNumbersIsNotReported) {
  const std::optional<acknowledgement> first = send(k24Bits - 1); // says where the numbers begin
  ASSERT_TRUE(first);
  EXPECT_EQ(first->psn, 0u) << "the number of the first acknowledgement is always 0";
  EXPECT_FALSE(send(0)) << "0xFFFFFF is missing. The logic takes 0 for an old number";
  EXPECT_EQ(send(k24Bits).value_or(acknowledgement{}).syndrome, kAck) << "repeated after the time of the adapter";
  EXPECT_EQ(send(0).value_or(acknowledgement{}).syndrome, kAck);
}

TEST_F(HsbCosimReliable, ThePacketAfterTheWrapIsAcknowledged) {
  ASSERT_TRUE(send(k24Bits));
  EXPECT_EQ(send(0).value_or(acknowledgement{}).syndrome, kAck);
}

TEST_F(HsbCosimReliable, ARepeatedPacketIsNeitherAcknowledgedNorGivenToTheSensorAgain) {
  ASSERT_TRUE(send(0));
  ASSERT_TRUE(send(1));
  EXPECT_FALSE(bridge.sent_to_sensor().empty());
  EXPECT_FALSE(send(1)) << "a lost acknowledgement is not replaced";
  EXPECT_TRUE(bridge.sent_to_sensor().empty());
}

TEST_F(HsbCosimReliable, ASensorThatTakesNothingIsReportedOnceAsNotReady) {
  pass_answers_on(true);
  ASSERT_TRUE(send(0));
  bridge.sensor_takes(false);
  ASSERT_TRUE(send(1)) << "the buffer was empty";
  const std::optional<acknowledgement> nak = send(2);
  ASSERT_TRUE(nak);
  EXPECT_EQ(nak->syndrome, kRnrNak | kRnrTimer);
  EXPECT_EQ(nak->psn, 2u);
  EXPECT_FALSE(send(2)) << "the adapter repeats too early, and gets no second report";
  bridge.sensor_takes(true);
  (void)bridge.sent_to_sensor();
  EXPECT_EQ(send(2).value_or(acknowledgement{}).syndrome, kAck);
}

TEST_F(HsbCosimReliable, ASecondConnectionMustGoOnWithTheNumbersOfTheFirst) {
  for (std::uint32_t psn = 0; psn < 3; ++psn)
    ASSERT_TRUE(send(psn));
  EXPECT_FALSE(send(0)) << "an old number: nothing says that the connection is new";
  EXPECT_EQ(send(3).value_or(acknowledgement{}).syndrome, kAck);
}

} // namespace
} // namespace cudaq::realtime::test

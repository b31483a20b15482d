// SPDX-License-Identifier: Apache-2.0
// Decoders for C: shots with probabilities, soft values and flags.
#include "cudaq/qec/decoding/decoder_c.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/qec_test_support.h"

#include <cmath>

namespace cudaq::qec::realtime::test {
namespace {

constexpr const char *kModel = "error(0.1) D0\nerror(0.01) D0 L0\nerror(0.1) D1\n";

struct c_decoder {
  cudaq_qec_decoder_t *get = nullptr;
  std::string error = std::string(300, ' ');
  int32_t status;
  explicit c_decoder(const char *name, const cudaq_qec_decoder_options_t *options = nullptr,
                     std::string_view model = kModel) {
    status = cudaq_qec_decoder_create(name, model.data(), model.size(), options, &get, error.data(), error.size());
    error.resize(std::min(error.find('\0'), error.size()));
  }
  ~c_decoder() { cudaq_qec_decoder_destroy(get); }
  c_decoder(const c_decoder &) = delete;
  c_decoder &operator=(const c_decoder &) = delete;
};

cudaq_qec_shot_t shot_of(const std::vector<std::uint64_t> &events) {
  cudaq_qec_shot_t shot{};
  shot.struct_size = sizeof shot;
  shot.events = events.data();
  shot.num_events = events.size();
  return shot;
}

cudaq_qec_decoder_options_t with_readout(const std::string &text) {
  cudaq_qec_decoder_options_t options{};
  options.struct_size = sizeof options;
  options.readout = text.data();
  options.readout_size = text.size();
  return options;
}

const std::vector<std::uint64_t> kFirst{0};

TEST(DecoderC, DecodesShotsWithProbabilitiesOfTheirOwn) {
  for (const char *kind : {"bp-osd", "relay-bp", pymatching_available() ? "auto" : "bp-osd"}) {
    const c_decoder c(kind);
    ASSERT_EQ(c.status, CUDAQ_QEC_DECODER_OK) << c.error;
    cudaq_qec_decoder_info_t info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(cudaq_qec_decoder_get_info(c.get, &info), CUDAQ_QEC_DECODER_OK);
    EXPECT_EQ(info.num_detectors, 2U);
    EXPECT_EQ(info.num_observables, 1U);
    EXPECT_EQ(info.num_measurements + info.num_flags, 0U);
    EXPECT_EQ(info.takes_probabilities, 1U);
    const cudaq_qec_error_probability_t list[] = {{0, 0.01}, {1, 0.2}};
    cudaq_qec_shot_t shot = shot_of(kFirst);
    std::uint8_t out = 0xEE;
    ASSERT_EQ(cudaq_qec_decoder_decode(c.get, &shot, &out, 1), CUDAQ_QEC_DECODER_OK);
    EXPECT_EQ(out, 0);
    shot.probabilities = list;
    shot.num_probabilities = 2;
    ASSERT_EQ(cudaq_qec_decoder_decode(c.get, &shot, &out, 1), CUDAQ_QEC_DECODER_OK);
    EXPECT_EQ(out, 1);
    shot.num_probabilities = 0;
    ASSERT_EQ(cudaq_qec_decoder_decode(c.get, &shot, &out, 1), CUDAQ_QEC_DECODER_OK);
    EXPECT_EQ(out, 0);
  }
}

TEST(DecoderC, DecodesShotsWithSoftValuesAndFlags) {
  const std::string text = head_of_text("cudaq-realtime-readout 1", kModel) +
                           "measurements 1\nflags 1\ngaussian 0 10 0 2 0.5\nmisread 0 0.001 0 0\nflag 0 2 1 0.4\n";
  const cudaq_qec_decoder_options_t options = with_readout(text);
  const c_decoder c("bp-osd", &options);
  ASSERT_EQ(c.status, CUDAQ_QEC_DECODER_OK) << c.error;
  cudaq_qec_decoder_info_t info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(cudaq_qec_decoder_get_info(c.get, &info), CUDAQ_QEC_DECODER_OK);
  EXPECT_EQ(info.num_measurements, 1U);
  EXPECT_EQ(info.num_flags, 1U);
  // The observable is flipped if the measurement was read well: then error 1 is likelier than a misread one.
  const struct { std::uint8_t value, flag, answer; } cases[] = {{4, 0, 0}, {10, 0, 1}, {4, 2, 1}, {5, 2, 0}};
  for (const auto &[value, flag, answer] : cases) {
    cudaq_qec_shot_t shot = shot_of(kFirst);
    shot.soft = &value;
    shot.leakage = &flag;
    shot.soft_bytes = shot.leakage_bytes = 1;
    for (const std::uint32_t kind : {CUDAQ_QEC_SOFT_U8, CUDAQ_QEC_SOFT_U4}) {
      shot.soft_kind = kind;
      std::uint8_t out = 0xEE;
      ASSERT_EQ(cudaq_qec_decoder_decode(c.get, &shot, &out, 1), CUDAQ_QEC_DECODER_OK)
          << cudaq_qec_decoder_fault(c.get);
      EXPECT_EQ(out, answer) << int{value} << " " << int{flag};
    }
  }
}

TEST(DecoderC, SaysWhatIsWrongInAShot) {
  const std::string text = head_of_text("cudaq-realtime-readout 1", kModel) + "flags 1\nflag 0 2 1 0.4\n";
  const cudaq_qec_decoder_options_t options = with_readout(text);
  const c_decoder with("bp-osd", &options), without("lookup");
  ASSERT_EQ(with.status, CUDAQ_QEC_DECODER_OK) << with.error;
  ASSERT_EQ(without.status, CUDAQ_QEC_DECODER_OK) << without.error;
  const cudaq_qec_error_probability_t twice[] = {{0, 0.1}, {0, 0.1}};
  const std::uint8_t good = 0, bad = 3;
  const std::vector<std::uint64_t> unknown{2};
  cudaq_qec_shot_t list = shot_of(kFirst), flag = list, missing = list, event = shot_of(unknown), old = list;
  list.probabilities = twice;
  list.num_probabilities = 2;
  cudaq_qec_shot_t nothing = list;
  nothing.probabilities = nullptr;
  flag.leakage = &bad;
  list.leakage = event.leakage = &good;
  flag.leakage_bytes = list.leakage_bytes = event.leakage_bytes = 1;
  old.struct_size = 8;
  cudaq_qec_shot_t of_lookup = shot_of(kFirst);
  of_lookup.probabilities = twice;
  of_lookup.num_probabilities = 1;
  const struct {
    cudaq_qec_decoder_t *decoder;
    const cudaq_qec_shot_t *shot;
    int32_t status;
    std::string why;
  } cases[] = {{with.get, &list, CUDAQ_QEC_DECODER_BAD_PROBABILITY, "is listed twice"},
               {with.get, &flag, CUDAQ_QEC_DECODER_BAD_PROBABILITY, "flag 0 has the value 3"},
               {with.get, &missing, CUDAQ_QEC_DECODER_BUFFER_TOO_SMALL, "flags: 0 bytes, accepted: 1"},
               {with.get, &event, CUDAQ_QEC_DECODER_BAD_DETECTOR_INDEX, ""},
               {with.get, &old, CUDAQ_QEC_DECODER_NOT_SUPPORTED, "struct_size"},
               {with.get, &nothing, CUDAQ_QEC_DECODER_NOT_SUPPORTED, "NULL"},
               {with.get, nullptr, CUDAQ_QEC_DECODER_NOT_SUPPORTED, "NULL"},
               {without.get, &flag, CUDAQ_QEC_DECODER_NOT_SUPPORTED, "the decoder has no table of a readout"},
               {without.get, &of_lookup, CUDAQ_QEC_DECODER_NOT_SUPPORTED, "lookup does not take probabilities"}};
  for (const auto &[decoder, shot, status, why] : cases) {
    std::uint8_t out = 0xEE;
    EXPECT_EQ(cudaq_qec_decoder_decode(decoder, shot, &out, 1), status) << why;
    EXPECT_NE(std::string(cudaq_qec_decoder_fault(decoder)).find(why), std::string::npos)
        << cudaq_qec_decoder_fault(decoder);
    cudaq_qec_shot_t right = shot_of(kFirst);
    right.leakage = &good;
    right.leakage_bytes = decoder == with.get ? 1 : 0;
    EXPECT_EQ(cudaq_qec_decoder_decode(decoder, &right, &out, 1), CUDAQ_QEC_DECODER_OK) << why;
    EXPECT_STREQ(cudaq_qec_decoder_fault(decoder), "");
  }
  std::uint8_t out = 0; // what was wrong is that of this shot, not of the one before it
  EXPECT_EQ(cudaq_qec_decoder_decode(with.get, &list, &out, 1), CUDAQ_QEC_DECODER_BAD_PROBABILITY);
  EXPECT_EQ(cudaq_qec_decoder_decode(with.get, &event, &out, 1), CUDAQ_QEC_DECODER_BAD_DETECTOR_INDEX);
  EXPECT_STREQ(cudaq_qec_decoder_fault(with.get), "");
  std::uint64_t events[] = {0}; // the answer may take their place
  cudaq_qec_shot_t shot = shot_of({});
  shot.events = events;
  shot.num_events = 1;
  EXPECT_EQ(cudaq_qec_decoder_decode(without.get, &shot, reinterpret_cast<std::uint8_t *>(events), 1),
            CUDAQ_QEC_DECODER_OK);
  EXPECT_EQ(cudaq_qec_decoder_decode(without.get, &shot, nullptr, 0), CUDAQ_QEC_DECODER_BUFFER_TOO_SMALL);
}

TEST(DecoderC, GivesTheGapOfEachObservable) {
  const c_decoder c("bp-osd:confidence=1"), without("bp-osd");
  cudaq_qec_decoder_info_t info{}, other = {};
  info.struct_size = other.struct_size = sizeof info;
  ASSERT_EQ(cudaq_qec_decoder_get_info(c.get, &info), CUDAQ_QEC_DECODER_OK) << c.error;
  ASSERT_EQ(cudaq_qec_decoder_get_info(without.get, &other), CUDAQ_QEC_DECODER_OK);
  EXPECT_EQ(info.gives_gaps, 1U);
  EXPECT_EQ(other.gives_gaps, 0U);
  cudaq_qec_shot_t shot = shot_of(kFirst), old = shot;
  old.struct_size = 8;
  std::uint8_t out = 0xEE;
  double gaps[] = {-1, -1};
  ASSERT_EQ(cudaq_qec_decoder_decode_gaps(c.get, &shot, &out, 1, gaps, 2), CUDAQ_QEC_DECODER_OK);
  EXPECT_EQ(out, 0);
  EXPECT_NEAR(gaps[0], std::log(0.99 / 0.01) - std::log(0.9 / 0.1), 1e-9); // the second error in place of the first
  EXPECT_EQ(gaps[1], -1) << "there is one observable";
  EXPECT_EQ(cudaq_qec_decoder_decode_gaps(without.get, &shot, &out, 1, gaps, 1), CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  EXPECT_NE(std::string(cudaq_qec_decoder_fault(without.get)).find("confidence=1"), std::string::npos);
  EXPECT_TRUE(std::isnan(gaps[0]));
  out = 0xEE;
  EXPECT_EQ(cudaq_qec_decoder_decode_gaps(c.get, &shot, &out, 1, gaps, 0), CUDAQ_QEC_DECODER_BUFFER_TOO_SMALL);
  EXPECT_EQ(out, 0xEE);
  EXPECT_EQ(cudaq_qec_decoder_decode_gaps(c.get, &shot, &out, 1, nullptr, 1), CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  EXPECT_STREQ(cudaq_qec_decoder_fault(c.get), "gaps is NULL");
  gaps[0] = -1;
  EXPECT_EQ(cudaq_qec_decoder_decode_gaps(c.get, &old, &out, 1, gaps, 1), CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  EXPECT_TRUE(std::isnan(gaps[0]));
  EXPECT_EQ(cudaq_qec_decoder_decode_gaps(nullptr, &shot, &out, 1, gaps, 1), CUDAQ_QEC_DECODER_NOT_SUPPORTED);
}

TEST(DecoderC, LeavesNoGapOfAnEarlierShotInRoomThatIsTooSmall) {
  const c_decoder c("bp-osd:confidence=1", nullptr, "error(0.1) D0 L0\nerror(0.01) D0 L1\n");
  const cudaq_qec_shot_t shot = shot_of(kFirst);
  std::uint8_t out = 0xEE;
  double gaps[] = {-1, -1};
  EXPECT_EQ(cudaq_qec_decoder_decode_gaps(c.get, &shot, &out, 1, gaps, 1), CUDAQ_QEC_DECODER_BUFFER_TOO_SMALL);
  EXPECT_EQ(out, 0xEE);
  EXPECT_TRUE(std::isnan(gaps[0]));
  EXPECT_EQ(gaps[1], -1);
}

TEST(DecoderC, RefusesATableWithAProbabilityThatTheDecoderDoesNotTake) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const std::string model = "error(0.1) D0\nerror(0.01) D0 D1 L0\nerror(0.1) D1\n";
  for (const std::string probability : {"0.4", "0.6"}) {
    const std::string text =
        head_of_text("cudaq-realtime-readout 1", model) + "flags 1\nflag 0 2 1 " + probability + "\n";
    const cudaq_qec_decoder_options_t options = with_readout(text);
    EXPECT_EQ(c_decoder("pymatching", &options, model).status, CUDAQ_QEC_DECODER_OK) << probability;
    const std::string refusal = c_decoder("pymatching-correlated", &options, model).error;
    const bool is_refused = refusal.starts_with("readout: a probability of the shot is not from 0 to 1");
    EXPECT_EQ(is_refused, probability == "0.6") << refusal;
  }
}

TEST(DecoderC, IsNotMadeOfWrongArguments) {
  char error[200] = "";
  int nothing = 0;
  auto *made = reinterpret_cast<cudaq_qec_decoder_t *>(&nothing);
  EXPECT_EQ(cudaq_qec_decoder_create(nullptr, kModel, 0, nullptr, &made, error, sizeof error),
            CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  EXPECT_STREQ(error, "name, dem_text or decoder is NULL");
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(cudaq_qec_decoder_create("bp-osd", nullptr, 0, nullptr, &made, nullptr, 0),
            CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  EXPECT_EQ(cudaq_qec_decoder_create("bp-osd", kModel, 0, nullptr, nullptr, nullptr, 0),
            CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  const std::string other = head_of_text("cudaq-realtime-readout 1", "another") + "flags 1\n";
  const std::string right = head_of_text("cudaq-realtime-readout 1", kModel) + "flags 1\n";
  const std::string heralds = heralds_text(kModel, "detectors 2\n");
  cudaq_qec_decoder_options_t of_other = with_readout(other), of_lookup = with_readout(right), old = of_lookup,
                              of_heralds{};
  old.struct_size = 8;
  of_heralds.struct_size = sizeof of_heralds;
  of_heralds.heralds = heralds.data();
  of_heralds.heralds_size = heralds.size();
  const struct {
    const char *name;
    const cudaq_qec_decoder_options_t *options;
    std::string why;
  } cases[] = {{"no-such", nullptr, "unknown decoder"},
               {"bp-osd", &of_other, "readout: line 2: the file is for the model"},
               {"lookup", &of_lookup, "readout: lookup does not take probabilities"},
               {"lookup", &of_heralds, "heralds: lookup does not take probabilities"},
               {"bp-osd", &old, "struct_size is not that of this version"}};
  for (const auto &[name, options, why] : cases) {
    const c_decoder c(name, options);
    EXPECT_EQ(c.status, CUDAQ_QEC_DECODER_NOT_SUPPORTED) << why;
    EXPECT_EQ(c.get, nullptr);
    EXPECT_NE(c.error.find(why), std::string::npos) << c.error;
  }
  cudaq_qec_decoder_info_t info{};
  EXPECT_EQ(cudaq_qec_decoder_get_info(nullptr, &info), CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  const c_decoder c("bp-osd");
  EXPECT_EQ(cudaq_qec_decoder_get_info(c.get, &info), CUDAQ_QEC_DECODER_NOT_SUPPORTED); // no struct_size
  EXPECT_EQ(cudaq_qec_decoder_decode(nullptr, nullptr, nullptr, 0), CUDAQ_QEC_DECODER_NOT_SUPPORTED);
  EXPECT_STREQ(cudaq_qec_decoder_fault(nullptr), "");
  EXPECT_STREQ(cudaq_qec_decoder_status_text(0), decode_status_text(decode_status::ok));
  cudaq_qec_decoder_destroy(nullptr);
}

} // namespace
} // namespace cudaq::qec::realtime::test

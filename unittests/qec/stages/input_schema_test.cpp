// SPDX-License-Identifier: Apache-2.0
// The input schemas of a request: compared with Stim's own shots, and sent through the pipeline.
#include "lib/qec/stages/decoding_worker.h"
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/qec/qec_test_support.h"

#include <random>

namespace cudaq::qec::realtime::test {
namespace {

using bytes = std::vector<std::uint8_t>;
constexpr input_schema kSchemas[] = {input_schema::packed_events, input_schema::uint8_events,
                                     input_schema::int32_measurements};

bytes from_hex(std::string_view text) {
  bytes out;
  for (std::size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  return out;
}
bytes random_events(std::uint32_t detectors, std::mt19937 &random) {
  bytes packed((detectors + 7) / 8);
  for (std::uint32_t k = 0; k < detectors; ++k)
    packed[k / 8] = static_cast<std::uint8_t>(packed[k / 8] | (random() % 8 == 0) << (k % 8));
  return packed;
}
bytes payload_of(const input_mapping &mapping, std::span<const std::uint8_t> events) {
  bytes payload(mapping.payload_bytes());
  EXPECT_EQ(mapping.write(events, payload), decode_status::ok);
  return payload;
}

// Measurements of stim.Circuit.generated("surface_code:rotated_memory_..."), all noise 0.03, and the events that Stim's
// own converter (compile_m2d_converter) computes from them. Stim 1.15.0, seed 7.
TEST(InputMapping, MeasurementsBecomeTheEventsThatStimSays) {
  struct shot {
    decoding_config config;
    const char *record, *events;
  };
  for (const shot &s : {shot{{"g", 3, 3, 'Z', 0}, "244da17d00", "90c62e"},
                        {{"g", 3, 3, 'Z', 0}, "65c141ee01", "440a08"},
                        {{"g", 3, 3, 'Z', 0}, "2121215b01", "000000"},
                        {{"g", 3, 2, 'X', 0}, "09607801", "9186"},
                        {{"g", 3, 2, 'X', 0}, "12b6f301", "408a"},
                        {{"g", 3, 2, 'X', 0}, "4a4a1b00", "0000"},
                        {{"g", 5, 4, 'X', 0}, "08a00cacb928aa3808691c1839151d01", "1c449a41621008324c02818c"},
                        {{"g", 5, 4, 'X', 0}, "c21241c956915c66af281abe5f95f400", "60b040045d09e343c7170141"},
                        {{"g", 5, 4, 'X', 0}, "400879402a7c401f7cc01f7c9c7cdc01", "200120520050030008002000"}}) {
    const input_mapping mapping(input_schema::int32_measurements, s.config);
    ASSERT_EQ(mapping.record_bytes(), from_hex(s.record).size());
    bytes payload(mapping.payload_bytes()), events(s.config.packed_input_bytes());
    ASSERT_EQ(mapping.write_measurements(from_hex(s.record), payload), decode_status::ok);
    ASSERT_EQ(mapping.read(payload, events), decode_status::ok);
    EXPECT_EQ(events, from_hex(s.events)) << s.record;
  }
}

TEST(InputMapping, EveryConfigurationTakesEventsThereAndBack) {
  std::mt19937 random(1);
  for (const decoding_config &config : kDecodingConfigs)
    for (const input_schema schema : kSchemas) {
      const input_mapping mapping(schema, config);
      const bytes events = random_events(config.num_detectors(), random);
      bytes back(config.packed_input_bytes(), 0xff);
      ASSERT_EQ(mapping.read(payload_of(mapping, events), back), decode_status::ok);
      EXPECT_EQ(back, events) << config.name << " " << name_of(schema);
      EXPECT_LE(CUDAQ_RPC_HEADER_SIZE + mapping.payload_bytes(), config.slot_size);
    }
}

TEST(InputMapping, SizesAndValuesThatAreNoneAreRefused) {
  const decoding_config config{"d3", 3, 3, 'Z', 512}; // 24 detectors
  std::mt19937 random(2);
  for (const input_schema schema : kSchemas) {
    const input_mapping mapping(schema, config);
    bytes payload = payload_of(mapping, random_events(24, random)), events(3);
    payload.push_back(0);
    EXPECT_EQ(mapping.read(payload, events), decode_status::bad_detector_index) << name_of(schema);
    payload.resize(payload.size() - 2);
    EXPECT_EQ(mapping.read(payload, events), decode_status::buffer_too_small) << name_of(schema);
    EXPECT_EQ(mapping.read({}, events), decode_status::buffer_too_small) << name_of(schema);
    payload.push_back(0);
    EXPECT_EQ(mapping.read(payload, std::span(events).first(2)), decode_status::buffer_too_small);
    EXPECT_EQ(mapping.write(std::span(events).first(2), payload), decode_status::buffer_too_small);
    EXPECT_EQ(mapping.write(events, std::span(payload).first(payload.size() - 1)), decode_status::buffer_too_small);
    if (schema != input_schema::int32_measurements) {
      EXPECT_EQ(mapping.write_measurements(payload, payload), decode_status::bad_detector_index);
    }
  }
  const auto refuses = [&](input_schema schema, std::size_t at, std::uint8_t value) {
    const input_mapping mapping(schema, config);
    bytes payload(mapping.payload_bytes()), events(3);
    payload[at] = value;
    return mapping.read(payload, events) == decode_status::bad_detector_index;
  };
  EXPECT_TRUE(refuses(input_schema::uint8_events, 23, 2));
  EXPECT_FALSE(refuses(input_schema::uint8_events, 23, 1));
  EXPECT_TRUE(refuses(input_schema::int32_measurements, 3, 0xff)) << "a negative number";
  EXPECT_TRUE(refuses(input_schema::int32_measurements, 4 * (3 * 8 + 1), 1)) << "a parity before the last round";
  EXPECT_FALSE(refuses(input_schema::int32_measurements, 4 * (3 * 8 + 2), 1)) << "a parity in the last round";
}

TEST(InputMapping, AnotherNumberOfDetectorsIsNoWorker) {
  const shot_set set = load_committed("surface_z_d3_p0.003");
  const input_mapping mapping(input_schema::uint8_events, {"d5", 5, 5, 'Z', 0});
  EXPECT_THROW(decoding_worker(std::move(*make_predecoder("local", set.dem_text)),
                               make_decoder("auto", set.dem_text).instance, mapping),
               std::invalid_argument);
  EXPECT_THROW(decoding_worker(std::move(*make_predecoder("passthrough", set.dem_text)),
                               make_decoder("auto", "error(0.1) D24 L0").instance),
               std::invalid_argument);
}

class PipelineInput : public testing::TestWithParam<input_schema> {};

// A request is a whole shot, so no request leaves a state that affects the next one. In any order of requests, each
// payload that is not a valid shot gets its error status, and each shot gets the same answer as when it is sent alone.
// Known failure 23.
TEST_P(PipelineInput, WhateverWasSentBeforeAShotHasItsOwnAnswer) {
  const shot_set set = load_committed("surface_z_d3_p0.005");
  const input_mapping mapping(GetParam(), {"d3", 3, 3, 'Z', 1024});
  const auto make = [&](std::optional<input_mapping> input) {
    return std::make_unique<decoding_worker>(std::move(*make_predecoder("local", set.dem_text)),
                                             make_decoder("auto", set.dem_text).instance, std::move(input));
  };
  constexpr std::uint64_t kRequests = 1000;
  std::mt19937 random(static_cast<unsigned>(GetParam()) + 10);
  std::vector<bytes> sent(kRequests);
  std::vector<std::uint64_t> shot_of(kRequests);
  std::vector<decode_status> expected(kRequests, decode_status::ok);
  for (std::uint64_t k = 0; k < kRequests; ++k) {
    shot_of[k] = random() % set.shots;
    sent[k] = payload_of(mapping, set.detection_row(shot_of[k]));
    const unsigned kind = random() % 4;
    if (kind == 1) { // followed by a part of the next shot
      sent[k].resize(sent[k].size() + 1 + random() % 16, 1);
      expected[k] = decode_status::bad_detector_index;
    } else if (kind == 2) { // its end is missing
      sent[k].resize(random() % sent[k].size());
      expected[k] = decode_status::buffer_too_small;
    } else if (kind == 3 && GetParam() != input_schema::packed_events) {
      sent[k][0] = static_cast<std::uint8_t>(2 + random() % 254);
      expected[k] = decode_status::bad_detector_index;
    }
  }

  pipeline_stage_config config;
  config.num_workers = 2;
  config.num_slots = 8;
  config.slot_size = 1024;
  config.memory = ring_memory::host;
  std::vector<std::unique_ptr<decoding_worker>> workers;
  std::vector<std::int32_t> status(kRequests, -1);
  std::vector<bytes> answers(kRequests);
  realtime_pipeline p(config);
  p.set_gpu_stage([&](int) { return workers.emplace_back(make(mapping))->resources(kFunction); });
  p.set_cpu_stage(&decoding_worker::match);
  p.set_completion_handler([&](const completion &c) {
    const auto *at = static_cast<const std::uint8_t *>(c.response);
    status[c.request_id] = c.status;
    answers[c.request_id].assign(at, at + c.response_size);
  });
  p.start();
  ring_buffer_injector injector = p.create_injector();
  for (std::uint64_t k = 0; k < kRequests; ++k)
    injector.submit(kFunction, sent[k].data(), sent[k].size(), k);
  p.stop();
  EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;

  const auto alone = make(std::nullopt);
  for (std::uint64_t k = 0; k < kRequests; ++k) {
    ASSERT_EQ(status[k], static_cast<std::int32_t>(expected[k])) << k;
    if (expected[k] != decode_status::ok)
      continue;
    bytes answer(alone->stage().response_bytes());
    decode_status offline{};
    answer.resize(alone->decode(set.detection_row(shot_of[k]), answer, offline));
    ASSERT_EQ(answers[k], answer) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Schemas, PipelineInput, testing::ValuesIn(kSchemas),
                         [](const auto &i) { return std::string(name_of(i.param)); });

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/stream_c.h"
#include "unittests/qec/stream/stream_readout_support.h"
#include "unittests/support/program_paths.h"

namespace cudaq::qec::realtime::test {
namespace {

struct c_stream {
  cudaq_qec_stream_t *get = nullptr;
  std::string error = std::string(200, ' ');
  int32_t status;
  explicit c_stream(const std::string &text, const cudaq_qec_stream_options_t *options) {
    status = cudaq_qec_stream_create(text.data(), text.size(), options, &get, error.data(), error.size());
    error.resize(std::min(error.find('\0'), error.size()));
  }
  ~c_stream() { cudaq_qec_stream_destroy(get); }
  c_stream(const c_stream &) = delete;
  c_stream &operator=(const c_stream &) = delete;
};

cudaq_qec_stream_options_t small_options() {
  cudaq_qec_stream_options_t options{};
  options.struct_size = sizeof options;
  options.decoder = "bp-osd";
  options.commit = options.buffer = 3;
  return options;
}

TEST(StreamC, GivesTheFramesOfTheCxxForm) {
  const std::string text = repetition_dem(3, 0.03, 1, 40);
  const auto whole = *parse_dem(text);
  const auto stream = stream_or_throw(text, {.decoder = "bp-osd", .commit = 3, .buffer = 3});
  cudaq_qec_stream_workers_t *pool = nullptr;
  ASSERT_EQ(cudaq_qec_stream_workers_create(2, &pool, nullptr, 0), CUDAQ_QEC_STREAM_OK);
  cudaq_qec_stream_options_t options = small_options();
  options.pool = pool;
  options.mode = CUDAQ_QEC_STREAM_SEQUENTIAL;
  const c_stream c(text, &options);
  ASSERT_EQ(c.status, CUDAQ_QEC_STREAM_OK) << c.error;
  cudaq_qec_stream_workers_destroy(pool); // the stream keeps the threads
  cudaq_qec_stream_info_t info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(cudaq_qec_stream_get_info(c.get, &info), CUDAQ_QEC_STREAM_OK);
  EXPECT_EQ(info.body_detectors, 2U);
  EXPECT_EQ(info.num_observables, 1U);
  EXPECT_NE(std::string(info.description).find("commit 3"), std::string::npos);
  component_sampler errors(whole, 3);
  for (int k = 0; k < 30; ++k) {
    const auto shot = errors.next();
    stream->reset();
    ASSERT_EQ(run(*stream, shot.events, whole.num_detectors), decode_status::ok);
    ASSERT_EQ(cudaq_qec_stream_reset(c.get), CUDAQ_QEC_STREAM_OK);
    const std::uint64_t before = whole.num_detectors - info.tail_detectors;
    ASSERT_EQ(cudaq_qec_stream_push(c.get, shot.events.data(), shot.events.size(), before), CUDAQ_QEC_STREAM_OK);
    const auto tail = part_of(shot.events, before, info.tail_detectors);
    ASSERT_EQ(cudaq_qec_stream_finish(c.get, tail.data(), tail.size(), info.tail_detectors), CUDAQ_QEC_STREAM_OK);
    cudaq_qec_stream_progress_t progress{};
    progress.struct_size = sizeof progress;
    std::uint8_t frame = 0xEE;
    ASSERT_EQ(cudaq_qec_stream_wait(c.get, 42, UINT64_MAX, &frame, 1, &progress), CUDAQ_QEC_STREAM_OK);
    EXPECT_EQ(progress.is_final, 1U);
    EXPECT_EQ(progress.committed_rounds, 42U);
    EXPECT_EQ(progress.pushed_rounds, 42U);
    ASSERT_EQ(frame, stream->observables()[0]);
    frame = 0xEE;
    ASSERT_EQ(cudaq_qec_stream_poll(c.get, &frame, 1, &progress), CUDAQ_QEC_STREAM_OK);
    ASSERT_EQ(frame, stream->observables()[0]);
  }
  cudaq_qec_stream_statistics_t counts{};
  counts.struct_size = sizeof counts;
  ASSERT_EQ(cudaq_qec_stream_get_statistics(c.get, &counts), CUDAQ_QEC_STREAM_OK);
  EXPECT_EQ(counts.windows, stream->windows());
  EXPECT_EQ(cudaq_qec_stream_push(c.get, nullptr, 0, 2), CUDAQ_QEC_STREAM_MISALIGNED) << "the experiment is over";
  EXPECT_STREQ(cudaq_qec_stream_status_text(CUDAQ_QEC_STREAM_BUSY), decode_status_text(decode_status::busy));
}

TEST(StreamC, RefusesBadArgumentsWithoutACrash) {
  const std::string text = repetition_dem(3, 0.03, 1, 40);
  const c_stream none("error(0.1) D0", nullptr);
  EXPECT_EQ(none.status, CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  EXPECT_NE(none.error.find("no loop"), std::string::npos);
  cudaq_qec_stream_options_t options = small_options();
  options.mode = 3;
  EXPECT_NE(c_stream(text, &options).error.find("mode"), std::string::npos);
  options = small_options();
  options.struct_size -= 8;
  EXPECT_NE(c_stream(text, &options).error.find("struct_size"), std::string::npos);
  char error[8];
  EXPECT_EQ(cudaq_qec_stream_create(nullptr, 0, nullptr, nullptr, error, sizeof error), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  EXPECT_EQ(std::string(error), "dem_tex") << "cut, with a zero byte at the end";
  EXPECT_EQ(cudaq_qec_stream_workers_create(0, nullptr, error, sizeof error), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  cudaq_qec_stream_workers_t *pool = nullptr;
  EXPECT_EQ(cudaq_qec_stream_workers_create(0, &pool, error, sizeof error), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  EXPECT_EQ(cudaq_qec_stream_push(nullptr, nullptr, 0, 0), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  EXPECT_EQ(cudaq_qec_stream_finish(nullptr, nullptr, 0, 0), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  EXPECT_EQ(cudaq_qec_stream_reset(nullptr), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  cudaq_qec_stream_destroy(nullptr);
  cudaq_qec_stream_workers_destroy(nullptr);
  options = small_options();
  const c_stream good(text, &options);
  ASSERT_EQ(good.status, CUDAQ_QEC_STREAM_OK) << good.error;
  cudaq_qec_stream_progress_t progress{};
  EXPECT_EQ(cudaq_qec_stream_poll(good.get, nullptr, 0, &progress), CUDAQ_QEC_STREAM_NOT_SUPPORTED) << "no struct_size";
  EXPECT_EQ(cudaq_qec_stream_poll(good.get, nullptr, 1, &progress), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  progress.struct_size = sizeof progress;
  EXPECT_EQ(cudaq_qec_stream_poll(good.get, nullptr, 0, &progress), CUDAQ_QEC_STREAM_OK);
  EXPECT_EQ(cudaq_qec_stream_push(good.get, reinterpret_cast<const std::uint8_t *>(error), 1, 9),
            CUDAQ_QEC_STREAM_BUFFER_TOO_SMALL);
}

TEST(StreamC, TakesValuesWithTheRounds) {
  const stream_readout_case of(repetition_dem(3, 0.03, 1, 20));
  cudaq_qec_stream_options_t options = small_options();
  options.readout = of.table.data();
  options.readout_size = of.table.size();
  const c_stream c(of.dem, &options);
  ASSERT_EQ(c.status, CUDAQ_QEC_STREAM_OK) << c.error;
  const auto stream = stream_or_throw(of.dem, {.decoder = "bp-osd", .commit = 3, .buffer = 3, .readout = of.table});
  cudaq_qec_stream_values_info_t info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(cudaq_qec_stream_get_values_info(c.get, &info), CUDAQ_QEC_STREAM_OK);
  EXPECT_EQ(info.body_soft, of.soft.body);
  EXPECT_EQ(info.other_soft, of.soft.head + of.soft.tail);
  EXPECT_EQ(info.body_leakage, 1U);
  EXPECT_EQ(info.other_leakage, 2U);
  EXPECT_EQ(info.kinds, 1U) << "f32: the means are 1 and -1";
  std::mt19937 random(5);
  for (int k = 0; k < 10; ++k) {
    const read_shot shot = sample(of, random);
    stream->reset();
    ASSERT_EQ(shot_sender(*stream, of, shot).run(), decode_status::ok) << stream->fault();
    ASSERT_EQ(cudaq_qec_stream_reset(c.get), CUDAQ_QEC_STREAM_OK);
    const std::vector<std::uint8_t> soft = shot.soft_bytes(), leakage = shot.leakage_bytes();
    cudaq_qec_stream_values_t values{};
    values.struct_size = sizeof values;
    values.soft = soft.data();
    values.soft_bytes = soft.size();
    values.num_soft = shot.soft.size() - of.soft.tail;
    values.leakage = leakage.data();
    values.leakage_bytes = leakage.size();
    values.num_leakage = shot.flags.size() - of.flags.tail;
    const std::uint64_t tail = of.model.tail_detectors(), before = of.whole.num_detectors - tail;
    EXPECT_EQ(cudaq_qec_stream_push(c.get, shot.bits.events.data(), shot.bits.events.size(), before),
              CUDAQ_QEC_STREAM_BUFFER_TOO_SMALL);
    EXPECT_NE(std::string(cudaq_qec_stream_fault(c.get)).find("0 soft values have come"), std::string::npos);
    ASSERT_EQ(cudaq_qec_stream_push_values(c.get, shot.bits.events.data(), shot.bits.events.size(), before, &values),
              CUDAQ_QEC_STREAM_OK);
    const read_shot last{
        {}, {shot.soft.end() - static_cast<std::ptrdiff_t>(of.soft.tail), shot.soft.end()}, {shot.flags.back()}};
    const std::vector<std::uint8_t> last_soft = last.soft_bytes(), last_flags = last.leakage_bytes();
    const std::vector<std::uint8_t> bits = part_of(shot.bits.events, before, tail);
    values = {sizeof values, last_soft.data(), last_soft.size(), last.soft.size(), last_flags.data(), 1, 1, 0, 0};
    ASSERT_EQ(cudaq_qec_stream_finish_values(c.get, bits.data(), bits.size(), tail, &values), CUDAQ_QEC_STREAM_OK);
    cudaq_qec_stream_progress_t progress{};
    progress.struct_size = sizeof progress;
    std::uint8_t frame = 0xEE;
    ASSERT_EQ(cudaq_qec_stream_poll(c.get, &frame, 1, &progress), CUDAQ_QEC_STREAM_OK);
    ASSERT_EQ(frame, stream->observables()[0]);
  }
  cudaq_qec_stream_values_t bad{};
  EXPECT_EQ(cudaq_qec_stream_push_values(c.get, nullptr, 0, 0, &bad), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  bad.struct_size = sizeof bad;
  bad.soft_bytes = 1;
  EXPECT_EQ(cudaq_qec_stream_push_values(c.get, nullptr, 0, 0, &bad), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  EXPECT_EQ(cudaq_qec_stream_finish_values(nullptr, nullptr, 0, 0, nullptr), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
  EXPECT_EQ(cudaq_qec_stream_get_values_info(nullptr, &info), CUDAQ_QEC_STREAM_NOT_SUPPORTED);
}

TEST(StreamC, SaysWhichPromiseAPluginBrokeInWhichWindow) {
  const std::string text = repetition_dem(3, 0.03, 1, 40), name = CUDAQ_TEST_BREAKING_PLUGIN + std::string(":break=");
  for (const std::uint32_t workers : {0U, 2U}) {
    cudaq_qec_stream_options_t options = small_options();
    const std::string bits_name = name + "status";
    options.decoder = bits_name.c_str();
    options.workers = workers;
    options.mode = CUDAQ_QEC_STREAM_SEQUENTIAL;
    const c_stream c(text, &options);
    ASSERT_EQ(c.status, CUDAQ_QEC_STREAM_OK) << c.error;
    EXPECT_STREQ(cudaq_qec_stream_fault(c.get), "");
    const std::vector<std::uint8_t> bits(2);
    EXPECT_LE(cudaq_qec_stream_push(c.get, bits.data(), bits.size(), 2 * 8), CUDAQ_QEC_STREAM_INTERNAL_ERROR);
    cudaq_qec_stream_progress_t progress{};
    progress.struct_size = sizeof progress;
    EXPECT_EQ(cudaq_qec_stream_wait(c.get, 3, UINT64_MAX, nullptr, 0, &progress), CUDAQ_QEC_STREAM_INTERNAL_ERROR);
    EXPECT_STREQ(cudaq_qec_stream_fault(c.get), "window 0: plug-in breaking: decode returned 17, accepted: 0, 3, 5, 7");
    EXPECT_EQ(cudaq_qec_stream_reset(c.get), CUDAQ_QEC_STREAM_OK);
    EXPECT_STREQ(cudaq_qec_stream_fault(c.get), "");
  }
  EXPECT_STREQ(cudaq_qec_stream_fault(nullptr), "");
}

} // namespace
} // namespace cudaq::qec::realtime::test

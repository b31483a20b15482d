// SPDX-License-Identifier: Apache-2.0
// What a server records of its requests, and the comparison of two answers.
#include "lib/qec/server/record/answer_check.h"
#include "unittests/qec/server/record/recorder_support.h"
#include "unittests/qec/server/server_threads_support.h"

#include <cstring>
#include <sys/stat.h>

namespace cudaq::qec::realtime::test {
namespace {

TEST(ServerRecord, HasEachRequestWithItsAnswerAndItsTimes) {
  const test_folder folder;
  const std::string path = folder / "rec";
  decoding_server server(one_setup({.id = 1, .queue_length = 8}, unit_for(rotated_model(4))));
  ASSERT_TRUE(server.record(path, {64, 128}).ok());
  ASSERT_TRUE(server.start(requester::receiver(), CUDAQ_WAIT_BLOCK).ok());
  requester client(server);
  EXPECT_EQ(client.call(kOneShotFunctionId, packed("1000")).status, 0);
  EXPECT_EQ(client.call(kEnqueueFunctionId, enqueue_payload(1, 0, "1100")).status, 0);
  EXPECT_EQ(client.call(kGetCorrectionsFunctionId, get_payload(1, 4)), answered(server_status::ok, "1100"));
  EXPECT_EQ(client.call(kResetFunctionId, reset_payload(2)).status, 1) << "no decoder has this id";
  EXPECT_EQ(client.call(kDescribeFunctionId, {}).status, 0);
  EXPECT_TRUE(server.stop(soon()));
  const auto reader = read_recording(path);
  ASSERT_EQ(reader->size(), 5U);
  EXPECT_EQ(reader->boot_id(), server.boot_id());
  const std::int32_t statuses[] = {0, 0, 0, 1, 0};
  const std::size_t lengths[] = {1, 0, 1, 0, kModelFactsBytes};
  for (std::size_t k = 0; k < 5; ++k) {
    const auto one = reader->read(k);
    ASSERT_TRUE(one && one->is_answered) << k;
    EXPECT_EQ(one->status, statuses[k]);
    EXPECT_EQ(one->result.size(), lengths[k]);
    EXPECT_TRUE(one->is_whole());
  }
  EXPECT_EQ(reader->read(1)->payload, enqueue_payload(1, 0, "1100"));
  EXPECT_EQ(reader->read(2)->result, packed("1100"));
  const auto stages = reader->read(0)->stage_ns;
  EXPECT_GT(stages[4], 0U);
  EXPECT_GE(stages[4] + 1000, stages[3]) << "the counters of two cores may differ by some ticks";
}

TEST(ServerRecord, HasTheRequestThatADecoderDidNotEnd) {
  const test_folder folder;
  const std::string path = folder / "rec";
  cudaq::realtime::detail::shared_word<std::uint32_t> open;
  decoding_server server(
      one_setup({.id = 1, .queue_length = 1},
                std::make_unique<decoding_unit>(std::make_unique<gated_decoder>(open), sparse_rows{}, 1)));
  ASSERT_TRUE(server.record(path, {8, 128}).ok());
  ASSERT_TRUE(server.start(requester::receiver(), CUDAQ_WAIT_BLOCK).ok());
  requester client(server);
  const std::uint32_t number = client.send(kOneShotFunctionId, packed("1"));
  ASSERT_TRUE(rt::wait_until(soon(), [&] { return server.decoders()[0]->begun() == 1; }));
  EXPECT_EQ(client.call(kOneShotFunctionId, packed("1")).status, -5) << "the queue is full";
  const auto reader = read_recording(path);
  ASSERT_EQ(reader->size(), 2U);
  EXPECT_FALSE(reader->read(0)->is_answered);
  EXPECT_EQ(reader->read(0)->payload, packed("1"));
  EXPECT_EQ(reader->read(1)->status, -5);
  open.store(1);
  EXPECT_EQ(client.answer(number).status, 0);
  EXPECT_TRUE(server.stop(soon()));
  EXPECT_TRUE(read_recording(path)->read(0)->is_answered);
}

TEST(ServerRecord, OfADecoderWithoutAQueueHasTheTimeOfItsDecode) {
  const test_folder folder;
  const std::string path = folder / "rec";
  decoding_server server(one_setup({.id = 1}, unit_for(rotated_model(4))));
  ASSERT_TRUE(server.record(path, {8, 128}).ok());
  EXPECT_EQ(call(server, kOneShotFunctionId, packed("1000"), 5, 77).status, 0);
  const auto one = read_recording(path)->read(0);
  ASSERT_TRUE(one && one->is_answered);
  EXPECT_EQ(one->request_id, 5U);
  EXPECT_EQ(one->timestamp, 77U);
  EXPECT_EQ(one->stage_ns[2], 0U);
  EXPECT_GT(one->stage_ns[3], 0U);
  EXPECT_EQ(one->stage_ns[3], one->stage_ns[4]);
}

TEST(AnswerCheck, ComparesBitsButNotWhatDependsOnTime) {
  using enum answer_verdict;
  const auto compare = [](std::uint32_t function, std::int32_t s1, const bytes &r1, std::int32_t s2, const bytes &r2) {
    return compare_answers(function, {s1, r1}, {s2, r2});
  };
  EXPECT_EQ(compare(kOneShotFunctionId, 0, {1}, 0, {1}), equal);
  EXPECT_EQ(compare(kOneShotFunctionId, 0, {1}, 0, {3}), other_bits);
  EXPECT_EQ(compare(kOneShotFunctionId, 0, {1}, 0, {1, 0}), other_length);
  EXPECT_EQ(compare(kOneShotFunctionId, 0, {1}, -3, {}), other_status);
  EXPECT_EQ(compare(kOneShotFunctionId, 0, {1}, -5, {}), depends_on_time) << "BUSY";
  EXPECT_EQ(compare(kEnqueueFunctionId, 5, {}, 0, {}), depends_on_time);
  EXPECT_EQ(compare(kEnqueueFunctionId, 8, {}, 0, {}), depends_on_time) << "DEADLINE";
  EXPECT_EQ(compare(kEnqueueFunctionId, CUDAQ_RPC_ERR_BUSY, {}, 0, {}), depends_on_time);
  EXPECT_EQ(compare(kNameFunctionId, 0, {'a'}, 0, {'b'}), depends_on_time);
  const auto committed = [](std::uint64_t rounds, std::uint64_t pushed, std::uint8_t bits) {
    bytes result;
    append_number(result, rounds);
    append_number(result, pushed);
    result.push_back(bits);
    return result;
  };
  EXPECT_EQ(compare(kGetCommittedFunctionId, 0, committed(5, 9, 1), 0, committed(5, 12, 1)), equal);
  EXPECT_EQ(compare(kGetCommittedFunctionId, 0, committed(5, 9, 1), 0, committed(5, 9, 0)), other_bits);
  EXPECT_EQ(compare(kGetCommittedFunctionId, 0, committed(5, 9, 1), 0, committed(10, 12, 0)), depends_on_time);
  EXPECT_EQ(compare(kGetCommittedFunctionId, 0, {}, 0, {}), equal) << "answers that are too short are no fault of it";
  bytes facts(kDescriptionBytes, 1), restarted = facts;
  restarted[kModelFactsBytes] = 2;
  EXPECT_EQ(compare(kDescribeFunctionId, 0, facts, 0, restarted), equal) << "another boot_id";
  restarted[0] = 2;
  EXPECT_EQ(compare(kDescribeFunctionId, 0, facts, 0, restarted), other_bits);
}

// A file that was damaged, cut, or made by another program.

std::string good_file(const test_folder &folder) {
  const std::string path = folder / "good";
  recording r(path, 2);
  EXPECT_TRUE(r.answer(r.request({1, 2}), 0, {3}));
  EXPECT_TRUE(r.answer(r.request({4, 5}), 0, {6}));
  return cudaq::realtime::test::read_file(path);
}

std::string refusal(const std::string &path, const std::string &bytes) {
  write_bytes(path, bytes);
  return record_reader::open(path).text();
}

template <class T>
std::string with(std::string bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

TEST(RecordReader, SaysWhyAFileIsNoRecording) {
  const test_folder folder;
  const std::string good = good_file(folder), path = folder / "bad";
  EXPECT_EQ(refusal(path, good), "");
  const auto has = [&](const std::string &bytes, const char *why) {
    const std::string text = refusal(path, bytes);
    EXPECT_NE(text.find(why), std::string::npos) << text;
  };
  has("", "no recording");
  has(good.substr(0, 63), "no recording");
  has(with(good, 0, 'X'), "no recording");
  has(good.substr(0, good.size() - 1), "fewer bytes");
  has(with(good, offsetof(record_file_head, byte_order), 0x04030201U), "byte order");
  has(with(good, offsetof(record_file_head, version), 2U), "another version");
  for (const std::uint64_t places : {std::uint64_t{0}, std::uint64_t{3}, UINT64_MAX, std::uint64_t{1} << 63})
    has(with(good, offsetof(record_file_head, places), places), "contradicts");
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{65}, std::uint64_t{64}, std::uint64_t{1} << 60})
    has(with(good, offsetof(record_file_head, place_bytes), bytes), "contradicts");
  has(with(good, offsetof(record_file_head, head_bytes), std::uint64_t{64}), "contradicts");
  EXPECT_NE(record_reader::open(folder / "missing").text().find("cannot be opened"), std::string::npos);
  EXPECT_NE(record_reader::open(folder.path()).text().find("no file"), std::string::npos);
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(record_reader::open(pipe).text().find("no file"), std::string::npos) << "it does not wait for a writer";
}

TEST(RecordReader, LeavesOutWhatIsTornOrDamaged) {
  const test_folder folder;
  const std::string good = good_file(folder), path = folder / "bad";
  const std::size_t first = kRecordHeadBytes;
  const auto look = [&](const std::string &bytes) {
    write_bytes(path, bytes);
    return read_recording(path);
  };
  const auto torn = look(with(good, first, mark_of(0, record_state::requesting)));
  EXPECT_EQ(torn->torn(), 1U);
  EXPECT_EQ(torn->size(), 1U);
  const auto elsewhere = look(with(good, first, mark_of(1, record_state::answered)));
  EXPECT_EQ(elsewhere->damaged(), 1U) << "request 1 is not in place 0";
  EXPECT_EQ(look(with(good, first, std::uint64_t{3}))->damaged(), 1U);
  for (const std::size_t field : {offsetof(record_head, kept_payload), offsetof(record_head, kept_result)})
    for (const std::uint32_t value : {3U, 70'000U, UINT32_MAX}) {
      const auto reader = look(with(good, first + field, value));
      EXPECT_FALSE(reader->read(0)) << field << " " << value;
      EXPECT_EQ(reader->damaged(), 1U);
      EXPECT_TRUE(reader->read(1)) << "the other one is good";
    }
}

TEST(RecordReader, ReadsNoAnswerThatIsNotComplete) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 1);
  const std::uint64_t mark = r.request({1});
  ASSERT_TRUE(r.recorder->add_answer(mark, 0, byte_list{2}));
  const auto one = read_recording(path)->read(0);
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->is_answered);
  EXPECT_TRUE(one->result.empty());
}

TEST(RecordReader, NoticesThatTheWriterHasTakenAPlace) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 1);
  EXPECT_TRUE(r.answer(r.request({1}), 0, {}));
  const auto reader = read_recording(path);
  EXPECT_TRUE(reader->read(0));
  EXPECT_TRUE(r.answer(r.request({2}), 0, {}));
  EXPECT_FALSE(reader->read(0));
  EXPECT_EQ(reader->damaged(), 0U);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// What a server records of its requests, and the comparison of two answers.
#include "lib/qec/server/record/answer_check.h"
#include "unittests/qec/server/record/recorder_support.h"
#include "unittests/qec/server/server_threads_support.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

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

} // namespace

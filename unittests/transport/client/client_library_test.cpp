// SPDX-License-Identifier: Apache-2.0
// The client library against servers over UDP that lose, refuse, restart and lie.
#include "unittests/support/processes/started_program.h"
#include "unittests/transport/client/played_server.h"
#include "unittests/transport/datagram/unused_udp_port.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::test {
namespace {

const bytes kBody = {1, 2, 3};

TEST(DecodingClient, RepeatsEqualBytesUntilTheAnswerComes) {
  played_server server([](const played_request &, std::size_t number) {
    return number < 2 ? std::nullopt : std::optional(played_answer{0, {5, 6}});
  });
  udp_client client(server.port());
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(client.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, kBody, answer), CUDAQ_OK) << cudaq_qec_client_error();
  EXPECT_EQ(answer.event, static_cast<std::uint32_t>(CUDAQ_QEC_CLIENT_ANSWERED));
  EXPECT_EQ(bytes(answer.result, answer.result + answer.result_bytes), (bytes{5, 6}));
  EXPECT_GE(answer.attempts, 3u);
  const auto sent = server.requests();
  EXPECT_EQ(sent[1].frame, sent[0].frame);
  EXPECT_EQ(sent[2].frame, sent[0].frame);
  EXPECT_NE(sent[0].header.ptp_timestamp, 0u);
  EXPECT_NE(sent[0].header.request_id, 0u);
  cudaq_qec_client_counts_t counts;
  ASSERT_EQ(cudaq_qec_client_get_counts(client.get(), &counts), CUDAQ_OK);
  EXPECT_EQ(counts.repeated, answer.attempts - 1);
  EXPECT_EQ(counts.slot_size, 256u);
}

// Else a replay window of the server takes its requests for those of a client that had its port before.
TEST(DecodingClient, HasLaterIdsThanAClientThatWasOpenedBefore) {
  played_server server([](const played_request &, std::size_t) { return played_answer{}; });
  cudaq_qec_client_answer_t answer;
  for (int opened = 0; opened < 2; ++opened) {
    udp_client client(server.port(), CUDAQ_QEC_CLIENT_NEVER);
    for (int k = 0; k < 3; ++k)
      ASSERT_EQ(client.call(CUDAQ_QEC_RESET_DECODER, kBody, answer), CUDAQ_OK) << cudaq_qec_client_error();
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // units of 10 us
  }
  const auto sent = server.requests();
  ASSERT_EQ(sent.size(), 6u);
  for (std::size_t k = 1; k < sent.size(); ++k)
    EXPECT_GT(static_cast<std::int32_t>(sent[k].header.request_id - sent[k - 1].header.request_id), 0) << k;
  EXPECT_GT(sent[3].header.request_id - sent[2].header.request_id, 50u) << "not the next one by chance";
}

TEST(DecodingClient, KeepsTheTwoKindsOfBusyApart) {
  played_server server([](const played_request &, std::size_t number) {
    const std::int32_t statuses[] = {CUDAQ_RPC_ERR_BUSY, CUDAQ_QEC_SERVER_BUSY, CUDAQ_QEC_SERVER_OK};
    return played_answer{statuses[std::min<std::size_t>(number, 2)], {}};
  });
  udp_client client(server.port(), 10'000 * kMs);
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(client.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, kBody, answer), CUDAQ_OK);
  EXPECT_EQ(answer.status, 0);
  const auto sent = server.requests();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[1].frame, sent[0].frame);
  EXPECT_NE(sent[2].header.request_id, sent[0].header.request_id);
  EXPECT_GT(sent[2].header.ptp_timestamp, sent[0].header.ptp_timestamp);
  EXPECT_TRUE(std::equal(kBody.begin(), kBody.end(), sent[2].frame.begin() + sizeof(cudaq_rpc_header_t)));
}

TEST(DecodingClient, AnswersWithBusyIfNothingWasExecutedInTheTime) {
  for (const std::int32_t status : std::initializer_list<std::int32_t>{CUDAQ_RPC_ERR_BUSY, CUDAQ_QEC_SERVER_BUSY}) {
    played_server server([&](const played_request &, std::size_t) { return played_answer{status, {}}; });
    udp_client client(server.port(), CUDAQ_QEC_CLIENT_NEVER);
    cudaq_qec_client_answer_t answer;
    cudaq_status_t called = CUDAQ_ERR_TIMEOUT;
    for (int call = 0; called == CUDAQ_ERR_TIMEOUT && call < 50;
         ++call) // a busy core: the last frame may have no answer
      called = client.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, kBody, answer, 100 * kMs);
    ASSERT_EQ(called, CUDAQ_OK) << cudaq_qec_client_error();
    EXPECT_EQ(answer.status, status);
    EXPECT_GT(answer.attempts, 1u);
  }
}

TEST(DecodingClient, SaysThatItDoesNotKnowWhetherARequestWithoutAnAnswerWasExecuted) {
  played_server server([](const played_request &, std::size_t) { return std::nullopt; });
  udp_client client(server.port());
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(client.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, kBody, answer, 60 * kMs), CUDAQ_ERR_TIMEOUT);
  const cudaq_qec_client_request_t request = udp_client::request(CUDAQ_QEC_RESET_DECODER, kBody, 60 * kMs);
  std::uint32_t id = 0;
  ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &id), CUDAQ_OK);
  EXPECT_EQ(cudaq_qec_client_wait(client.get(), 0, &answer), CUDAQ_ERR_TIMEOUT);
  ASSERT_EQ(cudaq_qec_client_wait(client.get(), kLong, &answer), CUDAQ_OK);
  EXPECT_EQ(answer.event, static_cast<std::uint32_t>(CUDAQ_QEC_CLIENT_NO_ANSWER));
  EXPECT_EQ(answer.request, id);
}

TEST(DecodingClient, CollectsTheAnswersOfSeveralOpenRequestsInAnyOrder) {
  std::atomic<bool> answers{false};
  played_server server([&](const played_request &r, std::size_t) -> std::optional<played_answer> {
    if (!answers.load())
      return std::nullopt;
    return played_answer{0, {r.frame[sizeof(cudaq_rpc_header_t)]}};
  });
  udp_client client(server.port(), 20 * kMs, 4);
  std::vector<std::uint32_t> ids(4);
  for (std::uint8_t k = 0; k < 4; ++k) {
    const bytes body = {k};
    const auto request = udp_client::request(CUDAQ_QEC_GET_CORRECTIONS, body);
    ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &ids[k]), CUDAQ_OK);
  }
  const auto fifth = udp_client::request(CUDAQ_QEC_GET_CORRECTIONS, kBody);
  std::uint32_t id = 0;
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(cudaq_qec_client_send(client.get(), &fifth, &id), CUDAQ_ERR_STATE);
  EXPECT_EQ(cudaq_qec_client_call(client.get(), &fifth, &answer), CUDAQ_ERR_STATE);
  ASSERT_EQ(cudaq_qec_client_give_up(client.get(), ids[2]), CUDAQ_OK);
  EXPECT_EQ(cudaq_qec_client_give_up(client.get(), ids[2]), CUDAQ_ERR_STATE);
  answers.store(true);
  for (int k = 0; k < 3; ++k) {
    ASSERT_EQ(cudaq_qec_client_wait(client.get(), kLong, &answer), CUDAQ_OK) << cudaq_qec_client_error();
    const auto found = std::ranges::find(ids, answer.request);
    ASSERT_NE(found, ids.end());
    ASSERT_EQ(answer.result_bytes, 1u);
    EXPECT_EQ(answer.result[0], found - ids.begin());
    EXPECT_NE(answer.result[0], 2) << "it was given up";
    *found = 0;
  }
  EXPECT_EQ(cudaq_qec_client_wait(client.get(), kLong, &answer), CUDAQ_ERR_STATE) << "none is open";
}

bytes description(std::uint64_t boot_id, std::size_t length) {
  const cudaq_qec_decoder_description_t d{4, 4, 4, 77, boot_id, 0};
  const auto *const first = reinterpret_cast<const std::uint8_t *>(&d);
  return {first, first + length};
}

TEST(DecodingClient, KnowsByTheBootIdThatTheServerWasRestarted) {
  std::atomic<std::uint64_t> boot{11};
  played_server server([&](const played_request &, std::size_t) {
    return played_answer{0, description(boot.load(), sizeof(cudaq_qec_decoder_description_t))};
  });
  udp_client client(server.port());
  cudaq_qec_decoder_description_t model;
  std::int32_t status = -1;
  int restarted = -1;
  ASSERT_EQ(cudaq_qec_client_was_restarted(client.get(), 3, kLong, &restarted), CUDAQ_OK);
  EXPECT_EQ(restarted, 0) << "it was not described before";
  ASSERT_EQ(cudaq_qec_client_describe(client.get(), 3, kLong, &model, &status), CUDAQ_OK);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(model.digest, 77u);
  ASSERT_EQ(cudaq_qec_client_was_restarted(client.get(), 3, kLong, &restarted), CUDAQ_OK);
  EXPECT_EQ(restarted, 0);
  boot.store(12);
  for (int k = 0; k < 2; ++k) { // until the decoder is described again
    ASSERT_EQ(cudaq_qec_client_was_restarted(client.get(), 3, kLong, &restarted), CUDAQ_OK);
    EXPECT_EQ(restarted, 1);
  }
  ASSERT_EQ(cudaq_qec_client_describe(client.get(), 3, kLong, &model, &status), CUDAQ_OK);
  ASSERT_EQ(cudaq_qec_client_was_restarted(client.get(), 3, kLong, &restarted), CUDAQ_OK);
  EXPECT_EQ(restarted, 0);
}

TEST(DecodingClient, DescribesADecoderOfAnEarlierServerAndRefusesAWrongLength) {
  std::atomic<std::size_t> length{32};
  played_server server([&](const played_request &r, std::size_t) {
    return r.header.arg_len == 16 ? played_answer{CUDAQ_QEC_SERVER_BAD_REQUEST, {}}
                                  : played_answer{0, description(1, length.load())};
  });
  udp_client client(server.port());
  cudaq_qec_decoder_description_t model;
  std::int32_t status = -1;
  ASSERT_EQ(cudaq_qec_client_describe(client.get(), 3, kLong, &model, &status), CUDAQ_OK) << cudaq_qec_client_error();
  EXPECT_EQ(model.shot_bits, 4u);
  EXPECT_EQ(model.boot_id, 0u);
  length.store(31);
  EXPECT_EQ(cudaq_qec_client_describe(client.get(), 3, kLong, &model, &status), CUDAQ_ERR_INTERNAL);
}

TEST(DecodingClient, PassesOverWhatIsNoAnswerToItsRequest) {
  std::uint64_t time = 0; // of the request, which an answer echoes
  const auto frame = [&](std::uint32_t magic, std::uint32_t id, std::uint32_t length, std::uint64_t later = 0) {
    const cudaq_rpc_response_t header{magic, 7, length, id, time + later};
    const auto *const first = reinterpret_cast<const std::uint8_t *>(&header);
    return bytes(first, first + sizeof(header));
  };
  played_server server([&](const played_request &r, std::size_t) {
    const std::uint32_t id = r.header.request_id;
    time = r.header.ptp_timestamp;
    return played_answer{3,
                         {},
                         {{},
                          bytes(23),
                          frame(CUDAQ_RPC_MAGIC_RESPONSE, id, 0, 1),
                          frame(CUDAQ_RPC_MAGIC_RESPONSE, id, 0, 0 - time),
                          frame(CUDAQ_RPC_MAGIC_REQUEST, id, 0),
                          frame(CUDAQ_RPC_MAGIC_RESPONSE, id + 1, 0),
                          frame(CUDAQ_RPC_MAGIC_RESPONSE, id, 1),
                          frame(CUDAQ_RPC_MAGIC_RESPONSE, id, UINT32_MAX)}};
  });
  udp_client client(server.port(), CUDAQ_QEC_CLIENT_NEVER);
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(client.call(99, kBody, answer), CUDAQ_OK) << cudaq_qec_client_error();
  EXPECT_EQ(answer.status, 3);
  cudaq_qec_client_counts_t counts;
  ASSERT_EQ(cudaq_qec_client_get_counts(client.get(), &counts), CUDAQ_OK);
  EXPECT_EQ(counts.unexpected, 8u);
}

TEST(DecodingClient, EndsTheWaitIfNothingListens) {
  const auto port = static_cast<std::uint16_t>(unused_udp_port());
  cudaq_qec_client_answer_t answer;
  udp_client once(port, CUDAQ_QEC_CLIENT_NEVER);
  EXPECT_EQ(once.call(CUDAQ_QEC_RESET_DECODER, kBody, answer), CUDAQ_ERR_STATE);
  EXPECT_NE(std::string(cudaq_qec_client_error()).find("no server listens at 127.0.0.1"), std::string::npos);
  udp_client patient(port, 5 * kMs, 1, "127.0.0.1", 100 * kMs);
  EXPECT_EQ(patient.call(CUDAQ_QEC_RESET_DECODER, kBody, answer), CUDAQ_ERR_STATE);
  EXPECT_EQ(patient.call(CUDAQ_QEC_RESET_DECODER, kBody, answer, 10 * kMs), CUDAQ_ERR_TIMEOUT) << "it may start now";
  played_server server([](const played_request &, std::size_t) { return played_answer{}; }, port);
  EXPECT_EQ(once.call(CUDAQ_QEC_RESET_DECODER, kBody, answer), CUDAQ_OK) << cudaq_qec_client_error();
  EXPECT_EQ(patient.call(CUDAQ_QEC_RESET_DECODER, kBody, answer), CUDAQ_OK) << cudaq_qec_client_error();
}

TEST(DecodingClient, ARefusalOfAnEarlierRequestSaysNothingOfTheNextOne) {
  const auto port = static_cast<std::uint16_t>(unused_udp_port());
  const int socket = next_socket();
  udp_client client(port, CUDAQ_QEC_CLIENT_NEVER);
  const auto request = udp_client::request(CUDAQ_QEC_RESET_DECODER, kBody);
  std::uint32_t id = 0;
  ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &id), CUDAQ_OK);
  wait_for_refusal(socket);
  ASSERT_EQ(cudaq_qec_client_give_up(client.get(), id), CUDAQ_OK);
  played_server server([](const played_request &, std::size_t) { return played_answer{}; }, port);
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(client.call(CUDAQ_QEC_RESET_DECODER, kBody, answer), CUDAQ_OK) << cudaq_qec_client_error();
}

constexpr int kMaxCalls = 1000;

/// The number of requests with a limit of 2 ms that end without an answer before no server listens.
int requests_until_absent(udp_client &client) {
  cudaq_qec_client_answer_t answer;
  int ended = 0;
  while (ended < kMaxCalls && client.call(CUDAQ_QEC_RESET_DECODER, kBody, answer, 2 * kMs) == CUDAQ_ERR_TIMEOUT)
    ++ended;
  return ended;
}

TEST(DecodingClient, NoticesOverManyShortRequestsThatNothingListens) {
  udp_client client(static_cast<std::uint16_t>(unused_udp_port()), 20 * kMs, 1, "127.0.0.1", 100 * kMs);
  const int first = requests_until_absent(client);
  EXPECT_LT(first, kMaxCalls);
  EXPECT_NE(std::string(cudaq_qec_client_error()).find("no server listens"), std::string::npos)
      << cudaq_qec_client_error();
  EXPECT_GE(requests_until_absent(client), 1) << "the patience begins again";
}

TEST(DecodingClient, CountsRefusalsThatAreReportedAfterTheEndOfTheirRequests) {
  const auto port = static_cast<std::uint16_t>(unused_udp_port());
  const int socket = next_socket();
  udp_client client(port, 10'000 * kMs, 1, "127.0.0.1", 10 * kMs);
  const auto request = udp_client::request(CUDAQ_QEC_RESET_DECODER, kBody);
  cudaq_status_t status = CUDAQ_OK;
  int seen = 0;
  std::uint32_t id = 0;
  while (seen < 1000 && (status = cudaq_qec_client_send(client.get(), &request, &id)) == CUDAQ_OK) {
    ++seen;
    wait_for_refusal(socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(cudaq_qec_client_give_up(client.get(), id), CUDAQ_OK); // without a look at the report
  }
  EXPECT_EQ(status, CUDAQ_ERR_STATE) << cudaq_qec_client_error();
  EXPECT_GT(seen, 1) << "one report is not enough";
  pollfd refused{socket, 0, 0};
  EXPECT_EQ(::poll(&refused, 1, 0), 0) << "the last request was not sent";
  ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &id), CUDAQ_OK) << "the patience begins again";
}

TEST(DecodingClient, SaysWhichLimitKeepsAnotherRequestBack) {
  std::atomic<std::uint32_t> first{0};
  played_server server([&](const played_request &r, std::size_t number) -> std::optional<played_answer> {
    if (number == 0)
      first.store(r.header.request_id);
    return r.header.request_id == first.load() ? std::nullopt : std::optional(played_answer{});
  });
  udp_client client(server.port(), 10'000 * kMs, 64);
  const auto request = udp_client::request(CUDAQ_QEC_RESET_DECODER, kBody);
  std::uint32_t id = 0;
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &id), CUDAQ_OK);
  cudaq_status_t status = CUDAQ_OK;
  std::uint32_t later = 0;
  for (; later < 100 && status == CUDAQ_OK; ++later) {
    status = cudaq_qec_client_send(client.get(), &request, &id);
    if (status == CUDAQ_OK) {
      ASSERT_EQ(cudaq_qec_client_wait(client.get(), kLong, &answer), CUDAQ_OK) << cudaq_qec_client_error();
    }
  }
  EXPECT_EQ(status, CUDAQ_ERR_STATE);
  EXPECT_EQ(later, CUDAQ_QEC_REPEAT_REQUESTS);
  const std::string text = cudaq_qec_client_error();
  EXPECT_EQ(text.find("max_open"), std::string::npos) << text;
  EXPECT_NE(text.find("remembers 64"), std::string::npos) << text;
}

TEST(DecodingClient, WaitsForAServerThatStarts) {
  const auto port = static_cast<std::uint16_t>(unused_udp_port());
  udp_client client(port, 5 * kMs, 1, "127.0.0.1", kLong);
  const auto request = udp_client::request(CUDAQ_QEC_RESET_DECODER, kBody);
  std::uint32_t id = 0;
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(cudaq_qec_client_send(client.get(), &request, &id), CUDAQ_OK);
  EXPECT_EQ(cudaq_qec_client_wait(client.get(), 30 * kMs, &answer), CUDAQ_ERR_TIMEOUT) << cudaq_qec_client_error();
  played_server server([](const played_request &, std::size_t) { return played_answer{}; }, port);
  EXPECT_EQ(cudaq_qec_client_wait(client.get(), kLong, &answer), CUDAQ_OK) << cudaq_qec_client_error();
}

TEST(DecodingClient, RefusesWrongArgumentsWithTheirNames) {
  const auto has = [](const char *text) {
    return std::string(cudaq_qec_client_error()).find(text) != std::string::npos;
  };
  cudaq_qec_client_t *opened = nullptr;
  EXPECT_EQ(cudaq_qec_client_open_udp(&opened, "127.0.0.1", 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(has("port"));
  EXPECT_EQ(cudaq_qec_client_open_udp(&opened, nullptr, 7, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(has("host"));
  EXPECT_EQ(cudaq_qec_client_open_udp(nullptr, "127.0.0.1", 7, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(has("out_client"));
  cudaq_qec_client_options_t options{};
  EXPECT_EQ(cudaq_qec_client_open_udp(&opened, "127.0.0.1", 7, &options), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(has("struct_size"));
  options.struct_size = sizeof(options);
  for (const std::uint32_t wrong : {3u, 128u}) {
    options.max_open = wrong;
    EXPECT_EQ(cudaq_qec_client_open_udp(&opened, "127.0.0.1", 7, &options), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(has("max_open"));
  }
  options.max_open = 0;
  for (const std::uint32_t wrong : {10u, 65508u}) {
    options.slot_size = wrong;
    EXPECT_EQ(cudaq_qec_client_open_udp(&opened, "127.0.0.1", 7, &options), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(has("slot_size"));
  }
  EXPECT_EQ(cudaq_qec_client_open_shm(&opened, "no-server-has-this-name", 0, nullptr), CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(opened, nullptr);
  udp_client client(7);
  cudaq_qec_client_answer_t answer;
  EXPECT_EQ(client.call(1, bytes(65600), answer), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(has("slot"));
  EXPECT_EQ(client.call(1, kBody, answer, kLong, 2), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(has("flags"));
  EXPECT_EQ(cudaq_qec_client_call(client.get(), nullptr, &answer), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_qec_client_wait(nullptr, 0, &answer), CUDAQ_ERR_INVALID_ARG);
  cudaq_qec_client_close(nullptr);
}

TEST(ServerStatus, HasANameAndAMeaningInBothSigns) {
  EXPECT_STREQ(cudaq_qec_server_status_string(CUDAQ_QEC_SERVER_OK), "OK");
  for (int status = CUDAQ_QEC_SERVER_INVALID_DECODER; status <= CUDAQ_QEC_SERVER_NOT_CONVERGED; ++status)
    EXPECT_NE(std::string(cudaq_qec_server_status_string(status)).find(": "), std::string::npos) << status;
  EXPECT_STREQ(cudaq_qec_server_status_string(CUDAQ_QEC_SERVER_NOT_READY),
               "NOT_READY: the server ends and takes no new shot; not executed");
  const std::string given_up = cudaq_qec_server_status_string(CUDAQ_QEC_SERVER_NOT_CONVERGED);
  EXPECT_EQ(given_up.rfind("NOT_CONVERGED: ", 0), 0u) << given_up;
  EXPECT_STREQ(cudaq_qec_server_status_string(CUDAQ_QEC_SERVER_NOT_CONVERGED + 1),
               cudaq_rpc_status_string(CUDAQ_QEC_SERVER_NOT_CONVERGED + 1))
      << "of a later server";
  EXPECT_STREQ(cudaq_qec_server_status_string(-CUDAQ_QEC_SERVER_BUSY),
               cudaq_qec_server_status_string(CUDAQ_QEC_SERVER_BUSY));
  EXPECT_NE(std::string(cudaq_qec_server_status_string(CUDAQ_RPC_ERR_BUSY)), "");
  EXPECT_NE(std::string(cudaq_qec_server_status_string(INT32_MIN)), "");
}

TEST(AnswerStatus, OfADecodeIsNotThatOfTheServer) {
  const std::string short_of_bytes = cudaq_qec_server_answer_string(CUDAQ_QEC_DECODE, 4);
  EXPECT_NE(short_of_bytes.find("too small"), std::string::npos) << short_of_bytes;
  EXPECT_EQ(cudaq_qec_server_answer_string(CUDAQ_QEC_DECODE_READOUT, 4), short_of_bytes);
  for (const std::uint32_t function : {CUDAQ_QEC_DECODE, CUDAQ_QEC_RESET_DECODER})
    for (const std::int32_t status : {0, -CUDAQ_QEC_SERVER_BUSY, -1011})
      EXPECT_STREQ(cudaq_qec_server_answer_string(function, status), cudaq_qec_server_status_string(status));
  EXPECT_STREQ(cudaq_qec_server_answer_string(CUDAQ_QEC_ENQUEUE_SYNDROMES, CUDAQ_QEC_SERVER_NOT_READY),
               cudaq_qec_server_status_string(CUDAQ_QEC_SERVER_NOT_READY));
  for (const std::int32_t status : {0, 4, -4, -1011}) // the function's own, or the library's
    EXPECT_STREQ(cudaq_qec_server_answer_string(7, status), cudaq_rpc_status_string(status));
}

// A client over a fork: both sides have its socket and its next id. If the child used it, each could take the answer of
// the other, and the server would take a request of one for the repetition of the other's.

TEST(ClientProcess, IsTheOneThatOpenedTheClient) {
  played_server server([](const played_request &, std::size_t) { return played_answer{0, {7}}; });
  udp_client client(server.port());
  cudaq_qec_client_answer_t answer;
  ASSERT_EQ(client.call(CUDAQ_QEC_GET_CORRECTIONS, {1}, answer), CUDAQ_OK);
  EXPECT_EQ(status_in_child([&] {
              const auto request = udp_client::request(CUDAQ_QEC_GET_CORRECTIONS, {});
              cudaq_qec_client_answer_t mine;
              cudaq_qec_client_counts_t counts;
              cudaq_qec_decoder_description_t model;
              std::int32_t status = 0;
              std::uint32_t id = 0;
              int restarted = 0, wrong = 0;
              for (const cudaq_status_t refused :
                   {cudaq_qec_client_call(client.get(), &request, &mine),
                    cudaq_qec_client_send(client.get(), &request, &id), cudaq_qec_client_wait(client.get(), 0, &mine),
                    cudaq_qec_client_give_up(client.get(), 1),
                    cudaq_qec_client_describe(client.get(), 1, 0, &model, &status),
                    cudaq_qec_client_was_restarted(client.get(), 1, 0, &restarted),
                    cudaq_qec_client_get_counts(client.get(), &counts)})
                wrong += refused == CUDAQ_ERR_STATE ? 0 : 1;
              wrong += std::string(cudaq_qec_client_error()).find("fork") == std::string::npos ? 1 : 0;
              cudaq_qec_client_close(client.get());
              return wrong;
            }),
            0);
  ASSERT_EQ(client.call(CUDAQ_QEC_GET_CORRECTIONS, {1}, answer), CUDAQ_OK) << "the parent goes on";
  EXPECT_EQ(server.requests().size(), 2u) << "the child has sent nothing";
}

TEST(ClientProcess, MayOpenAClientOfItsOwnAfterFork) {
  played_server server([](const played_request &, std::size_t) { return played_answer{0, {7}}; });
  EXPECT_EQ(status_in_child([&] {
              udp_client mine(server.port());
              cudaq_qec_client_answer_t answer;
              return mine.call(CUDAQ_QEC_GET_CORRECTIONS, {1}, answer) == CUDAQ_OK ? 0 : 1;
            }),
            0);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The decoding server as a C library.
#include "cudaq/qec/realtime/decoding_server.h"

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "unittests/qec/server/library/embedded_server.h"
#include "unittests/support/processes/process_signals.h"
#include "unittests/support/processes/started_program.h"

#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <sys/resource.h>

namespace {

using namespace cudaq::qec::realtime::test;
using cudaq::realtime::test::expect_end_of_process;

TEST(DecodingServerLibrary, DecodesAShotOfTheProgram) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}), (answer{0, {0b01}}));
  EXPECT_EQ(server.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, enqueued(0, 2, 0b10)), (answer{0, {}}));
  EXPECT_EQ(server.call(CUDAQ_QEC_GET_CORRECTIONS, wanted(2)), (answer{0, {0b10}}));
  EXPECT_EQ(server.call(0xBAD, {}), (answer{CUDAQ_QEC_SERVER_BAD_REQUEST, {}}));
  const auto counts = server.counts();
  EXPECT_EQ(counts.num_decoders, 1u);
  EXPECT_EQ(counts.requests, 3u);
  EXPECT_EQ(counts.shots, 2u);
  EXPECT_EQ(counts.answers[CUDAQ_QEC_SERVER_OK], 3u);
  EXPECT_EQ(counts.strays, 1u);
}

TEST(DecodingServerLibrary, HasTheTimesOfEachStage) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}), (answer{0, {0b01}}));
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b10}), (answer{0, {0b10}}));
  ASSERT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, kLong), CUDAQ_OK) << error();
  const auto read = [&](int stage, cudaq_handler_times_t &times, std::uint64_t id = 7) {
    return cudaq_qec_decoding_server_get_stage_times(server.get(), id, static_cast<cudaq_qec_request_stage_t>(stage),
                                                     &times);
  };
  cudaq_handler_times_t whole{}, decoded{};
  whole.struct_size = decoded.struct_size = sizeof whole;
  ASSERT_EQ(read(CUDAQ_QEC_STAGE_WHOLE, whole), CUDAQ_OK) << error();
  ASSERT_EQ(read(CUDAQ_QEC_STAGE_DECODED, decoded), CUDAQ_OK) << error();
  EXPECT_EQ(whole.count, 2u);
  EXPECT_EQ(decoded.count, 2u);
  EXPECT_EQ(std::accumulate(std::begin(whole.buckets), std::end(whole.buckets), std::uint64_t{0}), 2u);
  EXPECT_GT(decoded.max_ns, 0u);
  EXPECT_LE(decoded.sum_ns, whole.sum_ns);
  EXPECT_EQ(whole.p999_ns, whole.max_ns);
  const auto refused = [&](cudaq_status_t got, const char *text) {
    EXPECT_EQ(got, CUDAQ_ERR_INVALID_ARG) << text;
    EXPECT_NE(error().find(text), std::string::npos) << error();
  };
  refused(read(6, whole), "stage is 6");
  refused(read(-1, whole), "stage is -1");
  refused(read(0, whole, 8), "decoder_id is 8");
  whole.struct_size = 8;
  refused(read(0, whole), "struct_size is 8");
  refused(cudaq_qec_decoding_server_get_stage_times(server.get(), 7, CUDAQ_QEC_STAGE_TAKEN, nullptr),
          "out_times is NULL");
  refused(cudaq_qec_decoding_server_get_stage_times(nullptr, 7, CUDAQ_QEC_STAGE_TAKEN, &decoded), "server is NULL");
  EXPECT_EQ(whole.count, 2u) << "a call that is refused writes nothing";
}

TEST(DecodingServerLibrary, HasTheRatesOfEachDetector) {
  embedded_server server(config_of("lookup", R"(detector(2, 3, 4) D0\n)" + std::string(kTwoDetectors)));
  cudaq_qec_detector_rates_t all{};
  all.struct_size = sizeof all;
  cudaq_qec_detector_rate_t rates[2] = {{}, {7, 7, 7, 7, 7, 7}};
  const auto read = [&](std::uint64_t id, std::uint64_t room) {
    return cudaq_qec_decoding_server_get_detector_rates(server.get(), id, rates, room, &all);
  };
  ASSERT_EQ(read(7, 1), CUDAQ_OK) << error();
  EXPECT_EQ(all.num_detectors, 2u);
  EXPECT_EQ(all.shots, 0);
  EXPECT_TRUE(std::isnan(rates[0].rate) && std::isnan(rates[0].sigma)) << "no shot was counted";
  EXPECT_EQ(rates[1].rate, 7) << "there was no room for it";
  for (int k = 0; k < 200; ++k)
    ASSERT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}), (answer{0, {0b01}}));
  ASSERT_EQ(read(7, 2), CUDAQ_OK) << error();
  EXPECT_NEAR(all.shots, 200, 1e-9);
  EXPECT_EQ(all.beyond_5_sigma, 2u);
  EXPECT_EQ(rates[0].rate, 1);
  EXPECT_NEAR(rates[0].model_rate, 0.1, 1e-12);
  EXPECT_GT(rates[0].sigma, 5);
  EXPECT_LT(rates[1].sigma, -5);
  EXPECT_EQ(rates[0].x, 2);
  EXPECT_EQ(rates[0].y, 3);
  EXPECT_EQ(rates[0].time, 4);
  EXPECT_TRUE(std::isnan(rates[1].x));
  EXPECT_EQ(cudaq_qec_decoding_server_get_detector_rates(server.get(), 7, nullptr, 0, &all), CUDAQ_OK);
  const auto refused = [&](cudaq_status_t got, cudaq_status_t status, const char *text) {
    EXPECT_EQ(got, status) << text;
    EXPECT_NE(error().find(text), std::string::npos) << error();
  };
  refused(read(8, 2), CUDAQ_ERR_INVALID_ARG, "decoder_id is 8");
  refused(cudaq_qec_decoding_server_get_detector_rates(server.get(), 7, nullptr, 3, &all), CUDAQ_ERR_INVALID_ARG,
          "out_rates is NULL, and room is 3");
  refused(cudaq_qec_decoding_server_get_detector_rates(server.get(), 7, rates, 2, nullptr), CUDAQ_ERR_INVALID_ARG,
          "out_summary is NULL");
  all.struct_size = 8;
  refused(read(7, 2), CUDAQ_ERR_INVALID_ARG, "struct_size is 8");
  all.struct_size = sizeof all;
  embedded_server uncounted(config_of("lookup", kTwoDetectors, "detector_rates: 0"));
  refused(cudaq_qec_decoding_server_get_detector_rates(uncounted.get(), 7, rates, 2, &all), CUDAQ_ERR_UNSUPPORTED,
          "its detector_rates is 0");
}

TEST(DecodingServerLibrary, ServesTheRingOfADispatcher) {
  constexpr std::uint32_t kSlots = 4, kSlotSize = 256;
  embedded_server server(config_of("lookup", kTwoDetectors));
  std::uint32_t slot_size = 0;
  ASSERT_EQ(cudaq_qec_decoding_server_get_slot_size(server.get(), &slot_size), CUDAQ_OK);
  EXPECT_EQ(slot_size, kSlotSize);
  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring;
  ASSERT_EQ(cudaq_ringbuffer_options_init(&options, sizeof options), CUDAQ_OK);
  options.num_slots = kSlots;
  options.slot_size = kSlotSize;
  ASSERT_EQ(cudaq_ringbuffer_create(&options, &memory, &ring), CUDAQ_OK);
  cudaq_dispatcher_config_t config{};
  config.num_slots = kSlots;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  ASSERT_EQ(cudaq_dispatch_manager_create(&manager), CUDAQ_OK);
  ASSERT_EQ(cudaq_dispatcher_create(manager, &config, &dispatcher), CUDAQ_OK);
  ASSERT_EQ(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring), CUDAQ_OK);
  ASSERT_EQ(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed), CUDAQ_OK);
  const struct at_end { // the server ends after its dispatcher, also after an ASSERT
    embedded_server &server;
    cudaq_dispatcher_t *&dispatcher;
    ~at_end() {
      if (dispatcher == nullptr)
        return;
      EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, kLong), CUDAQ_OK) << error();
      EXPECT_EQ(cudaq_dispatcher_destroy(dispatcher), CUDAQ_OK);
    }
  } end_of_dispatcher{server, dispatcher};

  EXPECT_EQ(cudaq_qec_decoding_server_serve(server.get(), dispatcher, 24), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(error(), "an answer of decoder 7 has 1 bytes and a header of 24, a slot of the transport 24");
  ASSERT_EQ(cudaq_qec_decoding_server_serve(server.get(), dispatcher, kSlotSize), CUDAQ_OK) << error();
  EXPECT_EQ(cudaq_qec_decoding_server_serve(server.get(), dispatcher, kSlotSize), CUDAQ_ERR_STATE);
  EXPECT_NE(error().find("a dispatcher is attached already"), std::string::npos) << error();
  ASSERT_EQ(cudaq_dispatcher_start(dispatcher), CUDAQ_OK);

  const std::uint8_t events = 0b10;
  ASSERT_EQ(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, CUDAQ_QEC_DECODE, &events, 1, 1, 0), CUDAQ_OK);
  cudaq_host_ringbuffer_signal_slot(&ring, 0);
  ASSERT_TRUE(cudaq::realtime::detail::wait_until(
      soon(), [&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, nullptr) == CUDAQ_TX_READY; }));
  cudaq_rpc_response_t response;
  const void *result = nullptr;
  ASSERT_EQ(cudaq_host_ringbuffer_read_rpc_response(&ring, 0, &response, &result), CUDAQ_OK);
  EXPECT_EQ(response.status, 0);
  ASSERT_EQ(response.result_len, 1u);
  EXPECT_EQ(*static_cast<const std::uint8_t *>(result), 0b10);

  EXPECT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, kLong), CUDAQ_OK) << error();
  EXPECT_EQ(cudaq_dispatcher_destroy(dispatcher), CUDAQ_OK);
  dispatcher = nullptr;
  EXPECT_EQ(cudaq_dispatch_manager_destroy(manager), CUDAQ_OK);
  EXPECT_EQ(cudaq_ringbuffer_destroy(memory), CUDAQ_OK);
}

TEST(DecodingServerLibrary, AReloadThatFailsKeepsTheOldDecoders) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  const auto refused = [&](const std::string &config, const char *why) {
    EXPECT_EQ(cudaq_qec_decoding_server_reload(server.get(), config.c_str(), kLong), CUDAQ_ERR_INVALID_ARG);
    EXPECT_NE(error().find(why), std::string::npos) << error();
    EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}), (answer{0, {0b01}}));
  };
  refused("decoders: [", "line 1");
  refused(config_of("no-such-decoder", kExchanged), "no-such-decoder");
  refused(config_of("lookup", "error(0.1) D0 L0"), "these are fixed");
  refused(config_of("lookup", kExchanged) + "\ntransport: {provider: udp}", "transport: it is fixed");
  EXPECT_EQ(server.counts().reloads, 0u);

  ASSERT_EQ(cudaq_qec_decoding_server_reload(server.get(), config_of("lookup", kExchanged).c_str(), kLong), CUDAQ_OK)
      << error();
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}), (answer{0, {0b10}}));
  EXPECT_EQ(server.counts().reloads, 1u);
  EXPECT_EQ(server.counts().exchanges, 1u);
}

/// While it lives, the process opens no further file.
class no_more_files {
public:
  no_more_files() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~no_more_files() { setrlimit(RLIMIT_NOFILE, &before_); }
  no_more_files(const no_more_files &) = delete;
  no_more_files &operator=(const no_more_files &) = delete;

private:
  rlimit before_{};
};

TEST(DecodingServerLibrary, SaysWhetherTheConfigurationIsWrongOrTheMachineLacksSomething) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  const char with_file[] = "decoders: [{id: 7, type: lookup, dem_file: /dev/null}]";
  cudaq_qec_decoding_server_t *made = nullptr;
  const auto create = [&] { return cudaq_qec_decoding_server_create(&made, with_file, nullptr); };
  const auto reload = [&] { return cudaq_qec_decoding_server_reload(server.get(), with_file, kLong); };
  EXPECT_EQ(create(), CUDAQ_ERR_INVALID_ARG) << "it is no file of a model";
  EXPECT_EQ(reload(), CUDAQ_ERR_INVALID_ARG);
  cudaq_status_t of_create = CUDAQ_OK, of_reload = CUDAQ_OK;
  {
    const no_more_files here;
    of_create = create();
    of_reload = reload();
  }
  EXPECT_EQ(of_create, CUDAQ_ERR_UNSUPPORTED);
  EXPECT_EQ(of_reload, CUDAQ_ERR_UNSUPPORTED) << error();
  EXPECT_NE(error().find("(id 7): /dev/null: "), std::string::npos) << error();
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}), (answer{0, {0b01}})) << "the old decoders serve";
}

TEST(DecodingServerLibrary, AReloadInsideAShotKeepsTheOldDecoders) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  EXPECT_EQ(server.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, enqueued(0, 1, 1)).status, 0);
  EXPECT_EQ(cudaq_qec_decoding_server_reload(server.get(), config_of("lookup", kExchanged).c_str(), 0),
            CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(server.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, enqueued(1, 1, 0)).status, 0);
  EXPECT_EQ(server.call(CUDAQ_QEC_GET_CORRECTIONS, wanted(2)), (answer{0, {0b01}}));
}

TEST(DecodingServerLibrary, AReloadAfterTheEndWaitsForNoShot) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  EXPECT_EQ(server.call(CUDAQ_QEC_ENQUEUE_SYNDROMES, enqueued(0, 1, 1)).status, 0);
  ASSERT_EQ(cudaq_qec_decoding_server_drain(server.get(), 0, kLong), CUDAQ_OK) << error();
  EXPECT_EQ(cudaq_qec_decoding_server_reload(server.get(), config_of("lookup", kExchanged).c_str(), UINT64_MAX),
            CUDAQ_ERR_TIMEOUT);
  EXPECT_EQ(error(), "a decoder was inside a shot, and the server ends");
}

TEST(DecodingServerLibrary, RefusesBadInputWithAText) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  const std::string good = config_of("lookup", kTwoDetectors);
  const auto ignored = [](void *, std::int32_t, std::uint64_t) { FAIL() << "the request was not taken"; };
  std::uint8_t byte = 0;
  const cudaq_qec_decoding_server_request_t shot{CUDAQ_QEC_DECODE, 0, 0, &byte, 1, &byte, 1},
      no_payload{CUDAQ_QEC_DECODE, 0, 0, nullptr, 1, &byte, 1}, no_result{CUDAQ_QEC_DECODE, 0, 0, &byte, 1, nullptr, 1},
      long_payload{CUDAQ_QEC_DECODE, 0, 0, &byte, std::uint64_t{UINT32_MAX} + 1, &byte, 1};
  cudaq_qec_decoding_server_t *made = nullptr;
  std::int32_t status = 77;
  const auto options = [](std::uint32_t size, int policy, std::uint32_t reserved) {
    return cudaq_qec_decoding_server_options_t{size, static_cast<cudaq_wait_policy_t>(policy), 0, reserved, nullptr};
  };
  constexpr auto kSize = static_cast<std::uint32_t>(sizeof(cudaq_qec_decoding_server_options_t));
  const auto wrong_size = options(kSize - 8, CUDAQ_WAIT_BLOCK, 0), wrong_policy = options(kSize, 3, 0),
             negative_policy = options(kSize, -1, 0), wrong_reserved = options(kSize, CUDAQ_WAIT_BLOCK, 1);
  cudaq_qec_decoding_server_counts_t counts{}, short_counts{};
  counts.struct_size = sizeof counts;
  short_counts.struct_size = sizeof short_counts - 8;
  std::uint32_t slot_size = 0;
  auto *const dispatcher = reinterpret_cast<cudaq_dispatcher_t *>(&byte); // is not looked at
  const auto check = [](cudaq_status_t got, const char *text) {
    EXPECT_EQ(got, CUDAQ_ERR_INVALID_ARG) << text;
    EXPECT_NE(error().find(text), std::string::npos) << error();
  };
  check(cudaq_qec_decoding_server_create(nullptr, good.c_str(), nullptr), "out_server is NULL");
  check(cudaq_qec_decoding_server_create(&made, nullptr, nullptr), "config is NULL");
  check(cudaq_qec_decoding_server_create(&made, good.c_str(), &wrong_size), "struct_size is 16, accepted: 24");
  check(cudaq_qec_decoding_server_create(&made, good.c_str(), &wrong_policy), "wait_policy is 3");
  check(cudaq_qec_decoding_server_create(&made, good.c_str(), &negative_policy), "wait_policy is -1");
  check(cudaq_qec_decoding_server_create(&made, good.c_str(), &wrong_reserved), "reserved is 1");
  check(cudaq_qec_decoding_server_create(&made, "decoders: []", nullptr), "decoders");
  check(cudaq_qec_decoding_server_create(&made, config_of("lookup", "error(2) D0").c_str(), nullptr), "id 7");
  EXPECT_EQ(made, nullptr);
  check(cudaq_qec_decoding_server_get_slot_size(nullptr, &slot_size), "server is NULL");
  check(cudaq_qec_decoding_server_get_slot_size(server.get(), nullptr), "out_slot_size is NULL");
  check(cudaq_qec_decoding_server_serve(nullptr, dispatcher, 256), "server is NULL");
  check(cudaq_qec_decoding_server_serve(server.get(), nullptr, 256), "dispatcher is NULL");
  check(cudaq_qec_decoding_server_submit(nullptr, &shot, ignored, nullptr), "server is NULL");
  check(cudaq_qec_decoding_server_submit(server.get(), nullptr, ignored, nullptr), "request is NULL");
  check(cudaq_qec_decoding_server_submit(server.get(), &shot, nullptr, nullptr), "answered is NULL");
  check(cudaq_qec_decoding_server_submit(server.get(), &no_payload, ignored, nullptr), "payload is NULL");
  check(cudaq_qec_decoding_server_submit(server.get(), &no_result, ignored, nullptr), "result is NULL");
  check(cudaq_qec_decoding_server_submit(server.get(), &long_payload, ignored, nullptr),
        "payload_bytes is 4294967296, accepted: up to 4294967295");
  check(cudaq_qec_decoding_server_call(nullptr, &shot, &status, nullptr), "server is NULL");
  check(cudaq_qec_decoding_server_call(server.get(), nullptr, &status, nullptr), "request is NULL");
  check(cudaq_qec_decoding_server_call(server.get(), &shot, nullptr, nullptr), "out_status is NULL");
  EXPECT_EQ(status, 77);
  check(cudaq_qec_decoding_server_reload(nullptr, good.c_str(), 0), "server is NULL");
  check(cudaq_qec_decoding_server_reload(server.get(), nullptr, 0), "config is NULL");
  check(cudaq_qec_decoding_server_drain(nullptr, 0, 0), "server is NULL");
  check(cudaq_qec_decoding_server_get_counts(nullptr, 7, &counts), "server is NULL");
  check(cudaq_qec_decoding_server_get_counts(server.get(), 7, nullptr), "out_counts is NULL");
  check(cudaq_qec_decoding_server_get_counts(server.get(), 7, &short_counts), "struct_size is");
  check(cudaq_qec_decoding_server_get_counts(server.get(), 8, &counts), "decoder_id is 8");
  cudaq_qec_decoding_server_destroy(nullptr);
  EXPECT_EQ(server.counts().requests, 0u) << "no request was taken";
}

TEST(DecodingServerLibrary, TakesLearnedModelsBack) {
  embedded_server server(config_of("lookup", R"(error(0.02) D0 L0\nerror(0.02) D1 L1)",
                                   "queue_length: 0, learn: {shots: 10000, held_out: 20480, priority: normal}"));
  std::mt19937 random(1);
  const auto bit = [&random](unsigned permille) { return random() % 1000 < permille ? 1U : 0U; };
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kLong);
       server.counts().exchanges == 0 && std::chrono::steady_clock::now() < end;)
    for (int k = 0; k < 1000; ++k)
      (void)server.call(CUDAQ_QEC_DECODE, {static_cast<std::uint8_t>(bit(60) | bit(5) << 1)});
  const std::uint64_t swaps = server.counts().exchanges;
  ASSERT_NE(swaps, 0u) << "no model was learned";
  const auto go_back = [&](int to) {
    return cudaq_qec_decoding_server_go_back(server.get(), static_cast<cudaq_qec_earlier_model_t>(to), kLong);
  };
  EXPECT_EQ(go_back(2), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(error(), "to is 2, accepted: a value of cudaq_qec_earlier_model_t");
  EXPECT_EQ(cudaq_qec_decoding_server_go_back(nullptr, CUDAQ_QEC_MODEL_CONFIGURED, 0), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(go_back(CUDAQ_QEC_MODEL_BEFORE_SWAP), CUDAQ_OK) << error();
  EXPECT_GT(server.counts().exchanges, swaps);
  EXPECT_EQ(go_back(CUDAQ_QEC_MODEL_CONFIGURED), CUDAQ_OK) << error();
  const std::uint64_t exchanges = server.counts().exchanges;
  EXPECT_EQ(go_back(CUDAQ_QEC_MODEL_CONFIGURED), CUDAQ_OK) << "there is nothing to take back";
  EXPECT_EQ(server.counts().exchanges, exchanges);
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}), (answer{0, {0b01}})) << "it serves on";
}

TEST(DecodingServerLibrary, FindsTheFilesOfEachConfigurationInTheFolderOfCreate) {
  const cudaq_qec_decoding_server_options_t options{sizeof options, CUDAQ_WAIT_BLOCK, 1, 0, "/nonexistent-folder"};
  const char with_file[] = "decoders: [{id: 7, type: lookup, dem_file: model.dem}]";
  cudaq_qec_decoding_server_t *made = nullptr;
  EXPECT_EQ(cudaq_qec_decoding_server_create(&made, with_file, &options), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(error().find("/nonexistent-folder/model.dem"), std::string::npos) << error();
  ASSERT_EQ(cudaq_qec_decoding_server_create(&made, config_of("lookup", kTwoDetectors).c_str(), &options), CUDAQ_OK);
  EXPECT_EQ(cudaq_qec_decoding_server_reload(made, with_file, kLong), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(error().find("/nonexistent-folder/model.dem"), std::string::npos) << error();
  cudaq_qec_decoding_server_destroy(made);
}

TEST(DecodingServerLibrary, BelongsToTheProcessThatCreatedIt) {
  embedded_server server(config_of("lookup", kTwoDetectors));
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}).status, 0);
  const std::string config = config_of("lookup", kTwoDetectors);
  const int wrong_calls = cudaq::realtime::test::status_in_child([&] {
    std::uint8_t byte = 0;
    std::int32_t status = 0;
    std::uint32_t slot_size = 0;
    cudaq_qec_decoding_server_counts_t counts{};
    counts.struct_size = sizeof counts;
    const cudaq_qec_decoding_server_request_t shot{CUDAQ_QEC_DECODE, 0, 0, &byte, 1, &byte, 1};
    int wrong = 0;
    for (const cudaq_status_t refused :
         {cudaq_qec_decoding_server_get_slot_size(server.get(), &slot_size),
          cudaq_qec_decoding_server_serve(server.get(), reinterpret_cast<cudaq_dispatcher_t *>(&byte), 256),
          cudaq_qec_decoding_server_submit(
              server.get(), &shot, [](void *, std::int32_t, std::uint64_t) {}, nullptr),
          cudaq_qec_decoding_server_call(server.get(), &shot, &status, nullptr),
          cudaq_qec_decoding_server_reload(server.get(), config.c_str(), 0),
          cudaq_qec_decoding_server_go_back(server.get(), CUDAQ_QEC_MODEL_CONFIGURED, 0),
          cudaq_qec_decoding_server_drain(server.get(), 0, 0),
          cudaq_qec_decoding_server_get_counts(server.get(), 7, &counts)})
      wrong += refused == CUDAQ_ERR_STATE && error().find("fork") != std::string::npos ? 0 : 1;
    cudaq_qec_decoding_server_destroy(server.get());
    return wrong;
  });
  EXPECT_EQ(wrong_calls, 0) << "calls that were not refused";
  EXPECT_EQ(server.call(CUDAQ_QEC_DECODE, {0b01}).status, 0) << "the parent goes on";
}

TEST(DecodingServerLibrary, EndsTheProcessIfACallbackThrows) {
  expect_end_of_process(
      [] {
        const embedded_server server(config_of("lookup", kTwoDetectors, "queue_length: 0"));
        std::uint8_t byte = 0;
        const cudaq_qec_decoding_server_request_t shot{CUDAQ_QEC_DECODE, 0, 0, &byte, 1, &byte, 1};
        (void)cudaq_qec_decoding_server_submit(
            server.get(), &shot, [](void *, std::int32_t, std::uint64_t) { throw std::runtime_error("of the user"); },
            nullptr);
      },
      "a decoding server: answered has thrown an exception");
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// Requesters that keep as many slots of the transport as they get, and another one whose decoder is free. The slots are
// those that a user gets without an option.
#include "tools/serve/decode_log.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/serve/serve_fixture.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <arpa/inet.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>

namespace cudaq::realtime::tools::test {
namespace {

using realtime::test::udp_peer;

/// Over UDP, with these options of the provider. Decoder 1 is a stream, 5 may not end, 6 is free.
class ServeSlots : public Serve, public testing::WithParamInterface<const char *> {
protected:
  void SetUp() override {
    Serve::SetUp();
    const std::string part = "      detector(0) D0\n      error(0.1) D0 L0\n      shift_detectors(1) 1\n";
    write(yaml(), "decoders:\n  - id: 1\n    type: sliding-window:inner=lookup,commit=2,buffer=1\n    stream: true\n"
                  "    queue_length: 200\n    age_limit_us: 600000000\n    dem: |\n" +
                      part + "      repeat 100 {\n" + part + "      }\n" + part +
                      "  - id: 5\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) + "\n    dem: |\n" + model(0) +
                      "  - id: 6\n    type: lookup\n    dem: |\n" + model(0));
  }
  std::vector<std::string> over_udp() const {
    std::vector<std::string> all{"serve",       "--config", yaml(), "--transport", CUDAQ_UDP_PROVIDER,
                                 "--end-limit", "0",        "--",   "--port=0"};
    if (*GetParam() != '\0')
      all.emplace_back(GetParam());
    return all;
  }
  /// Each answer comes, though others keep slots.
  static void use_the_free_decoder(std::uint32_t port) {
    udp_peer peer(port);
    for (std::uint32_t k = 0; k < 20; ++k) {
      peer.send(realtime::test::request_bytes(kEnqueue, k + 1, enqueue(k, 1), 256, 5000 + k));
      const auto answer = peer.receive();
      ASSERT_TRUE(answer.has_value()) << k;
      EXPECT_EQ(realtime::test::response_header(*answer).request_id, k + 1);
      EXPECT_EQ(realtime::test::response_header(*answer).status, 0);
    }
  }
};

TEST_P(ServeSlots, AreFreeForOtherDecodersWhileAHundredReadsWait) {
  running_program server(over_udp(), err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, " slots=8 ")) << ready << read_file(err());
  const auto port = static_cast<std::uint32_t>(std::stoul(value_in(ready, "port")));
  udp_peer reader(port);
  for (std::uint32_t k = 0; k < 100; ++k)
    reader.send(realtime::test::request_bytes(0x75DD3F12, k + 1, numbers({1, 1, 0, 2}), 256, 1000 + k));
  for (std::uint32_t busy = 0; busy < 90; ++busy) {
    const auto answer = reader.receive();
    ASSERT_TRUE(answer.has_value()) << busy;
    EXPECT_EQ(realtime::test::response_header(*answer).status, 5);
  }
  use_the_free_decoder(port);
}

TEST_P(ServeSlots, AreFreeForOtherDecodersWhileAReadWaitsAndFunctionsThatTheServerDoesNotHaveCome) {
  running_program server(over_udp(), err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, " slots=8 ")) << ready << read_file(err());
  const auto port = static_cast<std::uint32_t>(std::stoul(value_in(ready, "port")));
  udp_peer reader(port), stranger(port);
  reader.send(realtime::test::request_bytes(0x75DD3F12, 1, numbers({1, 1, 0, 2}), 256, 1000));
  for (std::uint32_t k = 0; k < 20; ++k) { // more than a lap
    stranger.send(realtime::test::request_bytes(0x12345678, k + 1, {}, 256, 2000 + k));
    const auto answer = stranger.receive();
    ASSERT_TRUE(answer.has_value()) << k;
    EXPECT_EQ(realtime::test::response_header(*answer).status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  }
  use_the_free_decoder(port);
}

/// A ring stops before the slot of a request that is executed.
class ServeSlotsInAnyOrder : public ServeSlots {};

TEST_P(ServeSlotsInAnyOrder, AreFreeForOtherDecodersWhileABlockedRequestIsRepeated) {
  running_program server(over_udp(), err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, " slots=8 ")) << ready << read_file(err());
  const auto port = static_cast<std::uint32_t>(std::stoul(value_in(ready, "port")));
  udp_peer repeater(port);
  for (std::uint32_t k = 0; k < 100; ++k)
    repeater.send(realtime::test::request_bytes(kEnqueue, 1, enqueue(1, 0b1000, 5), 256, 1000));
  for (std::uint32_t copy = 0; copy < 90; ++copy) {
    const auto answer = repeater.receive();
    ASSERT_TRUE(answer.has_value()) << copy;
    EXPECT_EQ(realtime::test::response_header(*answer).status, CUDAQ_RPC_ERR_BUSY);
  }
  use_the_free_decoder(port);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ServeSlotsInAnyOrder, testing::Values("--unified"),
                         [](const auto &) { return std::string("Unified"); });
INSTANTIATE_TEST_SUITE_P(Shapes, ServeSlots, testing::Values("", "--unified"),
                         [](const testing::TestParamInfo<const char *> &of) {
                           return std::string(*of.param == '\0' ? "Ring" : "Unified");
                         });

// A provider of the user gets slots in which a whole shot fits, or the start says which size a whole shot needs.

/// A whole shot has 1900 detectors in 238 bytes, its enqueue request 294: more than the 256 of a usual slot.
constexpr std::size_t kDetectors = 1900, kShotBytes = (kDetectors + 7) / 8;

struct ServeOwnProvider : Serve {
  void SetUp() override {
    Serve::SetUp();
    std::string text = "decoders:\n  - id: 6\n    type: pymatching\n    dem: |\n";
    for (std::size_t k = 0; k < kDetectors; ++k)
      text += "      error(0.1) D" + std::to_string(k) + (k == 0 ? " L0\n" : "\n");
    write(yaml(), text);
    if (contains(run_program("serve --check '" + yaml().string() + "'").err, "pymatching"))
      GTEST_SKIP() << "this build has no PyMatching";
  }
  std::vector<std::string> over(const char *provider, const std::vector<std::string> &options = {}) const {
    std::vector<std::string> all{"serve",     "--config", yaml(),
                                 "--timeout", "120",      "--transport",
                                 provider,    "--",       "--socket=" + socket().string()};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }
  bytes whole_shot() const {
    bytes events(kShotBytes);
    events[0] = 1; // detector 0
    return joined(numbers({6, 0, 0, kDetectors}), events);
  }
};

TEST_F(ServeOwnProvider, GetsSlotsInWhichAWholeShotFits) {
  running_program server(over(CUDAQ_TEST_SOCKET_PROVIDER), err());
  EXPECT_TRUE(contains(server.line(), " slot_size=384")) << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kEnqueue, whole_shot()).status, 0);
  const wire_answer answer = peer.call(kGet, joined(numbers({6, 1}), {1}));
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.result, bytes{1});
}

TEST_F(ServeOwnProvider, WithSmallSlotsOfItsOwnServesShotsInPartsAndSaysWhichSizeAWholeOneNeeds) {
  for (const std::vector<std::string> &options :
       {std::vector<std::string>{}, {"--refuse"}, {"--refuse-otherwise"}, {"--bytes=128"}}) {
    running_program server(over(CUDAQ_TEST_FIXED_SLOTS_PROVIDER, options), err());
    const std::string bytes_text = contains(options.empty() ? "" : options[0], "128") ? "128" : "256";
    EXPECT_TRUE(contains(server.line(), " slot_size=" + bytes_text)) << read_file(err());
    EXPECT_TRUE(contains(read_file(err()), "its slots have " + bytes_text +
                                               " bytes, and the request of a whole shot needs 294: shots must come in "
                                               "parts"))
        << read_file(err());
    socket_peer peer(socket());
    constexpr std::size_t kPart = 8 * 32; // bits
    std::uint64_t counter = 0;
    for (std::size_t at = 0; at < kDetectors; at += kPart) {
      const std::size_t bits = std::min(kPart, kDetectors - at);
      bytes events((bits + 7) / 8);
      events[0] = at == 0 ? 1 : 0; // detector 0
      EXPECT_EQ(peer.call(kEnqueue, joined(numbers({6, counter++, 0, bits}), events)).status, 0);
    }
    const wire_answer answer = peer.call(kGet, joined(numbers({6, 1}), {1}));
    EXPECT_EQ(answer.status, 0);
    EXPECT_EQ(answer.result, bytes{1});
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
  }
}

TEST_F(ServeOwnProvider, WithSlotsThatAWholeShotFitsInIsServedWithoutALine) {
  running_program server(over(CUDAQ_TEST_FIXED_SLOTS_PROVIDER, {"--bytes=320"}), err());
  EXPECT_TRUE(contains(server.line(), " slot_size=320")) << read_file(err());
  EXPECT_FALSE(contains(read_file(err()), "whole shot")) << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kEnqueue, whole_shot()).status, 0);
}

TEST_F(ServeOwnProvider, KeepsASizeThatIsNamedAndSaysThatRequestsAreLongerThanIt) {
  running_program server(over(CUDAQ_TEST_SOCKET_PROVIDER, {"--slot-size=256"}), err());
  EXPECT_TRUE(contains(server.line(), " slot_size=256")) << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kEnqueue, whole_shot()).status, CUDAQ_RPC_ERR_BAD_ARG_LEN);
  const std::regex line(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z cudaq-realtime: 1 message longer than a slot of )"
                        "256 bytes was not executed; the request of a whole shot needs 294");
  server.until([&] { return std::regex_search(read_file(err()), line); });
  EXPECT_TRUE(std::regex_search(read_file(err()), line)) << read_file(err());
}

TEST_F(ServeOwnProvider, OverUdpSaysThatRequestsAreLongerThanASlot) {
  running_program server(
      {"serve", "--config", yaml(), "--transport", CUDAQ_UDP_PROVIDER, "--", "--port=0", "--slot-size=256"}, err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, "port=")) << read_file(err());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(ready.substr(ready.find("port=") + 5))));
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bytes datagram(300);
  EXPECT_EQ(sendto(fd, datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr *>(&address), sizeof address),
            300);
  close(fd);
  server.until([&] { return contains(read_file(err()), "longer than a slot of 256 bytes"); });
  EXPECT_TRUE(contains(read_file(err()), "1 message longer than a slot of 256 bytes")) << read_file(err());
}

TEST_F(ServeOwnProvider, IsCheckedByDoctor) {
  const std::string path = CUDAQ_TEST_SOCKET_PROVIDER;
  const program_result good =
      run_program("doctor --json --transport '" + path + "' -- --slot-size=512 --socket='" + socket().string() + "'");
  const auto part = good.json().at("parts").at("transport " + path);
  EXPECT_EQ(part.at(0).at("verdict"), "good");
  EXPECT_TRUE(contains(part.at(0).at("detail"), "shape ring, 8 slots of 512 bytes; transport=socket")) << part;
  EXPECT_EQ(part.at(1).at("verdict"), "warning") << "no request was sent: it cannot be good";
  const program_result bad = run_program("doctor --json --transport '" + path + "' -- --slots=1");
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.json().at("parts").at("transport " + path).at(0).at("verdict"), "wrong");
  EXPECT_TRUE(contains(bad.out, "option --slots=1: allowed:")) << bad.out;
  const program_result timed = run_program("doctor --transport '" + path + "' --timeout 3");
  EXPECT_EQ(timed.exit_code, 2);
  EXPECT_TRUE(contains(timed.err, "--timeout: it has no effect with a provider of your own")) << timed.err;
  const program_result named = run_program("doctor --transport udp -- --slots=1");
  EXPECT_EQ(named.exit_code, 2) << "options of a named provider are not doctor's to pass on";
}

TEST_F(ServeOwnProvider, HasNoClientInEmulateWhichSaysSo) {
  const program_result r = run_program(std::string("emulate --transport ") + CUDAQ_TEST_SOCKET_PROVIDER);
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "emulate has no client of it")) << r.err;
}

// What serve says about a decode that does not end. The plug-in of these is busy for ten minutes if detector 3 fires.

using namespace std::chrono_literals;

TEST(LongDecode, IsAHundredDeadlinesAndAtLeastASecond) {
  EXPECT_EQ(long_decode(1'000'000), 1s);
  EXPECT_EQ(long_decode(50'000'000), 5s);
  EXPECT_EQ(long_decode(0), 10s);
  EXPECT_GT(long_decode(std::numeric_limits<std::uint64_t>::max()), 24h);
}

class ServeLongDecode : public Serve, public testing::WithParamInterface<unsigned> {
protected:
  void SetUp() override {
    Serve::SetUp();
    const std::string more = "    queue_length: " + std::to_string(GetParam()) + "\n    deadline_us: 1000\n";
    write(yaml(), "decoders:\n  - id: 6\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) + "\n    dem: |\n" +
                      model(0) + more + "  - id: 7\n    type: lookup\n    dem: |\n" + model(0) + more);
  }
  std::size_t lines() const {
    const std::string text = read_file(err());
    std::size_t found = 0;
    for (std::size_t at = text.find("the decode of a request"); at != std::string::npos;
         at = text.find("the decode of a request", at + 1))
      ++found;
    return found;
  }
};

TEST_P(ServeLongDecode, IsReportedOnceWithTimeAndDeadline) {
  running_program server(arguments({"--wait", "block"}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(peer.call(kOneShot, {1}).status, 0);
  ASSERT_EQ(peer.call(kEnqueue, enqueue(0, 0b1000, 7)).status, 0) << "the other decoder ends";
  const std::size_t before = lines(); // a decode without a core for a second is a long one, too
  EXPECT_TRUE(before == 0 || std::chrono::steady_clock::now() - begin > 900ms) << read_file(err());
  peer.send_frame(kOneShot, {0b1000});
  server.until([&] { return lines() != before; });
  for (int more = 0; more < 6; ++more) // with a queue the last ones are BUSY
    peer.send_frame(kOneShot, {1});
  std::this_thread::sleep_for(1500ms); // several looks, longer than the least time
  const std::string text = read_file(err());
  EXPECT_EQ(lines(), before + 1) << text;
  EXPECT_TRUE(contains(text, "cudaq-realtime: decoder 6: the decode of a request has taken ")) << text;
  EXPECT_TRUE(contains(text, " so far, its deadline is 1.00 ms; later requests for this decoder wait\n")) << text;
}

/// Not BUSY of the server, after which the requester would send its bits in another request.
TEST_F(Serve, HasNoRoomForACopyOfARequestThatFillsTheQueue) {
  write(yaml(), "decoders:\n  - id: 6\n    type: " + std::string(CUDAQ_TEST_STUCK_DECODER) + "\n    dem: |\n" +
                    model(0) + "    queue_length: 1\n");
  running_program server({"serve", "--config", yaml(), "--transport", CUDAQ_UDP_PROVIDER, "--", "--port=0"}, err());
  const std::string ready = server.line();
  ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << read_file(err());
  realtime::test::udp_peer peer(static_cast<std::uint32_t>(std::stoul(value_in(ready, "port"))));
  const bytes frame = realtime::test::request_bytes(kEnqueue, 1, enqueue(1, 0b1000), 256, 1000);
  peer.send(frame); // is being decoded
  peer.send(frame);
  const auto answer = peer.receive();
  ASSERT_TRUE(answer.has_value());
  const std::int32_t status = realtime::test::response_header(*answer).status;
  EXPECT_EQ(status, CUDAQ_RPC_ERR_BUSY);
}

INSTANTIATE_TEST_SUITE_P(QueueLengths, ServeLongDecode, testing::Values(0U, 4U));

} // namespace
} // namespace cudaq::realtime::tools::test

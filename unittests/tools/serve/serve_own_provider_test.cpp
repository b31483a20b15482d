// SPDX-License-Identifier: Apache-2.0
// A provider of the user gets slots in which a whole shot fits, or the start says which size a whole shot needs.
#include "unittests/tools/serve/serve_fixture.h"

#include <arpa/inet.h>
#include <nlohmann/json.hpp>
#include <regex>

namespace cudaq::realtime::tools::test {
namespace {

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
  /// The end of the start, which must fail.
  std::string refusal(const std::vector<std::string> &arguments) const {
    running_program server(arguments, err());
    EXPECT_EQ(server.line(), "");
    EXPECT_EQ(server.wait(), 2);
    return read_file(err());
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

TEST_F(ServeOwnProvider, SaysWhatElseIsWrongWithItsOptions) {
  const std::string text = refusal(over(CUDAQ_TEST_SOCKET_PROVIDER, {"--sokcet=x"}));
  EXPECT_TRUE(contains(text, "option --sokcet=x")) << text;
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

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
#include "unittests/tools/serve/served_program.h"

#include <arpa/inet.h>

namespace cudaq::realtime::tools::test {
namespace {

constexpr std::uint32_t kEnqueue = 0x7ED8BE82, kGet = 0x882D5BA1, kReset = 0x977A59CF, kOneShot = 0xC4B0E4BF;

bool no_yaml() { return contains(run_program("serve --config /dev/null").err, "no YAML parser"); }

/// The shift rotates the answer: observable (k + shift) % 4 for detector k.
std::string model(unsigned shift) {
  std::string text;
  for (unsigned k = 0; k < 4; ++k)
    text += "      error(0.1) D" + std::to_string(k) + " L" + std::to_string((k + shift) % 4) + "\n";
  return text;
}
std::string config(unsigned shift, const std::string &more = "") {
  return "decoders:\n  - id: 6\n    type: lookup\n    dem: |\n" + model(shift) + more;
}
void write(const std::filesystem::path &path, const std::string &text) { std::ofstream(path) << text; }

class Serve : public testing::Test {
protected:
  void SetUp() override {
    if (no_yaml())
      GTEST_SKIP() << "this build has no YAML parser";
    write(yaml(), config(0));
  }
  std::filesystem::path yaml() const { return folder_.path() / "decoders.yaml"; }
  std::filesystem::path socket() const { return folder_.path() / "requests.sock"; }
  std::filesystem::path err() const { return folder_.path() / "stderr"; }
  std::vector<std::string> arguments(const std::vector<std::string> &more = {}) const {
    std::vector<std::string> all{"serve", "--config", yaml(), "--transport", CUDAQ_TEST_SOCKET_PROVIDER};
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {"--", "--socket=" + socket().string()});
    return all;
  }

  scratch_folder folder_;
};

bytes enqueue(std::uint64_t counter, std::uint8_t bits, std::uint64_t id = 6) {
  return joined(numbers({id, counter, 0, 4}), {bits});
}
bytes get(bool clear = true) { return joined(numbers({6, 4}), {clear ? std::uint8_t{1} : std::uint8_t{0}}); }

TEST_F(Serve, AnswersEveryFunctionOverAProvider) {
  running_program server(arguments(), err());
  EXPECT_TRUE(server.line().starts_with("QEC_DECODING_SERVER_READY port=0 transport=")) << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.ask(kEnqueue, enqueue(0, 0b0101)).status, 0);
  const wire_answer corrections = peer.ask(kGet, get());
  EXPECT_EQ(corrections.status, 0);
  EXPECT_EQ(corrections.result, bytes{0b0101});
  EXPECT_EQ(peer.ask(kEnqueue, enqueue(5, 0b0101)).status, 6);
  EXPECT_EQ(peer.ask(kGet, get()).status, 6);
  EXPECT_EQ(peer.ask(kReset, numbers({6})).status, 0);
  EXPECT_EQ(peer.ask(kEnqueue, enqueue(0, 1, 7)).status, 1);
  EXPECT_EQ(peer.ask(kReset, numbers({6, 6})).status, 2);
  EXPECT_EQ(peer.ask(kOneShot, {0b0011}).result, bytes{0b0011});
  EXPECT_EQ(peer.ask(0x1234, {}).status, -1001) << "unknown functions are answered";
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=7");
  EXPECT_EQ(server.line(), "CUDAQ_REALTIME_SERVER_PROCESSED count=9");
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

TEST_F(Serve, ReloadsWithoutLosingARequest) {
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  std::uint64_t counter = 0;
  for (unsigned reload = 1; reload <= 10; ++reload) {
    write(yaml(), config(reload % 2));
    server.signal(SIGHUP);
    for (int shot = 0; shot < 50; ++shot) {
      ASSERT_EQ(peer.ask(kEnqueue, enqueue(counter++, 1)).status, 0);
      const wire_answer answer = peer.ask(kGet, get());
      ASSERT_EQ(answer.status, 0);
      ASSERT_TRUE(answer.result == bytes{1} || answer.result == bytes{2});
    }
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_APPLIED") << read_file(err());
    ASSERT_EQ(peer.ask(kEnqueue, enqueue(counter++, 1)).status, 0);
    EXPECT_EQ(peer.ask(kGet, get()).result, bytes{static_cast<std::uint8_t>(1u << (reload % 2))});
  }
}

TEST_F(Serve, KeepsTheOldConfigurationIfTheNewOneIsRefused) {
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  const std::pair<std::string, std::string> refused[] = {
      {"decoders: [{id: 6, type: mwpm}]\n", "mwpm"},
      {"decoders: [\n", "not YAML"},
      {config(0, "    queue_length: 3\n"), "queue_length"},
      {config(0, "transport: {provider: udp}\n"), "transport: it is fixed"},
      {"decoders: [{id: 6, type: lookup, dem: error(0.1) D0 L0}]\n", "these are fixed"}};
  for (const auto &[text, reason] : refused) {
    write(yaml(), text);
    server.signal(SIGHUP);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active") << text;
    EXPECT_TRUE(contains(read_file(err()), reason)) << reason << "\n" << read_file(err());
    EXPECT_EQ(peer.ask(kOneShot, {0b0100}).result, bytes{0b0100});
  }
}

TEST_F(Serve, DrainsRequestsThatItHasTaken) {
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.ask(kReset, numbers({6})).status, 0); // connected
  for (std::uint64_t counter = 0; counter < 6; ++counter)
    peer.send_frame(kEnqueue, enqueue(counter, 1));
  server.signal(SIGTERM);
  // Those before the drain are served, the others refused; all that came into the ring are answered, in order.
  bool draining = false;
  for (std::uint32_t k = 0; k < 6; ++k) {
    const wire_answer answer = peer.receive();
    if (answer.status == -9999)
      break; // it was still in the socket when the provider stopped
    EXPECT_EQ(answer.request_id, k + 2);
    EXPECT_EQ(answer.status, draining || answer.status != 0 ? 4 : 0);
    draining = draining || answer.status == 4;
  }
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

TEST_F(Serve, NotifiesItsServiceManager) {
  const std::string path = (folder_.path() / "notify").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
  const auto next = [&] {
    char text[1024];
    pollfd ready{fd, POLLIN, 0};
    const ssize_t n = poll(&ready, 1, kLimitMs) > 0 ? recv(fd, text, sizeof text, 0) : 0;
    return std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  };
  running_program server(arguments(), err(), path);
  EXPECT_TRUE(next().starts_with("READY=1\n")) << read_file(err());
  server.signal(SIGHUP);
  EXPECT_TRUE(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  EXPECT_EQ(next(), "READY=1");
  server.signal(SIGTERM);
  EXPECT_EQ(next(), "STOPPING=1");
  EXPECT_EQ(server.wait(), 0);
  close(fd);
}

std::string read_all(int fd) {
  std::string text;
  char part[4096];
  for (pollfd ready{fd, POLLIN, 0}; poll(&ready, 1, kLimitMs) > 0;) {
    const ssize_t n = read(fd, part, sizeof part);
    if (n <= 0)
      break;
    text.append(part, static_cast<std::size_t>(n));
  }
  close(fd);
  return text;
}

TEST_F(Serve, ShowsItsCounters) {
  const std::string path = (folder_.path() / "counters").string();
  running_program server(arguments({"--counters", path, "--prometheus-port", "0"}), err());
  const std::string ready = server.line();
  const std::size_t at = ready.find("prometheus_port=");
  ASSERT_NE(at, std::string::npos) << ready << read_file(err());
  socket_peer peer(socket());
  ASSERT_EQ(peer.ask(kEnqueue, enqueue(0, 1)).status, 0);
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  path.copy(local.sun_path, sizeof(local.sun_path) - 1);
  const int unix_fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(unix_fd, reinterpret_cast<const sockaddr *>(&local), sizeof local), 0);
  const std::string text = read_all(unix_fd);
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_requests_total{decoder=\"6\"} 1\n")) << text;
  EXPECT_TRUE(contains(text, "\ncudaq_decoder_answers_total{decoder=\"6\",status=\"ok\"} 1\n")) << text;
  sockaddr_in remote{};
  remote.sin_family = AF_INET;
  remote.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  remote.sin_port = htons(static_cast<std::uint16_t>(std::stoi(ready.substr(at + 16))));
  const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(tcp, reinterpret_cast<const sockaddr *>(&remote), sizeof remote), 0);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_EQ(send(tcp, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  const std::string page = read_all(tcp);
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n")) << page;
  EXPECT_TRUE(contains(page, "cudaq_decoder_shots_total{decoder=\"6\"} 1\n")) << page;
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path)) << "the socket is removed";
}

TEST_F(Serve, EndsAfterTheTimeoutAndReportsInJson) {
  const auto report = folder_.path() / "report.json";
  running_program server(arguments({"--timeout", "0.2", "--json", report}), err());
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  const auto j = nlohmann::json::parse(read_file(report));
  EXPECT_EQ(j.at("command"), "serve");
  EXPECT_EQ(j.at("ok"), true);
  EXPECT_EQ(j.at("decoders").at(0).at("id"), 6);
}

TEST_F(Serve, RefusesWhatItCannotUse) {
  const auto expect_refused = [&](const std::string &arguments, const std::string &text) {
    const program_result r = run_program("serve " + arguments);
    EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.err;
    EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
  };
  const std::string good = "--config '" + yaml().string() + "'";
  const std::string transport = " --transport '" CUDAQ_TEST_SOCKET_PROVIDER "'";
  expect_refused("", "--config is missing");
  expect_refused("--config /nonexistent.yaml", "/nonexistent.yaml: No such file or directory");
  expect_refused("--config /tmp", "/tmp: Is a directory");
  expect_refused(good, "--transport is missing");
  expect_refused(good + " --transport nothing", "libcudaq-realtime-bridge-nothing.so");
  expect_refused(good + transport, "--socket=PATH is required");
  expect_refused(good + transport + " -- --speed=3", "--speed=3");
  expect_refused(good + " --turbo", "--turbo");
  expect_refused(good + transport + " --prometheus-port 70000", "--prometheus-port");
  expect_refused(good + transport + " -- --slot-size=24 --socket=" + socket().string(),
                 "give the provider larger slots");
  write(yaml(), "decoders: [{id: 6, type: nv-qldpc-decoder}]\n");
  expect_refused(good + transport, "use bp-osd");
}

TEST(ServeSchema, IsJson) {
  const program_result r = run_program("serve --schema");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.json().at("type"), "object");
}

} // namespace
} // namespace cudaq::realtime::tools::test

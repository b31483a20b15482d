// SPDX-License-Identifier: Apache-2.0
// Recorded shots through the server over each transport, every answer against the recorded prediction.
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <arpa/inet.h>
#include <functional>

namespace cudaq::realtime::tools::test {
namespace {

constexpr std::size_t kShots = 1000, kRow = 3; ///< 24 detectors
const std::string kSet = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";

/// Sends a request frame and returns the answer's status and result.
using exchange = std::function<wire_answer(std::uint32_t function, const bytes &payload)>;

bytes frame_of(std::uint32_t function, const bytes &payload, std::uint32_t number) {
  cudaq_rpc_header_t header{};
  header.magic = CUDAQ_RPC_MAGIC_REQUEST;
  header.function_id = function;
  header.arg_len = static_cast<std::uint32_t>(payload.size());
  header.request_id = number;
  bytes frame(sizeof header + payload.size());
  std::memcpy(frame.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), frame.begin() + sizeof header);
  return frame;
}

wire_answer answer_in(const std::uint8_t *frame) {
  cudaq_rpc_response_t header{};
  std::memcpy(&header, frame, sizeof header);
  const std::uint8_t *const result = frame + sizeof header;
  return {header.status, header.request_id, bytes(result, result + header.result_len)};
}

/// Each shot as a stream in two parts, and as a whole: both answers are the recorded one.
void expect_recorded_predictions(const exchange &call) {
  const std::string events = read_file(kSet + ".dets.b8"), predictions = read_file(kSet + ".pred.b8");
  ASSERT_EQ(events.size(), kShots * kRow);
  ASSERT_EQ(predictions.size(), kShots);
  std::uint64_t counter = 0;
  for (std::size_t shot = 0; shot < kShots; ++shot) {
    const bytes whole(events.begin() + static_cast<std::ptrdiff_t>(shot * kRow),
                      events.begin() + static_cast<std::ptrdiff_t>((shot + 1) * kRow));
    const bytes expected{static_cast<std::uint8_t>(predictions[shot])};
    ASSERT_EQ(call(kEnqueue, joined(numbers({0, counter++, 0, 8}), {whole[0]})).status, 0);
    ASSERT_EQ(call(kEnqueue, joined(numbers({0, counter++, 0, 16}), {whole[1], whole[2]})).status, 0);
    const wire_answer corrections = call(kGet, joined(numbers({0, 1}), {1}));
    ASSERT_EQ(corrections.status, 0);
    ASSERT_EQ(corrections.result, expected) << shot;
    ASSERT_EQ(call(kOneShot, whole).result, expected) << shot;
  }
}

class ServeOver : public testing::Test {
protected:
  void SetUp() override {
    if (contains(run_program("serve --config /proc/version").err, "no YAML parser"))
      GTEST_SKIP() << "this build has no YAML parser";
    // The predictions are PyMatching's; the decoder of a build without it may answer ties differently.
    const std::string made = "decoders: [{id: 0, type: pymatching, dem_file: '" + kSet + ".dem'}]\n";
    std::ofstream(yaml()) << made;
    if (contains(run_program("serve --config '" + yaml().string() + "'").err, "pymatching"))
      GTEST_SKIP() << "this build has no PyMatching";
  }
  std::filesystem::path yaml() const { return folder_.path() / "decoders.yaml"; }
  std::filesystem::path err() const { return folder_.path() / "stderr"; }

  /// `more`: a line that the end may also have instead of the count of all requests.
  void expect_good_end(running_program &server, const std::string &more = "") {
    server.signal(SIGTERM);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=0 dispatched=4000");
    const std::string processed = server.line();
    EXPECT_TRUE(processed == "CUDAQ_REALTIME_SERVER_PROCESSED count=4000" || processed == more) << processed;
    EXPECT_EQ(server.wait(), 0) << read_file(err());
  }
  void run_udp(const std::vector<std::string> &options);

  scratch_folder folder_;
};

/// Programs for sensor bridges wait for these lines.
TEST_F(ServeOver, RefusesAnOptionThatTheTransportDoesNotHave) {
  const program_result r = run_program("serve --config '" + yaml().string() + "' --transport '" + CUDAQ_UDP_PROVIDER +
                                       "' -- --port=0 --slots=64");
  EXPECT_EQ(r.exit_code, 2) << r.err;
  EXPECT_TRUE(contains(r.err, "'--slots=64': the udp provider has no such option")) << r.err;
}

TEST_F(ServeOver, ReportsTheNumbersOfItsQueuePair) {
  running_program server({"serve", "--config", yaml(), "--transport", "roce", "--", "--port=0", "--peer-port=0"},
                         err());
  ASSERT_TRUE(server.line().starts_with("QEC_DECODING_SERVER_READY port=")) << read_file(err());
  EXPECT_EQ(server.line(), "=== Bridge Ready ===");
  EXPECT_EQ(server.line(), "QP Number: 0x11");
  EXPECT_EQ(server.line(), "RKey: 0x1234");
  EXPECT_EQ(server.line(), "Buffer Addr: 0x0");
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=0 dispatched=0");
  EXPECT_EQ(server.line(), "CUDAQ_REALTIME_SERVER_PROCESSED count=0");
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

void ServeOver::run_udp(const std::vector<std::string> &options) {
  std::vector<std::string> arguments{"serve", "--config", yaml(), "--transport", "udp", "--"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  running_program server(arguments, err());
  const std::string ready = server.line();
  const std::string prefix = "QEC_DECODING_SERVER_READY port=";
  ASSERT_TRUE(ready.starts_with(prefix)) << ready << read_file(err());
  EXPECT_TRUE(contains(ready, " transport=udp ")) << ready;
  EXPECT_TRUE(contains(ready, " address=")) << ready;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(ready.substr(prefix.size()))));
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
  std::uint32_t number = 0;
  expect_recorded_predictions([&](std::uint32_t function, const bytes &payload) {
    const bytes frame = frame_of(function, payload, ++number);
    EXPECT_EQ(send(fd, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
    bytes datagram(65536);
    pollfd readable{fd, POLLIN, 0};
    const ssize_t n = poll(&readable, 1, kLimitMs) > 0 ? recv(fd, datagram.data(), datagram.size(), 0) : 0;
    return n < 24 ? wire_answer{} : answer_in(datagram.data());
  });
  close(fd);
  expect_good_end(server);
}

TEST_F(ServeOver, UdpAnswersAsRecorded) { run_udp({"--port=0"}); }
TEST_F(ServeOver, UdpWithoutAThreadAnswersAsRecorded) { run_udp({"--port=0", "--unified"}); }

TEST_F(ServeOver, SharedMemoryAnswersAsRecorded) {
  const std::string name = "serve-test-" + std::to_string(getpid());
  running_program server({"serve", "--config", yaml(), "--transport", "shm", "--", "--name=" + name}, err());
  const std::string ready = server.line();
  ASSERT_TRUE(ready.starts_with("QEC_DECODING_SERVER_READY port=0 transport=shm ")) << ready << read_file(err());
  EXPECT_TRUE(contains(ready, " name=" + name + " clients=1 frame_size=")) << ready;
  EXPECT_EQ(ready.find(" slots="), ready.rfind(" slots=")) << ready;
  cudaq_shm_client_options_t options{};
  options.struct_size = sizeof options;
  options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
  cudaq_shm_client_t *client = nullptr;
  ASSERT_EQ(cudaq_shm_client_attach(&client, name.c_str(), kLimitMs * std::uint64_t{1'000'000}, &options), CUDAQ_OK)
      << cudaq_shm_client_error();
  cudaq_ringbuffer_t ring{};
  std::uint32_t slots = 0, slot_size = 0, number = 0;
  ASSERT_EQ(cudaq_shm_client_ring(client, &ring, &slots, &slot_size), CUDAQ_OK);
  expect_recorded_predictions([&](std::uint32_t function, const bytes &payload) {
    const std::uint32_t slot = number % slots;
    const bytes frame = frame_of(function, payload, ++number);
    std::memcpy(ring.rx_data_host + slot * ring.rx_stride_sz, frame.data(), frame.size());
    cudaq_shm_client_signal(client, slot);
    if (cudaq_shm_client_wait(client, slot, kLimitMs * std::uint64_t{1'000'000}) != CUDAQ_OK)
      return wire_answer{};
    const wire_answer answer = answer_in(ring.tx_data_host + slot * ring.tx_stride_sz);
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    return answer;
  });
  EXPECT_EQ(cudaq_shm_client_detach(client), CUDAQ_OK);
  // The frame that frees the ring of a client that has left may be dropped before the end.
  expect_good_end(server, "CUDAQ_REALTIME_SERVER_PROCESSED count=4001");
}

} // namespace
} // namespace cudaq::realtime::tools::test

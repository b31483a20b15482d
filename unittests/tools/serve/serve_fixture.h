// SPDX-License-Identifier: Apache-2.0
// A server of one decoder with the id 6 over the example's socket provider.
#pragma once

#include "unittests/support/program_paths.h"
#include "unittests/tools/common/served_program.h"
#include "unittests/transport/datagram/unused_udp_port.h"

namespace cudaq::realtime::tools::test {

inline constexpr std::uint32_t kEnqueue = 0x7ED8BE82, kGet = 0x882D5BA1, kReset = 0x977A59CF, kOneShot = 0xC4B0E4BF;

inline bool no_yaml() { return contains(run_program("serve --config /proc/version").err, "no YAML parser"); }

/// The shift rotates the answer: observable (k + shift) % 4 for detector k.
inline std::string model(unsigned shift) {
  std::string text;
  for (unsigned k = 0; k < 4; ++k)
    text += "      error(0.1) D" + std::to_string(k) + " L" + std::to_string((k + shift) % 4) + "\n";
  return text;
}
inline std::string config(unsigned shift, const std::string &more = "") {
  return "decoders:\n  - id: 6\n    type: lookup\n    dem: |\n" + model(shift) + more;
}
using realtime::test::unused_udp_port;
inline void write(const std::filesystem::path &path, const std::string &text) { std::ofstream(path) << text; }

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
  /// Reloads while requests run, which get the answer of either model; after it that of model(shift).
  void reload_under_requests(running_program &server, socket_peer &peer, std::uint64_t &counter, unsigned shift);

  scratch_folder folder_;
};

inline bytes enqueue(std::uint64_t counter, std::uint8_t bits, std::uint64_t id = 6) {
  return joined(numbers({id, counter, 0, 4}), {bits});
}
inline bytes get(bool clear = true) { return joined(numbers({6, 4}), {clear ? std::uint8_t{1} : std::uint8_t{0}}); }

inline void Serve::reload_under_requests(running_program &server, socket_peer &peer, std::uint64_t &counter,
                                         unsigned shift) {
  server.signal(SIGHUP);
  for (int shot = 0; shot < 50; ++shot) {
    ASSERT_EQ(peer.call(kEnqueue, enqueue(counter++, 1)).status, 0);
    const wire_answer answer = peer.call(kGet, get());
    ASSERT_EQ(answer.status, 0);
    ASSERT_TRUE(answer.result == bytes{1} || answer.result == bytes{2});
  }
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_APPLIED") << read_file(err());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(counter++, 1)).status, 0);
  EXPECT_EQ(peer.call(kGet, get()).result, bytes{static_cast<std::uint8_t>(1U << shift)});
}

} // namespace cudaq::realtime::tools::test

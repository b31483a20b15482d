// SPDX-License-Identifier: Apache-2.0
// `serve` with a plug-in: where its path begins, and what the log says if it breaks its contract.
#include "unittests/support/program_paths.h"
#include "unittests/tools/serve/serve_fixture.h"

namespace cudaq::realtime::tools::test {
namespace {

class ServePlugins : public Serve {
protected:
  void SetUp() override {
    Serve::SetUp();
    std::filesystem::copy_file(CUDAQ_TEST_BREAKING_PLUGIN, folder_.path() / "breaking.so");
  }
  static std::string plugin_config(const std::string &type) {
    return "decoders:\n  - id: 6\n    type: " + type + "\n    dem: |\n" + model(0);
  }
};

TEST_F(ServePlugins, ARelativePathBeginsInTheFolderOfTheConfiguration) {
  write(yaml(), plugin_config("./breaking.so")); // the test runs in another folder
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kOneShot, {0b0110}).result, bytes{0b0110});
}

TEST_F(ServePlugins, ABrokenPromiseIsInTheLogAndInTheReport) {
  write(yaml(), plugin_config("./breaking.so:break=status"));
  const std::string report = (folder_.path() / "report.json").string();
  running_program server(arguments({"--json", report}), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kEnqueue, enqueue(0, 0b0101)).status, 3);
  EXPECT_EQ(peer.call(kOneShot, {0b0110}).status, 5);
  const std::string text = "internal error of the decoder: plug-in breaking: decode returned 17, accepted: 0, 3, 5, 7";
  for (int wait = 0; wait < kLimitMs / 50 && !contains(read_file(err()), text); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(contains(read_file(err()), "cudaq-realtime: decoder 6: ")) << read_file(err());
  EXPECT_TRUE(contains(read_file(err()), "; the last one: " + text)) << read_file(err());
  server.signal(SIGTERM);
  while (server.line() != "")
    ;
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  const auto j = nlohmann::json::parse(read_file(report));
  EXPECT_EQ(j["decoders"][0]["failed_decodes"], 2);
  EXPECT_EQ(j["decoders"][0]["last_failure"], text);
}

// Another file takes the name of the plug-in between two reloads, as a linker or `install` does it. The requests go on.
TEST_F(ServePlugins, AReloadTakesTheNewFileWhileRequestsRun) {
  const auto put = [&](const char *library) {
    std::filesystem::copy_file(library, folder_.path() / "fresh.so");
    std::filesystem::rename(folder_.path() / "fresh.so", folder_.path() / "plugin.so");
  };
  const auto write_config = [&](unsigned shift, const std::string &settings) {
    write(yaml(), "decoders:\n  - id: 6\n    type: ./plugin.so" + settings + "\n    dem: |\n" + model(shift));
  };
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  write_config(0, "");
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  std::uint64_t counter = 0;
  for (unsigned reload = 1; reload <= 6; ++reload) {
    put(reload % 2 != 0 ? CUDAQ_TEST_LEAST_WEIGHT_PLUGIN : CUDAQ_TEST_BREAKING_PLUGIN);
    write_config(reload % 2, reload % 2 != 0 ? ":steps=1000" : ":break=nothing"); // each is of one of the two only
    ASSERT_NO_FATAL_FAILURE(reload_under_requests(server, peer, counter, reload % 2));
  }
  put(CUDAQ_TEST_LEAST_WEIGHT_PLUGIN);
  server.signal(SIGHUP);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active") << "it has no setting `break`";
  EXPECT_TRUE(contains(read_file(err()), "setting break=nothing: the only one is steps=N")) << read_file(err());
  ASSERT_EQ(peer.call(kEnqueue, enqueue(counter++, 1)).status, 0);
  EXPECT_EQ(peer.call(kGet, get()).result, bytes{1}) << "the old decoder keeps the code of its file";
}

// A copy of the plug-in has not ended, or its file is gone: the server goes on, and says that a start would fail.
TEST_F(ServePlugins, AReloadWithoutAWholeFileIsRejectedAndTheServerGoesOn) {
  const auto plugin = folder_.path() / "breaking.so";
  const std::string whole = read_file(plugin);
  write(yaml(), plugin_config("./breaking.so"));
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  const auto expect_rejected = [&](const std::string &why) {
    server.signal(SIGHUP);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active") << why;
    EXPECT_TRUE(contains(read_file(err()), why)) << read_file(err());
    EXPECT_EQ(peer.call(kOneShot, {0b0110}).result, bytes{0b0110});
  };
  std::filesystem::remove(plugin);
  expect_rejected("breaking.so: cannot open shared object file: No such file or directory");
  for (const std::size_t length : {1000U, 4096U, 12288U}) {
    write(plugin, whole.substr(0, length));
    expect_rejected("the file is not whole: it has " + std::to_string(length) + " bytes");
    std::filesystem::remove(plugin);
  }
  write(plugin, whole);
  server.signal(SIGHUP);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_APPLIED") << read_file(err());
}

} // namespace
} // namespace cudaq::realtime::tools::test

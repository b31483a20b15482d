// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/program_paths.h"
#include "unittests/tools/serve/serve_fixture.h"

namespace cudaq::realtime::tools::test {
namespace {

TEST_F(Serve, AnswersEveryFunctionOverAProvider) {
  running_program server(arguments(), err());
  EXPECT_TRUE(server.line().starts_with("QEC_DECODING_SERVER_READY port=0 transport=")) << read_file(err());
  socket_peer peer(socket());
  EXPECT_EQ(peer.call(kEnqueue, enqueue(0, 0b0101)).status, 0);
  const wire_answer corrections = peer.call(kGet, get());
  EXPECT_EQ(corrections.status, 0);
  EXPECT_EQ(corrections.result, bytes{0b0101});
  EXPECT_EQ(peer.call(kEnqueue, enqueue(5, 0b0101)).status, 6);
  EXPECT_EQ(peer.call(kGet, get()).status, 6);
  EXPECT_EQ(peer.call(kReset, numbers({6})).status, 0);
  EXPECT_EQ(peer.call(kEnqueue, enqueue(0, 1, 7)).status, 1);
  EXPECT_EQ(peer.call(kReset, numbers({6, 6})).status, 0) << "bytes after its fields are ignored";
  EXPECT_EQ(peer.call(kReset, {6}).status, 2);
  EXPECT_EQ(peer.call(kOneShot, {0b0011}).result, bytes{0b0011});
  EXPECT_EQ(peer.call(0x1234, {}).status, -1001) << "unknown functions are answered";
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=7");
  EXPECT_EQ(server.line(), "CUDAQ_REALTIME_SERVER_PROCESSED count=10");
  EXPECT_EQ(server.wait(), 0) << read_file(err());
}

// Known failure 35.
TEST_F(Serve, ReloadsWithoutLosingARequest) {
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  socket_peer peer(socket());
  std::uint64_t counter = 0;
  for (unsigned reload = 1; reload <= 10; ++reload) {
    write(yaml(), config(reload % 2));
    ASSERT_NO_FATAL_FAILURE(reload_under_requests(server, peer, counter, reload % 2));
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
    EXPECT_EQ(peer.call(kOneShot, {0b0100}).result, bytes{0b0100});
  }
}

TEST_F(Serve, SurvivesAReloadWhoseReasonCannotBeWritten) {
  running_program server(arguments(), "/dev/full");
  ASSERT_NE(server.line(), "");
  socket_peer peer(socket());
  for (int round = 0; round < 3; ++round) {
    write(yaml(), "decoders: [\n");
    server.signal(SIGHUP);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active");
    EXPECT_EQ(peer.call(kOneShot, {0b0100}).result, bytes{0b0100});
    write(yaml(), config(0));
    server.signal(SIGHUP);
    EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_CONFIG_APPLIED");
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=3");
  EXPECT_EQ(server.wait(), 0) << "signal " << server.ended_by();
}

TEST_F(Serve, SurvivesAReaderOfItsLinesThatEnds) {
  const notified_socket manager((folder_.path() / "notify").string());
  running_program server(arguments(), err(), manager.path());
  ASSERT_NE(server.line(), "") << read_file(err());
  EXPECT_TRUE(manager.next().starts_with("READY=1\n"));
  server.close_output(); // the next line raises SIGPIPE
  socket_peer peer(socket());
  for (int round = 0; round < 2; ++round) {
    server.signal(SIGHUP);
    EXPECT_TRUE(manager.next().starts_with("RELOADING=1\n"));
    EXPECT_EQ(manager.next(), "READY=1") << "the line of the outcome was written before";
    EXPECT_EQ(peer.call(kOneShot, {0b0100}).result, bytes{0b0100});
  }
  server.signal(SIGTERM);
  EXPECT_EQ(manager.next(), "STOPPING=1");
  EXPECT_EQ(server.wait(), 0) << "it served well: the lines are a log";
}

TEST_F(Serve, RefusesWhatItCannotUse) {
  const auto expect_refused = [&](const std::string &arguments, const std::string &text) {
    const program_result r = run_program("serve " + arguments);
    EXPECT_EQ(r.exit_code, 2) << arguments << "\n" << r.err;
    EXPECT_TRUE(contains(r.err, text)) << arguments << "\n" << r.err;
  };
  const std::string good = "--config '" + yaml().string() + "'";
  const std::string transport = " --transport '" + std::string(CUDAQ_TEST_SOCKET_PROVIDER) + "'";
  expect_refused("", "--config is missing");
  expect_refused("--config /nonexistent.yaml", "/nonexistent.yaml: No such file or directory");
  expect_refused("--config /tmp", "/tmp: Is a directory");
  expect_refused(good, "--transport is missing");
  expect_refused(good + " --transport nothing", "libcudaq-realtime-bridge-nothing.so");
  expect_refused(good + " --transport upd", "--transport upd: there is no provider of this name; there are ");
  expect_refused(good + " --transport upd", "(libcudaq-realtime-bridge-upd.so was not found). Did you mean udp?");
  expect_refused(good + " --transport udp -- --prot=1", "serve: --transport udp: '--prot=1': the udp provider has no");
  expect_refused(good + " --transport udp -- --prot=1", ", --port, ");
  expect_refused(good + " --transport udp -- --prot=1", " Did you mean --port?");
  expect_refused("--config d13", "d13 is the name of a decoding configuration");
  expect_refused(good + transport, "--socket=PATH is required");
  expect_refused(good + transport + " -- --speed=3", "--speed=3");
  expect_refused(good + " --turbo", "--turbo");
  expect_refused(good + transport + " --prometheus-port 70000", "--prometheus-port");
  expect_refused(good + transport + " -- --slot-size=24 --socket=" + socket().string(),
                 "give the provider larger slots");
  write(yaml(), "decoders: [{id: 6, type: nv-qldpc-decoder}]\n");
  expect_refused(good + transport, "srelay_config: nv-qldpc-decoder needs it here");
}

TEST(ServeSchema, IsJson) {
  const program_result r = run_program("serve --schema");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.json().at("type"), "object");
}

} // namespace
} // namespace cudaq::realtime::tools::test

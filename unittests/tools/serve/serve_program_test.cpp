// SPDX-License-Identifier: Apache-2.0
// What the server serves, takes, refuses and checks.
#include "tools/services/provider_service.h"
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

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

/// Programs for sensor bridges wait for these lines.
TEST_F(Serve, ReportsTheNumbersOfItsQueuePair) {
  running_program server({"serve", "--config", yaml(), "--transport", "roce", "--", "--port=0", "--peer-port=0"},
                         err());
  ASSERT_TRUE(server.line().starts_with("QEC_DECODING_SERVER_READY port=")) << read_file(err());
  for (const char *const line : {"=== Bridge Ready ===", "QP Number: 0x11", "RKey: 0x1234", "Buffer Addr: 0x0"})
    EXPECT_EQ(server.line(), line);
  server.signal(SIGTERM);
  EXPECT_EQ(server.line(), "QEC_DECODING_SERVER_RING decoder=6 dispatched=0");
  EXPECT_EQ(server.line(), "CUDAQ_REALTIME_SERVER_PROCESSED count=0");
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
  const std::string counters = (folder_.path() / "counters").string();
  running_program server(arguments({"--counters", counters}), err());
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
  EXPECT_TRUE(contains(counters_at(counters), "\ncudaq_server_reloads_total 0\n"));
  EXPECT_TRUE(contains(counters_at(counters), "\ncudaq_server_reloads_rejected_total 5\n"));
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
  const std::string transport = " --transport '" + std::string(CUDAQ_TEST_SOCKET_PROVIDER) + "'",
                    udp = good + " --transport udp ", file = (folder_.path() / "file").string();
  write(file, "");
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
  expect_refused("--check x.yaml " + good, "--check");
  expect_refused(udp + "-- --port=0 --bind=here", "a numeric IPv4 or IPv6 address is accepted");
  expect_refused(udp + "-- --port=70000", "a number from 0 to 65535 is accepted");
  expect_refused(good + " --transport /nonexistent.so", "cannot be loaded");
  expect_refused(good + " --transport '" + CUDAQ_TEST_STUCK_DECODER + "'", "it is no provider of a transport");
  expect_refused(udp + "--counters '" + file + "' -- --port=0", "is no socket");
  expect_refused(udp + "--counters /nonexistent/socket -- --port=0", "No such file or directory");
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

// serve --check: what it accepts and refuses is what the server would.

class ServeCheck : public Serve {
protected:
  program_result check(const std::string &more = "") const {
    return run_program("serve --check '" + yaml().string() + "'" + more);
  }
};

TEST_F(ServeCheck, AcceptsAConfigurationWithTheDigestsOfItsModelsAndOpensNoPort) {
  detail::udp_address address;
  detail::udp_socket other; // has the port of the configuration
  ASSERT_TRUE(detail::udp_address_of("address", "127.0.0.1", 0, address).ok());
  ASSERT_TRUE(other.open(address, 0).ok());
  write(yaml(), config(0, "transport: {provider: udp, args: [--port=" + std::to_string(other.port()) + "]}\n"));
  EXPECT_NE(run_program("serve --config '" + yaml().string() + "'").exit_code, 0) << "the port is in use";
  const program_result run = check();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::size_t first_line = run.out.find('\n') + 1;
  EXPECT_EQ(run.out.substr(first_line), "QEC_DECODING_SERVER_CONFIG_GOOD decoders=1 transport=udp\n");
  EXPECT_TRUE(run.out.starts_with("decoder 6: 4 detectors, 4 observables, digest ")) << run.out;
  EXPECT_EQ(run.err, "");
  write(yaml(), config(1));
  EXPECT_NE(check().out.substr(0, first_line), run.out.substr(0, first_line)) << "another model, another digest";
}

TEST_F(ServeCheck, NamesTheDecodersInItsReport) {
  const auto report = check(" --json").json();
  EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(report),
            std::vector<std::string>{});
  ASSERT_EQ(report.at("decoders").size(), 1U);
  EXPECT_EQ(report.at("decoders")[0].at("id"), 6);
  EXPECT_EQ(report.at("decoders")[0].at("decoder"), "lookup");
}

TEST_F(ServeCheck, RefusesWhatTheServerRefusesWithTheSameTextAndStatus) {
  const std::string one = "decoders:\n  - id: 6\n    dem: 'error(0.1) D0 L0'\n    type: ";
  const std::pair<std::string, std::string> refused[] = {
      {"decoders: [\n", "not YAML"},
      {"decoders: [{id: 6, type: mwpm}]\n", "mwpm"},
      {one + "/nonexistent/plugin.so\n", "plugin.so"},
      {one + "lookup\n    queue_length: -1\n", "queue_length"},
      {one + "lookup\n    dem_file: model.dem\n", "more than one model"},
      {"decoders:\n  - {id: 6, type: pymatching, dem: 'error(0.1) D0 D1 D2 L0'}\n", "decoders[0] (id 6): "},
      {one + "bp-osd\n    decoder_custom_args: {readout: missing.txt}\n", "readout: "},
      {one + "bp-osd:heralds=missing.txt\n", "heralds: "},
      {one + "bp-osd\n    learn: {shots: 1}\n", "learn.shots"},
      {one + "lookup\n    decoder_custom_args: {confidence: 1}\n", "\"confidence\""},
      {one + CUDAQ_TEST_SOCKET_PROVIDER + "\n", "cudaq_qec_decoder_plugin_get"},
      {one + "lookup\n  - {id: 6, type: lookup, dem: 'error(0.1) D0 L0'}\n", "id"},
      {one + "lookup\n    queue_length: 65536\n    measurements: 1048576\n    D_sparse: [0, -1]\n", "MiB, at most"}};
  for (const auto &[text, reason] : refused) {
    write(yaml(), text);
    const program_result served = run_program("serve --transport udp --config '" + yaml().string() + "'");
    const program_result checked = check();
    ASSERT_NE(served.exit_code, 0) << text;
    EXPECT_EQ(checked.exit_code, served.exit_code) << text;
    EXPECT_TRUE(contains(checked.err, reason)) << checked.err;
    std::string as_served = checked.err;
    const std::size_t option = as_served.find("--check");
    ASSERT_NE(option, std::string::npos) << checked.err;
    as_served.replace(option, std::strlen("--check"), "--config");
    EXPECT_EQ(as_served, served.err);
  }
}

TEST_F(ServeCheck, RefusesARecordThatCannotBeMade) {
  const auto expect_refused = [this](const std::string &file, const std::string &named) {
    write(yaml(), config(0, "record: {file: " + file + "}\n"));
    const program_result served = run_program("serve --transport udp --config '" + yaml().string() + "' -- --port=0");
    const program_result checked = check();
    EXPECT_NE(checked.exit_code, 0) << file;
    EXPECT_EQ(checked.exit_code, served.exit_code) << file;
    EXPECT_TRUE(contains(checked.err, "record: " + (folder_.path() / named).string() + ": ")) << checked.err;
  };
  write(folder_.path() / "text", "no recording");
  for (const char *file : {"no_such_folder/requests", "text", "text/requests"})
    expect_refused(file, file);
  write(yaml(), config(0, "record: {file: requests}\n"));
  running_program server(arguments(), err());
  ASSERT_NE(server.line(), "") << read_file(err());
  EXPECT_EQ(check().exit_code, 0) << "before a reload: the server writes to the file";
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "requests"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "requests.1")) << "it changes nothing";
  write(folder_.path() / "requests.1", "no recording");
  EXPECT_EQ(check().exit_code, 0) << "a recording without a request does not get this name";
  ASSERT_EQ(socket_peer(socket()).call(kOneShot, {0b0110}).status, 0);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << read_file(err());
  expect_refused("requests", "requests.1");
}

TEST_F(ServeCheck, NamesFilesBesideTheConfigurationWithOneDotOnly) {
  const auto check_here = [this](const std::string &type, const std::string &model_of) {
    write(yaml(), "decoders:\n  - {id: 6, type: " + type + ", " + model_of + "}\n");
    return run_program("-C '" + folder_.path().string() + "' '" + CUDAQ_TOOL_PATH +
                           "' serve --check decoders.yaml --json",
                       "/usr/bin/env");
  };
  std::filesystem::create_symlink(CUDAQ_TEST_STUCK_DECODER, folder_.path() / "plugin.so");
  const program_result good = check_here("./plugin.so", "dem: 'error(0.1) D0 L0'");
  ASSERT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.json().at("decoders")[0].at("decoder"), "./plugin.so");
  for (const auto &[type, model_of] :
       {std::pair("./missing.so", "dem: 'error(0.1) D0 L0'"), std::pair("lookup", "dem_file: ./missing.dem")}) {
    const program_result bad = check_here(type, model_of);
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_TRUE(contains(bad.err, " ./missing.")) << bad.err;
    EXPECT_FALSE(contains(bad.err, "././")) << bad.err;
  }
}

// The exit status tells a service manager whether another start may be good: 3, or never without a change: 2.

class ServeRefusal : public Serve {
protected:
  program_result serve(const std::string &transport, const std::string &options) const {
    return run_program("serve --timeout 0.1 --config '" + yaml().string() + "' --transport " + transport + " " +
                       options);
  }
  static void expect(const program_result &run, int status, const std::string &text) {
    EXPECT_EQ(run.exit_code, status) << run.err;
    EXPECT_TRUE(contains(run.err, text)) << run.err;
  }
};

TEST_F(ServeRefusal, Is3IfAnotherProgramHasTheAddress) {
  detail::udp_address address;
  detail::udp_socket other;
  ASSERT_TRUE(detail::udp_address_of("address", "127.0.0.1", 0, address).ok());
  ASSERT_TRUE(other.open(address, 0).ok());
  expect(serve("udp", "-- --port=" + std::to_string(other.port())), 3, "the system refused the address");
  const std::string name = "refusal-" + std::to_string(getpid());
  running_program first({"serve", "--config", yaml(), "--transport", "shm", "--", "--name=" + name}, err());
  ASSERT_NE(first.line(), "") << read_file(err());
  expect(serve("shm", "-- --name=" + name), 3, "a server of this name runs");
  first.signal(SIGTERM); // it removes its files
  EXPECT_EQ(first.wait(), 0) << read_file(err());
}

TEST_F(ServeRefusal, Is3IfThisMachineDoesNotHaveTheAddress) {
  expect(serve("udp", "-- --port=0 --bind=192.0.2.1"), 3, "the system refused the address");
}

TEST_F(ServeRefusal, Is3IfThePrometheusPortIsInUse) {
  const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(other, reinterpret_cast<const sockaddr *>(&address), size), 0);
  ASSERT_EQ(listen(other, 1), 0);
  ASSERT_EQ(getsockname(other, reinterpret_cast<sockaddr *>(&address), &size), 0);
  expect(serve("udp", "--prometheus-port " + std::to_string(ntohs(address.sin_port)) + " -- --port=0"), 3,
         "Address already in use");
  close(other);
}

TEST(ServeBanner, HasTheNumbersThatScriptsOfASensorBridgeRead) {
  EXPECT_EQ(bridge_banner("transport=cpu_roce qp_config=hsb_fpga peer_ip=10.0.0.1 qp=0x1a rkey=4950 buffer_addr=0x0"),
            "=== Bridge Ready ===\nQP Number: 0x1a\nRKey: 4950\nBuffer Addr: 0x0");
}

TEST(ServeBanner, IsEmptyForOtherTransports) {
  EXPECT_EQ(bridge_banner("transport=udp port=7 address=127.0.0.1"), "");
  EXPECT_EQ(bridge_banner("transport=cpu_roce port=7 roce_ip=10.0.0.2"), "");
}

} // namespace
} // namespace cudaq::realtime::tools::test

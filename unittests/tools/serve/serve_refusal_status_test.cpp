// SPDX-License-Identifier: Apache-2.0
// The exit status tells a service manager whether another start may be good: 3, or never without a change: 2.
#include "unittests/tools/serve/serve_fixture.h"

#include <netinet/in.h>

namespace cudaq::realtime::tools::test {
namespace {

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

TEST_F(ServeRefusal, Is2IfAnOptionMustBeChanged) {
  write(folder_.path() / "file", "");
  expect(serve("udp", "-- --port=0 --bind=here"), 2, "a numeric IPv4 or IPv6 address is accepted");
  expect(serve("udp", "-- --port=70000"), 2, "a number from 0 to 65535 is accepted");
  expect(serve("/nonexistent.so", ""), 2, "cannot be loaded");
  expect(serve(CUDAQ_TEST_STUCK_DECODER, ""), 2, "it is no provider of a transport");
  expect(serve("udp", "--counters " + (folder_.path() / "file").string() + " -- --port=0"), 2, "is no socket");
  expect(serve("udp", "--counters /nonexistent/socket -- --port=0"), 2, "No such file or directory");
}

} // namespace
} // namespace cudaq::realtime::tools::test

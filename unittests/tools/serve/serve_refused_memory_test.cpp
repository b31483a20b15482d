// SPDX-License-Identifier: Apache-2.0
// Memory is refused while a server reads its configuration again: the old decoders serve, and the server does not end.
#include "unittests/support/program_paths.h"
#include "unittests/support/test_scale.h"
#include "unittests/tools/serve/serve_fixture.h"

#include <atomic>
#include <limits>
#include <sys/mman.h>

namespace cudaq::realtime::tools::test {
namespace {

/// What command_line/refused_memory.c reads in the server: refused are the allocations with first <= number < end.
struct refusals {
  std::atomic<long long> allocations{0}, first{-1}, end{-1};
};

class ServeRefusedMemory : public Serve {
protected:
  void SetUp() override {
    Serve::SetUp();
    if (IsSkipped())
      return;
    // The one decoder with libraries that allocate where they must not throw, or do not look at the result of malloc.
    write(yaml(), config(0) + R"(
  - {id: 7, type: pymatching-correlated, dem: "error(0.1) D0 D1 ^ D2 L0\nerror(.1) D0\nerror(.1) D1\nerror(.1) D2 L0"}
)");
    const auto path = folder_.path() / "refusals", script = folder_.path() / "run";
    write(path, std::string(sizeof(refusals), '\0'));
    write(script, std::string("#!/bin/sh\nexec env LD_PRELOAD='") + CUDAQ_TEST_REFUSED_MEMORY + "' REFUSAL_CONTROL='" +
                      path.string() + "' '" + CUDAQ_TOOL_PATH + "' \"$@\"\n");
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void *const memory = mmap(nullptr, sizeof(refusals), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    ASSERT_NE(memory, MAP_FAILED);
    refused_ = new (memory) refusals;
    server_ = std::make_unique<running_program>(arguments(), err(), "", script.c_str());
    ASSERT_NE(server_->line(), "") << read_file(err());
  }
  void TearDown() override {
    if (refused_ != nullptr)
      munmap(refused_, sizeof(refusals));
  }
  /// Reloads; of the allocations of the server from now on those from number `first` on are refused, `count` of them.
  std::string reload_without(long long first, long long count) {
    const long long now = refused_->allocations;
    refused_->first = now + first; // while `end` is -1, none is refused
    refused_->end = now + first + count;
    server_->signal(SIGHUP);
    const std::string line = server_->line();
    refused_->end = -1;
    refused_->first = -1;
    return line;
  }
  /// The allocations of a whole reload.
  long long allocations_of_a_reload() {
    const long long before = refused_->allocations;
    server_->signal(SIGHUP);
    EXPECT_EQ(server_->line(), "QEC_DECODING_SERVER_CONFIG_APPLIED") << read_file(err());
    return refused_->allocations - before;
  }

  refusals *refused_ = nullptr;
  std::unique_ptr<running_program> server_;
};

TEST_F(ServeRefusedMemory, AReloadKeepsTheOldDecodersWhileAClientIsAnswered) {
  const long long all = allocations_of_a_reload();
  ASSERT_GT(all, 300);
  std::atomic<bool> ends{false};
  std::atomic<int> answers{0}, wrong{0};
  std::thread client([&] {
    socket_peer peer(socket());
    while (!ends && wrong == 0) {
      const wire_answer answer = peer.call(kOneShot, {0b0110});
      wrong += answer.status != 0 || answer.result != bytes{0b0110};
      ++answers;
    }
  });
  int rejected = 0, applied = 0;
  const auto reload = [&](long long first, long long count) {
    const int before = answers;
    const std::string line = reload_without(first, count);
    rejected += line == "QEC_DECODING_SERVER_CONFIG_REJECTED old_config_active";
    applied += line == "QEC_DECODING_SERVER_CONFIG_APPLIED";
    server_->until([&] { return answers > before + 1 || wrong != 0; });
    return server_->runs() && wrong == 0;
  };
  const long long step = realtime::test::whole_or_sample(1LL, std::max(all / 250, 1LL));
  bool runs = true;
  int reloads = 0;
  for (long long first = 0; runs && first < all; first += step, ++reloads)
    runs = reload(first, 1);
  for (long long first = 0; runs && first < all; first += 10 * step, ++reloads)
    runs = reload(first, all); // no memory is left
  ends = true;
  client.join();
  ASSERT_TRUE(runs) << "reload " << reloads << ": " << read_file(err()).substr(0, 2000);
  EXPECT_EQ(wrong, 0) << "answer " << answers;
  EXPECT_EQ(rejected + applied, reloads);
  EXPECT_GT(rejected, reloads / 2) << "nothing was tested";
  EXPECT_GT(allocations_of_a_reload(), 300) << "afterwards, with memory";
  server_->signal(SIGTERM);
  while (server_->line() != "")
    ;
  EXPECT_EQ(server_->wait(), 0) << read_file(err());
}

TEST_F(ServeRefusedMemory, WithoutAnyMemoryTheServerEndsAtItsTimeoutAndSaysWhy) {
  server_->signal(SIGTERM);
  while (server_->line() != "")
    ;
  ASSERT_EQ(server_->wait(), 0);
  std::filesystem::remove(err());
  std::vector<std::string> with_timeout = arguments();
  with_timeout.insert(with_timeout.begin() + 1, {"--timeout", "1"});
  server_ = std::make_unique<running_program>(with_timeout, err(), "", (folder_.path() / "run").c_str());
  ASSERT_NE(server_->line(), "") << read_file(err());
  refused_->end = std::numeric_limits<long long>::max();
  refused_->first = 0;
  while (server_->line() != "")
    ;
  // The end needs memory. glibc ends the program by 127 if it is that of a library's thread-local data.
  const int status = server_->wait();
  EXPECT_TRUE(status == 3 || status == 127) << status;
  EXPECT_TRUE(contains(read_file(err()), "memory")) << read_file(err());
}

} // namespace
} // namespace cudaq::realtime::tools::test

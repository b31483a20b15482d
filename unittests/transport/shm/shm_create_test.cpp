// SPDX-License-Identifier: Apache-2.0
// Creation of the provider: options, refusals, names, what it says about itself.
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "lib/transport/shm/shm_layout.h"
#include "unittests/support/program_paths.h"
#include "unittests/transport/shm/provider_handle.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <vector>

namespace cudaq::realtime::test {
namespace {

std::string socket_of(const std::string &name) { return "/dev/shm/cudaq-realtime-" + name + ".sock"; }

void expect_refused(std::vector<std::string> arguments, cudaq_status_t status, const std::string &part_of_the_text) {
  const provider_handle provider(arguments);
  EXPECT_EQ(provider.status, status) << arguments.back();
  EXPECT_NE(provider.text.find(part_of_the_text), std::string::npos) << provider.text;
}

// The library would take what a client has written there for a record of its own.
TEST(ShmCreate, NoFlagsOfASegmentLieWhereARecordIsLookedFor) {
  for (std::uint32_t slots = 1; slots <= 4096; ++slots) {
    const detail::shm_layout at = detail::make_shm_layout(slots, 256, 4096);
    ASSERT_NE(at.rx_flags % detail::kPageBytes, detail::kFlagsOffsetInPage) << slots;
    ASSERT_NE(at.tx_flags % detail::kPageBytes, detail::kFlagsOffsetInPage) << slots;
  }
}

TEST(ShmCreate, DescribesItself) {
  const std::string name = own_name("describes");
  const provider_handle p({"--name", name, "--num-slots=4", "--slot-size", "512", "--max-clients=3", "--unified"});
  ASSERT_EQ(p.status, CUDAQ_OK) << p.text;
  char line[256] = {};
  ASSERT_EQ(p.table->get_endpoint_info(p.handle, line, sizeof(line)), CUDAQ_OK);
  EXPECT_EQ(line, "transport=shm name=" + name + " clients=3 slots=4 frame_size=512");
  std::uint32_t num_slots = 0, slot_size = 0;
  ASSERT_EQ(p.table->get_ring_geometry(p.handle, &num_slots, &slot_size), CUDAQ_OK);
  EXPECT_EQ(slot_size, 512u);
  EXPECT_EQ(num_slots % 3, 0u);
  EXPECT_GE(num_slots, 12u);
}

TEST(ShmCreate, HasEightSlotsOf256BytesWithoutAnOption) {
  const provider_handle p({"--name", own_name("default")});
  ASSERT_EQ(p.status, CUDAQ_OK) << p.text;
  std::uint32_t num_slots = 0, slot_size = 0;
  ASSERT_EQ(p.table->get_ring_geometry(p.handle, &num_slots, &slot_size), CUDAQ_OK);
  EXPECT_EQ(num_slots, 8u);
  EXPECT_EQ(slot_size, 256u);
}

TEST(ShmCreate, LeavesNothingWhenItIsRefused) {
  const std::string name = own_name("wrong");
  expect_refused({"--name", name, "--num-slots=0"}, CUDAQ_ERR_INVALID_ARG, "--num-slots '0'");
  EXPECT_NE(::access(socket_of(name).c_str(), F_OK), 0);
}

TEST(ShmCreate, RefusesTheNameOfALiveServerAndTakesThatOfAnEndedOne) {
  const std::string name = own_name("two");
  auto first = std::make_unique<provider_handle>(std::vector<std::string>{"--name", name, "--unified"});
  ASSERT_EQ(first->status, CUDAQ_OK) << first->text;
  expect_refused({"--name", name, "--unified"}, CUDAQ_ERR_STATE, "a server of this name runs");
  first.reset();
  EXPECT_NE(::access(socket_of(name).c_str(), F_OK), 0);
  const provider_handle second({"--name", name});
  EXPECT_EQ(second.status, CUDAQ_OK) << second.text;
}

TEST(ShmCreate, ReplacesWhatAServerThatDiedHasLeft) {
  const std::string name = own_name("stale");
  for (const char *suffix : {"sock", "lock"})
    ::close(::open(("/dev/shm/cudaq-realtime-" + name + "." + suffix).c_str(), O_CREAT | O_RDWR, 0600));
  const provider_handle p({"--name", name, "--unified"});
  EXPECT_EQ(p.status, CUDAQ_OK) << p.text;
}

TEST(ShmCreate, GivesItsSocketTheMode) {
  const std::string name = own_name("mode");
  for (const auto &[option, mode] : {std::pair{"--mode=600", 0600u}, std::pair{"--mode=0660", 0660u}}) {
    const provider_handle p({"--name", name, option});
    ASSERT_EQ(p.status, CUDAQ_OK) << p.text;
    struct stat found {};
    ASSERT_EQ(::stat(socket_of(name).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777u, mode);
  }
}

TEST(ShmCreate, RefusesHugePagesAndPinnedMemoryWithAReasonWhereTheyAreMissing) {
  for (const char *option : {"--huge-pages", "--pinned"}) {
    const provider_handle p({"--name", own_name("memory"), "--unified", option});
    EXPECT_TRUE(p.status == CUDAQ_OK || p.text.find(option) != std::string::npos) << p.text;
  }
}

/// Each mapping of a segment or of the bell, with its pages, as /proc/self/smaps tells them.
struct mapped_part {
  std::uint64_t bytes = 0, page_kb = 0;
};
std::vector<mapped_part> mapped_segments() {
  std::vector<mapped_part> parts;
  std::ifstream smaps("/proc/self/smaps");
  bool wanted = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long long begin = 0, end = 0, kb = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) {
      wanted = line.find("memfd:cudaq-realtime-shm") != std::string::npos;
      if (wanted)
        parts.push_back({end - begin, 0});
    } else if (wanted && std::sscanf(line.c_str(), "KernelPageSize: %llu kB", &kb) == 1) {
      parts.back().page_kb = kb;
    }
  }
  return parts;
}

TEST(ShmCreate, SegmentsHaveHugePagesWithTheOptionAndOnlyThen) {
  const std::uint64_t usual_kb = detail::shm_page(false) / 1024;
  {
    const provider_handle small({"--name", own_name("smallpages")});
    ASSERT_EQ(small.status, CUDAQ_OK) << small.text;
    const std::vector<mapped_part> parts = mapped_segments();
    EXPECT_GE(parts.size(), 2u) << "the bell, and the ring";
    for (const mapped_part &part : parts)
      EXPECT_EQ(part.page_kb, usual_kb);
  }
  const provider_handle p({"--name", own_name("hugepages"), "--huge-pages"});
  if (p.status != CUDAQ_OK)
    GTEST_SKIP() << p.text;
  std::uint64_t huge = 0;
  for (const mapped_part &part : mapped_segments()) {
    if (part.bytes == detail::shm_page(false))
      continue; // the bell
    EXPECT_EQ(part.page_kb, 2048u) << part.bytes << " bytes";
    huge += part.bytes;
  }
  EXPECT_GE(huge, 2 * detail::shm_page(true)) << "requests and answers";
}

TEST(ShmClient, RefusesWrongArguments) {
  cudaq_shm_client_t *client = nullptr;
  EXPECT_EQ(cudaq_shm_client_attach(nullptr, "x", 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_shm_client_attach(&client, nullptr, 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_shm_client_attach(&client, "a/b", 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  cudaq_shm_client_options_t options{1, CUDAQ_WAIT_SPIN, 0, 0};
  EXPECT_EQ(cudaq_shm_client_attach(&client, "x", 0, &options), CUDAQ_ERR_INVALID_ARG);
  options = {sizeof(options), 9, 0, 0};
  EXPECT_EQ(cudaq_shm_client_attach(&client, "x", 0, &options), CUDAQ_ERR_INVALID_ARG);
  options = {sizeof(options), CUDAQ_WAIT_BLOCK, 0, 1'000'000'000};
  EXPECT_EQ(cudaq_shm_client_attach(&client, "x", 0, &options), CUDAQ_ERR_INVALID_ARG);
  EXPECT_NE(std::string(cudaq_shm_client_error()).find("sleep_ns is 1000000000"), std::string::npos);
  EXPECT_EQ(cudaq_shm_client_attach(&client, own_name("absent").c_str(), 0, nullptr), CUDAQ_ERR_TIMEOUT);
  EXPECT_NE(std::string(cudaq_shm_client_error()).find("no server has the name"), std::string::npos);
  EXPECT_EQ(cudaq_shm_client_detach(nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_shm_client_wait(nullptr, 0, 0), CUDAQ_ERR_INVALID_ARG);
  EXPECT_EQ(cudaq_shm_client_alive(nullptr), 0);
  EXPECT_EQ(client, nullptr);
}

} // namespace
} // namespace cudaq::realtime::test

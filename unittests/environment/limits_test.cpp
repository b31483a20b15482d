// SPDX-License-Identifier: Apache-2.0
// Limits of the process and missing rights: each call that needs what the system refuses returns an error that names
// it; after the limit is lifted the same objects work.
#include "unittests/environment/child_process.h"
#include "unittests/host_dispatcher/traffic.h"
#include "unittests/support/sanitized.h"

#include <fstream>
#include <grp.h>
#include <sys/resource.h>

namespace cudaq::realtime::test {
namespace {

constexpr uid_t kUserWithoutRights = 65534;

/// Sets the soft limit; the hard limit stays, so it can be lifted again.
bool set_limit(__rlimit_resource resource, rlim_t soft) {
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_cur = soft == RLIM_INFINITY ? limit.rlim_max : std::min(soft, limit.rlim_max);
  return setrlimit(resource, &limit) == 0;
}

/// Root is exempt from some limits. Returns false if the process has rights that it cannot give up.
bool give_up_rights() {
  if (geteuid() != 0)
    return true;
  return setgroups(0, nullptr) == 0 && setresgid(kUserWithoutRights, kUserWithoutRights, kUserWithoutRights) == 0 &&
         setresuid(kUserWithoutRights, kUserWithoutRights, kUserWithoutRights) == 0;
}

std::string refused_with(cudaq_status_t status, std::initializer_list<const char *> words) {
  if (status == CUDAQ_OK)
    return "accepted";
  for (const char *word : words)
    if (last_error().find(word) == std::string::npos)
      return "the text is: " + last_error();
  return "";
}

TEST(Limits, OfThreadsAreAnErrorOfStartThatCanBeRepeated) {
  if (kSanitized || kEmulated)
    GTEST_SKIP() << "the sanitizer or the emulator needs threads itself";
  for (const std::uint32_t pool : {0u, 4u})
    CUDAQ_EXPECT_GOOD_CHILD(([pool]() -> std::string {
      small_service service(pool);
      if (!give_up_rights())
        return "skipped: root cannot give up its rights here";
      // A child of this uid counts the processes of the uid, at least itself.
      if (!set_limit(RLIMIT_NPROC, 1))
        return "skipped: the limit cannot be set";
      for (int attempt = 0; attempt < 3; ++attempt)
        if (const std::string wrong = refused_with(service.start(), {"thread cudaq-", "did not create it"});
            !wrong.empty())
          return wrong == "accepted" ? "skipped: the system does not enforce RLIMIT_NPROC" : wrong;
      set_limit(RLIMIT_NPROC, RLIM_INFINITY);
      return service.works();
    }));
}

TEST(Limits, OfMemoryAreErrorsOfRingsAndOfStart) {
  if (kSanitized || kEmulated)
    GTEST_SKIP() << "the sanitizer or the emulator maps memory itself";
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    small_service service(4);
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    const rlim_t now = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    if (!set_limit(RLIMIT_AS, now + (1u << 20)))
      return "skipped: the limit cannot be set";
    cudaq_ringbuffer_options_t options;
    cudaq_ringbuffer_options_init(&options, sizeof(options));
    options.num_slots = 1024;
    options.slot_size = 65536;
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t ring;
    if (const std::string wrong =
            refused_with(cudaq_ringbuffer_create(&options, &memory, &ring), {"no memory for a ring of", "bytes"});
        !wrong.empty())
      return wrong;
    // A thread's stack does not fit.
    if (const std::string wrong = refused_with(service.start(), {"cudaq_dispatcher_start: "}); !wrong.empty())
      return "start: " + wrong;
    if (last_error().find("did not create it") == std::string::npos &&
        last_error().find("out of memory") == std::string::npos)
      return "start: " + last_error();
    set_limit(RLIMIT_AS, RLIM_INFINITY);
    return service.works();
  });
}

TEST(Limits, OfLockedMemoryConcernOnlyRingsThatAreLocked) {
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    if (!set_limit(RLIMIT_MEMLOCK, 0))
      return "skipped: the limit cannot be set";
    small_service service;
    if (const std::string wrong = service.works(); !wrong.empty())
      return wrong;
    cudaq_ringbuffer_options_t options;
    cudaq_ringbuffer_options_init(&options, sizeof(options));
    options.num_slots = 4;
    options.slot_size = 64;
    for (const bool huge : {true, false}) {
      options.hugepages = huge;
      options.memory_kind = huge ? CUDAQ_MEMORY_HOST : CUDAQ_MEMORY_MAPPED;
      cudaq_ringbuffer_memory_t *memory = nullptr;
      cudaq_ringbuffer_t ring;
      if (cudaq_ringbuffer_create(&options, &memory, &ring) == CUDAQ_OK)
        cudaq_ringbuffer_destroy(memory); // there are huge pages, or there is a GPU
      else if (last_error().find(huge ? "huge pages" : "cuda") == std::string::npos &&
               last_error().find("CUDA") == std::string::npos)
        return last_error();
    }
    return service.works();
  });
}

TEST(Limits, OfOpenFilesConcernNoCallWithDefaultOptions) {
  if (kSanitized)
    GTEST_SKIP() << "the sanitizer opens files itself";
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    if (!set_limit(RLIMIT_NOFILE, 0))
      return "skipped: the limit cannot be set";
    small_service service(2);
    if (const std::string wrong = service.works(); !wrong.empty())
      return wrong;
    // The CPUs of a node are in a file.
    service.options.numa_node = 0;
    if (const std::string wrong = refused_with(service.start(), {"numa_node 0"}); !wrong.empty())
      return wrong;
    service.options.numa_node = CUDAQ_NUMA_NODE_ANY;
    return service.works();
  });
}

TEST(Rights, WithoutCapSysNiceARealtimePriorityIsRefusedWithAText) {
  if (kEmulated)
    GTEST_SKIP() << "the emulator does not pass the scheduling policy on";
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    if (!give_up_rights())
      return "skipped: root cannot give up its rights here";
    set_limit(RLIMIT_RTPRIO, 0);
    small_service service(2);
    service.options.realtime_priority = 5;
    if (const std::string wrong = refused_with(service.start(), {"realtime_priority 5", "refused SCHED_FIFO"});
        !wrong.empty())
      return wrong;
    service.options.realtime_priority = 0;
    return service.works();
  });
}

} // namespace
} // namespace cudaq::realtime::test

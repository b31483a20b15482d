// SPDX-License-Identifier: Apache-2.0
// Signals of the program do not run their handlers on threads of the library.
#include "unittests/host_dispatcher/threads_of.h"
#include "unittests/support/processes/process_signals.h"

namespace cudaq::realtime::test {
namespace {

std::int32_t answer_ok(cudaq_host_call_t *, void *) { return 0; }

/// The mask of the calling thread, as text.
std::string mask_of_this_thread() {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  std::string text;
  for (int s = 1; s < SIGRTMAX; ++s)
    text += sigismember(&now, s) == 1 ? '1' : '0';
  return text;
}

/// The signals that a thread of this process blocks, one bit each, as the kernel lists them.
std::uint64_t blocked_by(pid_t tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("SigBlk:", 0) == 0)
      return std::stoull(line.substr(7), nullptr, 16);
  return 0;
}

// Known failure 46.
TEST(ThreadSignals, RunNoHandlerOnDispatcherAndPoolThreads) {
  for (const std::uint32_t policy : {CUDAQ_WAIT_SPIN_YIELD, CUDAQ_WAIT_BLOCK}) {
    const host_ring ring({8, 64, false});
    manager_handle manager;
    host_dispatcher_handle dispatcher(manager.get, ring, {}, host_config(ring.shape()));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher.get, 5, answer_ok, nullptr, nullptr));
    cudaq_dispatcher_options_t options = default_options();
    options.handler_pool_size = 2;
    options.wait_policy = policy;
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher.get, &options));
    const std::string before = mask_of_this_thread();
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
    EXPECT_EQ(mask_of_this_thread(), before) << "start must not change the caller's mask";
    for (const pid_t tid : process_signals::send_fifty())
      EXPECT_EQ(tid, gettid());
    ring_client client(ring);
    EXPECT_EQ(client.call(5, {}).header.status, 0);
  }
}

TEST(ThreadSignals, LeaveTheSynchronousOnesUnblocked) {
  const host_ring ring({8, 64, false});
  manager_handle manager;
  host_dispatcher_handle dispatcher(manager.get, ring, {}, host_config(ring.shape()));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_host_handler_v2(dispatcher.get, 5, answer_ok, nullptr, nullptr));
  cudaq_dispatcher_options_t options = default_options();
  options.handler_pool_size = 1;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(dispatcher.get, &options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(dispatcher.get));
  for (const char *name : {"cudaq-dispatch", "cudaq-pool-0"}) {
    const std::vector<thread_seen> found = threads_named(name);
    ASSERT_EQ(found.size(), 1u) << name;
    const std::uint64_t blocked = blocked_by(found[0].tid);
    for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT})
      EXPECT_EQ(blocked >> (s - 1) & 1, 0u) << name << " blocks signal " << s;
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGCHLD, SIGUSR1, SIGUSR2, SIGPROF, SIGPIPE})
      EXPECT_EQ(blocked >> (s - 1) & 1, 1u) << name << " does not block signal " << s;
  }
}

} // namespace
} // namespace cudaq::realtime::test

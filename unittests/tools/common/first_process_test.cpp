// SPDX-License-Identifier: Apache-2.0
// A program that is the first process of a container, which gets no signal that it does not handle.
#include "unittests/support/program_paths.h"
#include "unittests/tools/common/run_program.h"

#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools::test {
namespace {

constexpr int kNoNamespace = 77, kKilled = 78;

/// In a child: the program becomes process 1 of a namespace of its own. Writes its pid, as this namespace sees it, and
/// returns its status.
int run_as_first_process(int pid_to, const std::vector<const char *> &words) {
  if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
    return kNoNamespace;
  const pid_t first = fork();
  if (first < 0)
    return kNoNamespace;
  if (first == 0) {
    execv(words.front(), const_cast<char *const *>(words.data()));
    _exit(127);
  }
  if (write(pid_to, &first, sizeof first) != sizeof first)
    return kNoNamespace;
  int status = 0;
  waitpid(first, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled;
}

TEST(FirstProcess, EndsAtSigtermWhileItWaits) {
  const scratch_folder scratch;
  const std::string model = scratch.path() / "model.dem", shots = scratch.path() / "shots.fifo", tool = CUDAQ_TOOL_PATH;
  std::ofstream(model) << "error(0.1) D0 L0\n";
  ASSERT_EQ(mkfifo(shots.c_str(), 0600), 0); // to open it waits for a writer, who never comes
  const std::vector<const char *> words{tool.c_str(),  "decode", "--dem",     model.c_str(), "--in",
                                        shots.c_str(), "--out",  "/dev/null", nullptr};
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t between = fork();
  ASSERT_GE(between, 0);
  if (between == 0)
    _exit(run_as_first_process(ends[1], words));
  close(ends[1]);
  pid_t first = 0;
  const bool is_known = read(ends[0], &first, sizeof first) == sizeof first;
  close(ends[0]);
  int status = 0;
  pid_t ended = 0;
  // The first signals may come before its main.
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
       ended == 0 && is_known && std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    kill(first, SIGTERM);
    ended = waitpid(between, &status, WNOHANG);
  }
  if (ended == 0) {
    if (is_known)
      kill(first, SIGKILL);
    waitpid(between, &status, 0);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoNamespace)
    GTEST_SKIP() << "the system makes no namespace for processes here";
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
}

} // namespace
} // namespace cudaq::realtime::tools::test

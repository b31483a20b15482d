// SPDX-License-Identifier: Apache-2.0
// A client in a process of its own that is killed while it sends.
#pragma once

#include "unittests/transport/datagram/datagram_traffic.h"

#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::test {

/// `client` is open, and only the child uses it. Its messages have the numbers from `first` on; 20 of them are
/// answered before it is killed.
inline void kill_while_it_sends(detail::datagram_client &client, std::uint64_t first, std::chrono::microseconds after) {
  int started[2];
  ASSERT_EQ(pipe(started), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    send_messages(client, first, 20);
    const ssize_t written = write(started[1], "1", 1);
    send_messages(client, first + 20, written == 1 ? 1u << 30 : 0);
    _exit(0);
  }
  close(started[1]);
  char byte = 0;
  EXPECT_EQ(read(started[0], &byte, 1), 1) << "the client has ended";
  std::this_thread::sleep_for(after);
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the client ended before it was killed";
  close(started[0]);
}

} // namespace cudaq::realtime::test

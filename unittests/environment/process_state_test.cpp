// SPDX-License-Identifier: Apache-2.0
// Processes without standard streams, without a working directory, with a small stack limit, with signals blocked. No
// driver: NoCuda.
#include "unittests/environment/child_process.h"

#include <cstdlib>
#include <sys/stat.h>

namespace cudaq::realtime::test {
namespace {

TEST(ProcessState, NoStandardStreamsAreNeeded) {
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    for (const int stream : {0, 1, 2})
      close(stream);
    small_service service(2);
    if (const std::string wrong = service.works(); !wrong.empty())
      return wrong;
    // An error must not be written to a file that got the number of a closed stream.
    char name[] = "/tmp/cudaq-environment-XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    service.options.dispatcher_core = 1000;
    const bool refused = service.start() != CUDAQ_OK;
    struct stat seen {};
    fstat(file, &seen);
    return !refused ? "a core that does not exist was accepted" : seen.st_size != 0 ? "something was printed" : "";
  });
}

TEST(ProcessState, NoWorkingDirectoryIsNeeded) {
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    char name[] = "/tmp/cudaq-environment-XXXXXX";
    if (mkdtemp(name) == nullptr || chdir(name) != 0 || rmdir(name) != 0)
      return "skipped: the working directory cannot be removed here";
    small_service service(2);
    return service.works();
  });
}

TEST(ProcessState, AllSignalsMayBeBlocked) {
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    small_service service(2);
    return service.works();
  });
}

TEST(ProcessState, AnEmptyEnvironmentIsEnough) {
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    clearenv();
    small_service service(2);
    return service.works();
  });
}

} // namespace
} // namespace cudaq::realtime::test

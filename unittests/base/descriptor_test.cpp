// SPDX-License-Identifier: Apache-2.0
#include "lib/base/descriptor.h"

#include "unittests/environment/child_process.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

namespace cudaq::realtime::test {
namespace {

using detail::above_standard_streams;

TEST(Descriptor, IsMovedAboveClosedStandardStreams) {
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    for (const int number : {0, 1, 2})
      close(number);
    for (int k = 0; k < 3; ++k) {
      const int fd = above_standard_streams(eventfd(0, EFD_CLOEXEC));
      if (fd < 3 || fcntl(fd, F_GETFD) != FD_CLOEXEC)
        return "descriptor " + std::to_string(fd) + " is not above 2, or a child of exec gets it";
      if (fcntl(k, F_GETFD) >= 0)
        return "the number of a stream stays in use";
    }
    return "";
  });
}

TEST(Descriptor, IsRefusedIfItCannotBeMoved) {
  CUDAQ_EXPECT_GOOD_CHILD([]() -> std::string {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = 3;
    close(0);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
      return "skipped: the limit cannot be set";
    errno = 0;
    if (above_standard_streams(eventfd(0, EFD_CLOEXEC)) != -1 || errno == 0)
      return "it was not refused with a reason";
    return fcntl(0, F_GETFD) >= 0 ? "the number of a stream stays in use" : "";
  });
}

TEST(Descriptor, StaysAsItIsAboveTwo) {
  errno = EMFILE;
  EXPECT_EQ(above_standard_streams(-1), -1);
  EXPECT_EQ(errno, EMFILE);
  const int fd = eventfd(0, EFD_CLOEXEC);
  EXPECT_EQ(above_standard_streams(fd), fd);
  close(fd);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// fork in a process with running dispatchers. The child has none of the library's threads: it may call exec or _exit,
// and may make objects of its own. On the parent's objects a stop and a destroy time out there, and change nothing in
// the parent.
#include "unittests/environment/child_process.h"
#include "unittests/support/sanitized.h"

namespace cudaq::realtime::test {
namespace {

class Fork : public ::testing::Test {
protected:
  Fork() {
    service.options.grace_period_ns = ms(200);
    CUDAQ_EXPECT_OK(service.start());
  }
  void expect_parent_undisturbed() {
    EXPECT_EQ(service.serves(200), "");
    CUDAQ_EXPECT_OK(cudaq_dispatcher_stop(service.get));
    EXPECT_EQ(service.works(), "");
  }
  small_service service{2};
};

TEST_F(Fork, OfAChildThatEndsAtOnceDisturbsNothing) {
  for (int k = 0; k < 20; ++k) {
    EXPECT_EQ(in_child([] { return ""; }), "");
    EXPECT_EQ(service.serves(5), "");
  }
  expect_parent_undisturbed();
}

TEST_F(Fork, OfAChildThatRunsAnotherProgramDisturbsNothing) {
  EXPECT_EQ(in_child([] {
              execl("/bin/true", "true", static_cast<char *>(nullptr));
              return "exec failed";
            }),
            "");
  expect_parent_undisturbed();
}

TEST_F(Fork, ChildsStopAndDestroyTimeOutAndLeaveTheParentAlone) {
  EXPECT_EQ(in_child([this]() -> std::string {
              if (cudaq_dispatcher_stop_timeout(service.get, ms(50)) != CUDAQ_ERR_TIMEOUT)
                return "stop in the child: " + last_error();
              cudaq_dispatcher_options_t options = default_options();
              if (cudaq_dispatcher_set_options(service.get, &options) != CUDAQ_ERR_STATE)
                return "options in the child: " + last_error();
              if (cudaq_dispatcher_start(service.get) == CUDAQ_OK)
                return "start in the child";
              if (cudaq_dispatcher_destroy(service.get) != CUDAQ_ERR_TIMEOUT) // after the grace period
                return "destroy in the child: " + last_error();
              return "";
            }),
            "");
  expect_parent_undisturbed();
}

TEST_F(Fork, ChildMayMakeDispatchersOfItsOwn) {
#if defined(CUDAQ_TEST_EMULATED)
  GTEST_SKIP() << "qemu-user ends a forked child that makes threads";
#endif
  if (kSanitized)
    GTEST_SKIP() << "sanitizers do not support new threads in a child of a process with threads";
  EXPECT_EQ(in_child([]() -> std::string {
              small_service own(1);
              return own.works();
            }),
            "");
  expect_parent_undisturbed();
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Runs a part of a test in a child process, whose limits, rights and files may be changed.
#pragma once

#include "unittests/support/api_fixture.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cudaq::realtime::test {

/// The library's error text, for the child's report.
inline std::string last_error() { return cudaq_last_error_message(); }

/// Runs `body` in a child. It returns an empty text, "skipped: " and a reason, or what is wrong; the child ends by
/// _exit, so no destructor of the parent's objects runs there. The parent gets the text. A child that does not end
/// within 40 s is killed.
inline std::string in_child(const std::function<std::string()> &body) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0)
    return "no pipe";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string text;
    try {
      text = body();
    } catch (const std::exception &e) {
      text = std::string("exception: ") + e.what();
    }
    if (::testing::Test::HasFailure())
      text += "; an expectation failed, see the output";
    const ssize_t written = write(pipe_ends[1], text.data(), text.size());
    std::fflush(nullptr);
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(pipe_ends[1]);
  if (child < 0) {
    close(pipe_ends[0]);
    return "no child";
  }
  int status = 0;
  const bool ended = eventually([&] { return waitpid(child, &status, WNOHANG) == child; }, std::chrono::seconds(40));
  if (!ended) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(pipe_ends[0]);
  if (!ended)
    return "the child did not end; " + text;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return "the child ended with wait status " + std::to_string(status) + "; " + text;
  return text;
}

/// Expects that the child's body found nothing wrong. Skips the test with its reason.
#define CUDAQ_EXPECT_GOOD_CHILD(body)                                                                                  \
  do {                                                                                                                 \
    const std::string report = in_child(body);                                                                         \
    if (report.rfind("skipped: ", 0) == 0)                                                                             \
      GTEST_SKIP() << report.substr(9);                                                                                \
    EXPECT_EQ(report, "");                                                                                             \
  } while (false)

/// A dispatcher that answers; its calls return texts, for children.
class small_service {
public:
  explicit small_service(std::uint32_t pool = 0) {
    cudaq_ringbuffer_options_t o;
    cudaq_ringbuffer_options_init(&o, sizeof(o));
    o.num_slots = 4;
    o.slot_size = 64;
    made_ = cudaq_ringbuffer_create(&o, &memory_, &ring_) == CUDAQ_OK &&
            cudaq_dispatch_manager_create(&manager_) == CUDAQ_OK;
    const cudaq_dispatcher_config_t config = host_config({4, 64, false});
    made_ = made_ && cudaq_dispatcher_create(manager_, &config, &get) == CUDAQ_OK;
    const cudaq_function_table_t table{&entry_, 1};
    options = default_options();
    options.handler_pool_size = pool;
    made_ = made_ && cudaq_dispatcher_set_ringbuffer(get, &ring_) == CUDAQ_OK &&
            cudaq_dispatcher_set_function_table(get, &table) == CUDAQ_OK &&
            cudaq_dispatcher_set_control(get, &shutdown_, &processed_) == CUDAQ_OK;
  }
  ~small_service() {
    cudaq_dispatcher_destroy(get);
    cudaq_dispatch_manager_destroy(manager_);
    if (memory_ != nullptr)
      cudaq_ringbuffer_destroy(memory_);
  }
  small_service(const small_service &) = delete;
  small_service &operator=(const small_service &) = delete;

  /// CUDAQ_OK, or the status of the call that was refused.
  cudaq_status_t start() {
    if (!made_)
      return CUDAQ_ERR_INTERNAL;
    const cudaq_status_t status = cudaq_dispatcher_set_options(get, &options);
    return status != CUDAQ_OK ? status : cudaq_dispatcher_start(get);
  }
  /// Sends requests and checks the answers. Returns what is wrong.
  std::string serves(int requests = 20) {
    for (int n = 0; n < requests; ++n) {
      const std::uint8_t payload[3] = {1, 2, static_cast<std::uint8_t>(n)};
      if (cudaq_host_ringbuffer_write_rpc_request(&ring_, next_, entry_.function_id, payload, 3, 1, 0) != CUDAQ_OK)
        return last_error();
      cudaq_host_ringbuffer_signal_slot(&ring_, next_);
      if (!eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring_, next_, nullptr) == CUDAQ_TX_READY; }))
        return "no answer";
      cudaq_rpc_response_t header;
      const void *result = nullptr;
      if (cudaq_host_ringbuffer_read_rpc_response(&ring_, next_, &header, &result) != CUDAQ_OK)
        return last_error();
      if (header.status != 0 || header.result_len != 3 ||
          static_cast<const std::uint8_t *>(result)[0] != static_cast<std::uint8_t>(n))
        return "a wrong answer";
      cudaq_host_ringbuffer_clear_slot(&ring_, next_);
      next_ = (next_ + 1) % 4;
    }
    return "";
  }
  /// Start, traffic, stop. Returns what is wrong.
  std::string works() {
    if (start() != CUDAQ_OK)
      return "start: " + last_error();
    if (const std::string wrong = serves(); !wrong.empty())
      return wrong;
    return cudaq_dispatcher_stop(get) == CUDAQ_OK ? "" : "stop: " + last_error();
  }

  cudaq_dispatcher_t *get = nullptr;
  cudaq_dispatcher_options_t options{};

private:
  bool made_ = false;
  cudaq_function_entry_t entry_ = host_entry("reverse", reverse_handler);
  volatile int shutdown_ = 0;
  std::uint64_t processed_ = 0;
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  cudaq_dispatch_manager_t *manager_ = nullptr;
  std::uint32_t next_ = 0;
};

} // namespace cudaq::realtime::test

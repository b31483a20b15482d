// SPDX-License-Identifier: Apache-2.0
// Runs a script of calls of the C API once for each fault: each call of a step that can fail does fail in one run, by
// its name and number, as a run without a fault has counted them. After the step the script goes on without faults, so
// each run also shows that the objects can still be used. Where code is slow, a sample has each fifth fault of each
// third step.
#pragma once

#include "unittests/support/api_fixture.h"
#include "unittests/support/fake_cuda/fake_cuda.h"
#include "unittests/support/fault_points.h"
#include "unittests/support/test_scale.h"

#include <cstdio>
#include <set>

namespace cudaq::realtime::test {

/// What a fault may do to a step.
enum class promise {
  may_fail, ///< the call may return an error; then nothing has changed, and the same call succeeds when repeated
  succeeds, ///< the call returns what it returns without the fault
  serves,   ///< not a call: a request is answered, if not by its handler then with an error
};

struct step {
  std::string name; ///< of the C function, which begins the error text
  std::function<cudaq_status_t()> call;
  promise holds = promise::may_fail;
  cudaq_status_t expected = CUDAQ_OK; ///< without a fault
};

/// The objects of one run, and the script that is run with them.
class script {
public:
  virtual ~script() = default;
  virtual std::vector<step> steps() = 0;
  /// All that the caller can see and that a failed call must not change.
  virtual std::string snapshot() = 0;
  /// True: without a fault, no call makes a context on device 0, which is the current device of the test's thread.
  virtual bool spares_the_first_device() const { return false; }
};

class fault_sweep {
public:
  explicit fault_sweep(std::function<std::unique_ptr<script>()> make) : make_(std::move(make)) {}

  /// One fault at a time, in each step.
  void each_call() {
    for_all([](const step &) { return true; }, [this](std::size_t k) { fail_each_call_of(k); });
  }
  /// Two faults in a row, in the calls that end something. They may fail, but not crash, hang or leak. The runs of a
  /// step end when no fault fires.
  void pairs_in_the_end() {
    constexpr auto none = std::string::npos;
    for_all([](const step &s) { return s.name.find("_stop") != none || s.name.find("_destroy") != none; },
            [this](std::size_t k) {
              for (std::uint64_t n = 1; run(k, n, 2); n += samples_where_slow() ? 5 : 1)
                ASSERT_LT(n, 5000u) << "step " << k;
            });
  }
  std::uint64_t faults() const { return faults_; }
  /// Prints the number of faults, and the calls that have failed. A number below `least`, or no fault in one of these
  /// `calls`, means that calls of the library are no longer intercepted. A sample need not have each of the calls.
  void expect_at_least(std::uint64_t least, const std::vector<std::string> &calls) const {
    std::string text;
    for (const std::string &call : calls_)
      text += (text.empty() ? "" : ", ") + call;
    std::printf("faults injected: %llu, in %s\n", static_cast<unsigned long long>(faults_), text.c_str());
    EXPECT_GE(faults_, samples_where_slow() ? least / 30 : least);
    for (const std::string &call : calls)
      EXPECT_TRUE(samples_where_slow() || calls_.count(call) == 1u)
          << call << " has not failed; the calls that have: " << text;
  }

private:
  template <class Chosen, class Visit>
  void for_all(Chosen &&chosen, Visit &&visit) {
    run(kNone, 0, 0); // what is made once in a process is made here
    const std::vector<bool> wanted = choose(chosen);
    for (std::size_t k = 0; k < wanted.size(); k += samples_where_slow() ? 3 : 1)
      if (wanted[k])
        visit(k);
  }
  void fail_each_call_of(std::size_t k) {
    run(k, UINT64_MAX, 1); // none fails
    std::uint64_t number = 0;
    for (const auto &[name, count] : faults::made())
      for (std::uint64_t n = 1; n <= count && failures() < kEnoughFailures; ++n)
        if (number++ % (samples_where_slow() ? 5 : 1) == 0)
          run(k, n, 1, name.c_str()); // a loop that waits may make fewer calls than before: then none fails
  }
  template <class Chosen>
  std::vector<bool> choose(Chosen &&chosen) {
    std::vector<bool> wanted;
    const std::unique_ptr<script> one = make_();
    for (const step &s : one->steps())
      wanted.push_back(chosen(s));
    return wanted;
  }

  /// Returns false if no fault has fired, or if too much is wrong already.
  bool run(std::size_t faulty, std::uint64_t n, std::uint64_t width, const char *of = nullptr) {
    const faults::holdings before = faults::held();
    const int wrong_before = failures();
    std::uint64_t fired = 0;
    std::string where;
    {
      const std::unique_ptr<script> now = make_();
      const std::vector<step> steps = now->steps();
      for (std::size_t i = 0; i < steps.size() && failures() == wrong_before; ++i)
        if (i == faulty)
          fired = inject(*now, steps[i], n, width, of, where);
        else
          EXPECT_EQ(steps[i].call(), steps[i].expected)
              << steps[i].name << " (step " << i << "): " << cudaq_last_error_message() << "\n after " << where;
      if (faulty == kNone && now->spares_the_first_device()) {
        EXPECT_FALSE(fake_cuda::has_context(0));
      }
    }
    EXPECT_EQ(fake_cuda::violations(), "") << where;
    EXPECT_EQ(fake_cuda::clean_up(), 0) << "CUDA blocks or streams are left " << where;
    const faults::holdings after = faults::held();
    EXPECT_EQ(after.mappings, before.mappings) << where;
    EXPECT_EQ(after.threads, before.threads) << where;
    const long of_where = where.capacity() > kShort;
    if (faulty != kNone && failures() == wrong_before) {
      EXPECT_EQ(after.blocks - of_where, before.blocks) << "leaked memory " << where;
    }
    faults_ += fired;
    if (fired != 0)
      calls_.insert(faults::last());
    return fired != 0 && failures() < kEnoughFailures;
  }
  static int failures() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  }

  std::uint64_t inject(script &now, const step &s, std::uint64_t n, std::uint64_t width, const char *of,
                       std::string &where) {
    const std::string before = now.snapshot();
    faults::arm(n, width, of);
    const auto begin = std::chrono::steady_clock::now();
    const cudaq_status_t status = s.call();
    const auto took = std::chrono::steady_clock::now() - begin;
    const std::uint64_t fired = faults::disarm();
    where = "with " + s.name + ", fault " + std::to_string(n) + ": " + faults::last();
    slow_ += took >= kSoon;
    EXPECT_LE(slow_, kStandstills) << where;
    if (status == s.expected)
      return fired;
    EXPECT_NE(fired, 0u) << where << ": " << cudaq_last_error_message();
    if (s.holds == promise::succeeds && width == 1) {
      EXPECT_EQ(status, s.expected) << where << ": " << cudaq_last_error_message();
    }
    if (s.holds != promise::serves) {
      EXPECT_TRUE(status == CUDAQ_ERR_INTERNAL || status == CUDAQ_ERR_CUDA || width == 2) << where << ": " << status;
      EXPECT_TRUE(error_names({s.name + ": "})) << where;
      EXPECT_GT(std::strlen(cudaq_last_error_message()), s.name.size() + 4) << where;
      if (width == 1) {
        EXPECT_EQ(now.snapshot(), before) << where;
      }
    }
    cudaq_status_t again = s.call();
    for (int tries = 0; width == 2 && tries < 2 && again != s.expected; ++tries)
      again = s.call();
    EXPECT_EQ(again, s.expected) << "repeated " << where << ": " << cudaq_last_error_message();
    return fired;
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr int kEnoughFailures = 20;
  static constexpr std::size_t kShort = 15;              ///< longest text that needs no memory
  static constexpr auto kSoon = std::chrono::seconds(4); ///< less than each deadline of the library
  static constexpr int kStandstills = 2;                 ///< of the machine, in thousands of calls

  std::function<std::unique_ptr<script>()> make_;
  std::uint64_t faults_ = 0;
  int slow_ = 0;                ///< calls that took longer
  std::set<std::string> calls_; ///< that have failed
};

/// Every fault in every step, and pairs of them at the end; see expect_at_least.
template <class Make>
void sweep_all_faults(Make &&make, std::uint64_t least, const std::vector<std::string> &calls) {
  fault_sweep sweep(std::forward<Make>(make));
  sweep.each_call();
  sweep.pairs_in_the_end();
  sweep.expect_at_least(least, calls);
}

} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A pipeline with GPU workers: every allocation, thread, mapping and CUDA call fails once, from the making of the
// workers to their end, in the program's calls and on all threads. The call then throws, or its request is answered
// with an error, and it succeeds when it is repeated. Each request is answered once, and nothing is lost.
#include "unittests/kernels/qec/graph_adders.h"
#include "unittests/kernels/qec/resident_adders.h"
#include "unittests/support/fault_points.h"

#include <cstdio>
#include <set>

namespace cudaq::qec::realtime::test {
namespace {

namespace faults = cudaq::realtime::test::faults;

constexpr int kFew = 2, kDevice = 1;

struct part {
  const char *name;
  std::function<void()> call; ///< throws if it has failed
};

/// Workers, and a pipeline that is started twice. The second run is ended by the pipeline's destructor.
template <class Stages>
class life {
public:
  std::vector<part> parts() {
    const part start{"start", [this] { rig_->pipeline.start(); }}, request{"a request", [this] { serve(); }};
    return {{"the making of the workers",
             [this] {
               stages_.end(); // of an attempt that has failed
               stages_.make_with_input(kFew, kDevice);
             }},
            {"the making of the pipeline",
             [this] { rig_ = std::make_unique<adder_rig>([this](int id) { return stages_.resources(id); }, kFew); }},
            start,
            request,
            {"stop", [this] { stop(); }},
            start,
            request,
            {"the end of the pipeline", [this] { rig_.reset(); }},
            {"the end of the workers", [this] { stages_.end(); }}};
  }

private:
  void serve() {
    const std::uint64_t word = served_, completed = rig_->completed, right = rig_->right;
    rig_->pipeline.create_injector().submit(kFunction, &word, sizeof(word), word);
    ++served_;
    EXPECT_TRUE(eventually([&] { return rig_->completed > completed; })) << rig_->pipeline.dump();
    if (rig_->right == right)
      throw std::runtime_error("answered with an error");
  }
  void stop() {
    EXPECT_NO_THROW(rig_->pipeline.stop());
    EXPECT_EQ(rig_->completed, served_) << "requests are answered once";
    if (const stop_report report = rig_->pipeline.last_stop(); !report.drained)
      throw std::runtime_error(report.text);
  }

  Stages stages_;
  std::unique_ptr<adder_rig> rig_;
  std::uint64_t served_ = 0;
};

template <class Stages>
class WorkerStagesFaults : public testing::Test {
protected:
  /// Call `n` that part `faulty` makes fails. False: it makes fewer calls, or something is wrong.
  bool run(std::size_t faulty, std::uint64_t n) {
    const faults::holdings before = faults::held();
    bool fired = false;
    {
      life<Stages> now;
      const std::vector<part> parts = now.parts();
      for (std::size_t k = 0; k < parts.size() && !this->HasFailure(); ++k)
        if (k == faulty)
          fired = inject(parts[k], n);
        else
          EXPECT_EQ(failure_of(parts[k]), "") << parts[k].name << ", after a fault in " << faults::last();
    }
    const faults::holdings after = faults::held();
    EXPECT_EQ(after.mappings, before.mappings);
    EXPECT_EQ(after.threads, before.threads);
    if (warm_) {
      EXPECT_EQ(after.blocks, before.blocks) << "leaked memory";
    }
    warm_ = true;
    if (this->HasFailure())
      std::printf("fault %llu of part %zu was in: %s\n", static_cast<unsigned long long>(n), faulty, faults::last());
    faults_ += fired;
    if (fired)
      calls_.insert(faults::last());
    return fired && !this->HasFailure();
  }
  std::uint64_t faults_ = 0;
  std::set<std::string> calls_; ///< that have failed

private:
  /// Empty: it has not failed.
  static std::string failure_of(const part &p) {
    try {
      p.call();
    } catch (const std::exception &e) {
      return e.what();
    }
    return "";
  }
  bool inject(const part &p, std::uint64_t n) {
    faults::arm(n);
    bool failed = false, has_text = false;
    try {
      p.call();
    } catch (const std::exception &e) {
      failed = true;
      has_text = e.what()[0] != '\0';
    }
    const bool fired = faults::disarm() != 0;
    EXPECT_EQ(failed, has_text);
    EXPECT_TRUE(fired || !failed) << p.name << " has failed without a fault";
    if (failed) {
      EXPECT_EQ(failure_of(p), "") << p.name << ", repeated after a fault in " << faults::last();
    }
    return fired;
  }
  bool warm_ = false; ///< what is made once in a process is made in the first run
};

struct stage_names {
  template <class Stages>
  static std::string GetName(int) {
    return std::is_same_v<Stages, graph_adders> ? "Graphs" : "Resident";
  }
};
using both_stages = testing::Types<graph_adders, resident_adders>;
TYPED_TEST_SUITE(WorkerStagesFaults, both_stages, stage_names);

TYPED_TEST(WorkerStagesFaults, CostNoRequestAndTheWorkersCanBeUsedAfterwards) {
  const std::size_t parts = life<TypeParam>().parts().size();
  this->run(parts, 1); // no fault
  for (std::size_t k = 0; k < parts; ++k) {
    int without = 0; // how often the workers' threads look at the device is different in each run
    for (std::uint64_t n = 1; without < 3 && !this->HasFailure(); ++n) {
      ASSERT_LT(n, 2000u);
      without = this->run(k, n) ? 0 : without + 1;
    }
  }
  std::string text;
  for (const std::string &call : this->calls_)
    text += (text.empty() ? "" : ", ") + call;
  std::vector<std::string> must = {"operator new",    "pthread_create",   "mmap",
                                   "cudaHostAlloc",   "cudaFreeHost",     "cudaHostGetDevicePointer",
                                   "cudaGetDevice",   "cuCtxPushCurrent", "cudaStreamCreateWithFlags",
                                   "cudaStreamQuery", "cudaStreamDestroy"};
  if (std::is_same_v<TypeParam, graph_adders>)
    must.insert(must.end(), {"cudaSetDevice", "cudaGraphUpload", "cudaGraphLaunch"});
  for (const std::string &call : must)
    EXPECT_EQ(this->calls_.count(call), 1u) << call << " has not failed; the calls that have: " << text;
  EXPECT_GE(this->faults_, 150u);
  std::printf("faults injected: %llu, in %s\n", static_cast<unsigned long long>(this->faults_), text.c_str());
}

} // namespace
} // namespace cudaq::qec::realtime::test

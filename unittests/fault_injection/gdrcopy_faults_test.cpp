// SPDX-License-Identifier: Apache-2.0
// lib/gpu_memory/gdrcopy_memory.cpp, on a double of GDRCopy's library and a CUDA runtime without a GPU: what is asked
// of the module, and that everything is given back, whichever call fails.
#include "lib/gpu_memory/mapping_ways.h"
#include "unittests/support/fake_cuda/endless_kernel.h"
#include "unittests/support/fake_cuda/fake_cuda.h"
#include "unittests/support/fault_points.h"
#include "unittests/support/gdrcopy_double/gdrcopy_double.h"
#include "unittests/support/program_paths.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace cudaq::realtime::test {
namespace {

using detail::gdrcopy_files, detail::mapping_result, detail::expected;

constexpr std::size_t kGpuPage = 65536;

class GdrCopy : public ::testing::Test {
protected:
  void SetUp() override {
    void *const library = dlopen(CUDAQ_GDRCOPY_DOUBLE, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto state = reinterpret_cast<gdrcopy_double_function>(dlsym(library, "gdrcopy_double_state"));
    ASSERT_NE(state, nullptr);
    double_ = state();
    *double_ = {};
  }
  void TearDown() override {
    EXPECT_STREQ(double_->mistake, "");
    EXPECT_EQ(double_->handles + double_->pins + double_->maps, 0);
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  /// /dev/null stands for the module's device: it only has to be there.
  static expected<> map(mapping_result &out, std::size_t bytes = 100000, const char *device = "/dev/null",
                        const char *library = CUDAQ_GDRCOPY_DOUBLE) {
    return detail::map_by_gdrcopy({0, bytes, false, false}, out, {device, library});
  }
  static void expect_lacks(const expected<> &result, const std::string &text) {
    EXPECT_EQ(result.status(), CUDAQ_ERR_UNSUPPORTED);
    EXPECT_NE(result.text().find(text), std::string::npos) << result.text();
  }
  gdrcopy_double *double_ = nullptr;
};

TEST_F(GdrCopy, MapsWholePagesThatAreZeroAndGivesThemBack) {
  for (const std::size_t bytes : {std::size_t{1}, kGpuPage, kGpuPage + 1, std::size_t{100000}}) {
    mapping_result memory;
    const expected<> result = map(memory, bytes);
    ASSERT_TRUE(result.ok()) << result.text();
    const std::size_t whole = (bytes + kGpuPage - 1) / kGpuPage * kGpuPage;
    EXPECT_EQ(double_->pinned_bytes, whole);
    EXPECT_EQ(double_->pinned_at, reinterpret_cast<unsigned long>(memory->device()));
    EXPECT_EQ(double_->pinned_at % kGpuPage, 0u);
    EXPECT_EQ(memory->source(), CUDAQ_MAPPING_GDRCOPY);
    EXPECT_TRUE(std::all_of(memory->host(), memory->host() + whole, [](std::uint8_t b) { return b == 0; }));
    memory->host()[whole - 1] = 7; // one byte for both sides
    EXPECT_EQ(memory->device()[whole - 1], 7);
    cudaPointerAttributes last{};
    cudaPointerGetAttributes(&last, memory->device() + whole - 1);
    EXPECT_EQ(last.type, cudaMemoryTypeDevice) << "the pages reach past the allocation";
    memory.reset();
    EXPECT_EQ(double_->handles + double_->pins + double_->maps, 0);
  }
  EXPECT_EQ(double_->unmaps, 4);
  EXPECT_EQ(double_->unpins, 4);
  EXPECT_EQ(double_->closes, 4);
}

TEST_F(GdrCopy, SaysWhatTheMachineLacks) {
  mapping_result out;
  expect_lacks(map(out, 64, "/dev/null/gdrdrv"), "/dev/null/gdrdrv (kernel module gdrdrv): ");
  expect_lacks(map(out, 64, "/dev/null", "/nonexistent/libgdrapi.so.2"),
               "/nonexistent/libgdrapi.so.2 is not installed");
  expect_lacks(map(out, 64, "/dev/null", "libm.so.6"), "libm.so.6 lacks a function of version 2");
  expect_lacks(detail::map_by_gdrcopy({0, 64, false, true}, out, {}), "another process cannot map");
  EXPECT_EQ(out, nullptr);
}

TEST_F(GdrCopy, ARefusedCallIsNamedAndLeavesNothing) {
  const struct {
    const char *call, *text;
  } cases[] = {{"gdr_open", "gdr_open failed on /dev/null"},
               {"gdr_pin_buffer", "gdr_pin_buffer refused 131072 bytes"},
               {"gdr_map", "gdr_map refused 131072 bytes"}};
  for (const auto &one : cases) {
    *double_ = {};
    double_->fails = one.call;
    mapping_result out;
    expect_lacks(map(out), one.text);
    EXPECT_EQ(out, nullptr);
    EXPECT_EQ(double_->handles + double_->pins + double_->maps, 0) << one.call;
    EXPECT_STREQ(double_->mistake, "") << one.call;
    EXPECT_EQ(fake_cuda::clean_up(), 0) << one.call;
  }
}

// Freeing memory waits for all kernels of the device.
TEST_F(GdrCopy, MemoryOfARefusedCallIsKeptForAnOwnerAndNotFreedBesideAKernel) {
  endless_kernel kernel;
  ASSERT_EQ(kernel.made, cudaSuccess);
  std::vector<mapping_result> refused;
  mapping_result out;
  double_->fails = "gdr_pin_buffer";
  expect_lacks(detail::map_by_gdrcopy({0, 64, false, false, &refused}, out, {"/dev/null", CUDAQ_GDRCOPY_DOUBLE}),
               "gdr_pin_buffer refused");
  EXPECT_EQ(refused.size(), 1u);
  EXPECT_EQ(fake_cuda::violations(), "");
  kernel.end();
  refused.clear();
}

// What the module has not ended is ended with its handle, and the memory is freed.
TEST_F(GdrCopy, AnEndThatFailsKeepsNothingElse) {
  for (const char *call : {"gdr_unmap", "gdr_unpin_buffer", "gdr_close"}) {
    *double_ = {};
    mapping_result memory;
    ASSERT_TRUE(map(memory).ok());
    double_->fails = call;
    memory.reset();
    EXPECT_EQ(double_->unmaps + double_->unpins + double_->closes, 3) << call;
    EXPECT_EQ(double_->handles + double_->pins + double_->maps, 0) << call;
    EXPECT_STREQ(double_->mistake, "") << call;
    EXPECT_EQ(fake_cuda::clean_up(), 0) << call;
  }
}

// Calls of CUDA, and allocations of memory.
TEST_F(GdrCopy, EveryOtherCallFailsOnceAndLeavesNothing) {
  std::uint64_t failed = 0;
  for (std::uint64_t n = 1; n < 100; ++n) {
    mapping_result out;
    expected<> result;
    bool no_memory = false;
    faults::arm(n);
    try {
      result = map(out);
    } catch (const std::bad_alloc &) {
      no_memory = true;
    }
    if (faults::disarm() == 0) {
      EXPECT_TRUE(result.ok()) << result.text();
      break;
    }
    ++failed;
    if (out == nullptr) {
      EXPECT_TRUE(result.failed() || no_memory) << faults::last();
    }
    out.reset();
    EXPECT_EQ(double_->handles + double_->pins + double_->maps, 0) << faults::last();
    EXPECT_EQ(fake_cuda::clean_up(), 0) << faults::last();
  }
  EXPECT_GE(failed, 4u) << "the object, cudaMalloc, a stream, the zeros";
}

} // namespace
} // namespace cudaq::realtime::test

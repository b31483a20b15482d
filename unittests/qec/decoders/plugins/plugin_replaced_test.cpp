// SPDX-License-Identifier: Apache-2.0
// Another file takes the place of a plug-in that is loaded.
#include "unittests/qec/qec_test_support.h"

#include <dlfcn.h>
#include <unistd.h>

namespace cudaq::qec::realtime::test {
namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.1) D1 L1\n";

class ReplacedPlugin : public ::testing::Test {
protected:
  ~ReplacedPlugin() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  /// As a linker or an installation does: a new file takes the name.
  void put(const char *library) const {
    const std::filesystem::path fresh = path_.string() + ".fresh";
    std::filesystem::copy_file(library, fresh);
    std::filesystem::rename(fresh, path_);
  }
  [[nodiscard]] std::unique_ptr<decoder> made() const { return make_or_throw(path_.string(), kModel); }
  [[nodiscard]] const std::filesystem::path &path() const { return path_; }

private:
  const std::filesystem::path path_ = testing::TempDir() + "replaced_" + std::to_string(getpid()) + ".so";
};

// The name of a decoder is in the memory of its library, so its address tells two loaded libraries apart.

TEST_F(ReplacedPlugin, NewDecodersHaveTheNewCodeAndOldOnesTheirOwn) {
  put(CUDAQ_TEST_PLUGIN);
  const auto first = made();
  const std::string old_name = first->name();
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  const auto second = made();
  EXPECT_STREQ(second->name(), "breaking");
  put(CUDAQ_TEST_PLUGIN);
  const auto third = made();
  EXPECT_EQ(third->name(), old_name);
  EXPECT_NE(third->name(), first->name()) << "a file of its own";
  for (decoder *const each : {first.get(), second.get(), third.get()})
    EXPECT_EQ(decode(*each, {0}), (answer{decode_status::ok, {1}})) << each->name();
}

TEST_F(ReplacedPlugin, DecodersOfOneFileShareItsLibrary) {
  put(CUDAQ_TEST_PLUGIN);
  const auto first = made(), same = made();
  EXPECT_EQ(first->name(), same->name());
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  const auto second = made(), also = made();
  EXPECT_EQ(second->name(), also->name());
  EXPECT_NE(first->name(), second->name());
}

TEST_F(ReplacedPlugin, TheFileOfTheNewCodeIsFoundFromItsAddress) {
  put(CUDAQ_TEST_PLUGIN);
  const auto first = made();
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  const auto second = made();
  EXPECT_STREQ(second->name(), "breaking");
  Dl_info info{};
  ASSERT_NE(dladdr(second->name(), &info), 0);
  EXPECT_TRUE(std::filesystem::equivalent(info.dli_fname, path())) << info.dli_fname;
}

TEST_F(ReplacedPlugin, IsUnloadedAfterTheLastDecoder) {
  put(CUDAQ_TEST_PLUGIN);
  auto first = made();
  put(CUDAQ_TEST_BREAKING_PLUGIN);
  auto second = made();
  Dl_info info{};
  ASSERT_NE(dladdr(second->name(), &info), 0);
  const std::string file = info.dli_fname;
  first.reset();
  second.reset();
  for (const std::string &name : {path().string(), file})
    EXPECT_EQ(dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << name;
}

} // namespace
} // namespace cudaq::qec::realtime::test

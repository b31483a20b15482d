// SPDX-License-Identifier: Apache-2.0
// The file of a plug-in is absent, or a copy of it has not ended.
#include "unittests/qec/qec_test_support.h"
#include "unittests/support/scratch_folder.h"

#include <elf.h>

#include <cstring>
#include <fstream>

namespace cudaq::qec::realtime::test {
namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.1) D1 L1\n";

class PluginFile : public ::testing::Test {
protected:
  ~PluginFile() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  void put(const std::string &bytes) const {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  [[nodiscard]] decoder_result made() const { return make_decoder(path_.string(), kModel); }

  const std::string whole_ = cudaq::realtime::test::read_file(CUDAQ_TEST_PLUGIN);
  const std::filesystem::path path_ = testing::TempDir() + "file_" + std::to_string(getpid()) + ".so";
};

// A page that is mapped and not in the file is a SIGBUS: this process would end.
TEST_F(PluginFile, IsRefusedWhereverACopyHasStopped) {
  for (std::size_t length = 0; length < whole_.size(); length += length < 256 ? 31 : 509) {
    put(whole_.substr(0, length));
    const decoder_result cut = made();
    ASSERT_FALSE(cut) << length;
    const bool is_header = length < sizeof(Elf64_Ehdr);
    EXPECT_NE(cut.error.find(is_header ? "file too short" : "the file is not whole: it has " + std::to_string(length)),
              std::string::npos)
        << length << ": " << cut.error;
  }
  put(whole_.substr(0, whole_.size() - 1));
  EXPECT_NE(made().error.find(" bytes of at least " + std::to_string(whole_.size())), std::string::npos)
      << made().error;
  put(whole_);
  EXPECT_TRUE(made()) << made().error;
}

TEST_F(PluginFile, IsRefusedIfItHasItsLengthBeforeItsBytes) {
  for (std::size_t length = 1024; length < whole_.size() - 512; length += 1021) {
    std::string bytes = whole_.substr(0, length);
    bytes.resize(whole_.size());
    put(bytes);
    EXPECT_NE(made().error.find("a part of it is empty"), std::string::npos) << length << ": " << made().error;
  }
}

TEST_F(PluginFile, MayHaveNoSectionTable) {
  Elf64_Ehdr head{};
  std::memcpy(&head, whole_.data(), sizeof head);
  std::string bytes = whole_.substr(0, head.e_shoff);
  head.e_shoff = 0;
  head.e_shnum = head.e_shstrndx = 0;
  std::memcpy(bytes.data(), &head, sizeof head);
  put(bytes);
  EXPECT_TRUE(made()) << made().error;
  put(bytes.substr(0, 1500));
  EXPECT_NE(made().error.find("the file is not whole: it has 1500 bytes"), std::string::npos) << made().error;
}

TEST_F(PluginFile, IsNeededAlsoWhileItsLibraryIsLoaded) {
  put(whole_);
  const decoder_result first = made();
  ASSERT_TRUE(first) << first.error;
  std::filesystem::remove(path_);
  EXPECT_NE(made().error.find("No such file or directory"), std::string::npos) << made().error;
  EXPECT_EQ(decode(*first.instance, {0}), (answer{decode_status::ok, {1}})) << "it keeps the code of its file";
  put(whole_);
  EXPECT_TRUE(made()) << made().error;
}

// $ORIGIN is the folder of who calls dlopen; with a sanitizer that is its library. From each folder so many parents
// lead to the root.
TEST_F(PluginFile, MayHaveAPathThatOnlyTheLoaderKnows) {
  put(whole_);
  std::string root = "$ORIGIN";
  for (int n = 0; n < 64; ++n)
    root += "/..";
  const std::string file = std::filesystem::absolute(path_).string();
  const decoder_result known = make_decoder(root + file, kModel);
  EXPECT_TRUE(known) << known.error;
  const decoder_result absent = make_decoder(root + "/absent" + file, kModel);
  EXPECT_NE(absent.error.find("cannot open shared object file"), std::string::npos) << absent.error;
}

} // namespace
} // namespace cudaq::qec::realtime::test

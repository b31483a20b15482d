// SPDX-License-Identifier: Apache-2.0
// Which engine is loaded, built or refused. A fake maker is used instead of TensorRT.
#include "contrib/tensorrt/engine_files.h"
#include "contrib/tensorrt/tensor_shapes.h"
#include "unittests/support/scratch_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>

namespace cudaq::qec::realtime::test {
namespace {

namespace fs = std::filesystem;
using bytes = std::vector<std::uint8_t>;

/// Keeps the bytes it was loaded from.
class fake_engine final : public experimental::inference_engine {
public:
  explicit fake_engine(bytes of) : serialized(std::move(of)) {}
  const char *name() const noexcept override { return "fake"; }
  const std::vector<experimental::tensor_info> &tensors() const noexcept override { return none_; }
  void bind(std::size_t, void *) override {}
  cudaError_t enqueue(cudaStream_t) override { return cudaSuccess; }
  const bytes serialized;

private:
  std::vector<experimental::tensor_info> none_;
};

/// An engine is the maker's version, followed by the bytes of the model.
class fake_maker final : public engine_maker {
public:
  std::string version() const override { return version_; }
  int compute_capability() const override { return sm; }
  std::string device_name() const override { return device; }
  bytes build(std::span<const std::uint8_t> model) override {
    ++built;
    bytes made(version_.begin(), version_.end());
    made.insert(made.end(), model.begin(), model.end());
    return made;
  }
  std::unique_ptr<experimental::inference_engine> load(std::span<const std::uint8_t> serialized) override {
    if (loads_until_refusal-- == 0)
      throw std::runtime_error("the library refuses");
    return std::make_unique<fake_engine>(bytes(serialized.begin(), serialized.end()));
  }
  std::string version_ = "fake-10.3.0.26", device = "GPU A";
  int sm = 90, built = 0, loads_until_refusal = -1;
};

class EngineFiles : public ::testing::Test {
protected:
  EngineFiles() {
    fs::create_directories(folder_ / "cache");
    write("d7.onnx", "model A");
  }

  std::string path(const std::string &name) const { return (folder_ / name).string(); }
  void write(const std::string &name, const std::string &content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  opened_engine open(const std::string &model = "d7.onnx") { return open_engine(maker_, {path(model), path("cache")}); }
  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    for (const auto &entry : fs::directory_iterator(folder_ / "cache"))
      files.push_back(entry.path());
    return files;
  }
  static std::string loaded(const opened_engine &from) {
    const bytes &b = dynamic_cast<const fake_engine &>(*from.engine).serialized;
    return std::string(b.begin(), b.end());
  }
  std::string refusal(const std::string &model) {
    try {
      open(model);
    } catch (const std::runtime_error &e) {
      return e.what();
    }
    return "not refused";
  }

  const cudaq::realtime::test::scratch_folder scratch_;
  const fs::path folder_ = scratch_.path();
  fake_maker maker_;
};

TEST_F(EngineFiles, AModelIsBuiltOnceAndThenLoaded) {
  const opened_engine first = open();
  EXPECT_EQ(first.source, engine_source::built);
  EXPECT_EQ(loaded(first), "fake-10.3.0.26model A");
  EXPECT_EQ(first.note, "");
  const opened_engine second = open();
  EXPECT_EQ(second.source, engine_source::saved);
  EXPECT_EQ(loaded(second), loaded(first));
  EXPECT_EQ(maker_.built, 1);
  ASSERT_EQ(cached().size(), 1u) << "one file, no temporary file";
  EXPECT_EQ(cached()[0].filename().string().rfind("d7.fake-10.3.0.26.sm90.GPU_A.", 0), 0u) << cached()[0];
}

// Known failure 32.
TEST_F(EngineFiles, AnotherVersionGpuOrModelHasAnEngineOfItsOwn) {
  open();
  maker_.version_ = "fake-10.4.0.1";
  EXPECT_EQ(loaded(open()), "fake-10.4.0.1model A");
  maker_.sm = 100;
  EXPECT_EQ(open().source, engine_source::built);
  maker_.device = "GPU B";
  EXPECT_EQ(open().source, engine_source::built);
  write("d7.onnx", "model B");
  EXPECT_EQ(loaded(open()), "fake-10.4.0.1model B");
  EXPECT_EQ(maker_.built, 5);
  EXPECT_EQ(cached().size(), 5u);
  EXPECT_EQ(open().source, engine_source::saved);
}

TEST_F(EngineFiles, TheModelIsNotWrittenOver) {
  EXPECT_THROW(open_engine(maker_, {path("d7.onnx"), path("d7.onnx")}), std::runtime_error);
  EXPECT_EQ(loaded(open()), "fake-10.3.0.26model A");
}

TEST_F(EngineFiles, ASavedEngineOfAnotherVersionIsRebuiltWhateverItsName) {
  const engine_files files{path("d7.onnx"), path("d7.engine")}; // the same engine file for all
  open_engine(maker_, files);
  maker_.version_ = "fake-11.0.0.1";
  const opened_engine again = open_engine(maker_, files);
  EXPECT_EQ(again.source, engine_source::built);
  EXPECT_NE(again.note.find("saved for fake-10.3.0.26 sm90"), std::string::npos) << again.note;
  EXPECT_EQ(open_engine(maker_, files).source, engine_source::saved) << "the file was replaced";
}

TEST_F(EngineFiles, ADamagedSavedEngineIsRebuilt) {
  open();
  const auto good = read_file(cached()[0].string());
  ASSERT_TRUE(good.ok()) << good.text();
  const auto expect_rebuilt = [&](const bytes &damaged, const char *why) {
    ASSERT_EQ(write_file_atomically(cached()[0].string(), damaged).text(), "");
    const opened_engine again = open();
    EXPECT_EQ(again.source, engine_source::built) << why;
    EXPECT_NE(again.note.find(why), std::string::npos) << again.note;
    EXPECT_EQ(open().source, engine_source::saved) << why;
  };
  bytes damaged = *good;
  damaged.back() ^= 1;
  expect_rebuilt(damaged, "its bytes do not fit its hash");
  damaged = *good;
  damaged.pop_back();
  expect_rebuilt(damaged, "cut off");
  damaged = *good;
  damaged[12] = 1; // the reserved word
  expect_rebuilt(damaged, "newer form");
  for (std::size_t size : {40u, 32u})
    expect_rebuilt(bytes(good->begin(), good->begin() + size), "cut off");
  expect_rebuilt(bytes(good->begin(), good->begin() + 31), "not a saved engine");
  expect_rebuilt({'t', 'r', 't'}, "not a saved engine");
}

TEST_F(EngineFiles, ASavedEngineThatCannotBeLoadedNowIsLeftForTheNextTime) {
  open();
  const fs::path file = cached()[0];
  const auto before = fs::last_write_time(file) - std::chrono::hours(1);
  fs::last_write_time(file, before);
  maker_.loads_until_refusal = 0;
  const opened_engine again = open();
  EXPECT_EQ(again.source, engine_source::built);
  EXPECT_NE(again.note.find("the library refuses"), std::string::npos) << again.note;
  EXPECT_EQ(fs::last_write_time(file), before);
  EXPECT_EQ(open().source, engine_source::saved);
}

TEST_F(EngineFiles, WithoutTheModelAnotherVersionOrGpuIsRefused) {
  open_engine(maker_, {path("d7.onnx"), path("kept.engine")});
  EXPECT_EQ(open("kept.engine").source, engine_source::file);
  EXPECT_EQ(loaded(open("kept.engine")), "fake-10.3.0.26model A");
  maker_.sm = 9; // "sm9" is a prefix of "sm90"
  EXPECT_NE(refusal("kept.engine").find("saved for fake-10.3.0.26 sm90"), std::string::npos);
  maker_.sm = 90;
  maker_.device = "GPU"; // also a prefix
  EXPECT_NE(refusal("kept.engine").find("but this is fake-10.3.0.26 sm90 GPU;"), std::string::npos);
  maker_.device = "GPU A";
  maker_.version_ = "fake-10.3.0.2";
  EXPECT_NE(refusal("kept.engine").find("but this is fake-10.3.0.2 sm90"), std::string::npos);
  EXPECT_EQ(maker_.built, 1);
}

TEST_F(EngineFiles, ForeignEnginesGoToTheLibraryWhichMayRefuse) {
  write("plain.plan", "an engine");
  EXPECT_EQ(loaded(open("plain.plan")), "an engine");
  EXPECT_NE(open("plain.plan").note.find("nothing is kept"), std::string::npos);
  EXPECT_EQ(open_engine(maker_, {path("plain.plan"), ""}).note, "");
  maker_.loads_until_refusal = 0;
  EXPECT_EQ(refusal("plain.plan"), "the library refuses");
  EXPECT_NE(refusal("none.onnx").find("cannot open " + path("none.onnx") + ": No such file"), std::string::npos);
  write("empty.onnx", "");
  EXPECT_EQ(refusal("empty.onnx"), path("empty.onnx") + " is empty");
  EXPECT_EQ(refusal("cache"), path("cache") + " is a folder, expected a file");
}

TEST_F(EngineFiles, WhereNothingCanBeSavedTheEngineIsStillThere) {
  const opened_engine opened = open_engine(maker_, {path("d7.onnx"), path("none/d7.engine")});
  EXPECT_NE(opened.engine, nullptr);
  EXPECT_NE(opened.note.find("cannot write " + path("none/d7.engine")), std::string::npos) << opened.note;
  EXPECT_EQ(open_engine(maker_, {path("d7.onnx"), ""}).note, "");
}

TEST_F(EngineFiles, SideBySideEveryReaderSeesAWholeFile) {
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w)
    writers.emplace_back([&, w] {
      fake_maker mine;
      const bytes large(100000, static_cast<std::uint8_t>(w));
      for (int k = 0; k < 30; ++k) {
        EXPECT_EQ(write_file_atomically(path("shared.engine"), pack_engine(make_engine_key(mine, large), large)).text(),
                  "");
        const auto file = read_file(path("shared.engine"));
        ASSERT_TRUE(file.ok()) << file.text();
        EXPECT_TRUE(unpack_engine(*file).ok()) << unpack_engine(*file).text();
      }
    });
  for (std::thread &t : writers)
    t.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 3) << "only the model, the cache and the file itself";
}

// Known failure 32.
TEST(TensorShapes, EachDynamicDimensionIsPinnedToOne) {
  using shape = std::vector<std::int64_t>;
  EXPECT_EQ(pinned_shape("x", shape{-1, 72, 7}), (shape{1, 72, 7}));
  EXPECT_EQ(pinned_shape("x", shape{-1, 72, -1, 7}), (shape{1, 72, 1, 7}));
  EXPECT_EQ(pinned_shape("x", shape{4, -1}), (shape{4, 1}));
  EXPECT_EQ(pinned_shape("x", shape{4, 72}), (shape{4, 72})) << "fixed by the model";
  EXPECT_EQ(pinned_shape("x", shape{}), shape{}) << "a scalar";
  const auto text = [](const shape &s) -> std::string {
    try {
      pinned_shape("x", s);
    } catch (const std::runtime_error &e) {
      return e.what();
    }
    return "taken";
  };
  EXPECT_EQ(text({0, 7}), "tensor \"x\": dimension 0 is 0");
  EXPECT_EQ(text({-1, 0}), "tensor \"x\": dimension 1 is 0");
}

TEST(TensorShapes, TypesAreTensorRtsByNumber) {
  using enum experimental::tensor_type;
  const std::pair<experimental::tensor_type, std::size_t> by_number[] = {{float32, 4}, {float16, 2},  {int8, 1},
                                                                         {int32, 4},   {boolean, 1},  {uint8, 1},
                                                                         {float8, 1},  {bfloat16, 2}, {int64, 8}};
  int number = 0;
  for (const auto &[type, size] : by_number) {
    EXPECT_EQ(tensor_type_of(number), type) << number;
    EXPECT_EQ(experimental::bytes_of(type), size) << number;
    const experimental::tensor_info t{"t", type, {1, 3, 5}, true};
    EXPECT_EQ(t.size_bytes(), 15 * size);
    EXPECT_EQ(t.memory_bytes(), 256u);
    ++number;
  }
  for (int none : {-1, 9, 10, 11, 1000}) // INT4, FP4, E8M0
    EXPECT_EQ(tensor_type_of(none), std::nullopt) << none;
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// A file that was damaged, cut, or made by another program.
#include "unittests/qec/server/record/recorder_support.h"

#include <cstring>
#include <sys/stat.h>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

std::string good_file(const test_folder &folder) {
  const std::string path = folder / "good";
  recording r(path, 2);
  EXPECT_TRUE(r.answer(r.request({1, 2}), 0, {3}));
  EXPECT_TRUE(r.answer(r.request({4, 5}), 0, {6}));
  return cudaq::realtime::test::read_file(path);
}

std::string refusal(const std::string &path, const std::string &bytes) {
  write_bytes(path, bytes);
  return record_reader::open(path).text();
}

template <class T>
std::string with(std::string bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

TEST(RecordReader, SaysWhyAFileIsNoRecording) {
  const test_folder folder;
  const std::string good = good_file(folder), path = folder / "bad";
  EXPECT_EQ(refusal(path, good), "");
  const auto has = [&](const std::string &bytes, const char *why) {
    const std::string text = refusal(path, bytes);
    EXPECT_NE(text.find(why), std::string::npos) << text;
  };
  has("", "no recording");
  has(good.substr(0, 63), "no recording");
  has(with(good, 0, 'X'), "no recording");
  has(good.substr(0, good.size() - 1), "fewer bytes");
  has(with(good, offsetof(record_file_head, byte_order), 0x04030201U), "byte order");
  has(with(good, offsetof(record_file_head, version), 2U), "another version");
  for (const std::uint64_t places : {std::uint64_t{0}, std::uint64_t{3}, UINT64_MAX, std::uint64_t{1} << 63})
    has(with(good, offsetof(record_file_head, places), places), "contradicts");
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{65}, std::uint64_t{64}, std::uint64_t{1} << 60})
    has(with(good, offsetof(record_file_head, place_bytes), bytes), "contradicts");
  has(with(good, offsetof(record_file_head, head_bytes), std::uint64_t{64}), "contradicts");
  EXPECT_NE(record_reader::open(folder / "missing").text().find("cannot be opened"), std::string::npos);
  EXPECT_NE(record_reader::open(folder.path()).text().find("no file"), std::string::npos);
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(record_reader::open(pipe).text().find("no file"), std::string::npos) << "it does not wait for a writer";
}

TEST(RecordReader, LeavesOutWhatIsTornOrDamaged) {
  const test_folder folder;
  const std::string good = good_file(folder), path = folder / "bad";
  const std::size_t first = kRecordHeadBytes;
  const auto look = [&](const std::string &bytes) {
    write_bytes(path, bytes);
    return read_recording(path);
  };
  const auto torn = look(with(good, first, mark_of(0, record_state::requesting)));
  EXPECT_EQ(torn->torn(), 1U);
  EXPECT_EQ(torn->size(), 1U);
  const auto elsewhere = look(with(good, first, mark_of(1, record_state::answered)));
  EXPECT_EQ(elsewhere->damaged(), 1U) << "request 1 is not in place 0";
  EXPECT_EQ(look(with(good, first, std::uint64_t{3}))->damaged(), 1U);
  for (const std::size_t field : {offsetof(record_head, kept_payload), offsetof(record_head, kept_result)})
    for (const std::uint32_t value : {3U, 70'000U, UINT32_MAX}) {
      const auto reader = look(with(good, first + field, value));
      EXPECT_FALSE(reader->read(0)) << field << " " << value;
      EXPECT_EQ(reader->damaged(), 1U);
      EXPECT_TRUE(reader->read(1)) << "the other one is good";
    }
}

TEST(RecordReader, ReadsNoAnswerThatIsNotComplete) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 1);
  const std::uint64_t mark = r.request({1});
  ASSERT_TRUE(r.recorder->add_answer(mark, 0, byte_list{2}));
  const auto one = read_recording(path)->read(0);
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->is_answered);
  EXPECT_TRUE(one->result.empty());
}

TEST(RecordReader, NoticesThatTheWriterHasTakenAPlace) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 1);
  EXPECT_TRUE(r.answer(r.request({1}), 0, {}));
  const auto reader = read_recording(path);
  EXPECT_TRUE(reader->read(0));
  EXPECT_TRUE(r.answer(r.request({2}), 0, {}));
  EXPECT_FALSE(reader->read(0));
  EXPECT_EQ(reader->damaged(), 0U);
}

} // namespace

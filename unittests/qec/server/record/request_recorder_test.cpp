// SPDX-License-Identifier: Apache-2.0
// What is in the file of the flight recorder, also after a crash.
#include "unittests/qec/server/record/recorder_support.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

TEST(RequestRecorder, KeepsTheBytesAndTheAnswerOfARequest) {
  const test_folder folder;
  const std::string path = folder / "rec";
  {
    recording r(path, 4);
    EXPECT_TRUE(r.answer(r.request({1, 2, 3}, 9), -5, {7, 8}));
    EXPECT_NE(r.request({4}, 10), 0U) << "it gets no answer";
  }
  const auto reader = read_recording(path);
  ASSERT_EQ(reader->size(), 2U);
  const auto first = reader->read(0), second = reader->read(1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->payload, byte_list({1, 2, 3}));
  EXPECT_EQ(first->result, byte_list({7, 8}));
  EXPECT_EQ(first->status, -5);
  EXPECT_EQ(first->function_id, 0xC0FFEEU);
  EXPECT_EQ(first->request_id, 9U);
  EXPECT_EQ(first->timestamp, 1009U);
  EXPECT_TRUE(first->is_answered && first->is_whole());
  EXPECT_FALSE(second->is_answered);
  EXPECT_EQ(second->payload, byte_list({4}));
  EXPECT_GE(second->arrived_ns, first->arrived_ns);
  EXPECT_EQ(reader->boot_id(), 7U);
}

TEST(RequestRecorder, KeepsTheLastRequestsOnly) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 3); // 4 places
  for (std::uint8_t k = 0; k < 10; ++k)
    EXPECT_TRUE(r.answer(r.request({k}), 0, {}));
  const auto reader = read_recording(path); // while the recorder has the file
  ASSERT_EQ(reader->size(), 4U);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(reader->number(k), 6 + k);
    EXPECT_EQ(reader->read(k)->payload, byte_list({static_cast<std::uint8_t>(6 + k)}));
  }
}

TEST(RequestRecorder, GivesALateAnswerNoPlaceOfALaterRequest) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 2);
  const std::uint64_t slow = r.request({1});
  EXPECT_TRUE(r.answer(r.request({2}), 0, {}));
  EXPECT_TRUE(r.answer(r.request({3}), 0, {30})) << "it takes the place of the slow one";
  EXPECT_FALSE(r.answer(slow, 0, {10}));
  EXPECT_FALSE(r.answer(0, 0, {10})) << "a request without a place";
  const auto reader = read_recording(path);
  ASSERT_EQ(reader->size(), 2U);
  EXPECT_EQ(reader->read(1)->result, byte_list({30}));
}

TEST(RequestRecorder, LeavesARequestOutWhosePlaceIsBeingWritten) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 1);
  const std::uint64_t first = r.request({1});
  ASSERT_TRUE(r.recorder->add_answer(first, 0, {})); // its end() comes later
  EXPECT_EQ(r.request({2}), 0U);
  r.recorder->end({.record = first}, 5);
  EXPECT_NE(r.request({3}), 0U);
  EXPECT_EQ(read_recording(path)->left_out(), 1U);
}

TEST(RequestRecorder, KeepsAPartOfWhatIsLongerThanAPlace) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 1, 32);
  EXPECT_TRUE(r.answer(r.request(byte_list(1000, 5)), 0, byte_list(100, 6)));
  const auto cut = read_recording(path)->read(0);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->payload_bytes, 1000U);
  EXPECT_EQ(cut->result_bytes, 100U);
  EXPECT_LT(cut->payload.size(), 1000U);
  EXPECT_EQ(cut->payload, byte_list(cut->payload.size(), 5));
  EXPECT_FALSE(cut->is_whole());
}

TEST(RequestRecorder, IsReadableAfterTheProcessWasKilled) {
  const test_folder folder;
  const std::string path = folder / "rec";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    recording r(path, 1024);
    for (std::uint32_t k = 0; k < 5000; ++k)
      (void)r.answer(r.request({static_cast<std::uint8_t>(k)}, k), 0, {static_cast<std::uint8_t>(k + 1)});
    (void)r.request({99}, 5000); // the decode that ends the server
    (void)!write(ready[1], "x", 1);
    for (;;)
      pause();
  }
  char done = 0;
  ASSERT_EQ(read(ready[0], &done, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  const auto reader = read_recording(path);
  ASSERT_EQ(reader->size(), 1024U);
  EXPECT_EQ(reader->torn() + reader->damaged() + reader->left_out(), 0U);
  for (std::size_t k = 0; k < reader->size(); ++k) {
    const auto one = reader->read(k);
    ASSERT_TRUE(one);
    ASSERT_EQ(one->request_id, 5001 - 1024 + k);
    ASSERT_EQ(one->is_answered, one->request_id != 5000);
    if (one->is_answered) {
      ASSERT_EQ(one->result, byte_list({static_cast<std::uint8_t>(one->request_id + 1)}));
    }
  }
}

TEST(RequestRecorder, KeepsTheEarlierRecordingUnderAnotherName) {
  const test_folder folder;
  const std::string path = folder / "rec";
  {
    recording first(path, 1);
    EXPECT_TRUE(first.answer(first.request({1}), 0, {}));
  }
  { const recording second(path, 1); } // no request: it does not become .1
  const recording third(path, 1);
  EXPECT_EQ(read_recording(path + ".1")->size(), 1U);
  EXPECT_EQ(read_recording(path)->size(), 0U);
}

TEST(RequestRecorder, OverwritesNoOtherFileWithTheNameOfAnEarlierRecording) {
  const test_folder folder;
  const std::string path = folder / "rec";
  std::ofstream(path + ".1") << "notes";
  {
    recording first(path, 1);
    EXPECT_TRUE(first.answer(first.request({1}), 0, {}));
  }
  const auto ticks = cudaq::realtime::detail::tick_clock::measured();
  const auto refused = request_recorder::create(path, {1, 32}, 7, ticks);
  ASSERT_TRUE(refused.failed());
  EXPECT_NE(refused.text().find("rec.1: there is another file"), std::string::npos) << refused.text();
  EXPECT_EQ(read_recording(path)->size(), 1U) << "it is still there";
}

TEST(RequestRecorder, RefusesAFileThatIsNotItsOwn) {
  const test_folder folder;
  const auto ticks = cudaq::realtime::detail::tick_clock::measured();
  const auto text = [&](const std::string &path, std::uint64_t records = 1) {
    return request_recorder::create(path, {records, 64}, 1, ticks).text();
  };
  const std::string other = folder / "other", link = folder / "link", used = folder / "used";
  write_bytes(other, "my thesis");
  EXPECT_NE(text(other).find("no recording"), std::string::npos) << text(other);
  EXPECT_EQ(cudaq::realtime::test::read_file(other), "my thesis");
  std::filesystem::create_symlink(other, link);
  EXPECT_NE(text(link).find("symbolic link"), std::string::npos) << text(link);
  const recording first(used, 1);
  EXPECT_NE(text(used).find("a server that runs"), std::string::npos) << text(used);
  EXPECT_NE(text(folder / "none/rec").find("cannot be made"), std::string::npos);
  EXPECT_NE(text(folder / "rec", 0).find("accepted: 1 to"), std::string::npos);
  EXPECT_NE(text(folder / "rec", UINT64_MAX).find("accepted: 1 to"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "rec"));
}

TEST(RequestRecorder, FileIsForItsOwnerOnly) {
  const test_folder folder;
  const std::string path = folder / "rec";
  const recording r(path, 1);
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  EXPECT_GE(static_cast<std::uint64_t>(about.st_blocks) * 512, static_cast<std::uint64_t>(about.st_size))
      << "all of it is reserved";
}

TEST(RequestRecorder, FailsBeforeTheFirstRequestIfTheSystemRefusesTheBytes) {
  const test_folder folder;
  const std::string path = folder / "rec";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    const auto ticks = cudaq::realtime::detail::tick_clock::measured();
    const auto made = request_recorder::create(path, {1024, 64}, 1, ticks);
    _exit(made.failed() && made.status() == CUDAQ_ERR_UNSUPPORTED ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "not ended by SIGXFSZ";
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RequestRecorder, OfManyThreadsHasWholeRecordsOnly) {
  const test_folder folder;
  const std::string path = folder / "rec";
  recording r(path, 8);
  cudaq::realtime::detail::shared_word<std::uint32_t> running;
  running.store(3);
  std::vector<std::thread> threads;
  for (std::uint8_t t = 0; t < 3; ++t)
    threads.emplace_back([&r, &running, t] {
      for (int k = 0; k < 20'000; ++k)
        (void)r.answer(r.request(byte_list(40, t), t), t, byte_list(20, t));
      running.add(UINT32_MAX);
    });
  std::uint64_t seen = 0;
  for (bool is_last = false; !is_last;) {
    is_last = running.load() == 0; // no thread overwrites what is read then
    const auto reader = read_recording(path);
    for (std::size_t k = 0; k < reader->size(); ++k)
      if (const auto one = reader->read(k)) {
        ++seen;
        const auto t = static_cast<std::uint8_t>(one->request_id);
        ASSERT_EQ(one->payload, byte_list(40, t));
        if (one->is_answered) {
          ASSERT_EQ(one->result, byte_list(20, t));
        }
      }
    EXPECT_EQ(reader->damaged(), 0U);
  }
  for (std::thread &t : threads)
    t.join();
  EXPECT_GT(seen, 0U);
  const auto reader = read_recording(path);
  // A number without a place leaves the request before it there.
  EXPECT_EQ(reader->size() + reader->torn(), 8U);
}

/// What the system's call returns for a while, then what it returned without this.
std::atomic<int> interrupted_reservations{0};

TEST(RequestRecorder, IsMadeThoughSignalsInterruptTheReservation) {
  const test_folder folder;
  interrupted_reservations = 3;
  const recording r(folder / "rec", 4);
  EXPECT_NE(r.recorder, nullptr);
  EXPECT_LE(interrupted_reservations.exchange(0), 0);
}

TEST(RequestRecorder, HasAFileOfItsOwnIfSeveralBeginTogether) {
  const test_folder folder;
  const std::string path = folder / "rec";
  const auto ticks = cudaq::realtime::detail::tick_clock::measured();
  for (int round = 0; round < 50; ++round) {
    constexpr std::size_t kServers = 6;
    std::array<std::unique_ptr<request_recorder>, kServers> made;
    std::array<std::string, kServers> refusals;
    {
      std::vector<std::jthread> servers;
      for (std::size_t k = 0; k < kServers; ++k)
        servers.emplace_back([&, k] {
          auto one = request_recorder::create(path, {4, 64}, 100 + k, ticks);
          refusals[k] = one.text();
          if (one.ok())
            made[k] = std::move(*one);
        });
    }
    const auto found = std::ranges::find_if(made, [](const auto &one) { return one != nullptr; });
    ASSERT_NE(found, made.end()) << refusals[0];
    EXPECT_EQ(std::ranges::count_if(made, [](const auto &one) { return one != nullptr; }), 1);
    const auto reader = read_recording(path);
    ASSERT_NE(reader, nullptr) << "round " << round;
    EXPECT_EQ(reader->boot_id(), 100U + static_cast<std::size_t>(found - made.begin())) << "its file is another one's";
    for (const std::string &text : refusals)
      EXPECT_TRUE(text.empty() || text.find("a server that runs writes to it") != std::string::npos) << text;
  }
}

} // namespace

/// The library's calls come here, too.
extern "C" int posix_fallocate(int file, off_t offset, off_t bytes) {
  if (interrupted_reservations-- > 0)
    return EINTR;
  return ::fallocate(file, 0, offset, bytes) == 0 || ::ftruncate(file, offset + bytes) == 0 ? 0 : errno;
}

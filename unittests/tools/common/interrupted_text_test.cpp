// SPDX-License-Identifier: Apache-2.0
// What an interrupted run prints: once for each reader, and nothing between answers.
#include "unittests/tools/common/interrupted_program.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

namespace cudaq::realtime::tools::test {
namespace {

class InterruptedText : public testing::Test {
protected:
  /// Shots of a pipe that stays open, with one shot in it. Returns what is on stdout at the end, after a signal.
  std::string out_of_decode(std::vector<std::string> more, const std::string &err) const {
    const std::string in = scratch_.path() / "in", model = scratch_.path() / "m.dem";
    std::ofstream(model) << "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
    std::filesystem::remove(in);
    EXPECT_EQ(mkfifo(in.c_str(), 0600), 0);
    const int fifo = open(in.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(write(fifo, "\x01", 1), 1);
    std::vector<std::string> arguments{"decode", "--decoder", "lookup", "--in_format", "b8", "--dem",
                                       model,    "--in",      in};
    arguments.insert(arguments.end(), more.begin(), more.end());
    running_program program(arguments, err);
    int unread = 1;
    program.until([&] { return program.catches(SIGINT) && ioctl(fifo, FIONREAD, &unread) == 0 && unread == 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    program.signal(SIGINT);
    EXPECT_EQ(program.wait(), 130);
    close(fifo);
    return program.rest();
  }
  static std::size_t count_of(const std::string &text, const std::string &part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++count;
    return count;
  }
  const scratch_folder scratch_;
  const std::string text_ = "interrupted after 1 shot\n";
};

TEST_F(InterruptedText, IsNotBetweenAnswers) {
  const std::string err = scratch_.path() / "err";
  EXPECT_EQ(out_of_decode({}, err), "1\n") << "the answer of one shot";
  EXPECT_EQ(count_of(read_file(err), text_), 1U) << read_file(err);
}

TEST_F(InterruptedText, IsInEachOfTwoFiles) {
  const std::string err = scratch_.path() / "err";
  const std::string out = out_of_decode({"--out", "/dev/null"}, err);
  EXPECT_EQ(count_of(out, text_), 1U) << out;
  EXPECT_EQ(count_of(read_file(err), text_), 1U) << read_file(err);
}

TEST_F(InterruptedText, IsOnceInAFileOfBothStreams) {
  const std::string all = out_of_decode({"--out", "/dev/null"}, "/dev/stdout");
  EXPECT_EQ(count_of(all, text_), 1U) << all;
  EXPECT_EQ(count_of(all, "decoded         1 shot of an input with more"), 1U) << all;
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// The control system in C of docs/examples, with a server over UDP that the test plays.
#include "unittests/tools/serve/serve_fixture.h"
#include "unittests/transport/client/played_server.h"

namespace cudaq::realtime::tools::test {
namespace {

using realtime::test::played_answer;
using realtime::test::played_request;
using realtime::test::played_server;

constexpr std::uint64_t kDetectors = 10, kObservables = 1, kDigest = 0xAB, kRecordedShots = 6;

/// Says that its model has these sizes. `decode`: the answer to request `number` of qec_decode. A frame that comes
/// again gets the same one.
played_server::play decoding(std::function<std::optional<played_answer>(std::size_t number)> decode,
                             std::uint64_t detectors = kDetectors, std::uint64_t observables = kObservables) {
  return [=, decoded = std::size_t{0}, last_id = std::uint32_t{0}, last = std::optional<played_answer>()](
             const played_request &request, std::size_t) mutable -> std::optional<played_answer> {
    if (request.header.function_id == CUDAQ_QEC_DESCRIBE_DECODER)
      return played_answer{0, numbers({detectors, detectors, observables, kDigest, 1, 0})};
    if (std::exchange(last_id, request.header.request_id) != request.header.request_id)
      last = decode(decoded++);
    return last;
  };
}

/// One frame, or copies of it.
bool only_described(played_server &server) {
  return std::ranges::all_of(server.requests(), [](const played_request &request) {
    return request.header.function_id == CUDAQ_QEC_DESCRIBE_DECODER;
  });
}

class ControlSystem : public testing::Test {
protected:
  /// With the files of six shots. `pace`: from the number of requests to that of open ones.
  std::unique_ptr<running_program> play(const played_server &server, const std::vector<std::string> &pace) const {
    write(folder_.path() / "events", std::string(kRecordedShots * ((kDetectors + 7) / 8), '\0'));
    write(folder_.path() / "answers", std::string(kRecordedShots, '\1'));
    std::vector<std::string> arguments{"127.0.0.1", std::to_string(server.port())};
    arguments.insert(arguments.end(), pace.begin(), pace.end());
    arguments.insert(arguments.end(), {folder_.path() / "events", folder_.path() / "answers"});
    return std::make_unique<running_program>(arguments, err(), "", CUDAQ_TEST_CONTROL_SYSTEM);
  }
  std::filesystem::path err() const { return folder_.path() / "stderr"; }

  scratch_folder folder_;
};

TEST_F(ControlSystem, CountsRefusalsApartFromWrongAnswers) {
  const std::vector<played_answer> answers = {
      {0, {1}}, {-CUDAQ_QEC_SERVER_BUSY, {}},       {-CUDAQ_QEC_SERVER_NOT_READY, {}}, {0, {0}},
      {4, {}},  {-CUDAQ_QEC_SERVER_BAD_REQUEST, {}}};
  played_server server(decoding([&](std::size_t number) { return std::optional(answers.at(number)); }));
  const auto program = play(server, {"6", "1000", "60000000", "1"});
  EXPECT_EQ(program->line(), "decoder 0: 10 detectors, 1 observables, digest 00000000000000ab") << read_file(err());
  EXPECT_EQ(program->line(), "requests 6, missed 0, refused 2, skipped 0, wrong 3");
  EXPECT_EQ(program->wait(), 1);
  EXPECT_TRUE(read_file(err()).starts_with("request 1: status -5, BUSY: ")) << read_file(err());
}

TEST_F(ControlSystem, SkipsShotsThatAreTooLateWhileItWaitsForOthers) {
  played_server server(decoding([](std::size_t) { return std::nullopt; }));
  const auto program = play(server, {"40", "0", "500000", "4"}); // all are due at once
  program->line();
  EXPECT_EQ(program->line(), "requests 40, missed 4, refused 0, skipped 36, wrong 0") << read_file(err());
  EXPECT_EQ(program->wait(), 1);
}

TEST_F(ControlSystem, PlaysNoShotsOfAnotherModel) {
  played_server server(decoding([](std::size_t) { return std::nullopt; }));
  write(folder_.path() / "shots", "x");
  running_program program({"127.0.0.1", std::to_string(server.port()), "1", "0", "1000", "1", folder_.path() / "shots",
                           folder_.path() / "shots"},
                          err(), "", CUDAQ_TEST_CONTROL_SYSTEM);
  EXPECT_EQ(program.wait(), 1);
  EXPECT_TRUE(contains(read_file(err()), "do not hold shots of such a model")) << read_file(err());
  EXPECT_TRUE(only_described(server));
}

TEST_F(ControlSystem, PlaysNoShotsOfAModelWithoutASize) {
  for (const auto &[detectors, observables] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 1}, {UINT64_MAX, 1}, {10, 0}, {10, UINT64_MAX}}) {
    played_server server(decoding([](std::size_t) { return std::nullopt; }, detectors, observables));
    EXPECT_EQ(play(server, {"1", "0", "1000", "1"})->wait(), 1);
    EXPECT_TRUE(contains(read_file(err()), "no shots have so many")) << read_file(err());
    EXPECT_TRUE(only_described(server));
  }
}

TEST_F(ControlSystem, FailsIfEachShotIsRefused) {
  played_server server(decoding([](std::size_t) { return played_answer{-CUDAQ_QEC_SERVER_BUSY, {}}; }));
  const auto program = play(server, {"3", "1000", "60000000", "1"});
  program->line();
  EXPECT_EQ(program->line(), "requests 3, missed 0, refused 3, skipped 0, wrong 0") << read_file(err());
  EXPECT_EQ(program->wait(), 1);
}

TEST_F(ControlSystem, WantsAtLeastOneOpenRequest) {
  played_server server(decoding([](std::size_t) { return std::nullopt; }));
  for (const char *const open : {"0", "x"}) {
    EXPECT_EQ(play(server, {"3", "1000", "1000", open})->wait(), 2);
    EXPECT_TRUE(read_file(err()).starts_with("usage: ")) << read_file(err());
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test

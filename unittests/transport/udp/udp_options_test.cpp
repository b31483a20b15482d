// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/datagram/datagram_options.h"

#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

expected<> parse(std::vector<std::string> words, datagram_options &out) {
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  return option_reader(out, false).read(static_cast<int>(argv.size()), argv.data());
}

TEST(UdpOptions, HaveTheDefaultsOfTheExistingProvider) {
  datagram_options options;
  EXPECT_EQ(parse({}, options).text(), "");
  EXPECT_EQ(options.bind_address, "127.0.0.1");
  EXPECT_EQ(options.port, 0u);
  EXPECT_EQ(options.num_slots, 8u);
  EXPECT_EQ(options.slot_size, 256u);
  EXPECT_EQ(options.replay_window, 0u);
  EXPECT_FALSE(options.unified || options.pinned_rings || options.busy_reply);
}

TEST(UdpOptions, TakeValuesInBothForms) {
  datagram_options options;
  EXPECT_EQ(parse({"--port", "5000", "--num-slots=16", "--slot-size", "512", "--bind=::1", "--unified", "--busy-reply",
                   "--replay-window=1024", "--max-peers", "5", "--peer-timeout-ms=10"},
                  options)
                .text(),
            "");
  EXPECT_EQ(options.port, 5000u);
  EXPECT_EQ(options.num_slots, 16u);
  EXPECT_EQ(options.slot_size, 512u);
  EXPECT_EQ(options.bind_address, "::1");
  EXPECT_EQ(options.replay_window, 1024u);
  EXPECT_EQ(options.max_peers, 5u);
  EXPECT_EQ(parse({"--port=0x1f40"}, options).text(), "");
  EXPECT_EQ(options.port, 8000u);
  EXPECT_EQ(options.peer_timeout_ms, 10u);
  EXPECT_TRUE(options.unified && options.busy_reply);
}

TEST(UdpOptions, AreRefusedWithATextThatNamesOptionAndValue) {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases = {
      {{"--prot", "1"}, {"'--prot'", "no such option", "--lenient"}},
      {{"server"}, {"'server'", "begin with --"}},
      {{"--port"}, {"--port", "missing"}},
      {{"--port", "65536"}, {"--port", "65536", "0 to 65535"}},
      {{"--port="}, {"--port", "''"}},
      {{"--port=0x"}, {"--port", "'0x'"}},
      {{"--port", "-1"}, {"--port", "-1"}},
      {{"--num-slots=0"}, {"--num-slots", "'0'", "from 1"}},
      {{"--num-slots", "8x"}, {"--num-slots", "8x"}},
      {{"--slot-size", "23"}, {"--slot-size", "23", "24 to 65507"}},
      {{"--slot-size=65508"}, {"--slot-size", "65508"}},
      {{"--replay-window", "48"}, {"--replay-window 48", "power of two"}},
      {{"--replay-window=65536", "--max-peers=1000"}, {"--replay-window 65536", "--max-peers 1000", "bytes"}},
      {{"--max-peers", "3"}, {"--max-peers", "--replay-window"}},
      {{"--unified=1"}, {"--unified=1", "no value"}},
      {{"--unified", "--core", "0"}, {"--core", "no thread"}},
      {{"--unified", "--busy-poll-us", "0"}, {"--busy-poll-us", "no thread"}},
  };
  for (const auto &[words, named] : cases) {
    datagram_options options;
    std::vector<std::string> strictly = words;
    strictly.insert(strictly.begin(), "--strict");
    const expected<> result = parse(strictly, options);
    EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG) << words[0];
    for (const std::string &text : named)
      EXPECT_NE(result.text().find(text), std::string::npos) << result.text();
  }
}

TEST(UdpOptions, MayBeAmongThoseOfTheWholeProgram) {
  struct {
    std::vector<std::string> argv;
    std::string ignored_words;
  } const cases[] = {
      {{"./server", "--port", "7"}, ""},
      {{"--port=7", "--lenient", "--strict"}, ""},
      {{"./server", "--transport=udp", "--timeout", "60", "--port", "7"},
       " ignored=2 ignored_options=--transport,--timeout"},
      {{"./server", "--verbose", "--port=7", "-v", "--prot"}, " ignored=3 ignored_options=--verbose,-v,--prot"},
      {{"./server", "run", "--port=7", "--strict", "--lenient"}, " ignored=1 ignored_options=run"},
      {{"--a b,c\n=1", "--port=7"}, " ignored=1 ignored_options=--a?b?c?"},
      {{"--port=7", "--" + std::string(70, 'a'), "--" + std::string(70, 'b'), "--c"},
       " ignored=3 ignored_options=--" + std::string(70, 'a') + ",..."},
  };
  for (const auto &c : cases) {
    datagram_options options;
    EXPECT_EQ(parse(c.argv, options).text(), "") << c.argv[0];
    EXPECT_EQ(options.port, 7u) << c.argv[0];
    EXPECT_EQ(options.ignored_words, c.ignored_words);
  }
  datagram_options options;
  EXPECT_EQ(parse({"./server", "--port", "x"}, options).status(), CUDAQ_ERR_INVALID_ARG);
}

TEST(UdpOptions, RefuseMissingWords) {
  datagram_options options;
  char *argv[] = {nullptr};
  EXPECT_EQ(option_reader(options, false).read(1, argv).text(), "argv[0]: is NULL");
  EXPECT_EQ(option_reader(options, false).read(1, nullptr).text(), "argc 1: argv is NULL");
  EXPECT_EQ(option_reader(options, false).read(-1, nullptr).text(), "");
}

} // namespace
} // namespace cudaq::realtime::detail

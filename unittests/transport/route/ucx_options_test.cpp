// SPDX-License-Identifier: Apache-2.0
// The options of the ucx provider: what is accepted, and the text of each refusal.
#include "lib/transport/ucx/ucx_options.h"

#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::detail::test {
namespace {

expected<> parse(std::vector<std::string> words, ucx_options &out) {
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  return read_ucx_options(static_cast<int>(argv.size()), argv.data(), out);
}

TEST(UcxOptions, ReadsEachOptionInBothSpellings) {
  ucx_options o;
  EXPECT_EQ(parse({"--bind=10.0.0.1", "--port", "7101", "--num-slots=32", "--slot-size", "0x400", "--max-routers=4",
                   "--silence-ms", "10", "--tls=posix,tcp"},
                  o)
                .text(),
            "");
  EXPECT_EQ(o.bind_address, "10.0.0.1");
  EXPECT_EQ(o.port, 7101u);
  EXPECT_EQ(o.num_slots, 32u);
  EXPECT_EQ(o.slot_size, 1024u);
  EXPECT_EQ(o.max_routers, 4u);
  EXPECT_EQ(o.silence_ms, 10u);
  EXPECT_EQ(o.tls, "posix,tcp");
}

TEST(UcxOptions, RefusesWithATextThatNamesTheOption) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals = {
      {{"--prot=1"},
       "'--prot=1': the ucx provider has no such option; --lenient ignores unknown options; it has --bind, --lenient, "
       "--max-routers, --num-slots, --port, --silence-ms, --slot-size, --strict, --tls. Did you mean --port?"},
      {{"program"}, "'program': the ucx provider has no such option; options begin with --, and the first is argv[0]"},
      {{"--port"}, "--port: the value is missing"},
      {{"--port=65536"}, "--port '65536': a number from 0 to 65535 is accepted"},
      {{"--silence-ms=9"}, "--silence-ms '9': a number from 10 to 3600000 is accepted"},
      {{"--slot-size=31"}, "--slot-size '31': a number from 32 to 1048576 is accepted"},
      {{"--num-slots=1"}, "--num-slots 1: each of --max-routers 2 needs one slot or more"},
      {{"--lenient=1"}, "--lenient=1: this option has no value"}};
  for (const auto &[words, text] : refusals) {
    ucx_options o;
    std::vector<std::string> strictly = words;
    strictly.insert(strictly.begin(), "--strict");
    const expected<> result = parse(strictly, o);
    EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG) << text;
    EXPECT_EQ(result.text(), text);
  }
}

TEST(UcxOptions, IgnoresUnknownOptionsOnly) {
  ucx_options o;
  EXPECT_EQ(parse({"--device=mlx5_0", "--port=7"}, o).text(), "");
  EXPECT_EQ(o.port, 7u);
  EXPECT_EQ(o.ignored_words, " ignored=1 ignored_options=--device");
  EXPECT_EQ(parse({"--port=x"}, o).status(), CUDAQ_ERR_INVALID_ARG);
}

} // namespace
} // namespace cudaq::realtime::detail::test

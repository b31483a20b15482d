// SPDX-License-Identifier: Apache-2.0
// The configurations of docs/transport/server.md, with the models of the source tree.
#include "lib/qec/decoding/whole_file.h"
#include "lib/qec/server/server_config.h"
#include "unittests/qec/server/server_test_support.h"
#include "unittests/support/program_paths.h"

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

/// Its blocks that begin with `decoders:`. Their models are those of tools/data; model.dem is one with a loop.
std::vector<std::string> configurations() {
  const auto page = read_whole_file(CUDAQ_TEST_SERVER_PAGE);
  if (page.failed())
    throw std::runtime_error(page.text());
  const std::string begin = "```text\ndecoders:\n";
  std::vector<std::string> found;
  for (std::size_t at = page->find(begin); at != std::string::npos; at = page->find(begin, at + 1)) {
    const std::size_t text = at + std::string("```text\n").size();
    found.push_back(page->substr(text, page->find("```", text) - text));
    for (const auto &[written, here] :
         {std::pair<std::string, std::string>{"/usr/share/cudaq-realtime/data", CUDAQ_TEST_DATA_DIR},
          {"model.dem", std::string(CUDAQ_TEST_DATA_DIR) + "/surface_loop_d3_p0.004.dem"}})
      if (const std::size_t place = found.back().find(written); place != std::string::npos)
        found.back().replace(place, written.size(), here);
  }
  return found;
}

TEST(ServerPage, HasConfigurationsThatAreTaken) {
  const std::vector<std::string> texts = configurations();
  EXPECT_EQ(texts.size(), 3U);
  for (const std::string &text : texts) {
    if (text.find("pymatching") != std::string::npos && !pymatching_available())
      continue;
    const auto config = read_server_config(text);
    ASSERT_TRUE(config.ok()) << text << config.text();
    const auto setups = build_decoders(*config, ".");
    ASSERT_TRUE(setups.ok()) << text << setups.text();
  }
}

TEST(ServerPage, HasARaceUnderADeadline) {
  for (const std::string &text : configurations()) {
    if (text.find("type: race:") == std::string::npos)
      continue;
    const auto config = read_server_config(text);
    ASSERT_TRUE(config.ok()) << config.text();
    auto setups = build_decoders(*config, ".");
    ASSERT_TRUE(setups.ok()) << setups.text();
    const auto identity = setups->front().unit->identity();
    EXPECT_EQ(identity->members, (std::vector<std::string>{"relay-bp:num_sets=60", "bp-osd:osd_order=0"}));
    EXPECT_NE(identity->name.find("mode=best"), std::string::npos) << identity->name;
    setups->front().limits.queue_length = 0; // this thread decodes
    const std::string shot(setups->front().unit->bits_per_shot(), '0');
    decoding_server server(std::move(*setups));
    const full_answer answer = call(server, kEnqueueFunctionId, enqueue_payload(0, 0, shot));
    const deadline_counts deadlines = server.decoders()[0]->counts().deadlines;
    EXPECT_EQ(deadlines.met + deadlines.missed, 1U);
    if (deadlines.met == 1) {
      EXPECT_EQ(answer, answered(server_status::ok));
    }
    return;
  }
  FAIL() << "the page has no race";
}

} // namespace

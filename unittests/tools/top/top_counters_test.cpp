// SPDX-License-Identifier: Apache-2.0
// What `top` shows besides rates: totals, deadlines, races, and the nodes of a router.
#include "tools/top/top_sample.h"
#include "unittests/tools/common/helper_thread.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools::test {
namespace {

/// Gives these pages to its readers, one each.
void give_pages(int listener, const std::vector<std::string> &pages) {
  for (const std::string &page : pages) {
    const int reader = accept(listener, nullptr, nullptr);
    if (reader < 0) // the test has ended early
      return;
    EXPECT_EQ(send(reader, page.data(), page.size(), MSG_NOSIGNAL), static_cast<ssize_t>(page.size()));
    close(reader);
  }
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

std::string server_page(int requests, int late, int won) {
  return fmt::format(
      "cudaq_decoder_requests_total{{decoder=\"6\"}} {0}\ncudaq_decoder_shots_total{{decoder=\"6\"}} {0}\n"
      "cudaq_decoder_padded_total{{decoder=\"6\"}} {1}\n"
      "cudaq_decoder_deadline_met_total{{decoder=\"6\"}} {0}\n"
      "cudaq_decoder_deadline_missed_total{{decoder=\"6\"}} {1}\n"
      "cudaq_decoder_deadline_late_total{{decoder=\"6\"}} {1}\n"
      "cudaq_decoder_race_wins_total{{decoder=\"6\",member=\"relay-bp:num_sets=5,seed=1\"}} {2}\n"
      "cudaq_decoder_race_wins_total{{decoder=\"6\",member=\"bp-osd\"}} 4\n"
      "cudaq_decoder_answers_total{{decoder=\"6\",status=\"ok\"}} {0}\n"
      "cudaq_decoder_answers_total{{decoder=\"6\",status=\"deadline\"}} {1}\n"
      "cudaq_server_processed_total {0}\n# EOF\n",
      requests, late, won);
}

TEST(TopSample, HasTotalsDeadlinesAndTheWinnersOfARace) {
  const server_sample s =
      sample_between(parse_counters(server_page(100, 1, 50)), parse_counters(server_page(300, 6, 120)), 1);
  const json decoder = sample_json(s).at("decoders").at(0);
  EXPECT_EQ(decoder.at("padded"), 5);
  EXPECT_EQ(decoder.at("deadline_met"), 200);
  EXPECT_EQ(decoder.at("deadline_missed"), 5);
  EXPECT_EQ(decoder.at("deadline_late"), 5);
  EXPECT_EQ(decoder.at("race_wins").at("relay-bp:num_sets=5,seed=1"), 70);
  EXPECT_EQ(decoder.at("race_wins").at("bp-osd"), 0);
  EXPECT_EQ(decoder.at("total").at("requests"), 300);
  EXPECT_EQ(decoder.at("total").at("padded"), 6);
  EXPECT_EQ(decoder.at("total").at("race_wins").at("bp-osd"), 4);
  EXPECT_EQ(decoder.at("total").at("deadline_late"), 6);
  const std::string text = sample_text(s);
  EXPECT_TRUE(
      has(text, "since the start: 300 requests, 300 shots, 6 answers with an error, 0 BUSY, 0 too old, 6 padded\n"))
      << text;
  EXPECT_TRUE(has(text, "relay-bp:num_sets=5,seed=1\n")) << text;
  EXPECT_TRUE(has(text, "missed, all")) << text;
}

TEST(TopSample, HasNoTablesOfWhatADecoderDoesNotHave) {
  const std::string page = "cudaq_decoder_requests_total{decoder=\"6\"} 5\ncudaq_server_processed_total 5\n# EOF\n";
  const server_sample s = sample_between(parse_counters(page), parse_counters(page), 1);
  EXPECT_TRUE(sample_json(s).at("decoders").at(0).at("race_wins").is_null());
  EXPECT_FALSE(has(sample_text(s), "deadline")) << sample_text(s);
  EXPECT_FALSE(has(sample_text(s), "race")) << sample_text(s);
}

TEST(TopSample, ShowsTheVersionOfTheServerAndHowLongItRuns) {
  const std::string counts = "cudaq_server_processed_total 5\n# EOF\n";
  const server_counters now =
      parse_counters("cudaq_build_info{version=\"1.2.0-rc\"} 1\ncudaq_server_start_time_seconds 1000.250\n" + counts);
  const server_sample s = sample_between(now, now, 1);
  EXPECT_TRUE(has(sample_text(s, 1000 + 86'400 * 3 + 3723), " reloads; version 1.2.0-rc, up 3 d 01:02:02\n"))
      << sample_text(s, 1000 + 86'400 * 3 + 3723);
  EXPECT_TRUE(has(sample_text(s, 999), ", up 00:00:00\n")) << "the clock was set back";
  EXPECT_EQ(sample_json(s, 1010.25).at("uptime_seconds"), 10);
  EXPECT_EQ(sample_json(s).at("version"), "1.2.0-rc");

  const server_sample earlier = sample_between(parse_counters(counts), parse_counters(counts), 1);
  EXPECT_TRUE(has(sample_text(earlier), " reloads\n")) << "a server of before these lines: " << sample_text(earlier);
  EXPECT_TRUE(sample_json(earlier).at("uptime_seconds").is_null());
}

TEST(TopSample, ShowsEachReasonOfADropThatTheServerCountsAlsoOneThatItDoesNotKnow) {
  const auto page = [](int dropped) {
    return fmt::format("cudaq_server_processed_total 5\ncudaq_server_stray_requests_total 3\n"
                       "cudaq_server_dropped_bad_magic_total 1\n"
                       "cudaq_transport_received_total{{transport=\"udp\"}} 200\n"
                       "cudaq_transport_dropped_total{{transport=\"udp\",reason=\"magic\"}} {0}\n"
                       "cudaq_transport_dropped_total{{transport=\"udp\",reason=\"long\"}} 4\n"
                       "cudaq_transport_dropped_total{{transport=\"udp\",reason=\"short\"}} 0\n"
                       "cudaq_transport_gone_to_mars_total{{transport=\"udp\"}} 2\n"
                       "cudaq_transport_peers{{transport=\"udp\"}} 9\n# EOF\n",
                       dropped);
  };
  const server_sample s = sample_between(parse_counters(page(100)), parse_counters(page(130)), 1);
  const std::string text = sample_text(s);
  EXPECT_FALSE(has(text, "wrong magic")) << "the head has no count of the interval for one of the table" << text;
  EXPECT_TRUE(has(text, "            transport dropped, magic           30              130\n")) << text;
  EXPECT_TRUE(has(text, "             transport dropped, long            0                4\n")) << text;
  EXPECT_TRUE(has(text, "              transport gone to mars            0                2\n")) << text;
  EXPECT_FALSE(has(text, "short")) << "a count of 0 is not shown" << text;
  const json counters = sample_json(s).at("counters");
  EXPECT_EQ(counters.at("transport dropped, magic"), (json{{"interval", 30}, {"total", 130}}));
  EXPECT_EQ(counters.at("transport dropped, short").at("total"), 0);
  EXPECT_EQ(sample_json(s).at("dropped_bad_magic"), 30);
}

std::string router_page(int forwarded, int joined) {
  return fmt::format("cudaq_router_requests_total {0}\ncudaq_router_stray_messages_total 2\n"
                     "cudaq_router_node_joined{{node=\"north\"}} 1\ncudaq_router_node_joined{{node=\"south\"}} {1}\n"
                     "cudaq_router_node_forwarded_total{{node=\"north\"}} {0}\n"
                     "cudaq_router_node_forwarded_total{{node=\"south\"}} 7\n"
                     "cudaq_router_node_lost_total{{node=\"south\"}} 3\n# EOF\n",
                     forwarded, joined);
}

TEST(TopSample, ShowsTheNodesOfARouter) {
  const server_sample s = sample_between(parse_counters(router_page(100, 1)), parse_counters(router_page(500, 0)), 2);
  EXPECT_EQ(s.processed, 400U);
  const json j = sample_json(s);
  EXPECT_EQ(j.at("total_processed"), 500);
  EXPECT_EQ(j.at("decoders").size(), 0U);
  ASSERT_EQ(j.at("nodes").size(), 2U);
  EXPECT_EQ(j.at("nodes").at(0).at("name"), "north");
  EXPECT_EQ(j.at("nodes").at(0).at("joined"), true);
  EXPECT_EQ(j.at("nodes").at(0).at("forwarded"), 400);
  EXPECT_EQ(j.at("nodes").at(0).at("total").at("forwarded"), 500);
  EXPECT_EQ(j.at("nodes").at(1).at("joined"), false);
  EXPECT_EQ(j.at("nodes").at(1).at("lost"), 0);
  EXPECT_EQ(j.at("nodes").at(1).at("total").at("lost"), 3);
  const std::string text = sample_text(s);
  EXPECT_TRUE(text.starts_with("router, 2.0 s: 200 requests/s")) << text;
  EXPECT_TRUE(has(text, "south     away")) << text;
  EXPECT_TRUE(has(text, "on the counters of each node")) << text;
}

/// A socket that readers of counters connect to.
class TopReading : public testing::Test {
protected:
  void SetUp() override {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(listener_, reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
  }
  void TearDown() override {
    if (listener_ >= 0)
      close(listener_);
    unlink(path_.c_str());
  }
  /// An accept() that waits returns.
  void stop_listening() const { shutdown(listener_, SHUT_RDWR); }

  const std::string path_ = testing::TempDir() + "top-counters-" + std::to_string(getpid());
  int listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST_F(TopReading, AsksAgainForAPageThatWasCut) {
  const std::string whole = "# HELP cudaq_server_processed_total x\n# TYPE x counter\n" + server_page(3, 1, 2);
  helper_thread server(
      [&] {
        give_pages(listener_, {whole.substr(0, 200), "", whole, "another_total 7\n"});
      },
      [this] { stop_listening(); });
  EXPECT_EQ(read_counters(path_), whole);
  EXPECT_EQ(read_counters(path_), "another_total 7\n") << "that of another program is no part of a page";
  server.join();
}

TEST_F(TopReading, SaysThatTheServerHasClosedTheConnection) {
  const helper_thread server([this] {
    pollfd reader{listener_, POLLIN, 0};
    EXPECT_EQ(poll(&reader, 1, 60'000), 1);
    close(std::exchange(listener_, -1)); // without an answer
  });
  try {
    static_cast<void>(read_counters(path_));
    ADD_FAILURE() << "there is no page";
  } catch (const std::runtime_error &e) {
    EXPECT_TRUE(has(e.what(), "the server has closed the connection")) << e.what();
  }
}

TEST(HelperThread, EndsWithAScopeThatAnExceptionLeaves) {
  std::atomic<bool> ends = false, has_ended = false;
  const auto leave = [&] {
    const helper_thread waiting(
        [&] {
          while (!ends)
            std::this_thread::yield();
          has_ended = true;
        },
        [&] { ends = true; });
    throw std::runtime_error("left");
  };
  EXPECT_THROW(leave(), std::runtime_error);
  EXPECT_TRUE(has_ended);
}

} // namespace
} // namespace cudaq::realtime::tools::test

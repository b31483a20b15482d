// SPDX-License-Identifier: Apache-2.0
// What `top` makes of two readings of a server's counters.
#include "tools/top/top_sample.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <tuple>

namespace cudaq::realtime::tools::test {
namespace {

/// A server with the decoder 6: `requests` requests, of which `slow` took up to 1 ms and the others up to 1 us.
std::string page(int requests, int slow, int refused = 0) {
  const auto decoder = [](const char *name, const std::string &labels, double value) {
    return fmt::format("cudaq_decoder_{}{{decoder=\"6\"{}}} {}\n", name, labels, value);
  };
  std::string text = "# HELP cudaq_decoder_requests_total Requests.\n# TYPE cudaq_decoder_requests_total counter\n";
  text += decoder("requests_total", "", requests) + decoder("waiting", "", 3);
  text += decoder("answers_total", ",status=\"ok\"", requests - refused);
  text += decoder("answers_total", ",status=\"busy\"", refused);
  text += decoder("latency_seconds_bucket", ",le=\"0.000001000\"", requests - slow);
  text += decoder("latency_seconds_bucket", ",le=\"0.001000000\"", requests);
  text += decoder("latency_seconds_bucket", ",le=\"+Inf\"", requests);
  text += decoder("latency_seconds_sum", "", (requests - slow) * 0.5e-6 + slow * 0.5e-3);
  text += decoder("latency_seconds_count", "", requests);
  return text +
         fmt::format("cudaq_server_processed_total {}\ncudaq_server_in_flight 1\nanother_total 7\n# EOF\n", requests);
}

TEST(TopSample, ShowsWhatHappenedBetweenTwoReadings) {
  const server_sample s = sample_between(parse_counters(page(100, 100)), parse_counters(page(1100, 120, 5)), 2);
  EXPECT_EQ(s.processed, 1000u);
  EXPECT_EQ(s.in_flight, 1u);
  ASSERT_EQ(s.decoders.size(), 1u);
  const sampled_decoder &d = s.decoders[0];
  EXPECT_EQ(d.id, 6u);
  EXPECT_EQ(d.requests, 1000u);
  EXPECT_EQ(d.waiting, 3u);
  EXPECT_EQ(d.latency.count, 1000u);
  EXPECT_NEAR(d.latency.percentile_ns(50), 1000, 1e-6);
  EXPECT_NEAR(d.latency.percentile_ns(98), 1000, 1e-6);
  EXPECT_NEAR(d.latency.percentile_ns(99), 1e6, 1e-3);
  EXPECT_NEAR(d.latency_mean_ns, (980 * 0.5e3 + 20 * 0.5e6) / 1000, 1);
  const json j = sample_json(s);
  EXPECT_NEAR(j.at("processed_per_second").get<double>(), 500, 1e-9);
  EXPECT_EQ(j.at("decoders").at(0).at("answers_by_status").at("busy"), 5);
}

TEST(TopSample, CountsBusyAnswersApartFromErrors) {
  const std::string text =
      sample_text(sample_between(parse_counters(page(100, 100)), parse_counters(page(1100, 120, 5)), 2));
  EXPECT_NE(text.find("busy  errors\n"), std::string::npos) << text;
  EXPECT_NE(text.find("        5  -\n"), std::string::npos) << text;
  EXPECT_NE(text.find(", 0 answers with an error, 5 BUSY, 0 too old\n"), std::string::npos) << text;
}

TEST(TopSample, ShowsTheRoundsTheLagAndTheTailOfStreams) {
  const auto with_stream = [](int pushed, int ended) {
    std::string text = page(10, 0), lines;
    const std::pair<const char *, double> values[] = {{"rounds_pushed_total", pushed},
                                                      {"rounds_committed_total", pushed - 7},
                                                      {"lag_rounds", 7},
                                                      {"worst_lag_rounds", 90},
                                                      {"shots_total", ended},
                                                      {"tail_seconds_sum", ended * 5e-6},
                                                      {"worst_tail_seconds", 9e-6}};
    for (const auto &[name, value] : values)
      lines += fmt::format("cudaq_decoder_{}{{decoder=\"8\"}} {}\n", name, value);
    return lines + text;
  };
  const server_sample s = sample_between(parse_counters(with_stream(1000, 1)), parse_counters(with_stream(5000, 3)), 2);
  ASSERT_EQ(s.decoders.size(), 2u);
  const json stream = sample_json(s).at("decoders").at(0).at("stream");
  EXPECT_EQ(stream.at("rounds_pushed"), 4000);
  EXPECT_NEAR(stream.at("rounds_per_second").get<double>(), 2000, 1e-9);
  EXPECT_EQ(stream.at("lag_rounds"), 7);
  EXPECT_EQ(stream.at("worst_lag_rounds"), 90);
  EXPECT_NEAR(stream.at("tail_ns_mean").get<double>(), 5000, 1e-3);
  EXPECT_NEAR(stream.at("tail_ns_max").get<double>(), 9000, 1e-3);
  EXPECT_TRUE(sample_json(s).at("decoders").at(1).at("stream").is_null()) << "it decodes shots";
  EXPECT_NE(sample_text(s).find("worst lag"), std::string::npos) << sample_text(s);
  const server_sample shots = sample_between(parse_counters(page(1, 0)), parse_counters(page(2, 0)), 1);
  EXPECT_EQ(sample_text(shots).find("worst lag"), std::string::npos) << "without a stream there is no table of them";
}

TEST(TopSample, ShowsTheDetectorsThatDifferFromTheirModel) {
  const auto with_detectors = [](int beyond) {
    std::string lines = "cudaq_decoder_detectors{decoder=\"6\"} 24\ncudaq_decoder_detector_shots{decoder=\"6\"} 900\n";
    lines += fmt::format("cudaq_decoder_detectors_beyond_5_sigma{{decoder=\"6\"}} {}\n", beyond);
    for (const auto &[name, first, second] :
         {std::tuple{"", "17", "3"}, std::tuple{"_sigma", "12.375", "4.5"}, std::tuple{"_rate", "0.25", "0.5"},
          std::tuple{"_model_rate", "0.125", "1"}})
      lines += fmt::format("cudaq_decoder_worst_detector{0}{{decoder=\"6\",rank=\"1\"}} {1}\n"
                           "cudaq_decoder_worst_detector{0}{{decoder=\"6\",rank=\"2\"}} {2}\n",
                           name, first, second);
    return lines + page(10, 0);
  };
  const server_sample s = sample_between(parse_counters(page(1, 0)), parse_counters(with_detectors(1)), 1);
  const json detectors = sample_json(s).at("decoders").at(0).at("detectors");
  EXPECT_EQ(detectors.at("beyond_5_sigma"), 1);
  EXPECT_EQ(detectors.at("worst").at(0),
            (json{{"detector", 17}, {"sigma", 12.375}, {"rate", 0.25}, {"model_rate", 0.125}}));
  EXPECT_EQ(detectors.at("worst").at(1).at("detector"), 3);
  EXPECT_NE(sample_text(s).find("         6 1 of 24 detectors beyond 5 sigma, in about 900 shots\n"
                                "         6         D17        0.25       0.125      12.4\n"),
            std::string::npos)
      << sample_text(s);
  const server_sample good = sample_between(parse_counters(page(1, 0)), parse_counters(with_detectors(0)), 1);
  EXPECT_EQ(sample_text(good).find("D17"), std::string::npos) << "nothing differs: no table";
  EXPECT_TRUE(sample_json(sample_between(parse_counters(page(1, 0)), parse_counters(page(2, 0)), 1))
                  .at("decoders")
                  .at(0)
                  .at("detectors")
                  .is_null())
      << "an earlier server";
}

TEST(TopSample, ShowsTheStagesOfRequests) {
  const auto with_stages = [](int requests) {
    std::string lines;
    for (const auto &[stage, bound] : {std::pair{"taken", "0.000002000"}, std::pair{"decoded", "0.000008000"}}) {
      const std::string labels = fmt::format("{{decoder=\"6\",stage=\"{}\"", stage);
      lines += fmt::format("cudaq_decoder_stage_seconds_bucket{},le=\"{}\"}} {}\n", labels, bound, requests);
      lines += fmt::format("cudaq_decoder_stage_seconds_bucket{},le=\"+Inf\"}} {}\n", labels, requests);
      lines += fmt::format("cudaq_decoder_worst_stage_seconds{}}} 0.000003500\n", labels);
    }
    lines += "cudaq_decoder_worst_stage_seconds{decoder=\"6\",stage=\"whole\"} 0.000009000\n";
    return lines + page(requests, 0);
  };
  const server_sample s = sample_between(parse_counters(with_stages(10)), parse_counters(with_stages(50)), 1);
  const json stages = sample_json(s).at("decoders").at(0).at("stages_ns");
  EXPECT_EQ(stages.at("taken").at("count"), 40);
  EXPECT_NEAR(stages.at("taken").at("p50").get<double>(), 2000, 1e-6);
  EXPECT_NEAR(stages.at("decoded").at("p99.9").get<double>(), 8000, 1e-6);
  EXPECT_NEAR(stages.at("decoded").at("worst_since_start").get<double>(), 3500, 1e-6);
  EXPECT_NEAR(stages.at("whole").at("p50").get<double>(), 1000, 1e-6) << "the latency of the decoder";
  EXPECT_NE(sample_text(s).find("worst, all\n         6       taken   2.00 us   2.00 us   2.00 us      3.50 us\n"),
            std::string::npos)
      << sample_text(s);
  const server_sample none = sample_between(parse_counters(page(1, 0)), parse_counters(page(2, 0)), 1);
  EXPECT_TRUE(sample_json(none).at("decoders").at(0).at("stages_ns").is_null()) << "an earlier server";
  EXPECT_EQ(sample_text(none).find("worst, all"), std::string::npos);
}

TEST(TopSample, AServerThatWasStartedAgainCountsFromZero) {
  const server_sample s = sample_between(parse_counters(page(1000, 10)), parse_counters(page(20, 5)), 1);
  EXPECT_EQ(s.processed, 20u);
  ASSERT_EQ(s.decoders.size(), 1u);
  EXPECT_EQ(s.decoders[0].requests, 20u);
  EXPECT_EQ(s.decoders[0].latency.count, 20u);
  EXPECT_NEAR(s.decoders[0].latency.percentile_ns(50), 1000, 1e-6);
}

TEST(TopSample, WithoutRequestsThereIsNoLatency) {
  const server_sample s = sample_between(parse_counters(page(50, 5)), parse_counters(page(50, 5)), 1);
  EXPECT_EQ(s.decoders[0].latency.count, 0u);
  EXPECT_EQ(s.decoders[0].latency.percentile_ns(99), 0);
  EXPECT_NE(sample_text(s).find(" -"), std::string::npos) << sample_text(s);
  const json ns = sample_json(s).at("decoders").at(0).at("latency_ns");
  EXPECT_EQ(ns.at("count"), 0);
  for (const char *const what : {"mean", "p50", "p90", "p99", "p99.9"})
    EXPECT_TRUE(ns.at(what).is_null()) << what;
}

TEST(TopSample, ARequestAboveAllBoundsIsShownAsSuch) {
  std::string slow = page(10, 0);
  const std::string buckets = "latency_seconds_bucket{decoder=\"6\",le=\"";
  for (const char *bound : {"0.000001000", "0.001000000"}) {
    const std::size_t at = slow.find(buckets + bound) + buckets.size() + std::strlen(bound) + 3;
    slow.replace(at, 2, "0");
  }
  const server_sample s = sample_between(parse_counters(page(0, 0)), parse_counters(slow), 1);
  EXPECT_EQ(s.decoders[0].latency.count, 10u);
  EXPECT_TRUE(std::isinf(s.decoders[0].latency.percentile_ns(50)));
  EXPECT_NE(sample_text(s).find(">1.00 ms"), std::string::npos) << sample_text(s);
  EXPECT_TRUE(sample_json(s).at("decoders").at(0).at("latency_ns").at("p50").is_null());
}

TEST(TopSample, APageThatWasCutIsRefused) {
  const std::string whole = page(123456, 10);
  EXPECT_EQ(parse_counters(whole).processed, 123456u);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse_counters(whole.substr(0, length)), std::runtime_error) << length;
}

TEST(TopSample, TextThatIsNeitherAServersNorARoutersIsRefused) {
  for (const char *text :
       {"", "HTTP/1.1 404 Not Found\r\n\r\n", "cudaq_server_processed_total\n", "cudaq_server_processed_total many\n",
        "cudaq_server_processed_total -1\n", "cudaq_server_processed_total inf\n", "cudaq_server_processed_total nan\n",
        "another_total 1\n"})
    try {
      static_cast<void>(parse_counters(text + std::string(kEndOfCounters)));
      ADD_FAILURE() << "read: " << text;
    } catch (const std::runtime_error &e) {
      EXPECT_TRUE(std::string_view(e.what()).starts_with("it does not give the counters of a server or a router"))
          << e.what();
    }
}

TEST(TopSample, ABoundThatIsNoNumberIsAboveAllOthers) {
  for (const char *bound : {"nan", "-1", "+Inf", "x"}) {
    const auto counters = parse_counters("cudaq_server_processed_total 1\n"
                                         "cudaq_decoder_latency_seconds_bucket{decoder=\"7\",le=\"" +
                                         std::string(bound) + "\"} 3\n" + kEndOfCounters);
    EXPECT_TRUE(std::isinf(counters.decoders.at(0).latency.at(0).first)) << bound;
  }
}

TEST(TopSample, APageOfManyDecodersIsReadInOnePass) {
  constexpr std::uint64_t kDecoders =
      200'000; // a search through all of them for each line takes minutes: the test's time limit
  std::string text = "cudaq_server_processed_total 1\n";
  for (std::uint64_t id = 0; id < kDecoders; ++id)
    text += "cudaq_decoder_waiting{decoder=\"" + std::to_string(id) + "\"} 1\n";
  EXPECT_EQ(parse_counters(text + kEndOfCounters).decoders.size(), kDecoders);
}

} // namespace
} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/http_answer.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

TEST(HttpAnswer, HasTheStatusOfTheRequestLine) {
  struct request {
    const char *line, *status;
    bool has_page;
  };
  for (const request &r : {request{"GET /metrics HTTP/1.1", "200", true},
                           {"GET / HTTP/1.0", "200", true},
                           {"GET /metrics?x=1 HTTP/1.1", "200", true},
                           {"HEAD /metrics HTTP/1.1", "200", false},
                           {"GET /metricsx HTTP/1.1", "404", false},
                           {"HEAD /favicon.ico HTTP/1.1", "404", false},
                           {"POST /metrics HTTP/1.1", "405", false},
                           {"GET /metrics", "400", false},
                           {"", "400", false}}) {
    const std::string all =
        http_answer(std::string(r.line) + "\r\nHost: localhost\r\n\r\n", [] { return std::string("the_page 1\n"); });
    EXPECT_EQ(all.substr(0, 12), std::string("HTTP/1.1 ") + r.status) << r.line;
    EXPECT_EQ(all.ends_with("\r\n\r\nthe_page 1\n"), r.has_page) << r.line << "\n" << all;
  }
}

TEST(HttpAnswer, HasOtherPagesWithTheirTypes) {
  const auto answer = [](const std::string &line) {
    return http_answer(line + "\r\n\r\n", [] { return std::string("counters"); },
                       {{"/detectors", "text/html", [] { return std::string("picture"); }}});
  };
  const std::string all = answer("GET /detectors?x HTTP/1.1");
  EXPECT_TRUE(all.ends_with("\r\n\r\npicture")) << all;
  EXPECT_NE(all.find("\r\nContent-Type: text/html\r\n"), std::string::npos) << all;
  EXPECT_TRUE(answer("GET /metrics HTTP/1.1").ends_with("\r\n\r\ncounters"));
  EXPECT_TRUE(answer("GET /detectors/ HTTP/1.1").starts_with("HTTP/1.1 404"));
}

TEST(HttpAnswer, OfAHeadHasTheLengthOfThePageAndNoText) {
  const std::string all = http_answer("HEAD / HTTP/1.1\r\n\r\n", [] { return std::string(123, 'x'); });
  EXPECT_NE(all.find("\r\nContent-Length: 123\r\n"), std::string::npos);
  EXPECT_TRUE(all.ends_with("\r\n\r\n"));
}

TEST(LabelValue, StaysInItsLineAndKeepsNamesDifferent) {
  EXPECT_EQ(label_value("relay-bp:seed=2"), R"("relay-bp:seed=2")");
  EXPECT_EQ(label_value("a\"b\\c\ne"), R"("a\"b\\c\ne")");
  EXPECT_EQ(label_value("\xff/\x01"), R"("\\xff/\\x01")");
  EXPECT_NE(label_value("a'b"), label_value("a\"b"));
}

} // namespace
} // namespace cudaq::realtime::tools

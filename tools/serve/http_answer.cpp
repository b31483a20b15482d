// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/http_answer.h"

#include <fmt/format.h>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kCounters = "text/plain; version=0.0.4";

std::string answer(const char *status, const std::string &more_lines, const std::string &text, bool with_text,
                   const std::string &type = kCounters) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     type, more_lines, text.size(), with_text ? text : "");
}

} // namespace

std::string http_answer(const std::string &head, const std::function<std::string()> &page,
                        const std::vector<http_page> &others) {
  const std::string line = head.substr(0, head.find_first_of("\r\n"));
  const std::size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos || !line.substr(second + 1).starts_with("HTTP/"))
    return answer("400 Bad Request", "", "no request line of HTTP\n", true);
  const std::string method = line.substr(0, first);
  const std::string path = line.substr(first + 1, line.find_first_of(" ?", first + 1) - first - 1);
  if (method != "GET" && method != "HEAD")
    return answer("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "only GET and HEAD\n", true);
  const bool with_text = method == "GET";
  for (const http_page &other : others)
    if (path == other.path)
      return answer("200 OK", "", other.text(), with_text, other.type);
  if (path != "/metrics" && path != "/")
    return answer("404 Not Found", "", "the counters are at /metrics\n", with_text);
  return answer("200 OK", "", page(), with_text);
}

std::string label_value(const std::string &text) {
  std::string value = "\"";
  for (const char letter : text)
    if (const auto byte = static_cast<unsigned char>(letter); byte == '"' || byte == '\\')
      value += {'\\', letter};
    else if (byte == '\n')
      value += "\\n";
    else if (byte < ' ' || byte > '~')
      value += fmt::format("\\\\x{:02x}", byte);
    else
      value += letter;
  return value + "\"";
}

} // namespace cudaq::realtime::tools

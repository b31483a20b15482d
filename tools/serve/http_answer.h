// SPDX-License-Identifier: Apache-2.0
// The least of HTTP that a reader of counters needs, without a socket.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A page besides that of the counters.
struct http_page {
  std::string path, type; ///< "/detectors", "text/html; charset=utf-8"
  std::function<std::string()> text;
};

/// The answer to a request with this head ("GET /metrics HTTP/1.1\r\n..."): the page for GET and HEAD of `/metrics` and
/// `/` (a query after it is ignored), or one of `others`, for HEAD without its text; 404 for another path, 405 for
/// another method, 400 for what is no request line. `page` is called once at most.
[[nodiscard]] std::string http_answer(const std::string &head, const std::function<std::string()> &page,
                                      const std::vector<http_page> &others = {});

/// The value of a label, in quotation marks, as Prometheus' text format has it: backslashes, quotation marks and ends
/// of lines are escaped. A byte above 127 or below a space is shown as \\xff: one that is not UTF-8 spoils the page.
[[nodiscard]] std::string label_value(const std::string &text);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// A report as one HTML file: no script, no font and no picture of another file or of the network. It has light and dark
// colours, is readable on narrow screens, and prints without its folded parts.
#pragma once

#include "tools/common/report.h"
#include "tools/html/html_plots.h"

#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

class html_page {
public:
  /// `unchecked`: the result of a good run that had nothing to check; "": it had, and every check passed.
  explicit html_page(std::string title, std::string unchecked = "")
      : title_(std::move(title)), unchecked_(std::move(unchecked)) {}

  /// `content` is HTML; an empty one adds no section.
  void add(const std::string &heading, const std::string &content);

  /// The page. `report` has the fields of every report: the page begins with its result, command, machine, version and
  /// date, and ends with all of its figures.
  [[nodiscard]] std::string text(const json &report) const;

private:
  std::string title_, unchecked_;
  std::vector<std::pair<std::string, std::string>> sections_;
};

/// The style of a page, for one that is no report: CSS with the colours of the plots.
std::string page_style();
/// A table. The first row is its head; the first column is text, the others are aligned to the right.
std::string html_table(const std::vector<std::vector<std::string>> &rows);
/// A table of latencies: count, minimum, percentiles and maximum.
std::string latency_table(const std::vector<plotted_latency> &rows, const measured_words &words = {});
std::string html_paragraph(const std::string &text);

} // namespace cudaq::realtime::tools

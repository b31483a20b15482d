// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/decoding/sinter_csv.h"

#include "tools/common/report.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace cudaq::realtime::tools {
namespace {

constexpr std::string_view kColumns[] = {"shots",   "errors",    "discards",     "seconds",
                                         "decoder", "strong_id", "json_metadata"};
enum column : std::size_t { shots, errors, discards, seconds, decoder, strong_id, json_metadata };

std::string trimmed(const std::string &text) {
  const std::size_t begin = text.find_first_not_of(" \r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \r\n") + 1 - begin);
}

/// A field with quotes if it needs them; a quote inside is doubled.
std::string quoted(const std::string &field) {
  if (field.find_first_of(",\"\n") == std::string::npos)
    return field;
  std::string out = "\"";
  for (const char c : field)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

/// The fields of a line. A quote that is not closed ends with the line.
std::vector<std::string> fields_of(const std::string &line) {
  std::vector<std::string> fields{""};
  bool inside = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (inside && c == '"' && at + 1 < line.size() && line[at + 1] == '"')
      fields.back() += line[++at];
    else if (c == '"')
      inside = !inside;
    else if (c == ',' && !inside)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  std::ranges::transform(fields, fields.begin(), &trimmed);
  return fields;
}

template <typename Number>
bool read_number(const std::string &text, Number &value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

} // namespace

const char *const kSinterHeader =
    "     shots,    errors,  discards, seconds,decoder,strong_id,json_metadata,custom_counts\n";

std::string sinter_line(const sinter_row &row, const std::string &header) {
  const std::string texts[] = {fmt::format("{:>10}", row.shots),
                               fmt::format("{:>10}", row.errors),
                               fmt::format("{:>10}", row.discards),
                               fmt::format("{:>8.3g}", row.seconds),
                               quoted(row.decoder),
                               quoted(row.strong_id),
                               quoted(row.json_metadata)};
  std::string line;
  for (const std::string &name : fields_of(header)) {
    const auto place = static_cast<std::size_t>(std::ranges::find(kColumns, name) - std::begin(kColumns));
    line += (place < std::size(texts) ? texts[place] : "") + ',';
  }
  line.back() = '\n';
  return line;
}

std::vector<sinter_row> read_sinter_csv(std::istream &file, const std::string &name) {
  std::vector<sinter_row> rows;
  std::string line;
  if (!std::getline(file, line))
    return rows;
  const std::vector<std::string> head = fields_of(line);
  std::vector<std::size_t> place;
  for (const std::string_view column : kColumns) {
    place.push_back(static_cast<std::size_t>(std::ranges::find(head, column) - head.begin()));
    if (place.back() == head.size())
      throw usage_error(fmt::format("--csv {}: line 1: no column {}: this is no CSV file of sinter", name, column));
  }
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    if (trimmed(line).empty())
      continue;
    const std::vector<std::string> fields = fields_of(line);
    sinter_row row;
    const auto field = [&](column of) { return place[of] < fields.size() ? fields[place[of]] : std::string(); };
    if (!read_number(field(shots), row.shots) || !read_number(field(errors), row.errors) ||
        !read_number(field(discards), row.discards) || !read_number(field(seconds), row.seconds) ||
        row.discards > row.shots || row.errors > row.shots - row.discards || field(strong_id).empty())
      throw usage_error(fmt::format("--csv {}: line {}: needs shots, at most as many errors and discards, seconds and "
                                    "a strong_id; remove the line if a program was stopped while it wrote",
                                    name, number));
    row.decoder = field(decoder);
    row.strong_id = field(strong_id);
    row.json_metadata = field(json_metadata);
    const auto same = std::ranges::find(rows, row.strong_id, &sinter_row::strong_id);
    if (same == rows.end()) {
      rows.push_back(std::move(row));
      continue;
    }
    same->shots += row.shots;
    same->errors += row.errors;
    same->discards += row.discards;
    same->seconds += row.seconds;
  }
  return rows;
}

} // namespace cudaq::realtime::tools

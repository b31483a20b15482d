// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/config_fields.h"

#include <charconv>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace cudaq::qec::realtime {
namespace {

/// The texts of the table have no character that JSON must escape, except quotes.
std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string json_number(double value) {
  char digits[32];
  const bool whole = value == static_cast<double>(static_cast<long long>(value));
  const auto end = whole ? std::to_chars(std::begin(digits), std::end(digits), static_cast<long long>(value)).ptr
                         : std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return std::string(digits, end);
}

// GCC 12 warns of operator+ for strings where it inlines it, without a reason.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts)
    all += part;
  return all;
}

std::string range(const config_field &field, const char *type) {
  return joined({"\"type\": \"", type, "\", \"minimum\": ", json_number(field.lowest),
                 ", \"maximum\": ", json_number(field.highest)});
}

// A text may be any scalar of YAML: the reader takes 7 and true as the texts "7" and "true".
constexpr const char *kAnyScalar = "\"type\": [\"string\", \"number\", \"boolean\"]";

std::string list_of(const std::string &items) { return joined({"\"type\": \"array\", \"items\": {", items, "}"}); }

std::string object_body(const config_object &object, const std::string &indent, bool open);

std::string body(const config_field &field, const std::string &indent) {
  switch (field.type) {
  case field_type::number:
    return range(field, "integer");
  case field_type::real:
    return range(field, "number");
  case field_type::choice: {
    std::string words;
    for (const char c : field.words)
      words += c == '|' ? std::string("\", \"") : std::string(1, c);
    // An editor reads true without quotation marks as a boolean, the reader takes both.
    const bool is_boolean = field.words == "true|false";
    return joined({"\"enum\": [", is_boolean ? "true, false, \"" : "\"", words, "\"]"});
  }
  case field_type::numbers:
    return list_of(range(field, "integer"));
  case field_type::reals:
    return list_of(range(field, "number"));
  case field_type::texts:
    return list_of(kAnyScalar);
  case field_type::settings:
    return object_body(*field.inside, indent, true);
  case field_type::object:
    return object_body(*field.inside, indent, false);
  case field_type::objects:
    return joined(
        {"\"type\": \"array\", \"minItems\": 1, \"items\": {", object_body(*field.inside, indent, false), "}"});
  case field_type::text:
    break;
  }
  return kAnyScalar;
}

std::string object_body(const config_object &object, const std::string &indent, bool open) {
  const std::string deeper = joined({indent, "  "});
  std::string properties, required;
  for (const config_field &field : object.fields) {
    properties += joined({properties.empty() ? "\n" : ",\n", deeper, json_text(field.name),
                          ": {\"description\": ", json_text(field.meaning), ", ", body(field, deeper), "}"});
    if (field.required)
      required += joined({required.empty() ? "" : ", ", json_text(field.name)});
  }
  const std::string others = open ? joined({"{", kAnyScalar, "}"}) : std::string("false");
  return joined({"\"type\": \"object\", \"additionalProperties\": ", others, ", \"required\": [", required,
                 "], \"properties\": {", properties, "\n", indent, "}"});
}

} // namespace

std::string json_schema_of(std::string_view title, const config_object &object) {
  return joined({"{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"title\": ", json_text(title), ", ",
                 object_body(object, "", false), "}\n"});
}

std::string config_json_schema() { return json_schema_of("Configuration of cudaq-realtime serve", config_root()); }

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// Checks JSON by the part of JSON Schema that docs/report_schema.json uses.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudaq::realtime::tools::test {

class json_schema {
public:
  using json = nlohmann::json;

  explicit json_schema(json schema) : root_(std::move(schema)) {}

  /// What is wrong with `value`, each as "<path>: <reason>"; empty if it is valid. Throws std::runtime_error if the
  /// schema has a word that is not known here: it would check nothing.
  [[nodiscard]] std::vector<std::string> problems_of(const json &value) const {
    std::vector<std::string> problems;
    check(root_, value, "", problems);
    return problems;
  }

private:
  using problem_list = std::vector<std::string>;

  [[nodiscard]] bool fits(const json &schema, const json &value) const {
    problem_list problems;
    check(schema, value, "", problems);
    return problems.empty();
  }

  static bool is_type(const json &type, const json &value) {
    if (type.is_array())
      return std::any_of(type.begin(), type.end(), [&](const json &t) { return is_type(t, value); });
    if (type == "integer")
      return value.is_number_integer();
    if (type == "number")
      return value.is_number();
    return type == value.type_name();
  }

  /// The schema of a name such as "#/$defs/latency".
  [[nodiscard]] const json &named(const std::string &name) const {
    return root_.at(json::json_pointer(name.substr(1)));
  }

  void check(const json &schema, const json &value, const std::string &path, problem_list &problems) const {
    for (const auto &[word, rule] : schema.items())
      if (!check_value(word, rule, value, path, problems) && !check_parts(word, rule, value, path, problems) &&
          !check_schemas(schema, word, rule, value, path, problems) && word != "description" && word != "title" &&
          word != "$schema" && word != "$comment" && word != "$defs" && word != "then" && word != "else")
        throw std::runtime_error("json_schema: unknown word " + word);
  }

  /// The words about the value itself. Returns false for another word.
  static bool check_value(const std::string &word, const json &rule, const json &value, const std::string &path,
                          problem_list &problems) {
    const auto demand = [&](bool good) {
      if (!good)
        problems.push_back(path + ": " + value.dump().substr(0, 60) + " is not " + word + " " + rule.dump());
    };
    if (word == "type")
      demand(is_type(rule, value));
    else if (word == "const")
      demand(value == rule);
    else if (word == "enum")
      demand(std::find(rule.begin(), rule.end(), value) != rule.end());
    else if (word == "minimum")
      demand(!value.is_number() || value.get<double>() >= rule.get<double>());
    else if (word == "maximum")
      demand(!value.is_number() || value.get<double>() <= rule.get<double>());
    else if (word == "minItems")
      demand(!value.is_array() || value.size() >= rule.get<std::size_t>());
    else if (word == "pattern")
      demand(!value.is_string() || std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>())));
    else
      return false;
    return true;
  }

  /// The words about fields and elements.
  bool check_parts(const std::string &word, const json &rule, const json &value, const std::string &path,
                   problem_list &problems) const {
    if (word == "required") {
      for (const json &name : rule)
        if (value.is_object() && !value.contains(name.get<std::string>()))
          problems.push_back(path + ": there is no field " + name.get<std::string>());
    } else if (word == "properties") {
      for (const auto &[name, part] : rule.items())
        if (value.is_object() && value.contains(name))
          check(part, value.at(name), path + "/" + name, problems);
    } else if (word == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i)
        check(rule, value.at(i), path + "/" + std::to_string(i), problems);
    } else {
      return false;
    }
    return true;
  }

  /// The words that refer to other schemas.
  bool check_schemas(const json &schema, const std::string &word, const json &rule, const json &value,
                     const std::string &path, problem_list &problems) const {
    if (word == "$ref") {
      check(named(rule.get<std::string>()), value, path, problems);
    } else if (word == "allOf") {
      for (const json &part : rule)
        check(part, value, path, problems);
    } else if (word == "anyOf") {
      if (std::none_of(rule.begin(), rule.end(), [&](const json &part) { return fits(part, value); }))
        problems.push_back(path + ": none of " + rule.dump());
    } else if (word == "if") {
      if (const char *next = fits(rule, value) ? "then" : "else"; schema.contains(next))
        check(schema.at(next), value, path, problems);
    } else {
      return false;
    }
    return true;
  }

  json root_;
};

} // namespace cudaq::realtime::tools::test

// SPDX-License-Identifier: Apache-2.0
// The fields of a configuration as a table: the reader, the JSON schema and the error texts are made from it.
#pragma once

#include "lib/qec/server/config_tree.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cudaq::qec::realtime {

enum class field_type : std::uint8_t {
  number,   ///< a whole number from lowest to highest
  real,     ///< a number from lowest to highest
  text,     ///< any scalar
  choice,   ///< one of `words`, separated by |
  numbers,  ///< a list of whole numbers, each from lowest to highest
  reals,    ///< a list of numbers, each from lowest to highest
  texts,    ///< a list of scalars
  settings, ///< the fields of `inside`, and any other key with a scalar
  object,   ///< the fields of `inside`
  objects   ///< a list of these, with at least one element
};

struct config_object;

struct config_field {
  std::string_view name;
  field_type type;
  bool required;
  double lowest, highest; ///< of numbers; both are exact in a double
  std::string_view words;
  std::string_view meaning;
  const config_object *inside;
};

struct config_object {
  std::span<const config_field> fields;
};

/// The object of the whole file.
[[nodiscard]] const config_object &config_root() noexcept;

/// The object of the section `realtime`.
[[nodiscard]] const config_object &config_realtime() noexcept;

/// Checks a tree against an object: names, types, ranges, required fields, no key twice. A reason has the place,
/// the path of the field, its value, and what is accepted.
[[nodiscard]] expected<> check_fields(const config_node &node, const config_object &object);

/// The schema of an object, as a JSON text (JSON Schema, draft 2020-12).
[[nodiscard]] std::string json_schema_of(std::string_view title, const config_object &object);
/// That of the server's configuration.
[[nodiscard]] std::string config_json_schema();

} // namespace cudaq::qec::realtime

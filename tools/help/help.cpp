// SPDX-License-Identifier: Apache-2.0
#include "tools/help/help.h"

#include <nlohmann/json.hpp>

namespace cudaq::realtime::tools {
namespace {

json option_json(const option_model &o) {
  return {{"names", o.names},  {"value", o.value},      {"value_may_miss", o.value_may_miss},
          {"list", o.is_list}, {"choices", o.choices},  {"limits", o.limits},
          {"text", o.text},    {"default", o.standard}, {"argument", o.is_argument}};
}

} // namespace

json command_json(const command_model &command) {
  json options = json::array(), commands = json::array();
  for (const option_model &o : command.options)
    options.push_back(option_json(o));
  for (const command_model &below : command.commands)
    commands.push_back(command_json(below));
  return {{"name", command.name},
          {"text", command.text},
          {"more", command.more},
          {"options", options},
          {"subcommands", commands}};
}

} // namespace cudaq::realtime::tools

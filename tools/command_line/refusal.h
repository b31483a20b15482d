// SPDX-License-Identifier: Apache-2.0
// Why a command line cannot be parsed, as one message that names the word that was probably meant.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace cudaq::realtime::tools {

struct refusal {
  std::string command; ///< the subcommand that was recognised: "bench device"; "" if none was
  std::string reason;
  std::string hint; ///< where to read which options there are
};

/// `program` has just thrown `error`. The reason names the word that is wrong, and similar words that would be right,
/// or the subcommands that have this option.
refusal explain(const CLI::App &program, const CLI::ParseError &error);

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
// Checks whether this machine is ready for realtime decoding, line by line, with the remedy for each defect.
#pragma once

#include "tools/common/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

enum class grade : std::uint8_t {
  good,
  warning, ///< it works, but slower or with longer tails
  wrong,   ///< the requested check or transport cannot work
};

/// One line of the report.
struct finding {
  std::string name;
  grade is = grade::good;
  std::string detail;
  std::string remedy; ///< empty if the grade is good
};

struct doctor_options {
  std::string transport; ///< "": no checks of a transport; a / or the end .so: the path of a provider of the user
  std::vector<std::string> provider_options; ///< of such a provider
  int port = 0;                              ///< of the transport; 0: not checked
  bool names_timeout = false;                ///< --timeout was given
  double timeout_s = 5;                      ///< for each step of the transport's self-test
  std::string root;                          ///< folder in which /sys, /proc and /dev are looked up; "": this machine
};

/// Returns an exit_code: kExitCheckFailed if a line is wrong.
int run_doctor(const doctor_options &options, const output &out);

} // namespace cudaq::realtime::tools

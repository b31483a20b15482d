// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/program.h"

int main(int argc, char **argv) {
  return cudaq::realtime::tools::run_program(cudaq::realtime::tools::this_program(), argc, argv);
}

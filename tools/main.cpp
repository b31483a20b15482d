// SPDX-License-Identifier: Apache-2.0
#include "tools/subcommands.h"

int main(int argc, char **argv) {
  return cudaq::realtime::tools::run_program(cudaq::realtime::tools::cudaq_realtime(), argc, argv);
}

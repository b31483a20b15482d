// SPDX-License-Identifier: Apache-2.0
// cudaq-realtime-stim-dem: makes a detector error model from a circuit, with Stim's error analyzer. An optional
// program: nothing else in this project needs it. docs/own_data.md shows how to build and use it.
#include "stim/circuit/circuit.h"
#include "stim/simulators/error_analyzer.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

constexpr const char *kHelp =
    R"(Usage: cudaq-realtime-stim-dem --in CIRCUIT [--out MODEL] [--decompose_errors]

Reads a Stim circuit, and writes its detector error model (default: to stdout). As `stim analyze_errors --fold_loops`.

  --in FILE           the circuit; -: stdin
  --out FILE          the model; -: stdout (default)
  --decompose_errors  split errors with more than two detectors into components: matching needs this
)";

struct options {
  std::string in, out = "-";
  bool decompose = false;
};

options parse(int argc, char **argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--decompose_errors")
      o.decompose = true;
    else if ((word == "--in" || word == "--out") && i + 1 < argc)
      (word == "--in" ? o.in : o.out) = argv[++i];
    else
      throw std::invalid_argument("unknown or incomplete option " + std::string(word) + "\n" + kHelp);
  }
  if (o.in.empty())
    throw std::invalid_argument(std::string("--in is missing\n") + kHelp);
  return o;
}

stim::Circuit read_circuit(const std::string &path) {
  std::FILE *const file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr)
    throw std::invalid_argument("--in " + path + ": cannot be opened");
  stim::Circuit circuit = stim::Circuit::from_file(file);
  if (file != stdin)
    std::fclose(file);
  return circuit;
}

void run(const options &o) {
  const stim::DetectorErrorModel model = stim::ErrorAnalyzer::circuit_to_detector_error_model(
      read_circuit(o.in), o.decompose, /*fold_loops=*/true, /*allow_gauge_detectors=*/false,
      /*approximate_disjoint_errors_threshold=*/0, /*ignore_decomposition_failures=*/false,
      /*block_decomposition_from_introducing_remnant_edges=*/false);
  std::ofstream file;
  if (o.out != "-")
    file.open(o.out, std::ios::binary);
  std::ostream &out = o.out == "-" ? std::cout : file;
  out << model << "\n" << std::flush;
  if (!out)
    throw std::invalid_argument("--out " + o.out + ": cannot be written");
}

} // namespace

int main(int argc, char **argv) {
  try {
    if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
      std::cout << kHelp;
      return 0;
    }
    run(parse(argc, argv));
    return 0;
  } catch (const std::exception &failure) {
    std::cerr << "cudaq-realtime-stim-dem: " << failure.what() << "\n";
    return 2;
  }
}

// SPDX-License-Identifier: Apache-2.0
// The small files of a user's own in the folder own: each model with its shots in another format of Stim.
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "unittests/support/program_paths.h"

#include <ostream>
#include <string>
#include <vector>

namespace cudaq::realtime::tools::test {

struct own_set {
  const char *name, *format;
  int logical_errors; ///< of PyMatching, printed by make_own_data.py

  [[nodiscard]] std::string file(const std::string &kind) const {
    return std::string(CUDAQ_TEST_OWN_DATA) + "/" + name + "." + kind +
           (kind == "dem" ? "" : "." + std::string(format));
  }
  /// "--dem F --in F --obs_in F --predictions F"; the file names have the formats.
  [[nodiscard]] std::string options() const {
    return "--dem " + file("dem") + " --in " + file("dets") + " --obs_in " + file("obs") + " --predictions " +
           file("pred") + " ";
  }
};

inline void PrintTo(const own_set &set, std::ostream *out) { *out << set.name; }

constexpr int kOwnShots = 128;
inline const std::vector<own_set> kOwnSets{{"repetition", "01", 3},
                                           {"rotated_x", "b8", 14},
                                           {"rotated_z", "hits", 7},
                                           {"unrotated", "r8", 7},
                                           {"toric", "ptb64", 10}};

/// The colour code has errors with three detectors, and 128 shots in dets.
inline const own_set kColorCode{"color", "dets", 0};

#define SKIP_WITHOUT_PYMATCHING()                                                                                      \
  if (!cudaq::qec::realtime::pymatching_available())                                                                   \
  GTEST_SKIP() << "PyMatching and Stim are not built in"

} // namespace cudaq::realtime::tools::test

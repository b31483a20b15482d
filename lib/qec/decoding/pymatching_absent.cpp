// SPDX-License-Identifier: Apache-2.0
// Replaces pymatching_decoder.cpp if PyMatching was not found at configure time.
#include "lib/qec/decoding/decoder.h"

namespace cudaq::qec::realtime {

decoder_result make_pymatching_decoder(std::string_view) {
  return {nullptr, "this library was built without PyMatching: configure with a network and python3-pip, or give "
                   "CUDAQ_PYMATCHING_DIR and CUDAQ_STIM_DIR; the lookup decoder serves small codes"};
}

bool pymatching_available() noexcept { return false; }
const char *pymatching_version() noexcept { return ""; }

} // namespace cudaq::qec::realtime

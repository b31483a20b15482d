// SPDX-License-Identifier: Apache-2.0
// Replaces pymatching_decoder.cpp if PyMatching was not found at configure time.
#include "lib/qec/decoders/decoder_factories.h"

namespace cudaq::qec::realtime {
namespace {

decoder_result absent() {
  return {nullptr, "this library was built without PyMatching: configure with a network and python3-pip, or give "
                   "CUDAQ_PYMATCHING_DIR and CUDAQ_STIM_DIR; the decoders lookup (small codes), bp-osd "
                   "and relay-bp need no download"};
}

} // namespace

decoder_result make_pymatching_decoder(const decoder_model &, decoder_settings &) { return absent(); }
decoder_result make_correlated_decoder(const decoder_model &, decoder_settings &) { return absent(); }

bool pymatching_available() noexcept { return false; }
const char *pymatching_version() noexcept { return ""; }

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
// For a build without the sources of Stim.
#include "lib/qec/shots/format_codec.h"

namespace cudaq::qec::realtime {

std::unique_ptr<format_decoder> make_stim_decoder(std::FILE *, shot_format, shot_bits) { return nullptr; }
std::unique_ptr<format_encoder> make_stim_encoder(std::FILE *, shot_format, std::uint64_t) { return nullptr; }

} // namespace cudaq::qec::realtime

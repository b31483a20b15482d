// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/qec_expected.h"

#include <string_view>

namespace cudaq::qec::realtime {

/// How a decoder takes an error with several components (a ^ b). It decides what a window of a stream has of an error
/// that reaches over its border. The values are those of decoder_plugin.h.
enum class error_form {
  joined = 0,     ///< component by component, but the decoder knows which belong together: correlated matching
  components = 1, ///< as errors of their own: matching
  whole = 2       ///< as one error: belief propagation
};

/// The form for a name of make_decoder with its settings: of a plug-in what its table says, of a race that of its
/// members if all have the same, else joined. Of auto that of its first choice. A reason: the name is wrong, or the
/// plug-in cannot be loaded.
[[nodiscard]] expected<error_form> error_form_of(std::string_view name);

/// Whether the components of errors must be edges, with one or two detectors: of matching, and of a race with it. No
/// plug-in: it decides itself.
[[nodiscard]] bool takes_edges_only(std::string_view name);

} // namespace cudaq::qec::realtime

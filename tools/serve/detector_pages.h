// SPDX-License-Identifier: Apache-2.0
// How often the detectors of the server's decoders fire now, beside their models: as lines of the counters, as JSON,
// and as a page with a picture of the code.
#pragma once

#include "lib/qec/server/learning/live_learning.h"
#include "tools/common/report.h"

#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// Prometheus' text format: of each decoder how many detectors differ, and the worst ones by their rank. The number of
/// lines does not depend on the number of detectors; at most 100 decoders have lines. "" if no decoder counts.
std::string detectors_text(const cudaq::qec::realtime::decoding_server &server);

/// All detectors of all decoders that count, as JSON. After 20,000 detectors the next decoders have their worst ones
/// only. `learning`: of the decoders that learn.
std::string detectors_json(const cudaq::qec::realtime::decoding_server &server,
                           const std::vector<cudaq::qec::realtime::learning_report> &learning = {});
/// What a decoder has learned, and why not.
json learning_json(const cudaq::qec::realtime::learning_report &report);
/// The same in Prometheus' text format; "" if no decoder learns.
std::string learning_text(const std::vector<cudaq::qec::realtime::learning_report> &learning);

/// A page of HTML, which reads itself again every 5 seconds: of each decoder the picture and the worst detectors. At
/// most 16 decoders are on it.
std::string detectors_page(const cudaq::qec::realtime::decoding_server &server);

} // namespace cudaq::realtime::tools

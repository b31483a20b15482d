// SPDX-License-Identifier: Apache-2.0
// Pages of the running server for a browser: the frame of each, the times of the stages, and the lag of streams.
#pragma once

#include "lib/qec/server/decoding_server.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

/// A whole page of HTML with links to the others. `content` is HTML. `refresh_s`: the browser reads the page again
/// after so many seconds; 0: it does not.
std::string live_page(const std::string &title, const std::string &heading, int refresh_s, const std::string &content);

/// A decoder, and how long its requests took.
struct timed_decoder {
  std::uint64_t id;
  std::string name; ///< with its settings, or ""
  const cudaq::qec::realtime::stage_times *times;
};
std::vector<timed_decoder> timed_decoders(const cudaq::qec::realtime::decoding_server &server);
/// Of each decoder that has answered a request the distribution of each stage, and a table. At most 16 decoders are on
/// the page, which reads itself again every 5 seconds.
std::string times_page(const std::vector<timed_decoder> &decoders);

/// The ids of decoders that take streams.
std::vector<std::uint64_t> stream_decoders(const cudaq::qec::realtime::decoding_server &server);
/// Lines of the lag of these decoders over the last 2 minutes: a script of the page reads the counters every second and
/// keeps what it has read, so that the server keeps nothing. At most 16 decoders.
std::string streams_page(const std::vector<std::uint64_t> &decoders);

} // namespace cudaq::realtime::tools

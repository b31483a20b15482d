// SPDX-License-Identifier: Apache-2.0
#include "lib/api/device_path/graph_texts.h"

#include "lib/host_dispatcher/diagnostics.h"

#include <cinttypes>

namespace cudaq::realtime::detail {

std::string describe_graph(std::uint64_t graph, const std::vector<std::string> &names) {
  const std::size_t number = (graph >> 32) - 1;
  std::string text = number < names.size() ? names[number] : "a graph";
  append(text, ", slot %u", static_cast<unsigned>(graph));
  return text;
}

std::string describe_stop_of_graphs(const graph_report &seen, bool under_way, const std::vector<std::string> &names) {
  std::string text;
  if (seen.silent != 0)
    append(text,
           "graphs that ended without raising their flag, found by the stop: %" PRIu64
           ", the last one %s. Their requests were answered NO_RESPONSE; publishing graphs: not answered\n",
           seen.silent, describe_graph(seen.silent_graph, names).c_str());
  if (seen.late_graph != 0 && under_way)
    append(text, "the stop waits, after its grace period, for the end of %s\n",
           describe_graph(seen.late_graph, names).c_str());
  return text;
}

} // namespace cudaq::realtime::detail

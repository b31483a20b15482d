// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/exchange_record.h"

#include "tools/common/report.h"

#include <fmt/format.h>
#include <ostream>

namespace cudaq::realtime::tools {

void exchange_record::write_csv(const char *option, const std::string &path) const {
  write_file(option, path, [this](std::ostream &out) {
    out << "request_id,send_ns,answer_ns,round_trip_ns,status\n";
    for (const exchange_times &one : all_)
      if (one.answered_ns == 0)
        out << fmt::format("{},{},,,\n", one.request_id, one.sent_ns);
      else
        out << fmt::format("{},{},{},{},{}\n", one.request_id, one.sent_ns, one.answered_ns,
                           one.answered_ns - one.sent_ns, one.status);
  });
}

} // namespace cudaq::realtime::tools

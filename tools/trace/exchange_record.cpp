// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/exchange_record.h"

#include <fmt/format.h>
#include <ostream>

namespace cudaq::realtime::tools {

std::unique_ptr<output_file> open_ila(const std::string &path) {
  return path.empty() ? nullptr : std::make_unique<output_file>("--ila", path);
}

void exchange_record::write_csv(output_file *file) const {
  if (file == nullptr)
    return;
  file->write([this](std::ostream &out) {
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

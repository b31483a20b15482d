// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor_checks.h"

#include "tools/common/machine.h"
#include "tools/common/terminal.h"
#include "tools/services/provider_service.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

const char *word(grade v) {
  static constexpr const char *words[] = {"good", "warning", "wrong"};
  return words[static_cast<int>(v)];
}

json part_json(const std::vector<finding> &lines) {
  json all = json::array();
  for (const finding &f : lines) {
    all.push_back({{"name", f.name}, {"verdict", word(f.is)}, {"detail", f.detail}});
    if (f.is != grade::good)
      all.back()["remedy"] = f.remedy;
  }
  return all;
}

void print_part(const output &out, const std::string &part, const std::vector<finding> &lines) {
  out.text("{}\n", part);
  for (const finding &f : lines) {
    constexpr colour kColours[] = {colour::good, colour::warning, colour::bad};
    out.text("  {} {:<20} {}\n", coloured(fmt::format("{:<8}", word(f.is)), kColours[static_cast<int>(f.is)]), f.name,
             f.detail);
    if (f.is != grade::good)
      out.text("  {:<8} {:<20} {}\n", "", "", "-> " + f.remedy);
  }
}

} // namespace

int run_doctor(const doctor_options &o, const output &out) {
  const system_files files(o.root);
  std::vector<std::pair<std::string, std::vector<finding>>> parts;
  const cuda_probe probe = probe_cuda();
  const bool own = is_provider_path(o.transport);
  if (own && o.port != 0)
    throw usage_error("--port: it has no effect with a provider of your own; its options follow --");
  if (own && o.names_timeout)
    throw usage_error("--timeout: it has no effect with a provider of your own, which has no self-test");
  if (!o.transport.empty()) // first: it may refuse the name
    parts.emplace_back("transport " + o.transport, own ? own_provider_lines(o.transport, o.provider_options)
                                                       : check_transport(files, probe, o.transport, o.port));
  parts.emplace(parts.begin(), "machine", check_machine(files, allowed_cores()));
  parts.emplace(parts.begin() + 1, "gpu", check_gpu(files, probe));
  parts.emplace_back("self-test", check_dispatcher());
  if (!o.transport.empty() && !own)
    for (const finding &f : check_loopback(o.transport, static_cast<std::uint64_t>(o.timeout_s * 1e9)))
      parts.back().second.push_back(f);

  int count[3] = {};
  json report = json::object();
  for (const auto &[part, lines] : parts) {
    print_part(out, part, lines);
    report[part] = part_json(lines);
    for (const finding &f : lines)
      ++count[static_cast<int>(f.is)];
  }
  const int wrong = count[static_cast<int>(grade::wrong)];
  out.text("\n{} good, {} warnings, {} wrong\n", count[0], count[1], wrong);
  return out.finish({{"good", count[0]}, {"warnings", count[1]}, {"wrong", wrong}, {"parts", report}},
                    wrong == 0 ? "" : fmt::format("{} of the checks found something wrong", wrong));
}

} // namespace cudaq::realtime::tools

// SPDX-License-Identifier: Apache-2.0
#include "tools/services/ucx_library.h"

#include "tools/common/report.h"
#include "tools/services/provider_service.h"

#include <dlfcn.h>

namespace cudaq::realtime::tools {

ucx_library::ucx_library(const std::string &user) : path_(provider_library("ucx")) {
  const auto opened = open_provider(path_);
  if (opened.failed())
    throw std::runtime_error(fmt::format("{} needs the provider ucx: {}. A build has it if UCX is installed (Debian: "
                                         "libucx-dev, which scripts/bootstrap.sh installs) when it is configured",
                                         user, opened.text()));
  library_ = *opened;
}

template <class Function>
Function ucx_library::function(const char *name) const {
  const auto found = reinterpret_cast<Function>(dlsym(library_, name));
  if (found == nullptr)
    throw std::runtime_error(fmt::format("{} has no function {}; it is of another build", path_, name));
  return found;
}

std::unique_ptr<detail::node_link> ucx_library::make_link(const detail::ucx_link_options &options) const {
  const auto make = function<detail::ucx_make_link_fn>(detail::kUcxMakeLink);
  char reason[512] = "";
  std::unique_ptr<detail::node_link> link(make(detail::kUcxLinkVersion, &options, reason, sizeof reason));
  if (!link)
    throw usage_error(fmt::format("{}: {}", path_, reason));
  return link;
}

detail::ucx_description ucx_library::describe() const {
  const auto describe = function<detail::ucx_describe_fn>(detail::kUcxDescribe);
  char reason[512] = "";
  detail::ucx_description found;
  if (!describe(detail::kUcxLinkVersion, &found, reason, sizeof reason))
    throw usage_error(fmt::format("{}: {}", path_, reason));
  return found;
}

} // namespace cudaq::realtime::tools

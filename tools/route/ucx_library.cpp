// SPDX-License-Identifier: Apache-2.0
#include "tools/route/ucx_library.h"

#include "tools/common/report.h"
#include "tools/services/provider_service.h"

#include <dlfcn.h>

namespace cudaq::realtime::tools {

std::unique_ptr<detail::node_link> make_ucx_link(const detail::ucx_link_options &options) {
  const std::string path = provider_library("ucx");
  void *const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // stays loaded: UCX has threads
  if (library == nullptr)
    throw usage_error(fmt::format("route needs the provider ucx: {}. A build has it if UCX is installed (Debian: "
                                  "libucx-dev, which scripts/bootstrap.sh installs) when it is configured",
                                  dlerror()));
  const auto make = reinterpret_cast<detail::ucx_make_link_fn>(dlsym(library, detail::kUcxMakeLink));
  if (make == nullptr)
    throw usage_error(fmt::format("{} has no function {}; it is of another build", path, detail::kUcxMakeLink));
  char reason[512] = "";
  std::unique_ptr<detail::node_link> link(make(detail::kUcxLinkVersion, &options, reason, sizeof reason));
  if (!link)
    throw usage_error(fmt::format("{}: {}", path, reason));
  return link;
}

} // namespace cudaq::realtime::tools

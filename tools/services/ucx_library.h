// SPDX-License-Identifier: Apache-2.0
// The functions of the provider ucx for programs. They are loaded, so the program itself does not need UCX.
#pragma once

#include "lib/transport/ucx/ucx_link.h"

#include <memory>

namespace cudaq::realtime::tools {

/// Loads the library. It stays loaded: UCX has threads. Throws std::runtime_error that names the missing part.
class ucx_library {
public:
  /// `user`: the subcommand that needs it, for the text.
  explicit ucx_library(const std::string &user);
  [[nodiscard]] const std::string &path() const noexcept { return path_; }

  /// Both throw usage_error if the library is of another build, or with UCX's reason.
  std::unique_ptr<detail::node_link> make_link(const detail::ucx_link_options &options) const;
  detail::ucx_description describe() const;

private:
  template <class Function>
  Function function(const char *name) const;

  std::string path_;
  void *library_ = nullptr;
};

} // namespace cudaq::realtime::tools

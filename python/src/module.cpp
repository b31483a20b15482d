// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <cudaq/realtime/version.h>
#include <nanobind/stl/string.h>
#include <string>

NB_MODULE(_native, m) {
  m.doc() = "The C++ part of cudaq_realtime; use the package.";
  const std::string version = std::to_string(CUDAQ_REALTIME_VERSION_MAJOR) + "." +
                              std::to_string(CUDAQ_REALTIME_VERSION_MINOR) + "." +
                              std::to_string(CUDAQ_REALTIME_VERSION_PATCH);
  m.attr("version") = version;
  cudaq_python::bind_decoder(m);
  cudaq_python::bind_dispatcher(m);
  cudaq_python::bind_pipeline(m);
  cudaq_python::bind_stream(m);
}

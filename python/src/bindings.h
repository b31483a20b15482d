// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module. The Python files of the package make their types convenient.
#pragma once

#include <nanobind/nanobind.h>

namespace cudaq_python {

void bind_decoder(nanobind::module_ &m);
void bind_dispatcher(nanobind::module_ &m);
void bind_pipeline(nanobind::module_ &m);
void bind_stream(nanobind::module_ &m);

} // namespace cudaq_python

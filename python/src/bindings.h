// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module. The Python files of the package make their types convenient.
#pragma once

#include <nanobind/nanobind.h>
#include <string>

namespace cudaq_python {

/// The traceback and the text of an exception of Python, as Python prints them. With the GIL. `raised` may be empty
/// afterwards. Its what() does not do: a text that is no UTF-8, such as the name of a file may be, ends the process.
std::string text_of(nanobind::python_error &raised);

/// function(argument). With the GIL. If Python ends the thread in it, the thread is parked.
nanobind::object call_function(nanobind::handle function, nanobind::handle argument);

void bind_decoder(nanobind::module_ &m);
void bind_dispatcher(nanobind::module_ &m);
void bind_pipeline(nanobind::module_ &m);
void bind_stream(nanobind::module_ &m);

} // namespace cudaq_python

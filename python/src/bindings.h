// SPDX-License-Identifier: Apache-2.0
// The parts of the extension module. The Python files of the package make their types convenient.
#pragma once

#include <cstddef>
#include <nanobind/nanobind.h>
#include <string>

namespace cudaq_python {

/// function(bytes of the memory). With the GIL. Null: it has raised, and text_of_raised() says what. An exception of
/// Python is none of C++ here: a thread that Python ends while it handles one of C++ would end the process.
nanobind::object call_function(nanobind::handle function, const void *memory, std::size_t size);

/// The traceback and the text of the exception that is set, as Python prints them; it is taken. With the GIL.
std::string text_of_raised();

void bind_decoder(nanobind::module_ &m);
void bind_dispatcher(nanobind::module_ &m);
void bind_learning(nanobind::module_ &m);
void bind_pipeline(nanobind::module_ &m);
void bind_stream(nanobind::module_ &m);

} // namespace cudaq_python

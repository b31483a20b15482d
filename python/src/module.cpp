// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"
#include "threads.h"

#include <cudaq/realtime/version.h>
#include <exception>
#include <nanobind/stl/string.h>
#include <string>

namespace nb = nanobind;

namespace cudaq_python {
namespace {

/// The exception as an object that has its traceback.
nb::object taken(nb::python_error &raised) {
#if PY_VERSION_HEX >= 0x030C0000
  return nb::borrow(raised.value());
#else
  // nanobind 2 has what the interpreter had: perhaps not an exception yet, only its type and its arguments.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  raised.restore();
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const nb::object owned_type = nb::steal(type), owned_traceback = nb::steal(traceback);
  if (traceback != nullptr && PyException_SetTraceback(value, traceback) != 0)
    PyErr_Clear();
  return nb::steal(value);
#endif
}

std::atomic<bool> has_ended{false};

} // namespace

bool is_finalising() {
#if PY_VERSION_HEX >= 0x030D0000
  return has_ended || Py_IsFinalizing() != 0;
#else
  return has_ended || _Py_IsFinalizing() != 0;
#endif
}

void watch_finalisation() {
  Py_AtExit([] { has_ended = true; });
}

void park() {
  for (;;)
    pause();
}

nb::object call_function(nb::handle function, nb::handle argument) {
  PyObject *const result =
      or_park([&] { return PyObject_CallFunctionObjArgs(function.ptr(), argument.ptr(), nullptr); });
  if (result == nullptr)
    throw nb::python_error();
  return nb::steal(result);
}

std::string text_of(nb::python_error &raised) {
  const nb::object error = taken(raised);
  try {
    const nb::object traceback = error.attr("__traceback__");
    const nb::object lines = nb::module_::import_("traceback").attr("format_exception")(error.type(), error, traceback);
    const nb::object text = nb::str("").attr("join")(lines).attr("rstrip")();
    const nb::object encoded = text.attr("encode")("utf-8", "backslashreplace");
    return nb::cast<nb::bytes>(encoded).c_str();
  } catch (const std::exception &) { // not its what(): it may be of the same kind
    return "an exception whose text cannot be read";
  }
}

} // namespace cudaq_python

NB_MODULE(_native, m) {
  m.doc() = "The C++ part of cudaq_realtime; use the package.";
  const std::string version = std::to_string(CUDAQ_REALTIME_VERSION_MAJOR) + "." +
                              std::to_string(CUDAQ_REALTIME_VERSION_MINOR) + "." +
                              std::to_string(CUDAQ_REALTIME_VERSION_PATCH);
  m.attr("version") = version;
  cudaq_python::watch_finalisation();
  cudaq_python::bind_decoder(m);
  cudaq_python::bind_dispatcher(m);
  cudaq_python::bind_pipeline(m);
  cudaq_python::bind_stream(m);
}

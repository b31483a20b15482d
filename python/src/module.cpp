// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"
#include "threads.h"

#include <cudaq/realtime/version.h>
#include <dlfcn.h>
#include <nanobind/stl/string.h>
#include <string>

namespace nb = nanobind;

namespace cudaq_python {
namespace {

/// The exception that is set, as a new reference to an object that has its traceback.
PyObject *taken() {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  // Perhaps not an exception yet, only its type and its arguments.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr && PyException_SetTraceback(value, traceback) != 0)
    PyErr_Clear();
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
#endif
}

/// What a function of Python's C API returns, which runs code of Python and may take the GIL.
template <class Call>
nb::object result_of(const Call &call) {
  return nb::steal(or_park(call));
}

/// As traceback.format_exception() has it, in UTF-8. Null if an exception is raised meanwhile.
nb::object formatted(nb::handle error) {
  const nb::object traceback = nb::steal(PyException_GetTraceback(error.ptr()));
  PyObject *const from = traceback.is_valid() ? traceback.ptr() : Py_None;
  const nb::object module = result_of([] { return PyImport_ImportModule("traceback"); });
  if (!module.is_valid())
    return {};
  const nb::object format = result_of([&] { return PyObject_GetAttrString(module.ptr(), "format_exception"); });
  if (!format.is_valid())
    return {};
  const nb::object lines = result_of(
      [&] { return PyObject_CallFunctionObjArgs(format.ptr(), error.type().ptr(), error.ptr(), from, nullptr); });
  if (!lines.is_valid())
    return {};
  const nb::str nothing("");
  const nb::object text = result_of([&] { return PyUnicode_Join(nothing.ptr(), lines.ptr()); });
  if (!text.is_valid())
    return {};
  return result_of([&] { return PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"); });
}

std::atomic<bool> has_ended{false};

} // namespace

bool is_finalising() {
#if defined(Py_LIMITED_API)
  // Asked without the GIL. The stable ABI has it from 3.13 on, so it is looked up: each version has one of both names.
  using function = int (*)();
  static const auto query = [] {
    void *const found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    return reinterpret_cast<function>(found != nullptr ? found : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
  }();
  return has_ended || (query != nullptr && query() != 0);
#elif PY_VERSION_HEX >= 0x030D0000
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

nb::object call_function(nb::handle function, const void *memory, std::size_t size) {
  const nb::object payload =
      nb::steal(PyBytes_FromStringAndSize(static_cast<const char *>(memory), static_cast<Py_ssize_t>(size)));
  if (!payload.is_valid())
    return {};
  return result_of([&] { return PyObject_CallFunctionObjArgs(function.ptr(), payload.ptr(), nullptr); });
}

std::string text_of_raised() {
  const nb::object error = result_of(&taken);
  const nb::object text = formatted(error);
  if (!text.is_valid()) {
    PyErr_Clear();
    return "an exception whose text cannot be read";
  }
  std::string bytes = PyBytes_AsString(text.ptr());
  bytes.erase(bytes.find_last_not_of('\n') + 1);
  return bytes;
}

} // namespace cudaq_python

NB_MODULE(_native, m) {
  m.doc() = "The C++ part of cudaq_realtime; use the package.";
  const std::string version = std::to_string(CUDAQ_REALTIME_VERSION_MAJOR) + "." +
                              std::to_string(CUDAQ_REALTIME_VERSION_MINOR) + "." +
                              std::to_string(CUDAQ_REALTIME_VERSION_PATCH) + CUDAQ_REALTIME_VERSION_PRERELEASE;
  m.attr("version") = version;
  cudaq_python::watch_finalisation();
  // A thread that still runs at the end of the interpreter keeps what it uses, and that is no fault of these bindings.
  m.def("expect_leaks", [] { nb::set_leak_warnings(false); });
  cudaq_python::bind_decoder(m);
  cudaq_python::bind_dispatcher(m);
  cudaq_python::bind_learning(m);
  cudaq_python::bind_pipeline(m);
  cudaq_python::bind_stream(m);
}

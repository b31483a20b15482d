/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder plug-in that calls Python, for ideas that are not in C yet:
 *
 *   ./python_decoder.so:file=/home/me/idea.py
 *
 * The file has a function make(model), which gets the text of the model and returns a function. That one is called with
 * the events of each shot, a list of detectors, and returns a list of the observables that have flipped, or None if it
 * has not converged. Slow: a call takes some microseconds, and Python runs one at a time, whatever the threads.
 * It obeys no deadline, as it has no decode_until: a server counts a shot as late, but the call runs to its end. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cudaq/qec/decoding/decoder_plugin.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
typedef struct {
  PyObject *function;
  uint64_t num_observables;
} decoder;

/* Python modules in C expect Python's functions among the global names, but a plug-in is loaded with names of its own.
 * So Python's library is made global. It is never unloaded, and a Python that runs already is used as it is. */
static void start_python(void) {
  Dl_info python;
  if (Py_IsInitialized())
    return;
  if (dladdr((void *)Py_InitializeEx, &python) != 0)
    dlopen(python.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  Py_InitializeEx(0); /* without Python's signal handlers: Ctrl-C is the program's */
  PyEval_SaveThread();
}

/* The text of the exception that was raised. */
static void take_exception(char *error, size_t error_size) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *text = value != NULL ? PyObject_Repr(value) : NULL;
  const char *bytes = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
  snprintf(error, error_size, "the Python file: %s", bytes != NULL ? bytes : "an exception without a text");
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

/* make(model) of a file, or NULL with an exception. */
static PyObject *function_of(const char *file, const char *model) {
  PyObject *runpy = PyImport_ImportModule("runpy"), *function = NULL;
  PyObject *names = runpy != NULL ? PyObject_CallMethod(runpy, "run_path", "s", file) : NULL;
  PyObject *make = names != NULL ? PyMapping_GetItemString(names, "make") : NULL;
  if (make != NULL)
    function = PyObject_CallFunction(make, "s", model);
  Py_XDECREF(make);
  Py_XDECREF(names);
  Py_XDECREF(runpy);
  return function;
}

static int32_t create(const cudaq_qec_decoder_model_t *model, void **made, char *error, size_t error_size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (model->num_settings != 1 || strcmp(model->settings[0].key, "file") != 0) {
    snprintf(error, error_size, "accepted: one setting, file=FILE.py, a file with the function make(model)");
    return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
  }
  decoder *d = calloc(1, sizeof *d);
  if (d == NULL) {
    snprintf(error, error_size, "out of memory");
    return CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  }
  pthread_once(&once, start_python);
  const PyGILState_STATE state = PyGILState_Ensure();
  d->num_observables = model->num_observables;
  d->function = function_of(model->settings[0].value, model->dem_text);
  if (d->function == NULL)
    take_exception(error, error_size);
  PyGILState_Release(state);
  if (d->function == NULL) {
    free(d);
    return CUDAQ_QEC_DECODE_NOT_SUPPORTED;
  }
  *made = d;
  return CUDAQ_QEC_DECODE_OK;
}

/* Sets the bits of a list of observables. */
static int32_t set_observables(PyObject *list, uint64_t num_observables, uint8_t *observables) {
  PyObject *flipped = PySequence_Fast(list, "the function returned no list of observables, and not None");
  for (Py_ssize_t k = 0; flipped != NULL && k < PySequence_Fast_GET_SIZE(flipped); ++k) {
    const size_t observable = PyLong_AsSize_t(PySequence_Fast_GET_ITEM(flipped, k));
    if (observable >= num_observables && !PyErr_Occurred())
      PyErr_Format(PyExc_IndexError, "the function returned observable %zu; the model has fewer", observable);
    if (PyErr_Occurred())
      break;
    observables[observable / 8] ^= (uint8_t)(1U << observable % 8);
  }
  Py_XDECREF(flipped);
  return PyErr_Occurred() ? CUDAQ_QEC_DECODE_INTERNAL_ERROR : CUDAQ_QEC_DECODE_OK;
}

static int32_t decode(void *self, const uint64_t *events, size_t num_events, uint8_t *observables, double *weight) {
  const decoder *d = self;
  int32_t status = CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  (void)weight; /* NaN: not known */
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *list = PyList_New((Py_ssize_t)num_events);
  for (size_t k = 0; list != NULL && k < num_events; ++k)
    PyList_SET_ITEM(list, (Py_ssize_t)k, PyLong_FromUnsignedLongLong(events[k]));
  PyObject *answer = list != NULL ? PyObject_CallOneArg(d->function, list) : NULL;
  if (answer != NULL)
    status =
        answer == Py_None ? CUDAQ_QEC_DECODE_NOT_CONVERGED : set_observables(answer, d->num_observables, observables);
  if (PyErr_Occurred())
    PyErr_Print(); /* the library says that the decoder has failed; only Python knows why */
  Py_XDECREF(answer);
  Py_XDECREF(list);
  PyGILState_Release(state);
  return status;
}

static void destroy(void *self) {
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(((decoder *)self)->function);
  PyGILState_Release(state);
  free(self);
}

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {.version = CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   .struct_size = sizeof table,
                                                   .name = "python",
                                                   .create = create,
                                                   .decode = decode,
                                                   .destroy = destroy,
                                                   .error_form = CUDAQ_QEC_ERRORS_WHOLE};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Stream decoders for Python. No call holds the GIL while it decodes.
#include "bindings.h"

#include <cstring>
#include <cudaq/qec/decoding/stream.h>
#include <mutex>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace cudaq::qec::realtime;

namespace cudaq_python {
namespace {

template <class T>
using array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class native_stream {
  template <class Call>
  auto locked(const Call &call) {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    return call();
  }

public:
  native_stream(const std::string &decoder, const std::string &dem, std::uint64_t commit, std::uint64_t buffer,
                const std::string &rounds) {
    const nb::gil_scoped_release released;
    stream_result made =
        make_stream_decoder(dem, {.decoder = decoder, .commit = commit, .buffer = buffer, .rounds = rounds});
    if (!made)
      throw std::invalid_argument(made.error);
    stream_ = std::move(made.instance);
  }

  /// Packed bits. Returns the status, and whether further rounds became final.
  std::tuple<int, bool> push(array<const std::uint8_t> bits, std::uint64_t count) {
    return locked([&] {
      const std::uint64_t before = stream_->committed_rounds();
      const decode_status status = stream_->push({bits.data(), bits.size()}, count);
      return std::tuple(static_cast<int>(status), stream_->committed_rounds() != before);
    });
  }
  int finish(array<const std::uint8_t> bits, std::uint64_t count) {
    return locked([&] { return static_cast<int>(stream_->finish({bits.data(), bits.size()}, count)); });
  }
  void reset() {
    locked([&] { stream_->reset(); });
  }
  /// Copies the observables, and returns the rounds that they belong to.
  std::uint64_t observables(array<std::uint8_t> out) {
    return locked([&] {
      const auto flipped = stream_->observables();
      if (out.size() != flipped.size())
        throw std::invalid_argument("the array does not fit the observables");
      std::memcpy(out.data(), flipped.data(), flipped.size());
      return stream_->committed_rounds();
    });
  }
  /// A number of the stream or of its model.
  template <auto Number>
  std::uint64_t number() {
    return locked([&] { return (*stream_.*Number)(); });
  }
  std::string description() const { return stream_->description(); }

private:
  std::mutex mutex_;
  std::unique_ptr<stream_decoder> stream_;
};

} // namespace

void bind_stream(nb::module_ &m) {
  nb::class_<native_stream>(m, "NativeStream")
      .def(nb::init<const std::string &, const std::string &, std::uint64_t, std::uint64_t, const std::string &>(),
           nb::arg("decoder"), nb::arg("dem"), nb::arg("commit"), nb::arg("buffer"), nb::arg("rounds"))
      .def("push", &native_stream::push, nb::arg("bits"), nb::arg("count"))
      .def("finish", &native_stream::finish, nb::arg("bits"), nb::arg("count"))
      .def("reset", &native_stream::reset)
      .def("observables", &native_stream::observables, nb::arg("out"))
      .def_prop_ro("committed_rounds", &native_stream::number<&stream_decoder::committed_rounds>)
      .def_prop_ro("pushed_rounds", &native_stream::number<&stream_decoder::pushed_rounds>)
      .def_prop_ro("pushed_bits", &native_stream::number<&stream_decoder::pushed_bits>)
      .def_prop_ro("windows", &native_stream::number<&stream_decoder::windows>)
      .def_prop_ro("head_detectors", &native_stream::number<&stream_decoder::head_detectors>)
      .def_prop_ro("body_detectors", &native_stream::number<&stream_decoder::body_detectors>)
      .def_prop_ro("tail_detectors", &native_stream::number<&stream_decoder::tail_detectors>)
      .def_prop_ro("num_observables", &native_stream::number<&stream_decoder::num_observables>)
      .def_prop_ro("description", &native_stream::description);
}

} // namespace cudaq_python

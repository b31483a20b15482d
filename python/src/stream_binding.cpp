// SPDX-License-Identifier: Apache-2.0
// Stream decoders for Python. No call holds the GIL while it decodes.
#include "bindings.h"
#include "threads.h"

#include <algorithm>
#include <chrono>
#include <cudaq/qec/decoding/stream.h>
#include <mutex>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace cudaq::qec::realtime;

namespace cudaq_python {
namespace {

template <class T>
using array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// The soft values and flags of a push.
struct values {
  array<const std::uint8_t> soft;
  std::uint64_t num_soft;
  std::uint32_t kind;
  array<const std::uint8_t> leakage;
  std::uint64_t num_leakage;

  bool is_empty() const { return num_soft == 0 && num_leakage == 0; }
  stream_values of() const {
    return {{soft.data(), soft.size()},
            num_soft,
            static_cast<soft_kind>(kind),
            {leakage.data(), leakage.size()},
            num_leakage};
  }
};

class native_stream {
  template <class Call>
  auto locked(const Call &call) {
    const gil_released released;
    if (is_parents())
      throw std::runtime_error("the stream was made before fork, and its threads are not in this process: make a new "
                               "one here, or start processes by spawn");
    const std::lock_guard lock(mutex_);
    const process_mark mark(in_call_);
    return call();
  }

public:
  native_stream(const std::string &decoder, const std::string &dem, std::uint64_t commit, std::uint64_t buffer,
                const std::string &rounds, std::size_t workers, const std::string &heralds,
                std::optional<std::string> readout) {
    const gil_released released;
    stream_result made = make_stream_decoder(dem, {.decoder = decoder,
                                                   .commit = commit,
                                                   .buffer = buffer,
                                                   .rounds = rounds,
                                                   .workers = workers,
                                                   .heralds = heralds,
                                                   .readout = std::move(readout)});
    if (!made)
      throw std::invalid_argument(made.error);
    stream_ = std::move(made.instance);
    max_bits_ = std::max<std::uint64_t>(64, (stream_->body_detectors() + 7) / 8 * 8);
    if (workers != 0 || decoder.find("race") != std::string::npos)
      threads_.set();
  }
  ~native_stream() {
    if (is_parents())
      static_cast<void>(stream_.release()); // its destructor would wait for threads that are not here
  }
  native_stream(const native_stream &) = delete;
  native_stream &operator=(const native_stream &) = delete;

  /// Packed bits. With workers it waits while the queue is full. Returns the status, and whether further rounds have
  /// become final since the last call that said so. After Ctrl-C the exception of Python is thrown, and the bits so far
  /// were taken.
  std::tuple<int, bool> push(array<const std::uint8_t> bits, std::uint64_t count, const values &known) {
    return locked([&] {
      // With a table all at once, also without values: if some are missing, nothing is taken.
      const bool in_parts = known.is_empty() && stream_->values_info() == stream_values_info{};
      const decode_status status = in_parts ? push_all({bits.data(), bits.size()}, count)
                                            : push_with({bits.data(), bits.size()}, count, known.of());
      const stream_progress now = stream_->poll();
      const bool is_news = now.committed_rounds != seen_rounds_;
      seen_rounds_ = now.committed_rounds;
      return std::tuple(static_cast<int>(status != decode_status::ok ? status : now.status), is_news);
    });
  }
  /// Returns after all rounds are final. After Ctrl-C before that: as push; the tail was taken, so the next call only
  /// waits.
  int finish(array<const std::uint8_t> bits, std::uint64_t count, const values &known) {
    return locked([&] {
      if (!is_tail_taken_)
        if (const decode_status status = stream_->finish({bits.data(), bits.size()}, count, known.of());
            status != decode_status::ok)
          return static_cast<int>(status);
      is_tail_taken_ = true;
      const decode_status status = wait_final(); // throws after Ctrl-C
      is_tail_taken_ = false;
      return static_cast<int>(status);
    });
  }
  void reset() {
    locked([&] {
      stream_->reset();
      seen_rounds_ = 0;
      is_tail_taken_ = false;
    });
  }
  /// Copies the observables, and returns the rounds that they belong to.
  std::uint64_t observables(array<std::uint8_t> out) {
    return locked([&] {
      if (out.size() != (stream_->num_observables() + 7) / 8)
        throw std::invalid_argument("the array does not fit the observables");
      return stream_->poll({out.data(), out.size()}).committed_rounds;
    });
  }
  /// A number of the stream or of its model.
  template <auto Number>
  std::uint64_t number() {
    return locked([&] { return (*stream_.*Number)(); });
  }
  std::string fault() {
    return locked([&] { return std::string(stream_->fault()); });
  }
  std::string description() const { return stream_->description(); }
  /// As stream_values_info: of a repetition and others, soft values and then flags; and the kinds.
  std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t> values_info() const {
    const stream_values_info of = stream_->values_info();
    return {of.body_soft, of.other_soft, of.body_leakage, of.other_leakage, of.kinds};
  }

private:
  /// A parent's threads use the stream, or one of them has kept the lock.
  bool is_parents() const { return threads_.is_parent() || in_call_.is_parent(); }
  /// Between two looks at Python's signals.
  static std::chrono::steady_clock::time_point soon() {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(signal_watch::kPause_ms);
  }

  decode_status wait_final() {
    signal_watch signals;
    for (;;) {
      const stream_progress now = stream_->wait_committed(UINT64_MAX, soon());
      if (now.is_final || now.status != decode_status::ok)
        return now.status;
      signals.check();
    }
  }

  /// In parts, so that a long push sees Ctrl-C; in smaller ones if the queue of the workers never takes so many bits.
  decode_status push_all(std::span<const std::uint8_t> bits, std::uint64_t count) {
    signal_watch signals;
    for (;; signals.check()) {
      // Before push: the workers may make all rounds final after it, and then nothing more would come.
      const std::uint64_t committed = stream_->committed_rounds();
      const std::uint64_t part = std::min(count, max_bits_);
      const decode_status status = stream_->push(bits, part);
      if (status == decode_status::not_supported && part > 8) {
        max_bits_ = (part + 8) / 16 * 8; // whole bytes
        continue;
      }
      if (status == decode_status::busy) {
        stream_->wait_committed(committed + 1, soon());
        continue;
      }
      if (status != decode_status::ok || part == count)
        return status;
      bits = bits.subspan(part / 8);
      count -= part;
    }
  }

  /// All at once: the stream knows which values belong to which bits. Waits as push_all.
  decode_status push_with(std::span<const std::uint8_t> bits, std::uint64_t count, const stream_values &known) {
    signal_watch signals;
    for (;; signals.check()) {
      const std::uint64_t committed = stream_->committed_rounds();
      const decode_status status = stream_->push(bits, count, known);
      if (status != decode_status::busy)
        return status;
      stream_->wait_committed(committed + 1, soon());
    }
  }

  call_mutex mutex_;
  process_of_threads threads_, in_call_;
  std::unique_ptr<stream_decoder> stream_;
  std::uint64_t seen_rounds_ = 0; ///< final at the last push
  bool is_tail_taken_ = false;    ///< by a finish() that Ctrl-C has ended
  std::uint64_t max_bits_ = 8;    ///< of one push of the library: about a repetition; whole bytes
};

} // namespace

void bind_stream(nb::module_ &m) {
  nb::class_<values>(m, "StreamValues")
      .def(
          nb::init<array<const std::uint8_t>, std::uint64_t, std::uint32_t, array<const std::uint8_t>, std::uint64_t>(),
          nb::arg("soft"), nb::arg("num_soft"), nb::arg("kind"), nb::arg("leakage"), nb::arg("num_leakage"));
  nb::class_<native_stream>(m, "NativeStream")
      .def(nb::init<const std::string &, const std::string &, std::uint64_t, std::uint64_t, const std::string &,
                    std::size_t, const std::string &, std::optional<std::string>>(),
           nb::arg("decoder"), nb::arg("dem"), nb::arg("commit"), nb::arg("buffer"), nb::arg("rounds"),
           nb::arg("workers"), nb::arg("heralds"), nb::arg("readout").none())
      .def("push", &native_stream::push, nb::arg("bits"), nb::arg("count"), nb::arg("known"))
      .def("finish", &native_stream::finish, nb::arg("bits"), nb::arg("count"), nb::arg("known"))
      .def_prop_ro("values_info", &native_stream::values_info)
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
      .def_prop_ro("fault", &native_stream::fault)
      .def_prop_ro("description", &native_stream::description);
}

} // namespace cudaq_python

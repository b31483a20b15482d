// SPDX-License-Identifier: Apache-2.0
// Decoders for Python. A decoder of the library belongs to one thread at a time, so an object has one for each thread
// of a batch, and a lock. No call holds the GIL while it decodes.
#include "bindings.h"
#include "threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <cudaq/qec/decoding/heralds.h>
#include <cudaq/qec/decoding/readout.h>
#include <limits>
#include <mutex>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <new>
#include <optional>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <tuple>

namespace nb = nanobind;
using namespace cudaq::qec::realtime;

namespace cudaq_python {
namespace {

template <class T, int Dimensions>
using array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

/// Records of an error (uint64) and its probability (float64) as bytes.
using flag_bytes = array<const std::uint8_t, 1>;
/// A copy, with the GIL: while a shot is decoded without it, another thread may write into the caller's array. That may
/// be at any address.
std::vector<error_probability> flags_of(const flag_bytes &bytes) {
  std::vector<error_probability> flags(bytes.size() / sizeof(error_probability));
  if (!flags.empty())
    std::memcpy(flags.data(), bytes.data(), flags.size() * sizeof(error_probability));
  return flags;
}

class native_decoder {
public:
  native_decoder(std::string name, std::string dem, std::optional<std::string> heralds,
                 const std::optional<std::string> &readout)
      : name_(std::move(name)), dem_(std::move(dem)), heralds_(std::move(heralds)) {
    const gil_released released;
    made_ = make_first();
    if (readout) {
      readout_table_result table = read_readout_table(*readout, dem_);
      if (!table)
        throw std::invalid_argument("readout: " + table.error);
      if (const std::string refusal = refuses_readout(first(), *table.instance); !refusal.empty())
        throw std::invalid_argument("readout: " + refusal);
      readout_ = std::move(table.instance);
    }
    if (name_.find("race") != std::string::npos) // its members are threads, also as the inner decoder of windows
      threads_.set();
  }
  ~native_decoder() {
    if (is_parents())
      static_cast<void>(made_.release()); // its destructor would wait for threads that are not here
  }
  native_decoder(const native_decoder &) = delete;
  native_decoder &operator=(const native_decoder &) = delete;

  // What does not change is read without the lock.
  std::size_t num_detectors() const { return first().num_detectors(); }
  std::size_t num_observables() const { return first().num_observables(); }
  std::size_t event_bytes() const { return first().event_bytes(); }
  std::size_t observable_bytes() const { return first().observable_bytes(); }
  std::string name() const { return first().name(); }
  bool gives_edges() const { return first().gives_edges(); }
  std::uint64_t num_errors() const { return first().num_errors(); }
  bool obeys_deadline() const { return first().obeys_deadline(); }
  /// Why shots cannot replace probabilities; "" if they can.
  std::string refuses_flags() const {
    const char *const text = first().refuses_probabilities();
    return text != nullptr ? text : "";
  }
  /// The same for gaps of observables.
  std::string refuses_gaps() const {
    const char *const text = first().refuses_gaps();
    return text != nullptr ? text : "";
  }

  std::uint64_t num_measurements() const { return readout_ ? readout_->num_measurements() : 0; }
  std::uint64_t num_flags() const { return readout_ ? readout_->num_flags() : 0; }

  /// The records of `flags` and those of the readout of the shot, as bytes: what decode takes. Only with a table.
  nb::bytes with_readout(flag_bytes flags, array<const std::uint8_t, 1> soft, std::uint32_t kind,
                         array<const std::uint8_t, 1> leakage) const {
    std::vector<error_probability> list = flags_of(flags), of_readout;
    std::string fault;
    if (readout_->list_of(readout_of(soft.data(), soft.size(), kind, leakage.data(), leakage.size()), of_readout,
                          fault) != decode_status::ok)
      throw std::invalid_argument(fault);
    list.insert(list.end(), of_readout.begin(), of_readout.end());
    return nb::bytes(list.data(), list.size() * sizeof list[0]);
  }

  /// Of all decodes that had a deadline: met, missed, and late ones of the missed.
  std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> deadlines() {
    renew_after_fork();
    const gil_released released;
    const locked_instances locked(*this);
    deadline_counts all;
    for (const auto &one : locked.all)
      all += one->deadlines();
    return {all.met, all.missed, all.late};
  }

  /// Of a race: its members, and how many answers each has given.
  std::vector<std::tuple<std::string, std::uint64_t>> wins() {
    renew_after_fork();
    const gil_released released;
    const locked_instances locked(*this);
    std::vector<std::tuple<std::string, std::uint64_t>> all;
    for (const auto &one : locked.all) {
      const auto more = one->wins();
      for (std::size_t k = 0; k < more.size(); ++k)
        if (k == all.size())
          all.emplace_back(more[k].first, more[k].second);
        else
          std::get<1>(all[k]) += more[k].second;
    }
    return all;
  }

  /// Of a race: decodes of its members that were internal errors, and what was wrong in one of the last.
  std::tuple<std::uint64_t, std::string> member_faults() {
    renew_after_fork();
    const gil_released released;
    const locked_instances locked(*this);
    std::tuple<std::uint64_t, std::string> all;
    for (const auto &one : locked.all)
      if (const std::uint64_t faults = one->member_faults(); faults != 0) {
        std::get<0>(all) += faults;
        std::get<1>(all) = one->fault();
      }
    return all;
  }

  /// One shot: its status, its weight if `weigh` is set, else NaN, whether there is a solution, whether it is late, and
  /// decoder::fault(); the observables go to `out`. `deadline_us`: from now; 0: none. `gaps`: room for those of the
  /// observables; empty: not wanted.
  std::tuple<int, double, bool, bool, std::string> decode(array<const std::uint64_t, 1> events,
                                                          array<std::uint8_t, 1> out, bool weigh, double deadline_us,
                                                          flag_bytes flags, array<double, 1> gaps) {
    const std::vector<error_probability> of_shot = flags_of(flags);
    renew_after_fork();
    const gil_released released;
    // Before the wait for other calls, which is a part of the time.
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const locked_instances locked(*this);
    decode_details details{.gaps = {gaps.data(), gaps.size()}};
    decoder &with = first();
    const bool timed = deadline_us != 0;
    if (timed) {
      details.control.deadline_ns =
          static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) +
          static_cast<std::uint64_t>(deadline_us * 1000);
    }
    const std::span<const std::uint64_t> fired(events.data(), events.size());
    const std::span<std::uint8_t> observables(out.data(), out.size());
    const decode_status status =
        with.decode(fired, observables, of_shot, weigh || timed || gaps.size() != 0 ? &details : nullptr);
    return {static_cast<int>(status), weigh ? details.weight : std::numeric_limits<double>::quiet_NaN(),
            with.has_solution(), with.is_late(), fault_of(status, with)};
  }

  /// One shot without anything else: int64 indices of events in, uint8 observables out, 0 or 1. None after the status
  /// ok. Else its status, whether there is a solution, and decoder::fault(). False: nothing was decoded, because the
  /// arrays want another look.
  nb::object decode_plain(array<const std::int64_t, 1> events, array<std::uint8_t, 1> out) {
    // As indices, bits would have some twice.
    const auto is_bit = [](std::int64_t event) { return event == 0 || event == 1; };
    const std::span<const std::int64_t> given(events.data(), events.size());
    if (out.size() != num_observables() || (given.size() == num_detectors() && std::ranges::all_of(given, is_bit)) ||
        std::ranges::any_of(given, [](std::int64_t event) { return event < 0; }))
      return nb::bool_(false);
    renew_after_fork();
    decode_status status{};
    bool has_solution = false;
    std::string fault;
    {
      const gil_released released;
      const locked_instances locked(*this);
      packed_.resize(observable_bytes());
      status = first().decode({reinterpret_cast<const std::uint64_t *>(given.data()), given.size()}, packed_);
      has_solution = first().has_solution();
      fault = fault_of(status, first());
      for (std::size_t k = 0; k < out.size(); ++k)
        out.data()[k] = packed_[k / 8] >> (k % 8) & 1;
    }
    if (status == decode_status::ok)
      return nb::none();
    return nb::make_tuple(static_cast<int>(status), has_solution, fault);
  }

  /// The errors of one shot go to `out`. Returns the status, their count, and decoder::fault().
  std::tuple<int, std::size_t, std::string> decode_errors(array<const std::uint64_t, 1> events,
                                                          array<std::uint64_t, 1> out, flag_bytes flags) {
    const std::vector<error_probability> of_shot = flags_of(flags);
    renew_after_fork();
    const gil_released released;
    const locked_instances locked(*this);
    std::vector<std::uint8_t> observables(observable_bytes());
    decode_details details;
    details.errors = {out.data(), out.size()};
    const decode_status status = first().decode({events.data(), events.size()}, observables, of_shot, &details);
    return {static_cast<int>(status), details.num_errors, fault_of(status, first())};
  }

  /// The edges of one shot go to `out`: rows of two detectors, -1 for the boundary. Returns the status, their count,
  /// and decoder::fault().
  std::tuple<int, std::size_t, std::string> decode_edges(array<const std::uint64_t, 1> events,
                                                         array<std::int64_t, 2> out, flag_bytes flags) {
    const std::vector<error_probability> of_shot = flags_of(flags);
    renew_after_fork();
    const gil_released released;
    const locked_instances locked(*this);
    std::vector<correction_edge> edges(out.shape(0));
    std::vector<std::uint8_t> observables(observable_bytes());
    decode_details details;
    details.edges = edges;
    const decode_status status = first().decode({events.data(), events.size()}, observables, of_shot, &details);
    for (std::size_t i = 0; i < details.num_edges; ++i) {
      out.data()[2 * i] = static_cast<std::int64_t>(edges[i].first);
      out.data()[2 * i + 1] = edges[i].second == kBoundary ? -1 : static_cast<std::int64_t>(edges[i].second);
    }
    return {static_cast<int>(status), details.num_edges, fault_of(status, first())};
  }

  /// Rows of bits in, rows of bits, and of each row its status, whether there is a solution, and whether it is late (0
  /// or 1) out. `weights`: of each row its weight, or empty. `corrections`: rows of 0 that get 1 at each error of the
  /// correction, or empty. `threads` threads decode a part of the rows each. `flags`: of all rows, one after another;
  /// row i has those before the record ends_of_flags[i]; empty: none has any. `soft`, `leakage`: rows of the readout,
  /// with a table; else empty. `gaps`: rows that get the gaps of the observables, or empty. Returns the first row whose
  /// status has a fault, and decoder::fault(); without one the number of rows, and "". After Ctrl-C the threads end
  /// after their shots, and the exception of Python is thrown.
  std::tuple<std::size_t, std::string> decode_batch(array<const std::uint8_t, 2> events, array<std::uint8_t, 2> out,
                                                    array<std::int32_t, 1> statuses, array<std::uint8_t, 1> solved,
                                                    array<std::uint8_t, 1> late, array<double, 1> weights,
                                                    array<std::uint8_t, 2> corrections, std::size_t threads,
                                                    flag_bytes flags, array<const std::uint64_t, 1> ends_of_flags,
                                                    array<const std::uint8_t, 2> soft, std::uint32_t kind,
                                                    array<const std::uint8_t, 2> leakage, array<double, 2> gaps) {
    const std::size_t shots = events.shape(0);
    const shot_probabilities all_flags(reinterpret_cast<const error_probability *>(flags.data()),
                                       flags.size() / sizeof(error_probability)); // no array of the caller
    if (events.shape(1) != event_bytes() || out.shape(0) != shots || out.shape(1) != observable_bytes() ||
        statuses.shape(0) != shots || solved.shape(0) != shots || late.shape(0) != shots ||
        (weights.size() != 0 && weights.size() != shots) ||
        (corrections.size() != 0 && (corrections.shape(0) != shots || corrections.shape(1) != num_errors())) ||
        (gaps.size() != 0 && (gaps.shape(0) != shots || gaps.shape(1) != num_observables())) ||
        (readout_ && (soft.shape(0) != shots || leakage.shape(0) != shots)) ||
        (ends_of_flags.size() != 0 &&
         (ends_of_flags.size() != shots || ends_of_flags.data()[shots - 1] != all_flags.size())))
      throw std::invalid_argument("the arrays do not fit the decoder and each other");
    renew_after_fork();
    const gil_released released;
    const locked_instances locked(*this);
    threads = std::max<std::size_t>(1, std::min(threads, shots));
    while (locked.all.size() < threads)
      locked.all.push_back(make());
    std::vector<std::tuple<std::size_t, std::string>> faults(threads, {shots, ""});
    {
      std::atomic<bool> stop = false;
      std::counting_semaphore<> ended(0);
      std::vector<std::jthread> running;
      struct stop_at_end {
        std::atomic<bool> &stop;
        ~stop_at_end() { stop = true; } // before the threads are joined
      } const stops{stop};
      signal_watch signals; // for the calling thread
      for (std::size_t t = 0; t < threads; ++t) {
        const std::size_t begin = shots * t / threads, count = shots * (t + 1) / threads - begin;
        const bool is_caller = t + 1 == threads;
        const auto part = [&, t, begin, count, is_caller] {
          std::vector<std::uint64_t> errors(corrections.size() != 0 ? num_errors() : 0);
          std::vector<error_probability> of_readout, all_of_shot;
          std::string fault;
          for (std::size_t i = begin; i < begin + count && !stop.load(std::memory_order_relaxed); ++i) {
            if (is_caller)
              signals.check();
            shot_probabilities of_shot;
            if (ends_of_flags.size() != 0) {
              const std::uint64_t first_flag = i == 0 ? 0 : ends_of_flags.data()[i - 1];
              of_shot = all_flags.subspan(first_flag, ends_of_flags.data()[i] - first_flag);
            }
            const std::size_t num_gaps = gaps.size() != 0 ? num_observables() : 0;
            decode_details details{.errors = errors, .gaps = {gaps.data() + i * num_gaps, num_gaps}};
            std::ranges::fill(details.gaps, std::numeric_limits<double>::quiet_NaN());
            const bool is_detailed = weights.size() != 0 || !errors.empty() || num_gaps != 0;
            decode_status status = decode_status::ok;
            if (readout_)
              try {
                status = readout_->list_of(readout_of(soft.data() + i * soft.shape(1), soft.shape(1), kind,
                                                      leakage.data() + i * leakage.shape(1), leakage.shape(1)),
                                           of_readout, fault);
                all_of_shot.assign(of_shot.begin(), of_shot.end());
                all_of_shot.insert(all_of_shot.end(), of_readout.begin(), of_readout.end());
                of_shot = all_of_shot;
              } catch (const std::bad_alloc &) { // no caller catches it in a thread of the batch
                status = decode_status::internal_error;
                fault = "out of memory";
              }
            if (status != decode_status::ok) { // of the readout
              statuses.data()[i] = static_cast<std::int32_t>(status);
              solved.data()[i] = late.data()[i] = 0;
              if (weights.size() != 0)
                weights.data()[i] = details.weight;
              if (std::get<0>(faults[t]) == shots)
                faults[t] = {i, fault};
              continue;
            }
            status = locked.all[t]->decode_bits({events.data() + i * event_bytes(), event_bytes()},
                                                {out.data() + i * observable_bytes(), observable_bytes()}, of_shot,
                                                is_detailed ? &details : nullptr);
            if (weights.size() != 0)
              weights.data()[i] = details.weight;
            for (std::size_t k = 0; k < details.num_errors && !errors.empty(); ++k)
              corrections.data()[i * errors.size() + errors[k]] = 1;
            statuses.data()[i] = static_cast<std::int32_t>(status);
            solved.data()[i] = locked.all[t]->has_solution() ? 1 : 0;
            late.data()[i] = locked.all[t]->is_late() ? 1 : 0;
            if (has_fault(status) && std::get<0>(faults[t]) == shots)
              faults[t] = {i, locked.all[t]->fault()};
          }
          ended.release();
        };
        try {
          if (is_caller)
            part();
          else
            running.emplace_back(part);
        } catch (const std::system_error &failure) {
          throw std::runtime_error("threads is " + std::to_string(threads) + ", but the system starts no more than " +
                                   std::to_string(t) + " (" + failure.what() + "): use fewer");
        }
      }
      for (std::size_t t = 0; t < threads; ++t)
        while (!ended.try_acquire_for(std::chrono::milliseconds(signal_watch::kPause_ms)))
          signals.check();
    }
    return *std::min_element(faults.begin(), faults.end());
  }

private:
  struct instances {
    call_mutex mutex;
    std::vector<std::unique_ptr<decoder>> all; ///< one for each thread of a batch; with the lock
    decoder *first = nullptr;                  ///< of `all`, which may move while it grows
  };
  /// Holds the lock for its lifetime.
  struct locked_instances {
    explicit locked_instances(native_decoder &of) : locked(of.made_->mutex), mark(of.in_call_), all(of.made_->all) {}
    const std::lock_guard<call_mutex> locked;
    const process_mark mark;
    std::vector<std::unique_ptr<decoder>> &all;
  };

  /// A parent's threads use the decoders, or one of them has kept the lock.
  bool is_parents() const { return threads_.is_parent() || in_call_.is_parent(); }
  decoder &first() const { return *made_->first; }
  /// With the GIL, before each call that uses the lock. A child of fork makes its decoders again.
  void renew_after_fork() {
    if (!is_parents())
      return;
    std::unique_ptr<instances> fresh = make_first();
    static_cast<void>(made_.release()); // as in the destructor
    made_ = std::move(fresh);
    in_call_.clear();
    if (threads_.is_parent())
      threads_.set();
  }
  static shot_readout readout_of(const std::uint8_t *soft, std::size_t soft_bytes, std::uint32_t kind,
                                 const std::uint8_t *leakage, std::size_t leakage_bytes) {
    return {.soft = {soft, soft_bytes}, .kind = static_cast<soft_kind>(kind), .leakage = {leakage, leakage_bytes}};
  }
  static bool has_fault(decode_status status) {
    return status == decode_status::internal_error || status == decode_status::bad_probability;
  }
  static std::string fault_of(decode_status status, const decoder &with) {
    return has_fault(status) ? with.fault() : "";
  }

  std::unique_ptr<instances> make_first() const {
    auto made = std::make_unique<instances>();
    made->all.push_back(make());
    made->first = made->all[0].get();
    return made;
  }
  std::unique_ptr<decoder> make() const {
    decoder_result made = heralds_ ? make_decoder(name_, dem_, *heralds_) : make_decoder(name_, dem_);
    if (!made)
      throw std::invalid_argument(made.error);
    return std::move(made.instance);
  }

  std::string name_, dem_;
  std::optional<std::string> heralds_;           ///< the text of a file of heralds
  std::unique_ptr<const readout_table> readout_; ///< null: none
  std::unique_ptr<instances> made_;
  std::vector<std::uint8_t> packed_; ///< of decode_plain; with the lock
  process_of_threads threads_, in_call_;
};

} // namespace

void bind_decoder(nb::module_ &m) {
  m.def("decoder_names", &decoder_names, "Names of the decoders of this build.");
  m.def("pymatching_version", &pymatching_version, "Version of the PyMatching inside; '' without it.");
  m.def("status_text", [](int status) { return decode_status_text(static_cast<decode_status>(status)); });
  nb::class_<native_decoder>(m, "NativeDecoder")
      .def(nb::init<std::string, std::string, std::optional<std::string>, std::optional<std::string>>(),
           nb::arg("name"), nb::arg("dem"), nb::arg("heralds").none(), nb::arg("readout").none() = nb::none())
      .def_prop_ro("num_detectors", &native_decoder::num_detectors)
      .def_prop_ro("num_observables", &native_decoder::num_observables)
      .def_prop_ro("event_bytes", &native_decoder::event_bytes)
      .def_prop_ro("observable_bytes", &native_decoder::observable_bytes)
      .def_prop_ro("name", &native_decoder::name)
      .def_prop_ro("gives_edges", &native_decoder::gives_edges)
      .def_prop_ro("num_errors", &native_decoder::num_errors)
      .def_prop_ro("obeys_deadline", &native_decoder::obeys_deadline)
      .def_prop_ro("refuses_flags", &native_decoder::refuses_flags)
      .def_prop_ro("refuses_gaps", &native_decoder::refuses_gaps)
      .def_prop_ro("num_measurements", &native_decoder::num_measurements)
      .def_prop_ro("num_flags", &native_decoder::num_flags)
      .def("with_readout", &native_decoder::with_readout, nb::arg("flags"), nb::arg("soft"), nb::arg("kind"),
           nb::arg("leakage"))
      .def_prop_ro("deadlines", &native_decoder::deadlines)
      .def_prop_ro("wins", &native_decoder::wins)
      .def_prop_ro("member_faults", &native_decoder::member_faults)
      .def("decode", &native_decoder::decode, nb::arg("events"), nb::arg("out"), nb::arg("weigh"),
           nb::arg("deadline_us"), nb::arg("flags"), nb::arg("gaps"))
      .def("decode_plain", &native_decoder::decode_plain, nb::arg("events"), nb::arg("out"))
      .def("decode_errors", &native_decoder::decode_errors, nb::arg("events"), nb::arg("out"), nb::arg("flags"))
      .def("decode_edges", &native_decoder::decode_edges, nb::arg("events"), nb::arg("out"), nb::arg("flags"))
      .def("decode_batch", &native_decoder::decode_batch, nb::arg("events"), nb::arg("out"), nb::arg("statuses"),
           nb::arg("solved"), nb::arg("late"), nb::arg("weights"), nb::arg("corrections"), nb::arg("threads"),
           nb::arg("flags"), nb::arg("ends_of_flags"), nb::arg("soft"), nb::arg("kind"), nb::arg("leakage"),
           nb::arg("gaps"));
}

} // namespace cudaq_python

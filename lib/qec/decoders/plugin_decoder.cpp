// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/decoder_plugin.h"

#include "lib/base/callback.h"
#include "lib/base/library_file.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/error_form.h"
#include "lib/qec/decoders/plugin_model.h"
#include "lib/qec/decoders/replaced_errors.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

namespace rt = cudaq::realtime::detail;

static_assert(static_cast<std::int32_t>(decode_status::ok) == CUDAQ_QEC_DECODE_OK);
static_assert(static_cast<std::int32_t>(decode_status::no_solution) == CUDAQ_QEC_DECODE_NO_SOLUTION);
static_assert(static_cast<std::int32_t>(decode_status::internal_error) == CUDAQ_QEC_DECODE_INTERNAL_ERROR);
static_assert(static_cast<std::int32_t>(decode_status::not_supported) == CUDAQ_QEC_DECODE_NOT_SUPPORTED);
static_assert(static_cast<std::int32_t>(decode_status::not_converged) == CUDAQ_QEC_DECODE_NOT_CONVERGED);
static_assert(static_cast<std::int32_t>(decode_status::deadline) == CUDAQ_QEC_DECODE_DEADLINE);
static_assert(static_cast<std::int32_t>(decode_status::cancelled) == CUDAQ_QEC_DECODE_CANCELLED);
static_assert(static_cast<int>(error_form::joined) == CUDAQ_QEC_ERRORS_JOINED);
static_assert(static_cast<int>(error_form::components) == CUDAQ_QEC_ERRORS_COMPONENTS);
static_assert(static_cast<int>(error_form::whole) == CUDAQ_QEC_ERRORS_WHOLE);
static_assert(kNoDeadline == UINT64_MAX);
static_assert(sizeof(correction_edge) == sizeof(cudaq_qec_correction_edge_t) && kBoundary == CUDAQ_QEC_BOUNDARY);
static_assert(sizeof(error_probability) == sizeof(cudaq_qec_error_probability_t) &&
              offsetof(error_probability, probability) == offsetof(cudaq_qec_error_probability_t, probability));

/// A loaded shared library. The last decoder that holds it unloads it.
struct library_closer {
  void operator()(void *handle) const noexcept { dlclose(handle); }
};
using loaded_library = std::shared_ptr<void>;

/// The table of a plug-in, as far as it has been checked.
struct loaded_plugin {
  loaded_library library;
  const cudaq_qec_decoder_plugin_t *table = nullptr;

  /// Whether the table has an optional member. A table of an earlier header ends before it.
  template <class Function>
  [[nodiscard]] bool has(Function cudaq_qec_decoder_plugin_t::*member) const noexcept {
    return ends_after(&(table->*member)) && table->*member != nullptr;
  }
  [[nodiscard]] std::uint32_t errors() const noexcept {
    return ends_after(&table->error_form) ? table->error_form : 0U; // CUDAQ_QEC_ERRORS_JOINED
  }

private:
  template <class Member>
  [[nodiscard]] bool ends_after(const Member *member) const noexcept {
    const auto *const begin = reinterpret_cast<const unsigned char *>(table);
    const auto *const end = reinterpret_cast<const unsigned char *>(member + 1);
    return table->struct_size >= static_cast<std::size_t>(end - begin);
  }
};

/// Texts of a plug-in may have any bytes; callers show them, in Python and JSON as UTF-8. `kept`: beside what is
/// printable in ASCII.
void show_as_ascii(std::span<char> text, char kept) noexcept {
  std::ranges::replace_if(
      text, [kept](char c) { return c != kept && (c < ' ' || c > '~'); }, '?');
}
std::string shown(std::string text) {
  show_as_ascii(text, '\n');
  return text;
}

constexpr char kOwner[] = "decoder plug-in"; ///< of a function that ends its thread, and so the process

/// Calls a function of a plug-in; `name` for the reason if it throws.
template <class Call>
expected<> call_plugin(const char *name, Call &&call) {
  try {
    cudaq::realtime::detail::must_return(call, kOwner, name);
    return {};
  } catch (const std::exception &e) {
    return reason(std::string(name) + " threw an exception: " + shown(e.what()));
  } catch (...) {
    return reason(std::string(name) + " threw an exception that is no std::exception");
  }
}

/// Frees a decoder of a plug-in.
struct decoder_closer {
  void (*destroy)(void *decoder);
  void operator()(void *decoder) const noexcept {
    try {
      cudaq::realtime::detail::must_return([&] { destroy(decoder); }, kOwner, "destroy");
    } catch (...) { // as of call_plugin, but no caller reads the text
    }
  }
};
using made_decoder = std::unique_ptr<void, decoder_closer>;

/// The libraries of relay-bp-gpu and model-gpu, which a build with CUDA has. The loader searches for them, as for all
/// libraries that this one needs.
constexpr std::string_view kRelayBpLibrary = "libcudaq-qec-relay-bp-gpu.so",
                           kModelLibrary = "libcudaq-qec-model-gpu.so";
bool is_gpu_library(std::string_view path) { return path == kRelayBpLibrary || path == kModelLibrary; }

/// A table must have one of the sizes of decoder_plugin.h.
expected<> check_table_size(std::size_t size) {
  using table = cudaq_qec_decoder_plugin_t;
  constexpr std::size_t kFirst = offsetof(table, edges); // each later header added one member
  constexpr std::array kSizes{kFirst,
                              offsetof(table, columns),
                              offsetof(table, decode_until),
                              offsetof(table, error_form),
                              offsetof(table, replace_probabilities),
                              sizeof(table)};
  if (std::ranges::find(kSizes, size) != kSizes.end())
    return {};
  const std::string has = "its table has " + std::to_string(size) + " bytes (struct_size), ";
  if (size < kFirst)
    return reason(has + "at least " + std::to_string(kFirst) + " are needed");
  if (size > sizeof(table))
    return reason(has + "this library knows " + std::to_string(sizeof(table)) +
                  ": set it with sizeof, and build the plug-in with the header of this version");
  return reason(has + "where no member ends: set it with sizeof");
}

/// The same file by a name that no other file of this folder has while it is loaded: "dir/x.so" becomes for example
/// "dir/././/x.so", with the bits of device and inode as "./" and ".//", each number closed by ".///".
std::string unique_name(const std::string &file, const struct stat &info) {
  const std::size_t folder = file.rfind('/') + 1;
  std::string name = file.substr(0, folder);
  for (std::uint64_t number : {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)}) {
    for (; number != 0; number >>= 1)
      name += (number & 1) != 0 ? ".//" : "./";
    name += ".///";
  }
  return name + file.substr(folder);
}

/// Opens the library that stands at the path now. dlopen compares names before it looks at the file, so for the name of
/// a loaded library it returns this one, also after another file has taken the place. By a new name it compares device
/// and inode: the same file is loaded once, another one is loaded beside it. A loaded file keeps its inode, so the name
/// is never that of an earlier file. The folder is the same: $ORIGIN, debuggers and dladdr find it.
/// Without a file there is no library, also if the one of this name is loaded: the program could not start again.
expected<void *> open_present_file(const std::string &file) {
  if (file.find('$') != std::string::npos && ::access(file.c_str(), F_OK) != 0)
    return rt::load_library(file); // $ORIGIN, $LIB and $PLATFORM are of the loader: only it knows the file
  const auto info = rt::check_library_file(file);
  if (info.failed())
    return info.reason();
  void *const loaded = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (loaded == nullptr)
    return rt::load_library(file);
  auto present = rt::load_library(unique_name(file, *info));
  dlclose(loaded);
  return present;
}

/// Loads a plug-in and checks its table.
expected<loaded_plugin> load(const std::string &path) {
  // RTLD_LOCAL: two plug-ins may have symbols of the same name. A path without / would be searched for by the loader.
  const std::string file = path.find('/') == std::string::npos && !is_gpu_library(path) ? "./" + path : path;
  const auto handle = is_gpu_library(path) ? rt::load_library(file) : open_present_file(file);
  if (handle.failed())
    return handle.reason();
  loaded_plugin plugin;
  plugin.library = loaded_library(*handle, library_closer{});
  void *const symbol = dlsym(*handle, "cudaq_qec_decoder_plugin_get");
  if (symbol == nullptr)
    return reason("it exports no function cudaq_qec_decoder_plugin_get, so it is no decoder plug-in");
  const auto entry = reinterpret_cast<decltype(&cudaq_qec_decoder_plugin_get)>(symbol);
  if (const expected<> result =
          call_plugin("cudaq_qec_decoder_plugin_get", [&] { plugin.table = entry(CUDAQ_QEC_DECODER_PLUGIN_VERSION); });
      result.failed())
    return result.reason();
  const cudaq_qec_decoder_plugin_t *const t = plugin.table;
  if (t == nullptr)
    return reason("it does not serve version " + std::to_string(CUDAQ_QEC_DECODER_PLUGIN_VERSION) +
                  " of the plug-in interface: build it with this version's decoder_plugin.h");
  if (t->version != CUDAQ_QEC_DECODER_PLUGIN_VERSION)
    return reason("it has version " + std::to_string(t->version) +
                  " of the plug-in interface, this library has version " +
                  std::to_string(CUDAQ_QEC_DECODER_PLUGIN_VERSION));
  if (const expected<> result = check_table_size(t->struct_size); result.failed())
    return result.reason();
  if (t->name == nullptr || t->create == nullptr || t->decode == nullptr || t->destroy == nullptr)
    return reason("name, create, decode or destroy is NULL in its table");
  if (plugin.errors() > CUDAQ_QEC_ERRORS_WHOLE)
    return reason("error_form " + std::to_string(plugin.errors()) + " of its table is not one of decoder_plugin.h");
  return plugin;
}

/// The solutions of a decoder are compared with their columns, also where the caller wants no errors, until this number
/// of them in a row were right.
constexpr std::uint64_t kCheckedSolutions = 100;

class plugin_decoder final : public decoder {
public:
  /// If this throws, the caller still has both, and must free `made` before it unloads the plug-in.
  plugin_decoder(loaded_plugin &&plugin, made_decoder &&made, const plugin_model &model)
      : decoder(model.num_detectors, model.num_observables),
        num_errors_(plugin.has(&cudaq_qec_decoder_plugin_t::columns) ? model.errors.rows() : 0),
        errors_(num_errors_ != 0 ? model.errors : flip_rows{}),
        weights_(model, num_errors_ != 0 && plugin.errors() == CUDAQ_QEC_ERRORS_WHOLE), columns_(num_errors_),
        odd_(model.num_detectors), flipped_(observable_bytes()), check_(model.errors.rows()),
        name_(shown(plugin.table->name) != plugin.table->name ? shown(plugin.table->name) : ""),
        plugin_(std::move(plugin)), made_(std::move(made)) {}

  const char *name() const noexcept override { return name_.empty() ? plugin_.table->name : name_.c_str(); }
  bool gives_edges() const noexcept override { return plugin_.has(&cudaq_qec_decoder_plugin_t::edges); }
  bool obeys_deadline() const noexcept override { return plugin_.has(&cudaq_qec_decoder_plugin_t::decode_until); }
  std::uint64_t num_errors() const noexcept override { return num_errors_; }
  const char *fault() const noexcept override { return fault_.data(); }
  const char *refuses_probabilities() const noexcept override {
    return plugin_.has(&cudaq_qec_decoder_plugin_t::replace_probabilities)
               ? nullptr
               : "this plug-in does not take probabilities of a shot: its table has no replace_probabilities";
  }

protected:
  decode_status replace_probabilities(shot_probabilities probabilities) noexcept override {
    fault_.front() = '\0';
    if (!check_.check(probabilities, 1, [](std::uint64_t) -> const char * { return nullptr; })) {
      std::snprintf(fault_.data(), fault_.size(), "%s", check_.fault());
      return decode_status::bad_probability;
    }
    if (const decode_status status = restore_if_needed(); status != decode_status::ok)
      return status;
    const auto *const list = reinterpret_cast<const cudaq_qec_error_probability_t *>(probabilities.data());
    is_replaced_ = must_restore_ = true;
    const decode_status status = set_probabilities(list, probabilities.size());
    is_replaced_ = status == decode_status::ok;
    return status;
  }

  void restore_probabilities() noexcept override {
    const std::array<char, 512> fault = fault_; // of the decode
    is_replaced_ = false;
    (void)restore_if_needed();
    fault_ = fault;
  }

  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    fault_.front() = '\0';
    if (!is_replaced_)
      if (const decode_status status = restore_if_needed(); status != decode_status::ok)
        return status;
    double weight = std::nan("");
    // A plug-in without observables may not get a null pointer that it could not add to.
    std::uint8_t none = 0;
    std::uint8_t *const bits = observables.empty() ? &none : observables.data();
    const decode_control control = details != nullptr ? details->control : decode_control{};
    const bool has_deadline = control.deadline_ns != kNoDeadline, can_be_cancelled = control.cancel != nullptr;
    const bool may_end = obeys_deadline() && (has_deadline || can_be_cancelled);
    const cudaq_qec_decode_control_t until{sizeof until, control.deadline_ns, control.cancel};
    const cudaq_qec_decoder_plugin_t &table = *plugin_.table;
    const char *const function = may_end ? "decode_until" : "decode";
    std::int32_t status = CUDAQ_QEC_DECODE_INTERNAL_ERROR;
    if (!returns(function, [&] {
          status = may_end ? table.decode_until(made_.get(), events.data(), events.size(), bits, &weight, &until)
                           : table.decode(made_.get(), events.data(), events.size(), bits, &weight);
        }))
      return decode_status::internal_error;
    if (status == CUDAQ_QEC_DECODE_NO_SOLUTION || status == CUDAQ_QEC_DECODE_NOT_CONVERGED)
      return static_cast<decode_status>(status);
    if (status == CUDAQ_QEC_DECODE_CANCELLED && may_end && can_be_cancelled)
      return decode_status::cancelled;
    const bool at_deadline = status == CUDAQ_QEC_DECODE_DEADLINE && may_end && has_deadline;
    if (at_deadline && std::isnan(weight))
      return decode_status::deadline;
    if (status == CUDAQ_QEC_DECODE_INTERNAL_ERROR)
      return broken("%s returned 5, its own internal error", function);
    if (status != CUDAQ_QEC_DECODE_OK && !at_deadline)
      return broken("%s returned %d, accepted: 0, 3, 5, 7%s%s", function, status,
                    may_end && has_deadline ? ", 9 (deadline)" : "", may_end && can_be_cancelled ? ", 10" : "");
    if (const unsigned used = num_observables() % 8; used != 0 && observables.back() >> used != 0)
      return broken("%s set the observable %llu, the model has %llu", function,
                    number(num_observables() +
                           static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(observables.back()) >> used))),
                    number(num_observables()));
    if (weight == HUGE_VAL || (weight < -kRounding && !weights_.can_be_negative() && !is_replaced_))
      return broken("%s gave the weight %g; %s", function, weight,
                    weight < 0 ? "without an error above 1/2 it is not below 0" : "it is a number, or NaN for none");
    if (details != nullptr) {
      details->weight = weight;
      details->has_solution = true;
    }
    const decode_status taken = take_correction(events, observables, weight, details);
    return taken == decode_status::ok ? static_cast<decode_status>(status) : taken;
  }

private:
  static constexpr double kRounding = 1e-6; ///< of a weight 0

  static unsigned long long number(std::uint64_t value) noexcept { return value; }

  /// Notes a promise that the plug-in broke, or what it does not take. Without memory of the heap.
  [[gnu::format(printf, 2, 3)]] decode_status broken(const char *format, ...) noexcept {
    const int begin = std::snprintf(fault_.data(), fault_.size(), "plug-in %.60s: ", name());
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(fault_.data() + begin, fault_.size() - static_cast<std::size_t>(begin), format, arguments);
    va_end(arguments);
    show_as_ascii(fault_, '\0');
    return decode_status::internal_error;
  }

  /// Whether the call of a function of the plug-in returned.
  template <class Call>
  bool returns(const char *function, Call &&call) noexcept {
    try {
      call();
      return true;
    } catch (const std::exception &e) {
      (void)broken("%s threw an exception: %s", function, e.what());
    } catch (...) {
      (void)broken("%s threw an exception that is no std::exception", function);
    }
    return false;
  }

  /// After a shot that replaced probabilities. If it fails, it is tried again before the next decode: no shot is
  /// decoded with the probabilities of another one.
  decode_status restore_if_needed() noexcept {
    const decode_status status = must_restore_ ? set_probabilities(nullptr, 0) : decode_status::ok;
    must_restore_ = status != decode_status::ok;
    return status;
  }

  decode_status set_probabilities(const cudaq_qec_error_probability_t *list, std::size_t size) noexcept {
    std::int32_t status = CUDAQ_QEC_DECODE_INTERNAL_ERROR;
    if (!returns("replace_probabilities",
                 [&] { status = plugin_.table->replace_probabilities(made_.get(), list, size); }))
      return decode_status::internal_error;
    if (status == CUDAQ_QEC_DECODE_NOT_SUPPORTED && size != 0) {
      (void)broken("it does not take one of the %zu probabilities of the shot", size);
      return decode_status::bad_probability;
    }
    if (status != CUDAQ_QEC_DECODE_OK)
      return broken("replace_probabilities returned %d for %zu errors, accepted: 0%s", status, size,
                    size != 0 ? ", 5, 6" : "");
    return decode_status::ok;
  }

  decode_status take_correction(std::span<const std::uint64_t> events, std::span<const std::uint8_t> observables,
                                double weight, decode_details *details) noexcept {
    if (details != nullptr && !details->edges.empty())
      if (const decode_status taken = take_edges(events, *details); taken != decode_status::ok)
        return taken;
    const bool wanted = details != nullptr && !details->errors.empty();
    if (num_errors_ == 0 || (!wanted && right_solutions_ == kCheckedSolutions))
      return decode_status::ok;
    const decode_status taken = take_errors(events, observables, weight, wanted ? details : nullptr);
    right_solutions_ = taken != decode_status::ok ? 0 : std::min(right_solutions_ + 1, kCheckedSolutions);
    return taken;
  }

  decode_status take_edges(std::span<const std::uint64_t> events, decode_details &details) noexcept {
    auto *const room = reinterpret_cast<cudaq_qec_correction_edge_t *>(details.edges.data());
    std::size_t count = 0;
    if (!returns("edges", [&] { count = plugin_.table->edges(made_.get(), room, details.edges.size()); }))
      return decode_status::internal_error;
    if (count > details.edges.size())
      return decode_status::buffer_too_small;
    const auto edges = details.edges.first(count);
    for (std::size_t k = 0; k < count; ++k)
      if (edges[k].first >= num_detectors() || (edges[k].second >= num_detectors() && edges[k].second != kBoundary))
        return broken("edges: edge %zu has the ends %llu and %llu, the model has %llu detectors", k,
                      number(edges[k].first), number(edges[k].second), number(num_detectors()));
    const auto each = [&](auto &&use) {
      for (const correction_edge &edge : edges) {
        use(edge.first);
        if (edge.second != kBoundary)
          use(edge.second);
      }
    };
    if (const std::uint64_t detector = first_difference(events, each); detector != kBoundary)
      return unexplained_event("edges", count, events, detector);
    details.num_edges = count;
    return decode_status::ok;
  }

  /// `details`: null if only the check is wanted.
  decode_status take_errors(std::span<const std::uint64_t> events, std::span<const std::uint8_t> observables,
                            double weight, decode_details *details) noexcept {
    const std::span<std::uint64_t> room = details != nullptr ? details->errors : std::span(columns_);
    std::size_t count = 0;
    if (!returns("columns", [&] { count = plugin_.table->columns(made_.get(), room.data(), room.size()); }))
      return decode_status::internal_error;
    if (count > num_errors_)
      return broken("columns returned %zu errors, the model has %llu", count, number(num_errors_));
    if (count > room.size())
      return decode_status::buffer_too_small;
    const auto errors = room.first(count);
    for (std::size_t k = 0; k < count; ++k) {
      if (errors[k] >= num_errors_)
        return broken("columns: number %zu is error %llu, the model has %llu", k, number(errors[k]),
                      number(num_errors_));
      if (k != 0 && errors[k] <= errors[k - 1])
        return broken("columns: error %llu comes after error %llu; they must ascend", number(errors[k]),
                      number(errors[k - 1]));
    }
    const auto each = [&](auto &&use) {
      for (const std::uint64_t error : errors)
        for (const std::uint64_t detector : errors_.detectors(error))
          use(detector);
    };
    if (const std::uint64_t detector = first_difference(events, each); detector != kBoundary)
      return unexplained_event("columns", count, events, detector);
    std::ranges::copy(observables, flipped_.begin());
    for (const std::uint64_t error : errors)
      for (const std::uint64_t k : errors_.observables(error))
        flipped_[k / 8] = static_cast<std::uint8_t>(flipped_[k / 8] ^ 1U << k % 8);
    for (std::uint64_t k = 0; k < num_observables(); ++k)
      if ((flipped_[k / 8] >> k % 8 & 1) != 0)
        return broken("columns: its errors (%zu, the first is %llu) %s observable %llu; the answer has it as %d", count,
                      number(count != 0 ? errors.front() : 0),
                      (observables[k / 8] >> k % 8 & 1) != 0 ? "do not flip" : "flip", number(k),
                      observables[k / 8] >> k % 8 & 1);
    if (weights_.are_compared() && !is_replaced_)
      if (const auto [low, high] = weights_.sums(errors); weight < low || weight > high) // not if it is NaN
        return broken("the weight is %g; its errors (%zu) have %g to %g together", weight, count, low, high);
    if (details != nullptr)
      details->num_errors = count;
    return decode_status::ok;
  }

  /// `each` calls a function with each detector that an error of the correction flips. Returns the first detector that
  /// is flipped and no event, or an event and not flipped; kBoundary: none.
  template <class Each>
  std::uint64_t first_difference(std::span<const std::uint64_t> events, Each &&each) noexcept {
    const auto flip = [this](std::uint64_t detector) { odd_[detector] ^= 1; };
    std::uint64_t first = kBoundary;
    const auto compare = [&](std::uint64_t detector) {
      if (odd_[detector] != 0)
        first = std::min(first, detector);
      odd_[detector] = 0;
    };
    each(flip);
    std::ranges::for_each(events, flip);
    each(compare);
    std::ranges::for_each(events, compare);
    return first;
  }

  decode_status unexplained_event(const char *function, std::size_t count, std::span<const std::uint64_t> events,
                                  std::uint64_t detector) noexcept {
    const bool is_event = std::ranges::binary_search(events, detector);
    return broken("%s: its errors (%zu) %s detector %llu, which is %s event of the shot", function, count,
                  is_event ? "do not flip" : "flip", number(detector), is_event ? "an" : "no");
  }

  const std::uint64_t num_errors_; ///< 0 without `columns`
  const flip_rows errors_;         ///< of the model, if there are `columns`
  const plugin_weights weights_;
  std::vector<std::uint64_t> columns_; ///< room for those that the caller does not want
  std::vector<std::uint8_t> odd_;      ///< of each detector; all 0 between two checks
  std::vector<std::uint8_t> flipped_;  ///< observables
  std::uint64_t right_solutions_ = 0;  ///< in a row, at most kCheckedSolutions
  replaced_errors check_;
  bool is_replaced_ = false;  ///< the shot replaces probabilities
  bool must_restore_ = false; ///< the plug-in has probabilities of a shot
  std::array<char, 512> fault_{};
  const std::string name_; ///< if that of the plug-in cannot be shown
  loaded_plugin plugin_;   ///< before made_, so it is unloaded after the decoder is freed
  made_decoder made_;
};

} // namespace

decoder_result make_plugin_decoder(const std::string &path, const decoder_model &given,
                                   const decoder_settings &settings) {
  const auto failed = [&](const std::string &why) { return decoder_result{nullptr, "plug-in " + path + ": " + why}; };
  const std::string text(given.text());
  const auto parsed = plugin_model::of(given);
  if (parsed.failed())
    return failed(parsed.text());
  auto plugin = load(path);
  if (plugin.failed()) {
    decoder_result refused = failed(plugin.text());
    refused.machine_lacks = is_gpu_library(path);
    return refused;
  }

  const decoder_settings::list rest = settings.rest();
  std::vector<cudaq_qec_decoder_setting_t> pairs;
  for (const auto &[key, value] : rest)
    pairs.push_back({key.c_str(), value.c_str()});
  const cudaq_qec_decoder_errors_t errors = parsed->view();
  const cudaq_qec_decoder_model_t model{sizeof(model),           text.c_str(), text.size(),  parsed->num_detectors,
                                        parsed->num_observables, pairs.data(), pairs.size(), &errors};
  void *raw = nullptr;
  std::array<char, 1024> error{};
  std::int32_t status = CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  if (const expected<> result =
          call_plugin("create", [&] { status = plugin->table->create(&model, &raw, error.data(), error.size()); });
      result.failed())
    return failed(result.text());
  if (status != CUDAQ_QEC_DECODE_OK) {
    error.back() = '\0';
    decoder_result refused =
        failed(error.front() != '\0' ? shown(error.data()) : "create failed with status " + std::to_string(status));
    refused.machine_lacks = status == CUDAQ_QEC_DECODE_INTERNAL_ERROR;
    return refused;
  }
  made_decoder made(raw, decoder_closer{plugin->table->destroy});
  if (raw == nullptr)
    return failed("create said ok and returned no decoder");
  return {std::make_unique<plugin_decoder>(std::move(*plugin), std::move(made), *parsed), {}};
}

expected<error_form> error_form_of_plugin(const std::string &path) {
  const auto plugin = load(path);
  if (plugin.failed())
    return reason("plug-in " + path + ": " + plugin.text());
  return static_cast<error_form>(plugin->errors());
}

decoder_result make_relay_bp_gpu_decoder(const decoder_model &model, decoder_settings &settings) {
  return make_plugin_decoder(std::string(kRelayBpLibrary), model, settings);
}

decoder_result make_model_gpu_decoder(const decoder_model &model, decoder_settings &settings) {
  return make_plugin_decoder(std::string(kModelLibrary), model, settings);
}

} // namespace cudaq::qec::realtime

// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/decoding/decoder_plugin.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/error_form.h"
#include "lib/qec/decoding/dem.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <functional>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

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

/// Calls a function of a plug-in. Returns "", or the text of what it threw. pthread_exit passes: the thread ends.
template <class Call>
std::string exception_of(Call &&call) {
  try {
    call();
    return {};
  } catch (const abi::__forced_unwind &) {
    throw;
  } catch (const std::exception &e) {
    return std::string(" threw an exception: ") + e.what();
  } catch (...) {
    return " threw an exception that is no std::exception";
  }
}

/// The same where there is no room for a text: whether the call returned.
template <class Call>
bool returns(Call &&call) noexcept {
  try {
    call();
    return true;
  } catch (...) {
    return false;
  }
}

/// Frees a decoder of a plug-in.
struct decoder_closer {
  void (*destroy)(void *decoder);
  void operator()(void *decoder) const noexcept {
    (void)returns([&] { destroy(decoder); });
  }
};
using made_decoder = std::unique_ptr<void, decoder_closer>;

std::string last_load_error() {
  const char *const text = dlerror();
  return text != nullptr ? text : "unknown error of the loader";
}

/// The library of relay-bp-gpu, which a build with CUDA has. The loader searches for it, as for all libraries that this
/// one needs.
constexpr std::string_view kGpuLibrary = "libcudaq-qec-relay-bp-gpu.so";

/// Loads a plug-in and checks its table. Returns "" or the fault.
std::string load(const std::string &path, loaded_plugin &plugin) {
  // RTLD_LOCAL: two plug-ins may have symbols of the same name. A path without / would be searched for by the loader.
  const std::string file = path.find('/') == std::string::npos && path != kGpuLibrary ? "./" + path : path;
  struct stat info {};
  if (stat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) // to open a FIFO could take any time
    return "it is not a regular file";
  void *const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return last_load_error();
  plugin.library = loaded_library(handle, library_closer{});
  void *const symbol = dlsym(handle, "cudaq_qec_decoder_plugin_get");
  if (symbol == nullptr)
    return "it exports no function cudaq_qec_decoder_plugin_get, so it is no decoder plug-in";
  const auto entry = reinterpret_cast<decltype(&cudaq_qec_decoder_plugin_get)>(symbol);
  const std::string thrown = exception_of([&] { plugin.table = entry(CUDAQ_QEC_DECODER_PLUGIN_VERSION); });
  if (!thrown.empty())
    return "cudaq_qec_decoder_plugin_get" + thrown;
  const cudaq_qec_decoder_plugin_t *const t = plugin.table;
  if (t == nullptr)
    return "it does not serve version " + std::to_string(CUDAQ_QEC_DECODER_PLUGIN_VERSION) +
           " of the plug-in interface: build it with this version's decoder_plugin.h";
  if (t->version != CUDAQ_QEC_DECODER_PLUGIN_VERSION)
    return "it has version " + std::to_string(t->version) + " of the plug-in interface, this library has version " +
           std::to_string(CUDAQ_QEC_DECODER_PLUGIN_VERSION);
  if (t->struct_size < offsetof(cudaq_qec_decoder_plugin_t, edges))
    return "its table has " + std::to_string(t->struct_size) + " bytes, at least " +
           std::to_string(offsetof(cudaq_qec_decoder_plugin_t, edges)) + " are needed";
  if (t->name == nullptr || t->create == nullptr || t->decode == nullptr || t->destroy == nullptr)
    return "name, create, decode or destroy is NULL in its table";
  if (plugin.errors() > CUDAQ_QEC_ERRORS_WHOLE)
    return "error_form " + std::to_string(plugin.errors()) + " of its table is not one of decoder_plugin.h";
  return {};
}

class plugin_decoder final : public decoder {
public:
  /// If this throws, the caller still has both, and must free `made` before it unloads the plug-in.
  plugin_decoder(loaded_plugin &&plugin, made_decoder &&made, const detector_error_model &model)
      : decoder(model.num_detectors, model.num_observables), num_errors_(model.num_errors), plugin_(std::move(plugin)),
        made_(std::move(made)) {}

  const char *name() const noexcept override { return plugin_.table->name; }
  bool gives_edges() const noexcept override { return plugin_.has(&cudaq_qec_decoder_plugin_t::edges); }
  bool obeys_deadline() const noexcept override { return plugin_.has(&cudaq_qec_decoder_plugin_t::decode_until); }
  std::uint64_t num_errors() const noexcept override {
    return plugin_.has(&cudaq_qec_decoder_plugin_t::columns) ? num_errors_ : 0;
  }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *details) noexcept override {
    double weight = std::nan("");
    // A plug-in without observables may not get a null pointer that it could not add to.
    std::uint8_t none = 0;
    std::uint8_t *const bits = observables.empty() ? &none : observables.data();
    const decode_control control = details != nullptr ? details->control : decode_control{};
    const bool has_deadline = control.deadline_ns != kNoDeadline, can_be_cancelled = control.cancel != nullptr;
    const bool may_end = obeys_deadline() && (has_deadline || can_be_cancelled);
    const cudaq_qec_decode_control_t until{sizeof until, control.deadline_ns, control.cancel};
    const cudaq_qec_decoder_plugin_t &table = *plugin_.table;
    std::int32_t status = CUDAQ_QEC_DECODE_INTERNAL_ERROR;
    if (!returns([&] {
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
    if ((status != CUDAQ_QEC_DECODE_OK && !at_deadline) || has_bits_after_the_last(observables))
      return decode_status::internal_error;
    if (details != nullptr)
      status = static_cast<std::int32_t>(take_details(*details, weight, static_cast<decode_status>(status)));
    return static_cast<decode_status>(status);
  }

private:
  [[nodiscard]] bool has_bits_after_the_last(std::span<const std::uint8_t> observables) const noexcept {
    const unsigned used = static_cast<unsigned>(num_observables() % 8);
    return used != 0 && observables.back() >> used != 0;
  }

  /// Returns `status`, that of the decode, or why the details are refused.
  decode_status take_details(decode_details &details, double weight, decode_status status) const noexcept {
    details.weight = weight;
    details.has_solution = true;
    decode_status taken = details.edges.empty() ? decode_status::ok : take_edges(details);
    if (taken == decode_status::ok && !details.errors.empty())
      taken = take_errors(details);
    return taken == decode_status::ok ? status : taken;
  }

  decode_status take_edges(decode_details &details) const noexcept {
    auto *const room = reinterpret_cast<cudaq_qec_correction_edge_t *>(details.edges.data());
    std::size_t count = 0;
    if (!returns([&] { count = plugin_.table->edges(made_.get(), room, details.edges.size()); }))
      return decode_status::internal_error;
    if (count > details.edges.size())
      return decode_status::buffer_too_small;
    for (const correction_edge &edge : details.edges.first(count))
      if (edge.first >= num_detectors() || (edge.second >= num_detectors() && edge.second != kBoundary))
        return decode_status::internal_error;
    details.num_edges = count;
    return decode_status::ok;
  }

  decode_status take_errors(decode_details &details) const noexcept {
    std::size_t count = 0;
    if (!returns([&] { count = plugin_.table->columns(made_.get(), details.errors.data(), details.errors.size()); }))
      return decode_status::internal_error;
    if (count > details.errors.size())
      return decode_status::buffer_too_small;
    const auto errors = details.errors.first(count);
    // Ascending, each once, and of the model.
    if (std::ranges::adjacent_find(errors, std::greater_equal{}) != errors.end() ||
        (count != 0 && errors.back() >= num_errors_))
      return decode_status::internal_error;
    details.num_errors = count;
    return decode_status::ok;
  }

  const std::uint64_t num_errors_;
  loaded_plugin plugin_; ///< before made_, so it is unloaded after the decoder is freed
  made_decoder made_;
};

} // namespace

decoder_result make_plugin_decoder(const std::string &path, std::string_view dem_text,
                                   const decoder_settings &settings) {
  const auto failed = [&](const std::string &why) { return decoder_result{nullptr, "plug-in " + path + ": " + why}; };
  const auto parsed = parse_dem(dem_text);
  if (parsed.failed())
    return failed(parsed.text());
  loaded_plugin plugin;
  if (const std::string error = load(path, plugin); !error.empty())
    return failed(error);

  const std::string text(dem_text);
  const decoder_settings::list rest = settings.rest();
  std::vector<cudaq_qec_decoder_setting_t> given;
  for (const auto &[key, value] : rest)
    given.push_back({key.c_str(), value.c_str()});
  const cudaq_qec_decoder_model_t model{sizeof(model),           text.c_str(), text.size(), parsed->num_detectors,
                                        parsed->num_observables, given.data(), given.size()};
  void *raw = nullptr;
  std::array<char, 1024> error{};
  std::int32_t status = CUDAQ_QEC_DECODE_INTERNAL_ERROR;
  const std::string thrown =
      exception_of([&] { status = plugin.table->create(&model, &raw, error.data(), error.size()); });
  if (!thrown.empty())
    return failed("create" + thrown);
  if (status != CUDAQ_QEC_DECODE_OK) {
    error.back() = '\0';
    return failed(error.front() != '\0' ? error.data() : "create failed with status " + std::to_string(status));
  }
  made_decoder made(raw, decoder_closer{plugin.table->destroy});
  if (raw == nullptr)
    return failed("create said ok and returned no decoder");
  return {std::make_unique<plugin_decoder>(std::move(plugin), std::move(made), *parsed), {}};
}

expected<error_form> error_form_of_plugin(const std::string &path) {
  loaded_plugin plugin;
  if (const std::string error = load(path, plugin); !error.empty())
    return reason("plug-in " + path + ": " + error);
  return static_cast<error_form>(plugin.errors());
}

decoder_result make_relay_bp_gpu_decoder(std::string_view dem_text, decoder_settings &settings) {
  return make_plugin_decoder(std::string(kGpuLibrary), dem_text, settings);
}

} // namespace cudaq::qec::realtime

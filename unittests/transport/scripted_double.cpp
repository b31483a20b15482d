// SPDX-License-Identifier: Apache-2.0
// A provider that does what its script says (double_script.h). DOUBLE_VERSION is the version of its table. The table
// ends where its version ends, at the end of a page; the next page cannot be read. DOUBLE_BARE: entries that may be
// NULL are NULL.
#include "unittests/transport/double_script.h"

#include "cudaq/realtime/daemon/bridge/bridge_types.h"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>

namespace {

using cudaq::realtime::test::act;
using cudaq::realtime::test::double_script;

thread_local std::string last_text;
std::atomic<int> getter_calls{0};

struct instance {
  double_script *script;
  std::uint64_t rx_flags[4], tx_flags[4];
};

double_script &script_of(void *handle) { return *static_cast<instance *>(handle)->script; }

template <class Done>
void wait_for(Done &&done) { // a test that fails to release it does not hang
  for (int i = 0; i < 60000 && !done(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Counts the entry as running. disconnect and connect may run at the same time: each sets its flag before it counts.
class inside {
public:
  inside(double_script &s, const std::string &entry)
      : s_(s), connect_(entry == "connect"), disconnect_(entry == "disconnect") {
    {
      const std::lock_guard lock(s.mutex); // before the flags: who sees a flag finds the entry in the log
      s.log.push_back(entry);
      if (connect_)
        s.connect_thread = std::this_thread::get_id();
    }
    if (connect_)
      s.connecting = true;
    if (disconnect_)
      s.disconnecting = true;
    const bool allowed = (connect_ && s.disconnecting) || (disconnect_ && s.connecting);
    if (s.inside.fetch_add(1) != 0 && !allowed)
      s.overlaps.fetch_add(1);
    s.calls.fetch_add(1);
  }
  ~inside() {
    s_.inside.fetch_sub(1);
    if (connect_)
      s_.connecting = false;
    if (disconnect_)
      s_.disconnecting = false;
  }

private:
  double_script &s_;
  bool connect_, disconnect_;
};

/// Returns any number, as a provider in C may.
__attribute__((no_sanitize("undefined"))) cudaq_status_t as_status(int value) {
  cudaq_status_t status;
  static_assert(sizeof(status) == sizeof(value));
  std::memcpy(&status, &value, sizeof(status));
  return status;
}

int failed(const char *entry) {
  last_text = std::string("the double fails in ") + entry;
  return CUDAQ_ERR_CUDA;
}

int perform(double_script &s, const char *entry) {
  const inside here(s, entry);
  const auto found = s.does.find(entry);
  switch (found == s.does.end() ? act::succeed : found->second) {
  case act::succeed:
  case act::leave_out:
    return CUDAQ_OK;
  case act::fail:
    return failed(entry);
  case act::fail_once: {
    const std::lock_guard lock(s.mutex);
    int n = 0;
    for (const std::string &logged : s.log)
      n += logged == entry;
    return n == 1 ? failed(entry) : CUDAQ_OK;
  }
  case act::throw_error:
    throw std::runtime_error("the double threw");
  case act::throw_int:
    throw 7;
  case act::bad_status:
    return 99;
  case act::negative_status:
    return -3;
  case act::end_thread:
    pthread_exit(nullptr);
  case act::hold:
    wait_for([&] { return s.released.load(); });
    return CUDAQ_OK;
  case act::hold_then_fail:
    wait_for([&] { return s.released.load(); });
    return failed(entry);
  case act::wait_for_disconnect:
    wait_for([&] { return s.released || s.disconnect_called; });
    return s.released ? CUDAQ_OK : CUDAQ_ERR_INTERNAL;
  }
  return CUDAQ_OK;
}

bool leaves_out(double_script &s, const char *entry) {
  const auto found = s.does.find(entry);
  return found != s.does.end() && found->second == act::leave_out;
}

cudaq_status_t create(void **handle, int argc, char **argv) {
  double_script *script = nullptr;
  std::vector<std::string> others;
  for (int i = 0; i < argc; ++i)
    if (std::strncmp(argv[i], "script=", 7) == 0)
      script = reinterpret_cast<double_script *>(std::strtoull(argv[i] + 7, nullptr, 16));
    else
      others.emplace_back(argv[i]);
  if (script == nullptr)
    return CUDAQ_ERR_INVALID_ARG;
  {
    const std::lock_guard lock(script->mutex);
    script->arguments = others;
    script->null_after_arguments = argv[argc] == nullptr;
  }
  if (argc > 1) // as getopt does, and worse
    argv[0][0] = '#';
  if (leaves_out(*script, "create"))
    return CUDAQ_OK;
  if (const int status = perform(*script, "create")) {
    *handle = script; // half-way: must not reach the program
    return as_status(status);
  }
  *handle = new (std::nothrow) instance{script, {}, {}};
  return CUDAQ_OK;
}

cudaq_status_t destroy(void *handle) {
  const int status = perform(script_of(handle), "destroy");
  if (status == CUDAQ_OK)
    delete static_cast<instance *>(handle);
  return as_status(status);
}

cudaq_status_t get_transport_context(void *handle, cudaq_realtime_transport_context_t type, void *out) {
  const int status = perform(script_of(handle), "get_transport_context");
  auto &self = *static_cast<instance *>(handle);
  if (type == RING_BUFFER) {
    static_cast<cudaq_ringbuffer_t *>(out)->rx_flags_host = self.rx_flags;
    if (!leaves_out(*self.script, "get_transport_context"))
      static_cast<cudaq_ringbuffer_t *>(out)->tx_flags_host = self.tx_flags;
  } else if (!leaves_out(*self.script, "get_transport_context")) {
    static_cast<cudaq_unified_dispatch_ctx_t *>(out)->transport_ctx = &self;
  }
  return as_status(status);
}

cudaq_status_t connect(void *handle) { return as_status(perform(script_of(handle), "connect")); }
cudaq_status_t launch(void *handle) { return as_status(perform(script_of(handle), "launch")); }
cudaq_status_t disconnect(void *handle) {
  double_script &s = script_of(handle);
  const int status = perform(s, "disconnect");
  if (status == CUDAQ_OK)
    s.disconnect_called = true;
  return as_status(status);
}

[[maybe_unused]] cudaq_status_t get_cpu_dataplane(void *handle, cudaq_cpu_dataplane_t *out) {
  const int status = perform(script_of(handle), "get_cpu_dataplane");
  if (!leaves_out(script_of(handle), "get_cpu_dataplane"))
    out->ctx = handle;
  return as_status(status);
}

[[maybe_unused]] cudaq_status_t get_endpoint_info(void *handle, char *buffer, std::size_t length) {
  double_script &s = script_of(handle);
  const int status = perform(s, "get_endpoint_info");
  if (s.unterminated_endpoint)
    std::memset(buffer, 'x', length);
  else if (!leaves_out(s, "get_endpoint_info"))
    std::strncpy(buffer, "transport=double port=1", length); // without a 0 if it does not fit
  return as_status(status);
}

[[maybe_unused]] cudaq_status_t get_ring_geometry(void *handle, std::uint32_t *num_slots, std::uint32_t *slot_size) {
  const int status = perform(script_of(handle), "get_ring_geometry");
  *num_slots = 4;
  if (!leaves_out(script_of(handle), "get_ring_geometry"))
    *slot_size = 64;
  return as_status(status);
}

[[maybe_unused]] cudaq_status_t set_function_table(void *handle, const cudaq_function_table_t *table) {
  return table->count == 0 ? CUDAQ_ERR_INVALID_ARG : as_status(perform(script_of(handle), "set_function_table"));
}

using table_t = cudaq_realtime_bridge_interface_t;
constexpr std::size_t kBytes = DOUBLE_VERSION == 1   ? offsetof(table_t, get_cpu_dataplane)
                               : DOUBLE_VERSION == 2 ? offsetof(table_t, set_function_table)
                                                     : sizeof(table_t);
constexpr std::size_t kPage = 65536; // of any machine

table_t *make_table() {
  void *const pages = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(static_cast<char *>(pages) + kPage, kPage, PROT_NONE) != 0)
    return nullptr;
  table_t all{};
  all.version = DOUBLE_VERSION;
  all.create = create;
  all.destroy = destroy;
  all.get_transport_context = get_transport_context;
  all.connect = connect;
  all.launch = launch;
  all.disconnect = disconnect;
#if !defined(DOUBLE_BARE)
  all.get_cpu_dataplane = get_cpu_dataplane;
  all.get_endpoint_info = get_endpoint_info;
  all.get_ring_geometry = get_ring_geometry;
  all.set_function_table = set_function_table;
#endif
  void *const at = static_cast<char *>(pages) + kPage - kBytes;
  std::memcpy(at, &all, kBytes);
  return static_cast<table_t *>(at);
}

} // namespace

extern "C" CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface() {
  static table_t *const table = make_table();
  getter_calls.fetch_add(1);
  return table;
}

extern "C" CUDAQ_REALTIME_API int cudaq_test_double_getter_calls() { return getter_calls.load(); }

#if DOUBLE_VERSION == 3
extern "C" CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error() { return last_text.c_str(); }
#endif

// SPDX-License-Identifier: Apache-2.0
// An instance of a provider: every allocation and thread of the loader, and of the provider, fails once.
#include "unittests/fault_injection/fault_sweep.h"
#include "unittests/transport/bridge_fixture.h"

#include <cstdlib>

namespace cudaq::realtime::test {
namespace {

/// What the scripts have in common.
class bridge_script : public script {
public:
  ~bridge_script() override {
    if (handle_ != nullptr)
      cudaq_bridge_destroy(handle_);
  }
  std::string snapshot() override { return handle_ == nullptr ? "no instance" : "an instance"; }

protected:
  static step out_of_order(step s) {
    s.expected = CUDAQ_ERR_STATE;
    return s;
  }
  step create_from_library() {
    return {"cudaq_bridge_create_from_library",
            [this] { return cudaq_bridge_create_from_library(&handle_, library_.c_str(), 1, argv_); }};
  }
  step launch() {
    return {"cudaq_bridge_launch", [this] { return cudaq_bridge_launch(handle_); }};
  }
  step disconnect() {
    return {"cudaq_bridge_disconnect", [this] { return cudaq_bridge_disconnect(handle_); }};
  }
  step destroy() {
    return {"cudaq_bridge_destroy", [this] {
              const cudaq_status_t status = cudaq_bridge_destroy(handle_);
              if (status == CUDAQ_OK)
                handle_ = nullptr;
              return status;
            }};
  }

  double_script script_;
  std::string library_ = double_library("double_v3"), option_ = script_option(script_);
  char *argv_[1] = {option_.data()};
  cudaq_realtime_bridge_handle_t handle_ = nullptr;
};

class bridge_life : public bridge_script {
public:
  std::vector<step> steps() override {
    const step connect = {"cudaq_bridge_connect", [this] { return cudaq_bridge_connect(handle_); }};
    return {create_from_library(),
            {"cudaq_bridge_get_ring_geometry",
             [this] {
               std::uint32_t slots, size;
               return cudaq_bridge_get_ring_geometry(handle_, &slots, &size);
             }},
            {"cudaq_bridge_get_endpoint_info",
             [this] {
               char line[64];
               return cudaq_bridge_get_endpoint_info(handle_, line, sizeof(line));
             }},
            {"cudaq_bridge_get_transport_context",
             [this] {
               cudaq_ringbuffer_t ring;
               return cudaq_bridge_get_transport_context(handle_, RING_BUFFER, &ring);
             }},
            {"cudaq_bridge_get_cpu_dataplane",
             [this] {
               cudaq_cpu_dataplane_t plane;
               return cudaq_bridge_get_cpu_dataplane(handle_, &plane);
             }},
            {"cudaq_bridge_set_function_table",
             [this] {
               cudaq_function_entry_t entry{};
               const cudaq_function_table_t table{&entry, 1};
               return cudaq_bridge_set_function_table(handle_, &table);
             }},
            out_of_order(launch()),
            connect,
            out_of_order(connect),
            launch(),
            disconnect(),
            out_of_order(launch()),
            destroy()};
  }
};

/// The provider that the environment names. Its connect waits; disconnect cancels it, if `cancelled`.
class timed_bridge_life : public bridge_script {
public:
  explicit timed_bridge_life(bool cancelled) : cancelled_(cancelled) {
    setenv("CUDAQ_REALTIME_BRIDGE_LIB", library_.c_str(), 1);
    script_.does["connect"] = act::wait_for_disconnect;
  }
  ~timed_bridge_life() override { unsetenv("CUDAQ_REALTIME_BRIDGE_LIB"); }
  std::vector<step> steps() override {
    std::vector<step> all = {
        {"cudaq_bridge_create", [this] { return cudaq_bridge_create(&handle_, CUDAQ_PROVIDER_EXTERNAL, 1, argv_); }},
        connect(0, CUDAQ_ERR_TIMEOUT)};
    if (!cancelled_)
      all.push_back(connect(kEnough, CUDAQ_OK));
    all.insert(all.end(), {disconnect(), out_of_order(connect(kEnough, CUDAQ_ERR_STATE)), destroy()});
    return all;
  }

private:
  static constexpr std::uint64_t kEnough = 30'000'000'000;
  step connect(std::uint64_t timeout_ns, cudaq_status_t expected) {
    return {"cudaq_bridge_connect_timeout",
            [this, timeout_ns] {
              script_.released = timeout_ns != 0;
              const cudaq_status_t status = cudaq_bridge_connect_timeout(handle_, timeout_ns);
              return status == CUDAQ_ERR_TIMEOUT ? when_connect_waits() : status;
            },
            promise::may_fail, expected};
  }
  /// CUDAQ_ERR_TIMEOUT: the provider's connect waits. Otherwise a fault on its thread has ended it.
  cudaq_status_t when_connect_waits() {
    const faults::exempt_scope of_the_test;
    cudaq_status_t status = CUDAQ_ERR_TIMEOUT;
    EXPECT_TRUE(eventually([&] {
      status = cudaq_bridge_connect_timeout(handle_, 0);
      return status != CUDAQ_ERR_TIMEOUT || script_.logged().find(" connect") != std::string::npos;
    }));
    return status;
  }
  const bool cancelled_;
};

TEST(BridgeFaults, CostNeitherTheInstanceNorMemory) {
  double_bridge().destroy(); // the library stays loaded, with the mapping of its table
  sweep_all_faults([] { return std::make_unique<bridge_life>(); }, 25, {"operator new", "pthread_create"});
}

TEST(BridgeFaults, CostNoConnectThatIsAwaitedOrCancelled) {
  double_bridge().destroy();
  for (const bool cancelled : {false, true}) {
    sweep_all_faults([cancelled] { return std::make_unique<timed_bridge_life>(cancelled); }, 10,
                     {"operator new", "pthread_create"});
  }
}

} // namespace
} // namespace cudaq::realtime::test

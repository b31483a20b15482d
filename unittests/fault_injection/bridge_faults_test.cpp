// SPDX-License-Identifier: Apache-2.0
// An instance of a provider: every allocation and thread of the loader, and of the provider, fails once.
#include "unittests/fault_injection/fault_sweep.h"
#include "unittests/transport/bridge_fixture.h"

namespace cudaq::realtime::test {
namespace {

class bridge_life : public script {
public:
  ~bridge_life() override {
    if (handle_ != nullptr)
      cudaq_bridge_destroy(handle_);
  }
  std::vector<step> steps() override {
    const step connect = {"cudaq_bridge_connect", [this] { return cudaq_bridge_connect(handle_); }};
    const step launch = {"cudaq_bridge_launch", [this] { return cudaq_bridge_launch(handle_); }};
    const step destroy = {"cudaq_bridge_destroy", [this] {
                            const cudaq_status_t status = cudaq_bridge_destroy(handle_);
                            if (status == CUDAQ_OK)
                              handle_ = nullptr;
                            return status;
                          }};
    return {{"cudaq_bridge_create_from_library",
             [this] { return cudaq_bridge_create_from_library(&handle_, library_.c_str(), 1, argv_); }},
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
            out_of_order(launch),
            connect,
            out_of_order(connect),
            launch,
            {"cudaq_bridge_disconnect", [this] { return cudaq_bridge_disconnect(handle_); }},
            out_of_order(launch),
            destroy};
  }
  std::string snapshot() override { return handle_ == nullptr ? "no instance" : "an instance"; }

private:
  static step out_of_order(step s) {
    s.expected = CUDAQ_ERR_STATE;
    return s;
  }
  double_script script_;
  std::string library_ = double_library("double_v3"), option_ = script_option(script_);
  char *argv_[1] = {option_.data()};
  cudaq_realtime_bridge_handle_t handle_ = nullptr;
};

TEST(BridgeFaults, CostNeitherTheInstanceNorMemory) {
  double_bridge().destroy(); // the library stays loaded, with the mapping of its table
  fault_sweep sweep([] { return std::make_unique<bridge_life>(); });
  sweep.each_call();
  sweep.pairs_in_the_end();
  sweep.expect_at_least(25);
}

} // namespace
} // namespace cudaq::realtime::test

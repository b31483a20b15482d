// SPDX-License-Identifier: Apache-2.0
// The provider gpu-roce on its test double, through the loader.
#pragma once

#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "unittests/contrib/gpu_roce/double/gpu_roce_double.h"
#include "unittests/support/eventually.h"
#include "unittests/support/program_paths.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace cudaq::realtime::test {

inline const char *error_text() { return cudaq_last_error_message(); }

class GpuRoceBridge : public ::testing::Test {
protected:
  GpuRoceBridge() { gpu_roce_double_reset(); }
  ~GpuRoceBridge() override {
    script().start_waits = script().monitor_stays = script().destroy_waits = false;
    if (handle != nullptr) {
      EXPECT_TRUE(cudaq_bridge_disconnect(handle) == CUDAQ_OK && cudaq_bridge_destroy(handle) == CUDAQ_OK)
          << error_text();
    }
    EXPECT_EQ(script().cuda_blocks, 0);
    gpu_roce_double_reset();
  }

  static gpu_roce_script &script() { return gpu_roce_double(); }

  /// With --peer-ip, unless the first argument is "-".
  cudaq_status_t create(std::vector<std::string> arguments = {}) {
    if (!arguments.empty() && arguments[0] == "-")
      arguments.erase(arguments.begin());
    else
      arguments.insert(arguments.end(), {"--peer-ip", "192.168.0.2"});
    std::vector<char *> argv;
    for (std::string &a : arguments)
      argv.push_back(a.data());
    return cudaq_bridge_create_from_library(&handle, CUDAQ_GPU_ROCE_PROVIDER, static_cast<int>(argv.size()),
                                            argv.data());
  }
  std::string endpoint() const {
    char line[256] = "";
    EXPECT_EQ(cudaq_bridge_get_endpoint_info(handle, line, sizeof(line)), CUDAQ_OK) << error_text();
    return line;
  }
  cudaq_status_t destroy() {
    const cudaq_status_t status = cudaq_bridge_destroy(handle);
    if (status == CUDAQ_OK)
      handle = nullptr;
    return status;
  }

  cudaq_realtime_bridge_handle_t handle = nullptr;
};

} // namespace cudaq::realtime::test

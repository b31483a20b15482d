// SPDX-License-Identifier: Apache-2.0
// The checks of `doctor`, by part of the machine. Each returns the lines of its part.
#pragma once

#include "tools/common/system_files.h"
#include "tools/doctor/doctor.h"
#include "tools/info/cuda_probe.h"

namespace cudaq::realtime::tools {

/// Cores, frequency, sleep states, interrupts, limits and memory. `cores`: those that this process may use.
std::vector<finding> check_machine(const system_files &files, const std::vector<int> &cores);

/// Driver, device kernels, devices, permissions, and the ways to map memory of a GPU.
std::vector<finding> check_gpu(const system_files &files, const cuda_probe &probe);

/// The requirements of the transport. Throws usage_error for a transport that has no checks.
std::vector<finding> check_transport(const system_files &files, const cuda_probe &probe, const std::string &transport,
                                     int port);

// Parts of it.
std::vector<finding> network_card_lines(const system_files &files);
/// RDMA adapters, their ports and GIDs, and the rights.
std::vector<finding> rdma_lines(const system_files &files);
std::vector<finding> ucx_lines();
/// Whether the provider with this library can be loaded and makes an instance: its shape and slots.
std::vector<finding> own_provider_lines(const std::string &library, const std::vector<std::string> &options);
/// Whether a client of this machine can map requests that the provider shm holds in memory of a GPU, for each GPU.
std::vector<finding> gpu_request_lines(const cuda_probe &probe);
std::vector<finding> gpu_roce_lines(const system_files &files, const cuda_probe &probe);

/// One request through a ring and a dispatcher of this process. If no answer comes, the line names the step that is
/// silent.
std::vector<finding> check_dispatcher();

/// One request through the provider of this name, which must be udp, roce, shm or ucx, on this machine. For cpu_roce
/// and gpu-roce a line that names the missing part.
std::vector<finding> check_loopback(const std::string &transport, std::uint64_t limit_ns);

} // namespace cudaq::realtime::tools

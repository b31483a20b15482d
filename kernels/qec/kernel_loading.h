// SPDX-License-Identifier: Apache-2.0
// Loading kernels on a device on which others may run without end.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>
#include <string>

namespace cudaq::qec::realtime::gpu {

/// The driver may compile a kernel for the device: that takes seconds.
inline constexpr std::chrono::milliseconds kLoadLimit{60000};

/// Calls `load`, which loads kernels on the device, and waits until the device has them. If another kernel runs without
/// end, it may never have them, and no later work of the process on that device is done, until that kernel ends. So
/// std::runtime_error is thrown after the limit; `load` may then still run, on a thread of its own, until that kernel
/// ends: it must own what it uses. Also throws the error that `load` returns, or what it throws.
void load_kernels(int device_id, const std::string &owner, std::function<cudaError_t()> load,
                  std::chrono::milliseconds limit = kLoadLimit);

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// Helpers for CUDA runtime calls: errors become reasons, and the caller's current device does not change.
#pragma once

#include "cudaq/realtime/detail/base/entered_device.h"
#include "lib/base/error_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cudaq::realtime::detail {

inline reason cuda_failed(const char *call, cudaError_t error) {
  return make_reason(CUDAQ_ERR_CUDA, "%s: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
}

/// True for the errors after which no kernel of the context runs any more. Any other error may concern its call only.
inline bool ends_the_context(cudaError_t error) {
  switch (error) {
  case cudaErrorIllegalAddress:
  case cudaErrorLaunchFailure:
  case cudaErrorLaunchTimeout:
  case cudaErrorIllegalInstruction:
  case cudaErrorMisalignedAddress:
  case cudaErrorInvalidAddressSpace:
  case cudaErrorInvalidPc:
  case cudaErrorHardwareStackError:
  case cudaErrorAssert:
  case cudaErrorECCUncorrectable:
  case cudaErrorNvlinkUncorrectable:
  case cudaErrorContextIsDestroyed:
    return true;
  default:
    return false;
  }
}

/// Makes a CUDA call that must take effect. It is repeated once after an error that does not end the context: the
/// runtime may return the error of earlier work.
template <class Call>
cudaError_t insist(Call &&call) {
  const cudaError_t error = call();
  return error == cudaSuccess || ends_the_context(error) ? error : call();
}

/// Makes `device` current for the guard's lifetime. The destructor makes the caller's device current again, even if
/// other code has changed the current device in the meantime. During the lifetime the calling thread's capture mode is
/// relaxed. Otherwise its CUDA calls would invalidate the stream captures of other threads.
class device_guard {
public:
  explicit device_guard(int device) : error_(device_.enter(device)) {
    if (error_ == cudaSuccess)
      relaxed_ = cudaThreadExchangeStreamCaptureMode(&capture_mode_) == cudaSuccess;
  }
  ~device_guard() {
    if (relaxed_)
      insist([this] { return cudaThreadExchangeStreamCaptureMode(&capture_mode_); });
  }
  device_guard(const device_guard &) = delete;
  device_guard &operator=(const device_guard &) = delete;

  cudaError_t error() const { return error_; }

private:
  entered_device device_; ///< first: left last
  cudaError_t error_;
  bool relaxed_ = false;
  cudaStreamCaptureMode capture_mode_ = cudaStreamCaptureModeRelaxed; ///< the caller's, if relaxed_
};

/// cudaSuccess: the stream is empty. cudaErrorNotReady: it is not. Any other error has ended the context, or three
/// queries in a row have returned it: a single error may concern the query alone, and a kernel that is taken for ended
/// goes on to use its memory.
inline cudaError_t query_stream(int device, cudaStream_t stream) {
  constexpr int kQueries = 3;
  cudaError_t found = cudaSuccess;
  for (int n = 0; n < kQueries; ++n) {
    const device_guard guard(device);
    found = guard.error() == cudaSuccess ? cudaStreamQuery(stream) : guard.error();
    if (found == cudaSuccess || found == cudaErrorNotReady || ends_the_context(found))
      break;
  }
  return found;
}

/// Runs `body` with `device` current. Makes the caller's device current again afterwards.
template <class Body>
expected<> on_device(int device, Body &&body) {
  const device_guard guard(device);
  if (guard.error() != cudaSuccess)
    return cuda_failed("making the device current", guard.error());
  return body();
}

/// Runs `work` with its own stream. The legacy stream, and calls that synchronise the device, would wait for dispatch
/// kernels, which run until they are stopped.
template <class Work>
expected<> on_own_stream(const char *what, Work &&work) {
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess)
    return cuda_failed(what, error);
  error = work(stream);
  cudaStreamDestroy(stream); // does not wait: work that is queued still runs
  return error == cudaSuccess ? expected<>{} : cuda_failed(what, error);
}

/// Sets device memory to zero, and waits for it. By copies: a memset may be a kernel, which would have to be loaded,
/// and would wait for kernels without end that hold the whole device.
inline cudaError_t zero_by_copies(void *device, std::size_t bytes, cudaStream_t stream) noexcept {
  static const std::uint8_t zeros[65536] = {};
  cudaError_t error = cudaSuccess;
  for (std::size_t at = 0; at < bytes && error == cudaSuccess; at += sizeof(zeros))
    error = cudaMemcpyAsync(static_cast<std::uint8_t *>(device) + at, zeros, std::min(sizeof(zeros), bytes - at),
                            cudaMemcpyHostToDevice, stream);
  const cudaError_t ended = cudaStreamSynchronize(stream);
  return error == cudaSuccess ? ended : error;
}

} // namespace cudaq::realtime::detail

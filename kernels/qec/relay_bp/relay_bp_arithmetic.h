// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the relay-bp kernel that gives the same bits on a GPU and on a CPU.
#pragma once

#include "lib/qec/decoders/relay_bp/min_sum_sweeps.h"
#include "lib/qec/decoders/relay_bp/relay_bp_options.h"

#include <cstdint>

/// Unrolls the loop after it on a device.
#if defined(__CUDACC__)
#define CUDAQ_QEC_PRAGMA(text) _Pragma(#text)
#define CUDAQ_QEC_UNROLL(times) CUDAQ_QEC_PRAGMA(unroll times)
#else
#define CUDAQ_QEC_UNROLL(times)
#endif

namespace cudaq::qec::realtime::gpu {

namespace detail {

/// Sums and products that the compiler does not fuse.
CUDAQ_QEC_HOST_DEVICE inline float sum_of(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
CUDAQ_QEC_HOST_DEVICE inline float product_of(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
CUDAQ_QEC_HOST_DEVICE inline std::uint32_t word_of(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  return __builtin_bit_cast(std::uint32_t, value);
#endif
}
CUDAQ_QEC_HOST_DEVICE inline float float_of(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(word);
#else
  return __builtin_bit_cast(float, word);
#endif
}
/// Neither is NaN.
CUDAQ_QEC_HOST_DEVICE inline float lesser(float a, float b) {
#if defined(__CUDA_ARCH__)
  return fminf(a, b);
#else
  return a < b ? a : b;
#endif
}
CUDAQ_QEC_HOST_DEVICE inline float greater(float a, float b) {
#if defined(__CUDA_ARCH__)
  return fmaxf(a, b);
#else
  return a > b ? a : b;
#endif
}

/// A word of the model, which no kernel changes.
template <class T>
CUDAQ_QEC_HOST_DEVICE T constant(const T *word) {
#if defined(__CUDA_ARCH__)
  return __ldg(word);
#else
  return *word;
#endif
}

} // namespace detail

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// A function that hosts and devices call. To a host compiler it is a function as any other.
#pragma once

#if defined(__CUDACC__)
#define CUDAQ_REALTIME_HOST_DEVICE __host__ __device__
#else
#define CUDAQ_REALTIME_HOST_DEVICE
#endif

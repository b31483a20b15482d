/* SPDX-License-Identifier: Apache-2.0 */
/* A pause in the loop of a CPU thread that waits for a flag. */
#ifndef CUDAQ_REALTIME_CPU_RELAX_H
#define CUDAQ_REALTIME_CPU_RELAX_H

#if defined(__x86_64__) || defined(__i386__)
#define CUDAQ_REALTIME_CPU_RELAX() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define CUDAQ_REALTIME_CPU_RELAX() __asm__ __volatile__("yield")
#else
#define CUDAQ_REALTIME_CPU_RELAX() ((void)0)
#endif

#endif

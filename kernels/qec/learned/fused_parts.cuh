// SPDX-License-Identifier: Apache-2.0
// What the fused kernel of the learned predecoder is made of: barriers in shared memory, bulk copies, and products of a
// warp group. For code of sm_90a.
#pragma once

#include "kernels/qec/learned/network_layout.h"

#include <cuda_fp16.h>

namespace cudaq::qec::realtime::gpu {

// ---- barriers in shared memory, by their addresses there

__device__ inline std::uint32_t shared_at(const void *pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
/// The same place in another block of the cluster.
__device__ inline std::uint32_t of_rank(std::uint32_t address, std::uint32_t rank) {
  std::uint32_t other;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(address), "r"(rank));
  return other;
}
__device__ inline void make_barrier(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void expect_bytes(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline bool has_passed(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t passed;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
               "selp.u32 %0, 1, 0, p; }"
               : "=r"(passed)
               : "r"(barrier), "r"(parity)
               : "memory");
  return passed != 0;
}
/// A ring of buffers: the one in use, and how often the ring went round.
struct ring_place {
  std::uint32_t slot = 0, parity = 0;
  __device__ void advance(std::uint32_t slots) {
    if (++slot == slots) {
      slot = 0;
      parity ^= 1;
    }
  }
};
/// Threads of whole warps meet at a barrier of the block that has a number; some of them need not wait.
__device__ inline void meet(std::uint32_t number, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ inline void meet_without_waiting(std::uint32_t number, std::uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/// All threads of the cluster's blocks meet.
__device__ inline void meet_cluster() {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- copies

/// Stores of threads and copies of the copy engine to the same memory follow each other.
__device__ inline void order_stores_and_copies() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ inline void copy_bulk(std::uint32_t to, const void *from, std::uint32_t bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
/// Sums of a thread to another block, whose barrier counts the bytes.
__device__ inline void send(std::uint32_t to, const float *sums, std::uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
      "f"(sums[0]), "f"(sums[1]), "f"(sums[2]), "f"(sums[3]), "r"(barrier)
      : "memory");
}
/// A choice of registers: compilers make an index of ?: of two elements of an array, which then is in local memory.
__device__ inline float either(bool first, float a, float b) {
  float value;
  asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.f32 %0, %1, %2, p; }"
      : "=f"(value)
      : "f"(a), "f"(b), "r"(static_cast<std::uint32_t>(first)));
  return value;
}
__device__ inline float4 load_shared(std::uint32_t address) {
  float4 value;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address)
               : "memory");
  return value;
}
/// Without a branch, so that stores follow each other.
__device__ inline void store_if(bool wanted, void *to, std::uint32_t value) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.b32 [%0], %1; }" ::"l"(to), "r"(value),
               "r"(static_cast<std::uint32_t>(wanted))
               : "memory");
}
__device__ inline void store_shared(std::uint32_t address, float low, float high) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(low), "f"(high) : "memory");
}
/// Of any block of the cluster.
__device__ inline float load_at(std::uint32_t address_of_rank) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address_of_rank) : "memory");
  return value;
}

// ---- products. sums += a (64 rows x 16) * b (16 x N), both from shared memory; until the products are awaited nothing
// else may touch the sums. Thread t has of rows 16 * (t / 32) + t % 32 / 4 and + 8 columns 8 * k + 2 * (t % 4), + 1 in
// sums 4 * k to + 3.

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Left>
__device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}
template <std::uint32_t Count>
__device__ void keep(float (&sums)[Count]) {
#pragma unroll
  for (float &sum : sums)
    asm volatile("" : "+f"(sum)::"memory"); // it is read and written after this point only
}

template <std::uint32_t N>
struct product;

#define CUDAQ_S4(k) "+f"(s[k]), "+f"(s[k + 1]), "+f"(s[k + 2]), "+f"(s[k + 3])
#define CUDAQ_S16(k) CUDAQ_S4(k), CUDAQ_S4(k + 4), CUDAQ_S4(k + 8), CUDAQ_S4(k + 12)
#define CUDAQ_R0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define CUDAQ_R1 CUDAQ_R0 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define CUDAQ_R2 CUDAQ_R1 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define CUDAQ_R3 CUDAQ_R2 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define CUDAQ_R4 CUDAQ_R3 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define CUDAQ_R5 CUDAQ_R4 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define CUDAQ_R6 CUDAQ_R5 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111"
#define CUDAQ_R7 CUDAQ_R6 ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define CUDAQ_PRODUCT(N, REGISTERS, A, B, ...)                                                                         \
  template <>                                                                                                          \
  struct product<N> {                                                                                                  \
    static __device__ void begin(float (&s)[N / 2], std::uint64_t a, std::uint64_t b) {                                \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" REGISTERS "}, " A ", " B                 \
                   ", 1, 1, 1, 0, 0;"                                                                                  \
                   : __VA_ARGS__                                                                                       \
                   : "l"(a), "l"(b));                                                                                  \
    }                                                                                                                  \
  };
CUDAQ_PRODUCT(32, CUDAQ_R0, "%16", "%17", CUDAQ_S16(0))
CUDAQ_PRODUCT(64, CUDAQ_R1, "%32", "%33", CUDAQ_S16(0), CUDAQ_S16(16))
CUDAQ_PRODUCT(96, CUDAQ_R2, "%48", "%49", CUDAQ_S16(0), CUDAQ_S16(16), CUDAQ_S16(32))
CUDAQ_PRODUCT(128, CUDAQ_R3, "%64", "%65", CUDAQ_S16(0), CUDAQ_S16(16), CUDAQ_S16(32), CUDAQ_S16(48))
CUDAQ_PRODUCT(160, CUDAQ_R4, "%80", "%81", CUDAQ_S16(0), CUDAQ_S16(16), CUDAQ_S16(32), CUDAQ_S16(48), CUDAQ_S16(64))
CUDAQ_PRODUCT(192, CUDAQ_R5, "%96", "%97", CUDAQ_S16(0), CUDAQ_S16(16), CUDAQ_S16(32), CUDAQ_S16(48), CUDAQ_S16(64),
              CUDAQ_S16(80))
CUDAQ_PRODUCT(224, CUDAQ_R6, "%112", "%113", CUDAQ_S16(0), CUDAQ_S16(16), CUDAQ_S16(32), CUDAQ_S16(48), CUDAQ_S16(64),
              CUDAQ_S16(80), CUDAQ_S16(96))
CUDAQ_PRODUCT(256, CUDAQ_R7, "%128", "%129", CUDAQ_S16(0), CUDAQ_S16(16), CUDAQ_S16(32), CUDAQ_S16(48), CUDAQ_S16(64),
              CUDAQ_S16(80), CUDAQ_S16(96), CUDAQ_S16(112))
#undef CUDAQ_PRODUCT

/// Eight rows of a matrix (network_layout.h) that are its next eight rows, too, and all others.
__device__ inline std::uint64_t same_matrix_at(std::uint32_t address, std::uint32_t half_bytes) {
  return matrix_at(address, half_bytes) & 0xffffffffu;
}

/// An 8 x 8 matrix of float16, of which each thread of a warp has a row's pair, becomes its transpose.
__device__ inline std::uint32_t transposed(std::uint32_t pair) {
  std::uint32_t result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

} // namespace cudaq::qec::realtime::gpu

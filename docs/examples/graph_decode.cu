// SPDX-License-Identifier: Apache-2.0
// Handlers that are CUDA graphs: one function with two decoders; the routing key selects the decoder.
#include "device_session.h"

#include <cudaq/realtime/daemon/dispatcher/graph_io.cuh>
#include <cudaq/realtime/daemon/dispatcher/kernel_types.h>

using namespace cudaq::realtime;

constexpr std::uint32_t kDecode = fnv1a_hash("decode");
constexpr std::uint32_t kWords = 8; // words of a syndrome, after the routing key

/// The first kernel of the graph reads the request in its slot.
__global__ void fold_kernel(const GraphIOContext *io, std::uint32_t *folded) {
  const auto *payload = static_cast<const std::uint8_t *>(io->rx_slot) + sizeof(RPCHeader);
  const auto *words = reinterpret_cast<const std::uint32_t *>(payload + sizeof(std::uint64_t));
  folded[threadIdx.x] = words[threadIdx.x];
}

/// The last kernel writes the frame and publishes it. After that the graph must not touch the slot.
__global__ void answer_kernel(const GraphIOContext *io, const std::uint32_t *folded, std::uint32_t seed) {
  std::uint32_t value = seed;
  for (std::uint32_t w = 0; w < kWords; ++w)
    value ^= folded[w];
  const auto &request = *static_cast<const RPCHeader *>(io->rx_slot);
  auto *const response = reinterpret_cast<RPCResponse *>(io->tx_slot);
  *response = {RPC_MAGIC_RESPONSE, 0, sizeof(value), request.request_id, request.ptp_timestamp};
  *reinterpret_cast<std::uint32_t *>(response + 1) = value;
  publish_graph_response(*io);
}

/// Captures the graph, instantiates it for launches from the device, and uploads it. Call it before any dispatch kernel
/// runs.
static cudaGraphExec_t make_decoder(const GraphIOContext *io, std::uint32_t *folded, std::uint32_t seed) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  fold_kernel<<<1, kWords, 0, stream>>>(io, folded);
  answer_kernel<<<1, 1, 0, stream>>>(io, folded, seed);
  TRY(cudaStreamEndCapture(stream, &graph));
  TRY(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
  TRY(cudaGraphUpload(exec, stream));
  TRY(cudaStreamSynchronize(stream));
  TRY(cudaGraphDestroy(graph));
  TRY(cudaStreamDestroy(stream));
  return exec;
}

/// Sends `count` syndromes to decoder `key`. Returns the number of wrong answers.
static int decode_all(example::device_session &session, std::uint64_t key, std::uint32_t seed, std::uint32_t count) {
  int wrong = 0;
  for (std::uint32_t n = 0; n < count; ++n) {
    std::vector<std::uint8_t> payload(sizeof(key) + kWords * sizeof(std::uint32_t));
    std::memcpy(payload.data(), &key, sizeof(key));
    std::uint32_t expected = seed;
    for (std::uint32_t w = 0; w < kWords; ++w) {
      const std::uint32_t word = (n + 1) * 2654435761u >> w;
      std::memcpy(payload.data() + sizeof(key) + w * sizeof(word), &word, sizeof(word));
      expected ^= word;
    }
    const example::answer got = session.call(kDecode, payload, n);
    wrong += got.header.status != 0 || got.header.request_id != n || got.result.size() != sizeof(expected) ||
             std::memcmp(got.result.data(), &expected, sizeof(expected)) != 0;
  }
  return wrong;
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;
  int major = 0;
  TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major < 9) {
    std::printf("skipped: device graphs need compute capability 9.0\n");
    return 77;
  }
  constexpr std::uint32_t kSeeds[] = {17, 42};
  constexpr std::uint32_t kCount = 1000;
  GraphIOContext *io;
  std::uint32_t *folded;
  cudaq_function_entry_t *table;
  TRY(cudaMalloc(&io, 2 * sizeof(*io)));
  TRY(cudaMalloc(&folded, 2 * kWords * sizeof(*folded)));
  TRY(cudaMalloc(&table, 2 * sizeof(*table)));
  void *contexts[2];
  cudaq_function_entry_t entries[2] = {};
  for (std::uint32_t decoder = 0; decoder < 2; ++decoder) {
    contexts[decoder] = io + decoder;
    entries[decoder].handler.graph_exec = make_decoder(io + decoder, folded + decoder * kWords, kSeeds[decoder]);
    entries[decoder].function_id = kDecode;
    entries[decoder].dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    entries[decoder].routing_key = decoder + 1;
  }
  TRY(cudaMemcpy(table, entries, sizeof(entries), cudaMemcpyHostToDevice));
  cudaq_dispatch_graph_io_t graph_io{};
  graph_io.struct_size = sizeof(graph_io);
  graph_io.graph_io_kind = CUDAQ_GRAPH_IO_FORWARDED;
  graph_io.num_contexts = 2;
  graph_io.contexts = contexts;

  int wrong = 0;
  {
    example::shape shape;
    shape.graph_io = &graph_io;
    example::device_session session(cudaq_launch_dispatch_kernel_graph_v2, {table, 2}, shape);
    for (std::uint32_t decoder = 0; decoder < 2; ++decoder)
      wrong += decode_all(session, decoder + 1, kSeeds[decoder], kCount);
  }
  std::printf("graph_decode: %u requests to each of two graphs, %d wrong\n", kCount, wrong);
  return wrong == 0 ? 0 : 1;
}

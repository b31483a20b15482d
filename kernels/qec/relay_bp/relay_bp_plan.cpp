// SPDX-License-Identifier: Apache-2.0
#include "kernels/qec/relay_bp/relay_bp_plan.h"

#include <bit>

namespace cudaq::qec::realtime::gpu {
namespace {

std::size_t size_of(std::uint32_t blocks) { return static_cast<std::size_t>(std::countr_zero(blocks)); }

/// "ensemble is 16, blocks is 4"
std::string wanted_text(std::uint32_t chains, std::uint32_t blocks) {
  return "ensemble is " + std::to_string(chains) + (blocks > 1 ? ", blocks is " + std::to_string(blocks) : "");
}

/// Why there is no room for `chains` chains of `blocks` blocks.
std::string no_room_text(const relay_gpu &gpu, std::uint32_t chains, std::uint32_t blocks) {
  std::string text = wanted_text(chains, blocks) + "; " + gpu.name + " has " + std::to_string(gpu.multiprocessors) +
                     " multiprocessors, and each chain needs one for each block";
  if (const std::uint32_t taken = gpu.taken.blocks(); taken != 0)
    text += "; other decoders of this process have taken " + std::to_string(taken);
  if (blocks > 1)
    text += "; there is room for " + std::to_string(gpu.room_for(blocks)) + " chain(s) of " + std::to_string(blocks) +
            " neighbouring blocks";
  return text;
}

} // namespace

std::uint32_t relay_chain_counts::blocks() const noexcept {
  std::uint32_t all = 0;
  for (std::size_t k = 0; k < kRelaySizes; ++k)
    all += of_size[k] << k;
  return all;
}
void relay_chain_counts::add(std::uint32_t chains, std::uint32_t blocks) noexcept {
  of_size[size_of(blocks)] += chains;
}
void relay_chain_counts::remove(std::uint32_t chains, std::uint32_t blocks) noexcept {
  of_size[size_of(blocks)] -= chains;
}

std::uint32_t relay_gpu::room_for(std::uint32_t blocks) const noexcept {
  const std::size_t size = size_of(blocks);
  std::uint32_t spoiled = 0;
  for (std::size_t k = 0; k < kRelaySizes; ++k)
    spoiled += taken.of_size[k] << (k > size ? k - size : 0);
  return max_chains.of_size[size] > spoiled ? max_chains.of_size[size] - spoiled : 0;
}

expected<std::vector<std::uint32_t>> relay_blocks_to_try(const relay_gpu &gpu, std::uint32_t chains,
                                                         std::uint32_t blocks) {
  if (blocks > 1 && gpu.max_chains.of_size[size_of(blocks)] == 0)
    return reason(wanted_text(chains, blocks) + "; " + gpu.name + " has no clusters of so many blocks");
  if (const std::uint32_t least = blocks == 0 ? 1 : blocks; gpu.room_for(least) < chains)
    return reason(no_room_text(gpu, chains, least));
  if (blocks != 0)
    return std::vector<std::uint32_t>{blocks};
  std::vector<std::uint32_t> found;
  for (std::uint32_t n = kMaxParts; n > 1; n /= 2)
    if (chains <= gpu.room_for(n) && chains * n <= gpu.multiprocessors / 2)
      found.push_back(n);
  found.push_back(1);
  return found;
}

} // namespace cudaq::qec::realtime::gpu

// SPDX-License-Identifier: Apache-2.0
// The relay-bp decoders of a process on each GPU: what they have taken of it, and when their memory is freed. No CUDA.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime::gpu {

/// The instances of each device, and the multiprocessors that they have taken. Freeing pinned memory waits for all
/// kernels of the device, so it must wait until the blocks of the last instance have ended: until then an instance that
/// was destroyed keeps its memory. Any thread.
///
/// The mutex of a device is the outermost one: resident workers and the C API, whose locks are taken under it when
/// memory is freed, do not call these functions.
class relay_instances {
public:
  /// Counts an instance from before its allocations. Waits while memory of the device is freed, which the instance's
  /// kernel would hold up.
  void begin(int device_id) {
    device &d = of(device_id);
    const std::lock_guard lock(d.mutex);
    d.find_ended();
    d.ending.reserve(d.running + 1); // so that the end allocates nothing
    d.kept.reserve(d.kept.size() + d.running + 1);
    ++d.running;
  }
  /// Whether the launch of a construction that has failed waits for room, which other kernels hold. The next launch
  /// would wait for that one, too. As of the last begin() or end().
  bool waits_for_room(int device_id) {
    device &d = of(device_id);
    const std::lock_guard lock(d.mutex);
    return std::ranges::any_of(d.ending, [](const instance &i) { return i.has_failed; });
  }
  relay_chain_counts taken(int device_id) {
    device &d = of(device_id);
    const std::lock_guard lock(d.mutex);
    return d.taken;
  }
  /// Takes the room of the chains on the device. False: others have taken it since they were counted.
  bool take(int device_id, relay_gpu gpu, std::uint32_t chains, std::uint32_t blocks) {
    device &d = of(device_id);
    const std::lock_guard lock(d.mutex);
    gpu.taken = d.taken;
    if (gpu.room_for(blocks) < chains)
      return false;
    d.taken.add(chains, blocks);
    return true;
  }

  /// An instance that ends.
  struct instance {
    std::shared_ptr<void> memory;         ///< null: its construction has failed before there was any
    std::uint32_t chains = 0, blocks = 1; ///< the room that it has taken
    std::function<bool()> has_ended = {}; ///< does not wait, nor throw; empty: it launched nothing
    bool has_failed = false;              ///< its construction; set by end()
  };
  /// If its blocks run, or wait for room, its memory and that of all others is kept, and its room is taken, until a
  /// later begin() or end() finds that they have ended. Without `frees` no memory is freed now, which would wait for
  /// the program's other kernels: a construction that fails must not.
  void end(int device_id, instance last, bool frees = true) {
    device &d = of(device_id);
    const std::lock_guard lock(d.mutex);
    last.has_failed = !frees;
    d.ending.push_back(std::move(last));
    d.find_ended();
    if (frees && d.running == 0)
      d.kept.clear(); // under the lock: see begin()
  }

private:
  struct device {
    std::mutex mutex; ///< for all members
    std::size_t running = 0;
    relay_chain_counts taken;
    std::vector<instance> ending;
    std::vector<std::shared_ptr<void>> kept;

    void find_ended() {
      std::erase_if(ending, [this](instance &i) {
        if (i.has_ended && !i.has_ended())
          return false;
        --running;
        taken.remove(i.chains, i.blocks);
        if (i.memory.use_count() != 0)
          kept.push_back(std::move(i.memory));
        return true;
      });
    }
  };
  device &of(int device_id) {
    const std::lock_guard lock(mutex_);
    return of_[device_id];
  }

  std::mutex mutex_; ///< for the map; its elements stay where they are
  std::map<int, device> of_;
};

} // namespace cudaq::qec::realtime::gpu

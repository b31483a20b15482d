// SPDX-License-Identifier: Apache-2.0
#include "lib/api/manager.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"

#if defined(CUDAQ_REALTIME_HAS_CUDART)
#include "lib/base/cuda_device.h"

#include "cudaq/realtime/daemon/dispatcher/graph_capture.h"
#endif

#include <algorithm>
#include <bit>

using namespace cudaq::realtime::detail;

std::shared_ptr<job_table> cudaq_dispatch_manager_t::make_jobs(std::uint32_t num_slots) {
  const std::lock_guard lock(mutex);
  return make_jobs_locked(num_slots);
}

std::shared_ptr<job_table> cudaq_dispatch_manager_t::make_jobs_locked(std::uint32_t num_slots) {
  return std::make_shared<job_table>(num_slots, next_generation++ << 40);
}

expected<> cudaq_dispatch_manager_t::join_ring(const slot_ring &ring, std::shared_ptr<ring_router> &out) {
  const std::lock_guard lock(mutex);
  if (exclusive_rings.count(ring.rx_flags) != 0)
    return make_reason(
        CUDAQ_ERR_STATE,
        "config->shared_ring_mode is set, but a dispatcher without it runs on this ring; stop that one first");
  std::erase_if(shared_rings, [](const auto &r) { return r.second.running == 0 && r.second.router.expired(); });
  shared_ring &known = shared_rings[ring.rx_flags];
  std::shared_ptr<ring_router> router = known.router.lock();
  const auto same = [&](const slot_ring &r) {
    const bool aliases_agree = r.rx_alias == 0 || ring.rx_alias == 0 || r.rx_alias == ring.rx_alias; // 0: not known
    return r.num_slots == ring.num_slots && r.slot_size == ring.slot_size && r.tx_flags == ring.tx_flags &&
           r.rx_data == ring.rx_data && r.tx_data == ring.tx_data && r.rx_stride == ring.rx_stride &&
           r.tx_stride == ring.tx_stride && aliases_agree;
  };
  if (known.running != 0 && router && !same(router->jobs()->ring))
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "config->shared_ring_mode is set, but another dispatcher runs on this ring with %u slots of %u "
                       "bytes; this one has %u slots of %u bytes, or other arrays",
                       router->jobs()->ring.num_slots, router->jobs()->ring.slot_size, ring.num_slots, ring.slot_size);
  if (!router || !same(router->jobs()->ring)) {
    std::shared_ptr<job_table> jobs = make_jobs_locked(ring.num_slots);
    jobs->bind(ring);
    router = std::make_shared<ring_router>(std::move(jobs));
    known.router = router;
  }
  out = std::move(router);
  ++known.running;
  return {};
}

void cudaq_dispatch_manager_t::leave_ring(const volatile void *ring) {
  const std::lock_guard lock(mutex);
  --shared_rings[ring].running;
}

expected<> cudaq_dispatch_manager_t::reserve_ring(const volatile void *ring) {
  const std::lock_guard lock(mutex);
  const auto shared = shared_rings.find(ring);
  const bool in_use = shared != shared_rings.end() && shared->second.running != 0;
  if (in_use || !exclusive_rings.insert(ring).second)
    return make_reason(CUDAQ_ERR_STATE,
                       "another dispatcher runs on this ring, and config->shared_ring_mode is 0; stop that one first");
  return {};
}

void cudaq_dispatch_manager_t::release_ring(const volatile void *ring) {
  const std::lock_guard lock(mutex);
  exclusive_rings.erase(ring);
}

expected<> cudaq_dispatch_manager_t::claim(const void *who, const memory_claim &what) {
  const std::lock_guard lock(mutex);
  return claims.add(who, what);
}

void cudaq_dispatch_manager_t::unclaim(const void *who) {
  const std::lock_guard lock(mutex);
  claims.remove(who);
}

void cudaq_dispatch_manager_t::leave_claims_to_a_graph() {
  const std::lock_guard lock(mutex);
  claims.leave_to_a_graph();
}

std::uint32_t cudaq_dispatch_manager_t::add_resident(const void *who, int device_id, std::uint32_t blocks) {
  const std::lock_guard lock(mutex);
  std::uint64_t others = reserved_blocks.count(device_id) != 0 ? reserved_blocks[device_id] : 0;
  for (const auto &[whose, at] : residents)
    if (whose != who && at.device_id == device_id)
      others += at.blocks;
  residents[who] = {device_id, blocks};
  return others < UINT32_MAX ? static_cast<std::uint32_t>(others) : UINT32_MAX;
}

void cudaq_dispatch_manager_t::remove_resident(const void *who) {
  const std::lock_guard lock(mutex);
  residents.erase(who);
}

#if defined(CUDAQ_REALTIME_HAS_CUDART)
expected<> cudaq_dispatch_manager_t::take_mapped_block(std::size_t bytes, void *&out) {
  constexpr std::size_t kPage = 4096;
  const std::size_t size = std::bit_ceil(bytes < kPage ? kPage : bytes);
  const std::lock_guard lock(mutex);
  for (auto &[block, of] : mapped_blocks)
    if (!of.taken && of.bytes == size) {
      of.taken = true;
      out = block;
      return {};
    }
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device))
    return cuda_failed("cudaGetDevice", error);
  // First: pinned memory cannot be freed while kernels run.
  std::map<void *, mapped_block> one{{nullptr, {.bytes = size, .device_id = device, .taken = true}}};
  void *fresh = nullptr;
  if (const cudaError_t error = cudaHostAlloc(&fresh, size, cudaHostAllocMapped | cudaHostAllocPortable))
    return cuda_failed("cudaHostAlloc", error);
  auto node = one.extract(one.begin());
  node.key() = fresh;
  mapped_blocks.insert(std::move(node));
  out = fresh;
  return {};
}

void cudaq_dispatch_manager_t::give_back_mapped_block(void *block) {
  const std::lock_guard lock(mutex);
  mapped_blocks[block].taken = false;
}

cudaq_dispatch_manager_t::spare_graphs cudaq_dispatch_manager_t::take_spare_graphs(int device_id) {
  const std::lock_guard lock(mutex);
  const auto found =
      std::find_if(spares.begin(), spares.end(), [&](const spare_graphs &s) { return s.device_id == device_id; });
  if (found == spares.end())
    return {};
  const spare_graphs taken = *found;
  spares.erase(found);
  return taken;
}

void cudaq_dispatch_manager_t::keep_spare_graphs(const spare_graphs &graphs) noexcept {
  const std::lock_guard lock(mutex);
  spares.push_back(graphs);
}

// Each dispatcher has the graphs of one launch function, and its next launch may replace them by others.
void cudaq_dispatch_manager_t::make_room_for_spare_graphs() {
  const std::lock_guard lock(mutex);
  spares.reserve(spares.size() + 2 * dispatchers.size());
}

void cudaq_dispatch_manager_t::grow_stream_pool(int device_id) {
  constexpr std::size_t kStreams = 128; // enough for several graph dispatchers and their graphs; takes 4 ms
  {
    const std::lock_guard lock(mutex);
    const auto reserved = reserved_blocks.find(device_id);
    if ((reserved != reserved_blocks.end() && reserved->second != 0) || grown_devices.count(device_id) != 0 ||
        std::any_of(residents.begin(), residents.end(), [&](const auto &r) { return r.second.device_id == device_id; }))
      return;
    grown_devices.insert(device_id);
  }
  bool grown = false;
  try {
    const device_guard guard(device_id); // no lock is held: this waits if kernels of the program run
    grown = guard.error() == cudaSuccess && cudaq::realtime::reserve_streams(kStreams) == cudaSuccess;
  } catch (const std::bad_alloc &) {
  }
  if (grown) // an error is ignored: start reports it, and the next graph dispatcher tries again
    return;
  const std::lock_guard lock(mutex);
  grown_devices.erase(device_id);
}

cudaq_dispatch_manager_t::~cudaq_dispatch_manager_t() {
  for (const spare_graphs &s : spares) {
    const device_guard guard(s.device_id);
    s.destroy(s.made);
  }
  for (const auto &[block, of] : mapped_blocks) {
    const device_guard guard(of.device_id);
    cudaFreeHost(block);
  }
}
#else
cudaq_dispatch_manager_t::~cudaq_dispatch_manager_t() = default;
#endif

extern "C" {

cudaq_status_t cudaq_dispatch_manager_create(cudaq_dispatch_manager_t **out_mgr) {
  return guarded(__func__, [&]() -> expected<> {
    if (out_mgr == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "out_mgr is NULL");
    *out_mgr = new cudaq_dispatch_manager_t;
    return {};
  });
}

cudaq_status_t cudaq_dispatch_manager_destroy(cudaq_dispatch_manager_t *mgr) {
  return guarded(__func__, [&]() -> expected<> {
    if (mgr == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "mgr is NULL");
    {
      const std::lock_guard lock(mgr->mutex);
      if (!mgr->dispatchers.empty())
        return make_reason(CUDAQ_ERR_STATE, "mgr still owns %zu dispatchers; destroy them first",
                           mgr->dispatchers.size());
    }
    delete mgr;
    return {};
  });
}

cudaq_status_t cudaq_dispatch_manager_reserve_blocks(cudaq_dispatch_manager_t *mgr, int device_id, uint32_t blocks) {
  return guarded(__func__, [&]() -> expected<> {
    if (mgr == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "mgr is NULL");
    if (device_id < 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "device_id is %d, allowed: 0 or more", device_id);
    const std::lock_guard lock(mgr->mutex);
    mgr->reserved_blocks[device_id] = blocks;
    return {};
  });
}

} // extern "C"

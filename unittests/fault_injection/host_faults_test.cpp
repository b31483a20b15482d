// SPDX-License-Identifier: Apache-2.0
// The host path without graphs: every allocation, thread and placement fails once, in every function of the C API.
#include "unittests/api/dataplane/fake_provider.h"
#include "unittests/fault_injection/dispatch_script.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  std::uint32_t pool = 0;
  bool in_place = false;
  bool placed = false; ///< cores, or a node, and a real-time priority
  std::uint64_t least_faults = 0;
};

void copy_handler(const void *rx_slot, void *tx_slot, std::size_t) {
  cudaq_rpc_header_t request;
  std::memcpy(&request, rx_slot, sizeof(request));
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, request.arg_len, 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
}

cudaq_dispatcher_options_t options_of(const flavour &f) {
  cudaq_dispatcher_options_t options = sleeping_options();
  options.handler_pool_size = f.pool;
  if (f.placed) {
    options.dispatcher_core = 0;
    options.numa_node = f.pool != 0 ? 0 : CUDAQ_NUMA_NODE_ANY;
    options.realtime_priority = 1;
  }
  return options;
}

cudaq_dispatcher_config_t config_of(bool shared) {
  cudaq_dispatcher_config_t config = host_config({kSlots, kSlotBytes, false});
  config.shared_ring_mode = shared;
  return config;
}

/// A life of a dispatcher, with a deferred request, refused calls, and a second run on a newly wired ring.
class life : public dispatch_script {
public:
  explicit life(const flavour &f) : dispatch_script(1), flavour_(f) { ring_options.in_place = f.in_place; }

  std::vector<step> steps() override {
    std::vector<step> all = {make_manager(),
                             make_ring(),
                             make_dispatcher(0, config_of(false)),
                             refused({"cudaq_dispatcher_start", start(0).call}, CUDAQ_ERR_INVALID_ARG),
                             set_ring(0),
                             set_table(0, {&entry_, 1}),
                             set_control(0),
                             set_options(0, options_of(flavour_)),
                             set_v2(2),
                             set_v2(3),
                             set_v2(2)};
    add_readers(all, 0);
    const auto add = [&](std::initializer_list<step> more) { all.insert(all.end(), more); };
    add({start(0), serve(1), serve(2), serve(3), unknown(), defer(), complete(CUDAQ_OK), complete(CUDAQ_ERR_STATE),
         take_deferred(), refused(start(0), CUDAQ_OK), refused(set_ring(0), CUDAQ_ERR_STATE),
         refused(destroy_manager(), CUDAQ_ERR_STATE)});
    add_readers(all, 0);
    add({stop(0), start(0), serve(1), stop_timeout(0), stop(0), set_ring(0), set_v2(4), start(0), serve(4), destroy(0),
         destroy_ring(), destroy_manager()});
    return all;
  }

private:
  static std::int32_t handle(cudaq_host_call_t *call, void *user) {
    auto &self = *static_cast<life *>(user);
    call->result_len = 0;
    if (*static_cast<const std::uint8_t *>(call->payload) == 0)
      return 0;
    self.job_ = call->job;
    self.deferred_.store(true);
    return CUDAQ_HOST_CALL_DEFERRED;
  }
  step set_v2(std::uint32_t id) {
    return {"cudaq_dispatcher_set_host_handler_v2",
            [this, id] { return cudaq_dispatcher_set_host_handler_v2(members[0].get, id, handle, this, nullptr); }};
  }
  step unknown() {
    step s = serve(99);
    s.expected = CUDAQ_ERR_CUDA; // answered, with an error
    return s;
  }
  step defer() {
    return {"a deferred request",
            [this] {
              deferred_.store(false);
              const status result = request_until(2, 1, [this] { return deferred_.load(); });
              slot_ = last_slot();
              return result;
            },
            promise::serves};
  }
  step complete(cudaq_status_t expected) {
    return refused(
        {"cudaq_host_complete_deferred", [this] { return cudaq_host_complete_deferred(members[0].get, &job_, 0, 0); }},
        expected);
  }
  step take_deferred() {
    return {"a deferred answer", [this] { return take(slot_); }, promise::serves};
  }

  const flavour flavour_;
  cudaq_function_entry_t entry_ = host_entry("copy", copy_handler);
  cudaq_host_job_t job_{};
  std::uint32_t slot_ = 0;
  std::atomic<bool> deferred_{false};

public:
  /// Function 1 of the table.
  void name_entry() { entry_.function_id = 1; }
};

class HostFaults : public ::testing::TestWithParam<flavour> {};

TEST_P(HostFaults, LeaveTheDispatcherUsableAndLoseNothing) {
  fault_sweep sweep([] {
    auto made = std::make_unique<life>(GetParam());
    made->name_entry();
    return made;
  });
  sweep.each_call();
  sweep.pairs_in_the_end();
  std::vector<std::string> calls = {"operator new", "mmap", "munmap", "pthread_create"};
  if (GetParam().placed)
    calls.insert(calls.end(), {"pthread_setaffinity_np", "pthread_setschedparam"});
  sweep.expect_at_least(GetParam().least_faults, calls);
}

INSTANTIATE_TEST_SUITE_P(Flavours, HostFaults,
                         ::testing::Values(flavour{"Inline", 0, false, false, 75},
                                           flavour{"InPlacePlaced", 0, true, true, 80},
                                           flavour{"Pool", 2, false, false, 110},
                                           flavour{"PoolPlaced", 2, false, true, 150}),
                         [](const auto &tested) { return std::string(tested.param.name); });

/// Two dispatchers on one ring. The first one leaves and comes back.
class shared_life : public dispatch_script {
public:
  explicit shared_life(std::uint32_t pool) : dispatch_script(2), pool_(pool) {
    for (std::uint32_t m = 0; m < 2; ++m) {
      entries_[m] = host_entry("copy", copy_handler);
      entries_[m].function_id = m + 1;
    }
  }
  std::vector<step> steps() override {
    std::vector<step> all = {make_manager(), make_ring()};
    const auto add = [&](std::initializer_list<step> more) { all.insert(all.end(), more); };
    for (std::uint32_t m = 0; m < 2; ++m)
      add({make_dispatcher(m, config_of(true)), set_ring(m), set_table(m, {&entries_[m], 1}), set_control(m),
           set_options(m, options_of({"", pool_})), start(m)});
    add({serve(1),
         serve(2),
         stop(0),
         serve(2),
         start(0),
         serve(1),
         stop(1),
         set_table(1, {&entries_[0], 1}),
         {start(1).name, start(1).call, promise::may_fail, CUDAQ_ERR_INVALID_ARG},
         set_table(1, {&entries_[1], 1}),
         start(1),
         serve(2),
         serve(1),
         stop(0),
         stop(1),
         set_ring(0),
         set_ring(1),
         start(1),
         serve(2),
         start(0),
         serve(1),
         destroy(0),
         destroy(1),
         destroy_ring(),
         destroy_manager()});
    return all;
  }

private:
  const std::uint32_t pool_;
  cudaq_function_entry_t entries_[2];
};

TEST(SharedRingFaults, LeaveTheDispatchersUsableAndLoseNothing) {
  for (const std::uint32_t pool : {0u, 1u}) {
    sweep_all_faults([pool] { return std::make_unique<shared_life>(pool); }, pool == 0 ? 75 : 110,
                     {"operator new", "mmap", "munmap", "pthread_create"});
  }
}

/// A dispatcher that receives and sends through a provider.
class dataplane_life : public dispatch_script {
public:
  explicit dataplane_life(std::uint32_t pool) : dispatch_script(1), pool_(pool) {
    plane_ = provider_.plane;
    plane_.ctx = this;
    plane_.rx_poll = [](void *self, std::uint32_t *slot) {
      const faults::exempt_scope of_the_test;
      return of(self).plane.rx_poll(&of(self), slot);
    };
    plane_.tx_publish = [](void *self, std::uint32_t slot) {
      const faults::exempt_scope of_the_test;
      return of(self).plane.tx_publish(&of(self), slot);
    };
  }
  ~dataplane_life() override { EXPECT_EQ(provider_.wrong(), 0) << "a slot was published twice"; }

  std::vector<step> steps() override {
    cudaq_dispatcher_config_t config = config_of(false);
    config.kernel_type = CUDAQ_KERNEL_UNIFIED;
    entry_.function_id = 1;
    return {make_manager(),
            make_dispatcher(0, config),
            set_table(0, {&entry_, 1}),
            set_control(0),
            set_options(0, options_of({"", pool_})),
            refused({"cudaq_dispatcher_set_cpu_dataplane",
                     [this] { return cudaq_dispatcher_set_cpu_dataplane(members[0].get, nullptr); }},
                    CUDAQ_ERR_INVALID_ARG),
            set_plane(),
            set_plane(),
            set_limit(0),
            set_limit(64),
            set_times(),
            start(0),
            get_times(),
            refused(set_plane(), CUDAQ_ERR_STATE),
            refused(set_limit(0), CUDAQ_ERR_STATE),
            request(1, CUDAQ_OK),
            request(99, CUDAQ_ERR_CUDA),
            stop(0),
            set_plane(),
            start(0),
            request(1, CUDAQ_OK),
            destroy(0),
            destroy_manager()};
  }

private:
  static fake_provider &of(void *self) { return static_cast<dataplane_life *>(self)->provider_; }
  step set_plane() {
    return {"cudaq_dispatcher_set_cpu_dataplane",
            [this] { return cudaq_dispatcher_set_cpu_dataplane(members[0].get, &plane_); }};
  }
  step set_limit(std::uint32_t bytes) {
    return {"cudaq_dispatcher_set_max_result_bytes",
            [this, bytes] { return cudaq_dispatcher_set_max_result_bytes(members[0].get, bytes); }};
  }
  step set_times() {
    return {"cudaq_dispatcher_set_handler_times",
            [this] { return cudaq_dispatcher_set_handler_times(members[0].get, 1); }};
  }
  step get_times() {
    return {"cudaq_dispatcher_get_handler_times",
            [this] {
              auto times = cudaq_handler_times_t{};
              times.struct_size = sizeof(times);
              return cudaq_dispatcher_get_handler_times(members[0].get, entry_.function_id, &times);
            },
            promise::succeeds};
  }
  step request(std::uint32_t function_id, status expected) {
    return {"a request",
            [this, function_id] {
              const faults::exempt_scope client;
              const answer got = provider_.call(function_id, {1, 2, 3}, 7);
              return got.header.status == 0 ? CUDAQ_OK : CUDAQ_ERR_CUDA;
            },
            promise::serves, expected};
  }

  const std::uint32_t pool_;
  fake_provider provider_{{kSlots, kSlotBytes, false}};
  cudaq_cpu_dataplane_t plane_{};
  cudaq_function_entry_t entry_ = host_entry("copy", copy_handler);
};

TEST(DataplaneFaults, LeaveTheDispatcherUsableAndLoseNothing) {
  for (const std::uint32_t pool : {0u, 2u}) {
    sweep_all_faults([pool] { return std::make_unique<dataplane_life>(pool); }, 20, {"operator new", "pthread_create"});
  }
}

/// The loop on the caller's thread. The shutdown flag is set before: the loop ends after its start.
class own_loop : public dispatch_script {
public:
  explicit own_loop(std::uint32_t pool) : dispatch_script(1), pool_(pool) { *members[0].flag = 1; }
  std::vector<step> steps() override {
    const step loop{"cudaq_host_dispatcher_loop", [this] {
                      const cudaq_dispatcher_config_t config = config_of(false);
                      const cudaq_function_table_t table{&entry_, 1};
                      return cudaq_host_dispatcher_loop(&config, &ring, &table, nullptr, 0, &options_, members[0].flag,
                                                        members[0].stats);
                    }};
    const step upstream_loop{"cudaq_host_dispatcher_loop", [this] {
                               {
                                 const faults::exempt_scope of_the_test;
                                 (void)cudaq_dispatcher_stop(nullptr); // another text
                               }
                               cudaq_host_dispatcher_loop_upstream(&context_);
                               const faults::exempt_scope of_the_test;
                               return error_names({"cudaq_host_dispatcher_loop: "}) ? CUDAQ_ERR_INTERNAL : CUDAQ_OK;
                             }};
    options_ = options_of({"", pool_});
    context_.config = config_of(false);
    context_.function_table = {&entry_, 1};
    context_.shutdown_flag = const_cast<int *>(members[0].flag);
    context_.stats_counter = members[0].stats;
    const step wire{"the wiring of the context", [this] {
                      context_.ringbuffer = ring;
                      return CUDAQ_OK;
                    }};
    return {make_ring(), loop, wire, upstream_loop, destroy_ring()};
  }

private:
  const std::uint32_t pool_;
  cudaq_function_entry_t entry_ = host_entry("copy", copy_handler);
  cudaq_dispatcher_options_t options_{};
  cudaq_host_dispatch_loop_ctx_t context_{};
};

TEST(OwnLoopFaults, EndTheLoopBeforeItBegins) {
  for (const std::uint32_t pool : {0u, 2u}) {
    fault_sweep sweep([pool] { return std::make_unique<own_loop>(pool); });
    sweep.each_call();
    std::vector<std::string> calls = {"operator new", "mmap", "munmap"};
    if (pool != 0)
      calls.emplace_back("pthread_create");
    sweep.expect_at_least(35, calls);
  }
}

} // namespace
} // namespace cudaq::realtime::test

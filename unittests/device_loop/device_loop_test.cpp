// SPDX-License-Identifier: Apache-2.0
// kernels/dispatch_loop.cuh run by CPU threads over the rings that the host dispatcher serves: teams of one thread, one
// of them with FIFO ordering, several with ANY.
#include "kernels/dispatch_loop.cuh"
#include "kernels/handler_sets.h"
#include "kernels/ring_transport.h"
#include "lib/ring/function_index_builder.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {
namespace {

using namespace detail;

/// Tests share few cores.
struct yielding_team : lone_team {
  static std::uint32_t ballot(bool vote) {
    if (!vote)
      std::this_thread::yield();
    return vote;
  }
};
using transport = ring_transport<yielding_team, cuda::thread_scope_system>;
template <class Handlers, bool Any>
using loop = dispatch_loop<yielding_team, transport, Handlers, solo_crew<yielding_team>, Any>;

/// The checked function with this id behind the signature of a device handler.
template <std::uint32_t Id>
int handler(const void *in, void *out, std::uint32_t arg_len, std::uint32_t max_result_len, std::uint32_t *result_len) {
  cudaq_host_call_t call{};
  call.payload = in;
  call.payload_len = arg_len;
  call.result = out;
  call.max_result_len = max_result_len;
  const int status = checked_function::serve(&call, checked_function::v1_by_id[Id]);
  *result_len = call.result_len;
  return status;
}

slot_ring host_view(const host_ring &r) {
  const bool in_place = r.ring.tx_data_host == nullptr;
  slot_ring view;
  view.rx_flags = r.ring.rx_flags_host, view.tx_flags = r.ring.tx_flags_host;
  view.rx_data = r.ring.rx_data_host, view.tx_data = in_place ? r.ring.rx_data_host : r.ring.tx_data_host;
  view.rx_stride = view.tx_stride = r.ring.rx_stride_sz;
  view.num_slots = r.shape().num_slots, view.slot_size = r.shape().slot_size;
  return view;
}

/// What start() prepares for a kernel, for a number of teams.
class loop_host {
public:
  loop_host(const host_ring &ring, std::uint32_t teams) : reports(teams), desks_(teams) {
    const DeviceRPCFunction functions[] = {handler<1>, handler<2>, handler<3>};
    std::vector<cudaq_function_entry_t> entries(3);
    for (std::uint32_t e = 0; e < 3; ++e) {
      entries[e].function_id = e + 1;
      entries[e].dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
      handlers_.push_back(reinterpret_cast<std::uint64_t>(functions[e]));
    }
    EXPECT_EQ(index_.build(entries.data(), 3).what, function_index::problem::none);
    params.ring = host_view(ring);
    params.index = index_.view();
    params.handlers = handlers_.data();
    params.library_shutdown = &library_word;
    params.caller_shutdown = &caller_word;
    params.caller_stats = &processed;
    params.reports = reports.data();
    params.rules.served_modes = 1u << CUDAQ_DISPATCH_DEVICE_CALL;
    params.rules.answer_unknown = true;
    params.any_order = teams > 1;
    const std::uint32_t stage = (ring.shape().slot_size + 15) & ~15u;
    for (desk &d : desks_) {
      d.memory.resize(2 * stage / 16 + 32 * 4);
      d.loop.in = reinterpret_cast<std::uint8_t *>(d.memory.data());
      d.loop.out = d.loop.in + stage;
      d.loop.stage_bytes = stage;
      d.loop.out_pitch = params.any_order && stage <= 64 ? stage : 0;
    }
  }

  template <bool Any>
  void start() {
    for (std::uint32_t t = 0; t < desks_.size(); ++t)
      threads_.emplace_back([this, t] {
        const table_handler_set handlers(params.index, params.handlers);
        solo_crew<yielding_team> crew;
        loop<table_handler_set, Any>(params, t, desks_[t].loop, transport(params.ring, 0), handlers, crew)
            .run(static_cast<std::uint32_t>(desks_.size()));
      });
  }
  void join() {
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
  }

  dispatch_params params;
  std::uint32_t library_word = 0;
  volatile int caller_word = 0;
  std::uint64_t processed = 0;
  std::vector<loop_report> reports;

private:
  struct desk {
    loop_desk loop{};
    std::vector<word16> memory;
  };
  function_index index_;
  std::vector<std::uint64_t> handlers_;
  std::vector<desk> desks_;
  std::vector<std::thread> threads_;
};

struct flavour {
  const char *name;
  ring_shape shape;
  std::uint32_t teams = 1;
  bool random_slots = false;
};

class DeviceLoopOnHost : public ::testing::TestWithParam<flavour> {};

TEST_P(DeviceLoopOnHost, Row02_LosesDoublesTearsAndReordersNothing) {
  const flavour &f = GetParam();
  host_ring ring(f.shape);
  traffic_plan plan;
  plan.messages = fewer_if_sanitized(f.shape.num_slots < 8 ? 5000 : 30000);
  plan.unknown_of_100 = 2;
  plan.random_slots = f.random_slots;
  std::vector<std::unique_ptr<checked_function>> functions;
  for (std::uint32_t id = 1; id <= 3; ++id) {
    functions.push_back(std::make_unique<checked_function>(id, plan.messages));
    checked_function::v1_by_id[id] = functions.back().get();
    plan.functions.push_back(functions.back().get());
  }
  loop_host host(ring, f.teams);
  f.teams > 1 ? host.start<true>() : host.start<false>();
  traffic load(ring, plan);
  load.run();
  store_release(host.library_word, std::uint32_t{1});
  host.join();
  load.expect_clean(f.teams == 1 && !f.random_slots, f.teams == 1);
  std::uint64_t responded = 0, dispatched = 0, refused = 0;
  for (const loop_report &r : host.reports) {
    responded += r.responded, dispatched += r.dispatched;
    refused += r.protocol_errors[CUDAQ_RPC_ERROR_INDEX(CUDAQ_RPC_ERR_NO_SUCH_FUNCTION)];
  }
  EXPECT_EQ(responded, plan.messages);
  EXPECT_EQ(dispatched + refused, plan.messages);
  EXPECT_EQ(host.processed, plan.messages);
}

INSTANTIATE_TEST_SUITE_P(
    Flavours, DeviceLoopOnHost,
    ::testing::Values(flavour{"OneSlot", {1, 64, false}}, flavour{"OneSlotInPlace", {1, 256, true}},
                      flavour{"ThreeSlots", {3, 72, false}}, flavour{"ManySlots", {64, 1024, false}},
                      flavour{"ManySlotsInPlace", {64, 512, true}}, flavour{"RandomSlots", {16, 256, false}, 1, true},
                      flavour{"AnyTwoTeams", {16, 64, false}, 2}, flavour{"AnyTwoTeamsInPlace", {15, 256, true}, 2},
                      flavour{"AnyThreeTeamsRandomSlots", {64, 1024, false}, 3, true}),
    [](const auto &tested) { return std::string(tested.param.name); });

TEST(DeviceLoopStop, Row01_TheCallersOwnFlagEndsIt) {
  host_ring ring({4, 64, false});
  loop_host host(ring, 1);
  host.start<false>();
  ASSERT_TRUE(eventually([&] { return load_relaxed(host.reports[0].heartbeat) >= 3; })) << "no heartbeat while idle";
  store_release(host.caller_word, 1);
  host.join();
}

/// Handlers known at compile time answer like those of a table.
struct echo_handler {
  static constexpr std::uint32_t function_id = 7;
  static int call(const void *in, void *out, std::uint32_t arg_len, std::uint32_t, std::uint32_t *result_len) {
    std::memcpy(out, in, arg_len);
    *result_len = arg_len;
    return 5;
  }
};

TEST(DeviceLoopTurn, ServesAHandlerThatIsKnownAtCompileTimeAndRefusesOthers) {
  host_ring ring({2, 64, false});
  loop_host host(ring, 1);
  const static_handler_set<echo_handler> handlers;
  solo_crew<yielding_team> crew;
  loop_desk desk{};
  std::vector<word16> memory(8);
  desk.in = reinterpret_cast<std::uint8_t *>(memory.data());
  desk.out = desk.in + 64;
  desk.stage_bytes = 64;
  loop<static_handler_set<echo_handler>, false> served(host.params, 0, desk, transport(host.params.ring, 0), handlers,
                                                       crew);
  ring_client client(ring);
  EXPECT_EQ(served.turn(), 0u);
  client.send(7, {1, 2, 3}, 42, 9);
  EXPECT_EQ(served.turn(), 1u);
  const answer known = client.collect(0);
  EXPECT_EQ(known.header.status, 5);
  EXPECT_EQ(known.header.request_id, 42u);
  EXPECT_EQ(known.header.ptp_timestamp, 9u);
  EXPECT_EQ(known.result, (std::vector<std::uint8_t>{1, 2, 3}));
  client.send(8, {}, 43);
  EXPECT_EQ(served.turn(), 1u);
  EXPECT_EQ(client.collect(1).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
}

} // namespace
} // namespace cudaq::realtime::test

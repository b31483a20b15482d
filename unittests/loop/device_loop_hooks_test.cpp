// SPDX-License-Identifier: Apache-2.0
// The device loop over the hooks of a transport, on CPU threads. The hooks are those of the example, over a ring, or
// follow a script.
#include "cudaq/realtime/detail/loop/hook_transport.h"
#include "docs/examples/transport/ring_hooks.h"
#include "unittests/loop/loop_host.h"

namespace cudaq::realtime::test {
namespace {

/// The example's hooks, counted.
struct counted_hooks {
  static void *attach(void *storage, void *ctx, volatile int *shutdown) {
    return example::ring_attach(storage, ctx, shutdown);
  }
  static bool rx_poll(void *session, void **request, void **response) {
    const bool there = example::ring_poll(session, request, response);
    received += there;
    return there;
  }
  static void tx_publish(void *session, void *response) {
    ++published;
    example::ring_publish(session, response);
  }
  static inline std::atomic<std::uint64_t> received{0}, published{0};
};
using hooked = hook_transport<yielding_thread_group, counted_hooks>;

class DeviceLoopHooks : public ::testing::TestWithParam<ring_shape> {
protected:
  explicit DeviceLoopHooks(const ring_shape &shape) : ring(shape) {
    counted_hooks::received = counted_hooks::published = 0;
    for (std::uint32_t id = 1; id <= 3; ++id) {
      functions.push_back(std::make_unique<checked_function>(id, kMax));
      checked_function::v1_by_id[id] = functions.back().get();
    }
    context.ring = ring.ring;
    context.ring.rx_flags = ring.ring.rx_flags_host, context.ring.tx_flags = ring.ring.tx_flags_host;
    context.ring.rx_data = ring.ring.rx_data_host, context.ring.tx_data = ring.ring.tx_data_host;
    context.num_slots = shape.num_slots;
  }
  DeviceLoopHooks() : DeviceLoopHooks(GetParam()) {}
  ~DeviceLoopHooks() override { stop(); }

  void start() {
    running = true;
    host.start_with<false>(hooked(shared, &context, &host.caller_word, ring.shape().slot_size));
  }
  /// As stop() of a dispatcher.
  void stop() {
    if (!running)
      return;
    running = false;
    store_release(host.caller_word, 1);
    store_release(host.library_word, std::uint32_t{1});
    host.join();
  }

  static constexpr std::uint32_t kMax = 100000;
  host_ring ring;
  std::vector<std::unique_ptr<checked_function>> functions;
  example::ring_hooks_context context{};
  hooked::shared_state shared;
  loop_host host{ring, 1};
  bool running = false;
};

std::string name_of_shape(const ::testing::TestParamInfo<ring_shape> &tested) {
  return std::to_string(tested.param.num_slots) + "x" + std::to_string(tested.param.slot_size);
}

// Known failure 2.
TEST_P(DeviceLoopHooks, LosesDoublesTearsAndReordersNothing) {
  traffic_plan plan = traffic_for(functions, load_size(GetParam().num_slots < 8 ? 5000 : 20000));
  start();
  traffic load(ring, plan);
  load.run();
  stop();
  load.expect_clean();
  EXPECT_EQ(counted_hooks::received, plan.messages);
  EXPECT_EQ(counted_hooks::published, plan.messages);
  const loop_report &r = host.reports[0];
  EXPECT_EQ(r.responded, plan.messages);
  EXPECT_EQ(r.dispatched + r.refused, plan.messages);
  EXPECT_EQ(host.processed, plan.messages);
  EXPECT_EQ(r.fault, 0u);
}

// Known failure 1.
TEST_P(DeviceLoopHooks, AStopUnderLoadPublishesEveryFrameThatItTook) {
  for (int runs = 0; runs < 20; ++runs) {
    host.reports[0] = {};
    context.next = 0;
    start();
    ring_client client(ring);
    std::atomic<bool> ended{false};
    std::thread producer([&] { // leaves its answers in their slots
      for (std::uint32_t id = 0; !ended.load() && id < ring.shape().num_slots; ++id)
        client.send(99, {1, 2, 3}, id);
    });
    if (runs % 2 == 0)
      eventually([] { return counted_hooks::received.load() > 0; });
    stop();
    ended = true;
    producer.join();
    EXPECT_EQ(counted_hooks::received, counted_hooks::published);
    EXPECT_EQ(host.reports[0].responded, counted_hooks::received);
    for (std::uint32_t slot = 0; slot < ring.shape().num_slots; ++slot)
      cudaq_host_ringbuffer_clear_slot(&ring.ring, slot);
    const slot_ring view = host_view(ring);
    for (std::uint32_t slot = 0; slot < ring.shape().num_slots; ++slot)
      view.release_rx(slot);
    counted_hooks::received = counted_hooks::published = 0;
    store_release(host.caller_word, 0);
    store_release(host.library_word, std::uint32_t{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DeviceLoopHooks,
                         ::testing::Values(ring_shape{1, 64}, ring_shape{3, 72}, ring_shape{64, 1024},
                                           ring_shape{8, 4096}),
                         name_of_shape);

struct OneHookRing : DeviceLoopHooks {
  OneHookRing() : DeviceLoopHooks(ring_shape{4, 128}) {}
};

TEST_F(OneHookRing, CountsArePostedBeforeTheLoopWaits) {
  start();
  ring_client client(ring);
  for (std::uint32_t id = 1; id <= 5; ++id) {
    EXPECT_EQ(client.call(99, {}, id).header.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
    EXPECT_TRUE(eventually([&] { return load_acquire(host.reports[0].responded) == id; }));
    EXPECT_TRUE(eventually([&] { return load_relaxed(host.processed) == id; }));
  }
}

TEST_F(OneHookRing, ARequestWithoutAnAnswerGivesItsFrameBackWithAHeaderOfZeros) {
  host.params.rules.answer_unknown = false;
  for (std::uint32_t slot : {0u, 1u})
    std::memset(ring.tx_slot(slot), 0xFF, ring.shape().slot_size);
  start();
  ring_client client(ring);
  const std::uint32_t unknown = client.send(99, {1, 2, 3}, 1);
  CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring.ring, 1, 1, nullptr, 0, 2, 0));
  ring.rx_slot(1)[0] ^= 1; // destroys the magic number
  cudaq_host_ringbuffer_signal_slot(&ring.ring, 1);
  for (const std::uint32_t slot : {unknown, 1u}) {
    ASSERT_TRUE(
        eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring.ring, slot, nullptr) == CUDAQ_TX_READY; }));
    const auto header = read_header<response>(ring.tx_slot(slot));
    EXPECT_EQ(header.magic, 0u);
    EXPECT_EQ(header.request_id + header.result_len, 0u);
  }
  stop();
  EXPECT_EQ(host.reports[0].dropped_unknown_function, 1u);
  EXPECT_EQ(host.reports[0].dropped_bad_magic, 1u);
  EXPECT_EQ(host.reports[0].responded, 0u);
  EXPECT_EQ(host.processed, 2u);
}

// Known failure 1.
TEST_F(OneHookRing, EndsWhileItWaitsAndNeedsOnlyTheCallersFlag) {
  start();
  ASSERT_TRUE(eventually([&] { return load_relaxed(host.reports[0].heartbeat) != 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // by now it waits
  store_release(host.caller_word, 1);
  host.join();
  running = false;
  EXPECT_EQ(host.reports[0].fault, 0u);
}

TEST_F(OneHookRing, WithoutASessionItPostsTheFaultAndNoHeartbeat) {
  context.num_slots = 0; // refused by attach
  start();
  host.join();
  running = false;
  EXPECT_EQ(host.reports[0].fault, static_cast<std::uint32_t>(kNotAttached));
  EXPECT_EQ(host.reports[0].heartbeat, 0u);
  EXPECT_EQ(counted_hooks::received, 0u);
}

/// Returns the frames of a script, then shutdown.
struct scripted_hooks {
  struct frame {
    void *request, *response;
  };
  static void *attach(void *storage, void *, volatile int *) { return storage; }
  static bool rx_poll(void *, void **request, void **response) {
    if (next == script.size())
      return false;
    *request = script[next].request, *response = script[next].response;
    ++next;
    return true;
  }
  static void tx_publish(void *, void *response) { published.push_back(response); }
  static inline std::vector<frame> script;
  static inline std::size_t next = 0;
  static inline std::vector<void *> published;
};

class ScriptedHooks : public ::testing::Test {
protected:
  using transport = hook_transport<yielding_thread_group, scripted_hooks>;
  ScriptedHooks() : memory(64) {
    write_request(slot(0), {CUDAQ_RPC_MAGIC_REQUEST, 99, 0, 7, 0});
    scripted_hooks::next = 0;
    scripted_hooks::published.clear();
  }
  std::uint8_t *slot(std::uint32_t number) { return reinterpret_cast<std::uint8_t *>(memory.data()) + 128 * number; }
  /// Runs the loop to its end. Returns the fault.
  std::uint32_t run(std::vector<scripted_hooks::frame> script, std::uint32_t slot_size = 128) {
    scripted_hooks::script = std::move(script);
    transport::shared_state shared;
    loop_host host(ring, 1);
    host.start_with<false>(transport(shared, nullptr, &host.caller_word, slot_size));
    host.join();
    return host.reports[0].fault;
  }
  const host_ring ring{{1, 128, false}};
  std::vector<word16> memory;
};

TEST_F(ScriptedHooks, TheTransportMayEndTheLoopByItself) {
  EXPECT_EQ(run({{slot(0), slot(1)}, {slot(0), slot(2)}}), 0u);
  EXPECT_EQ(scripted_hooks::published, (std::vector<void *>{slot(1), slot(2)}));
  EXPECT_EQ(read_header<response>(slot(2)).request_id, 7u);
}

TEST_F(ScriptedHooks, FramesOfNoUseEndTheLoopWithAFault) {
  const auto wrong = static_cast<std::uint32_t>(kWrongFrames);
  for (const scripted_hooks::frame &f :
       {scripted_hooks::frame{nullptr, slot(1)}, scripted_hooks::frame{slot(0), nullptr},
        scripted_hooks::frame{slot(0), slot(0)}, scripted_hooks::frame{slot(0) + 8, slot(1)},
        scripted_hooks::frame{slot(0), slot(1) + 4}}) {
    scripted_hooks::next = 0;
    scripted_hooks::published.clear();
    EXPECT_EQ(run({{slot(0), slot(2)}, f, {slot(0), slot(3)}}), wrong);
    EXPECT_EQ(scripted_hooks::published, (std::vector<void *>{slot(2)}));
  }
}

TEST_F(ScriptedHooks, FramesAreAlignedTo8IfTheirSizeIsNoMultipleOf16) {
  write_request(slot(0) + 8, {CUDAQ_RPC_MAGIC_REQUEST, 99, 0, 7, 0});
  EXPECT_EQ(run({{slot(0) + 8, slot(1) + 8}}, 120), 0u);
  EXPECT_EQ(read_header<response>(slot(1) + 8).request_id, 7u);
}

} // namespace
} // namespace cudaq::realtime::test

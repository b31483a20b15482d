// SPDX-License-Identifier: Apache-2.0
// Graph workers of the upstream interface, on a CUDA runtime without a GPU: what a program of it leaves out, and what
// its graphs find in the mailbox. CPU threads play the graphs.
#define CUDAQ_REALTIME_UPSTREAM_INTERFACE
#include "cudaq/realtime/detail/ring/frame.h"
#include "unittests/support/api_fixture.h"
#include "unittests/support/fake_cuda/fake_cuda.h"

#include <functional>

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kSlots = 4, kSlotBytes = 128, kFunction = 9, kWorkers = 2, kRequests = 20;

class UpstreamWorkers : public ::testing::Test {
protected:
  void SetUp() override {
    if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) == 0)
      GTEST_SKIP() << "this library was built without the CUDA runtime";
    // As a program that knows only one address of each array, and of strides only that of the answers.
    ring.rx_flags_host = mapped<std::uint64_t>(kSlots);
    ring.tx_flags_host = mapped<std::uint64_t>(kSlots);
    ring.rx_data_host = mapped<std::uint8_t>(kSlots * kSlotBytes);
    ring.tx_data_host = mapped<std::uint8_t>(kSlots * kSlotBytes);
    ring.tx_stride_sz = kSlotBytes;
    mailbox = mapped<void *>(kWorkers);
    contexts = mapped<GraphIOContext>(kWorkers);
    words = mapped<std::uint64_t>(2);
    for (std::uint32_t w = 0; w < kWorkers; ++w) {
      graphs[w].run = [this, w] { answer_by_context(w); };
      entries[w].function_id = kFunction + w;
      entries[w].dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
      entries[w].handler.graph_exec = &graphs[w];
    }
    config.num_slots = kSlots;
    config.slot_size = kSlotBytes;
  }
  void TearDown() override {
    for (void *block : blocks_)
      fake_cuda::release(block);
    EXPECT_EQ(fake_cuda::violations(), "");
    EXPECT_EQ(fake_cuda::clean_up(), 0);
  }
  template <class T>
  T *mapped(std::size_t n) {
    blocks_.push_back(fake_cuda::allocate(n * sizeof(T), cudaMemoryTypeHost));
    std::memset(blocks_.back(), 0, n * sizeof(T));
    return static_cast<T *>(blocks_.back());
  }
  volatile int *shutdown() { return reinterpret_cast<volatile int *>(words); }
  /// What a graph of such a program does: the answer is the first payload word, doubled.
  void answer_by_context(std::uint32_t worker) const {
    const auto &io = *static_cast<const GraphIOContext *>(mailbox[worker]);
    write_answer(static_cast<const std::uint8_t *>(io.rx_slot), io.tx_slot);
    detail::store_release<std::uint64_t>(*io.tx_flag, io.tx_flag_value);
  }
  static void write_answer(const std::uint8_t *rx_slot, std::uint8_t *tx_slot) {
    const auto request = detail::read_header<detail::request>(rx_slot);
    std::uint64_t word = 0;
    std::memcpy(&word, rx_slot + CUDAQ_RPC_HEADER_SIZE, sizeof(word));
    word *= 2;
    detail::write_response(tx_slot, request, 0, sizeof(word));
    std::memcpy(tx_slot + CUDAQ_RPC_HEADER_SIZE, &word, sizeof(word));
  }
  /// The ring as the requester uses it.
  void exchange_all() const {
    cudaq_ringbuffer_t r = ring;
    r.rx_stride_sz = kSlotBytes;
    for (std::uint64_t n = 0; n < kRequests; ++n) {
      const auto slot = static_cast<std::uint32_t>(n % kSlots);
      CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&r, slot, kFunction + static_cast<std::uint32_t>(n % 2),
                                                              &n, sizeof(n), static_cast<std::uint32_t>(n), 0));
      cudaq_host_ringbuffer_signal_slot(&r, slot);
      ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&r, slot, nullptr) == CUDAQ_TX_READY; }))
          << "no answer to request " << n;
      cudaq_rpc_response_t header{};
      const void *result = nullptr;
      CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_read_rpc_response(&r, slot, &header, &result));
      EXPECT_EQ(header.status, 0);
      EXPECT_EQ(header.request_id, n);
      std::uint64_t word = 0;
      std::memcpy(&word, result, sizeof(word));
      EXPECT_EQ(word, 2 * n);
      cudaq_host_ringbuffer_clear_slot(&r, slot);
      ASSERT_TRUE(eventually([&] { return detail::load_acquire(r.rx_flags_host[slot]) == 0; }));
    }
  }
  void run_dispatcher(const std::function<cudaq_status_t(cudaq_dispatcher_t *)> &set_mailbox) {
    cudaq_dispatch_manager_t *manager = nullptr;
    cudaq_dispatcher_t *d = nullptr;
    cudaq_ringbuffer_t r = ring;
    r.rx_stride_sz = kSlotBytes;
    const cudaq_function_table_t table{entries, kWorkers};
    config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
    CUDAQ_ASSERT_OK(cudaq_dispatch_manager_create(&manager));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_create(manager, &config, &d));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(d, &r));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_function_table(d, &table));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_control(d, shutdown(), words + 1));
    CUDAQ_ASSERT_OK(set_mailbox(d));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(d));
    exchange_all();
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(d));
    CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(manager));
  }

  cudaq_ringbuffer_t ring{};
  cudaq_dispatcher_config_t config{};
  CUgraphExec_st graphs[kWorkers];
  cudaq_function_entry_t entries[kWorkers]{};
  void **mailbox = nullptr;
  GraphIOContext *contexts = nullptr;
  std::uint64_t *words = nullptr; ///< the shutdown flag, the count

private:
  std::vector<void *> blocks_;
};

TEST_F(UpstreamWorkers, TheLoopFindsTheViewsOfTheDeviceThatItsContextLacks) {
  cudaq_host_dispatch_worker_t workers[kWorkers]{};
  for (std::uint32_t w = 0; w < kWorkers; ++w) {
    workers[w].graph_exec = &graphs[w];
    workers[w].function_id = kFunction + w;
  }
  cudaq_host_dispatch_loop_ctx_t ctx{};
  ctx.ringbuffer = ring;
  ctx.config = config;
  ctx.config.kernel_type = CUDAQ_KERNEL_COOPERATIVE; // the loop has no use for it
  ctx.function_table = {entries, kWorkers};
  ctx.workers = workers;
  ctx.num_workers = kWorkers;
  ctx.h_mailbox_bank = mailbox;
  ctx.shutdown_flag = words;
  ctx.stats_counter = words + 1;
  ctx.io_ctxs_host = ctx.io_ctxs_dev = contexts;
  std::string why;
  std::thread loop([&] {
    cudaq_host_dispatcher_loop(&ctx);
    why = cudaq_last_error_message();
  });
  exchange_all();
  detail::store_release(*shutdown(), 1);
  loop.join();
  EXPECT_EQ(words[1], kRequests) << why;
}

TEST_F(UpstreamWorkers, GraphsOfTheTableFindAContextInTheMailbox) {
  config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  run_dispatcher([this](auto *d) { return cudaq_dispatcher_set_mailbox_upstream(d, mailbox); });
}

TEST_F(UpstreamWorkers, GraphsOfARingInPlaceFindTheSlotInTheMailbox) {
  ring.tx_data_host = nullptr;
  ring.tx_stride_sz = 0;
  for (std::uint32_t w = 0; w < kWorkers; ++w)
    graphs[w].run = [this, w] {
      auto *const slot = static_cast<std::uint8_t *>(mailbox[w]);
      write_answer(slot, slot);
    };
  config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  run_dispatcher([this](auto *d) { return cudaq_dispatcher_set_mailbox_upstream(d, mailbox); });
}

TEST_F(UpstreamWorkers, TheLastFormOfTheCallCounts) {
  for (std::uint32_t w = 0; w < kWorkers; ++w)
    graphs[w].run = [this, w] { // the mailbox of the specification: the RX slot
      auto *const slot = static_cast<std::uint8_t *>(mailbox[w]);
      write_answer(slot, ring.tx_data_host + (slot - ring.rx_data_host));
    };
  ring.rx_data = ring.rx_data_host;
  run_dispatcher([this](auto *d) {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_mailbox(d, mailbox));
    return cudaq_dispatcher_set_mailbox_spec(d, mailbox);
  });
}

} // namespace
} // namespace cudaq::realtime::test

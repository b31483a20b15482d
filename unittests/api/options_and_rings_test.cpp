// SPDX-License-Identifier: Apache-2.0
// Option structs of other sizes, each rule of the options, ring memory of every kind, and the text of dump_state.
#include "unittests/support/api_fixture.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <sys/syscall.h>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

// Known failure 25.
TEST(StructSize, NewerCallersAreRefusedWithBothSizes) {
  bench b;
  const auto too_large = static_cast<std::uint32_t>(sizeof(cudaq_dispatcher_options_t) + 8);
  std::vector<std::uint8_t> room(512, 0xEE);
  auto *options = reinterpret_cast<cudaq_dispatcher_options_t *>(room.data());
  EXPECT_EQ(cudaq_dispatcher_options_init(options, too_large), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"struct_size is " + std::to_string(too_large), std::to_string(too_large - 8)}));
  EXPECT_EQ(room, std::vector<std::uint8_t>(512, 0xEE)) << "nothing may be written";
  cudaq_dispatcher_options_t given = default_options();
  for (const std::uint32_t size : {0u, 1u, 3u, too_large, 0xFFFFFFFFu}) {
    given.struct_size = size;
    EXPECT_EQ(cudaq_dispatcher_set_options(b.get(), &given), CUDAQ_ERR_INVALID_ARG) << size;
    cudaq_dispatcher_stats_t stats{};
    stats.struct_size = size == too_large ? static_cast<std::uint32_t>(sizeof(stats) + 8) : size;
    EXPECT_EQ(cudaq_dispatcher_get_stats(b.get(), &stats), CUDAQ_ERR_INVALID_ARG) << size;
    EXPECT_TRUE(error_names({"struct_size"}));
    cudaq_ringbuffer_options_t ring{};
    ring.struct_size = size;
    cudaq_ringbuffer_memory_t *memory = nullptr;
    cudaq_ringbuffer_t out{};
    EXPECT_EQ(cudaq_ringbuffer_create(&ring, &memory, &out), CUDAQ_ERR_INVALID_ARG);
    EXPECT_EQ(memory, nullptr);
  }
}

TEST(StructSize, OlderCallersGetAndGiveTheFrontPart) {
  bench b({4, 64, false}, {host_entry("reverse", reverse_handler)});
  // The size in a header that ended before handler_pool_size. The memory after that size holds no options.
  const auto old = static_cast<std::uint32_t>(offsetof(cudaq_dispatcher_options_t, handler_pool_size));
  std::vector<std::uint8_t> memory(old); // ASan reports an access beyond the struct
  auto *options = reinterpret_cast<cudaq_dispatcher_options_t *>(memory.data());
  CUDAQ_ASSERT_OK(cudaq_dispatcher_options_init(options, old));
  std::uint32_t size = 0;
  std::memcpy(&size, memory.data(), 4);
  EXPECT_EQ(size, old);
  const std::uint32_t yield = CUDAQ_WAIT_SPIN_YIELD;
  std::memcpy(memory.data() + offsetof(cudaq_dispatcher_options_t, wait_policy), &yield, 4);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b.get(), options));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_start(b.get()));
  EXPECT_EQ(b.client.call(fnv1a_hash("reverse"), {1}).header.status, 0);
  CUDAQ_ASSERT_OK(cudaq_dispatcher_stop(b.get()));
}

TEST(StructSize, InitGivesTheDocumentedDefaults) {
  cudaq_dispatcher_options_t o;
  std::memset(&o, 0xEE, sizeof(o));
  CUDAQ_ASSERT_OK(cudaq_dispatcher_options_init(&o, sizeof(o)));
  EXPECT_EQ(o.struct_size, sizeof(o));
  EXPECT_EQ(o.ordering + o.unknown_function + o.default_owner + o.check_schema + o.strict_flag_values + o.wait_policy +
                o.handler_pool_size,
            0u);
  EXPECT_EQ(o.dispatcher_core, -1);
  EXPECT_EQ(o.handler_core_base, -1);
  EXPECT_EQ(o.numa_node, -1);
  EXPECT_EQ(o.realtime_priority, 0);
  EXPECT_EQ(o.block_interval_ns, 500000u);
  EXPECT_EQ(o.grace_period_ns, 5000000000u);
}

// Known failure 8.
TEST(OptionRules, EachRuleNamesItsField) {
  bench b;
  const auto refused = [&](const char *field, auto &&spoil) {
    cudaq_dispatcher_options_t o = default_options();
    spoil(o);
    EXPECT_EQ(cudaq_dispatcher_set_options(b.get(), &o), CUDAQ_ERR_INVALID_ARG) << field;
    EXPECT_TRUE(error_names({"cudaq_dispatcher_set_options: options->", field}));
  };
  refused("ordering is 2", [](auto &o) { o.ordering = 2; });
  refused("unknown_function is 2", [](auto &o) { o.unknown_function = 2; });
  refused("wait_policy is 3", [](auto &o) { o.wait_policy = 3; });
  refused("ring_peers is 2", [](auto &o) { o.ring_peers = 2; });
  refused("payload_in_slot is 2", [](auto &o) { o.payload_in_slot = 2; });
  refused("mailbox_content is 2", [](auto &o) { o.mailbox_content = 2; });
  refused("wait_policy is 4294967295", [](auto &o) { o.wait_policy = ~0u; });
  refused("handler_pool_size is 65", [](auto &o) { o.handler_pool_size = 65; });
  refused("dispatcher_core is -2", [](auto &o) { o.dispatcher_core = -2; });
  refused("handler_core_base is -2147483648", [](auto &o) { o.handler_core_base = INT_MIN; });
  refused("numa_node is -2", [](auto &o) { o.numa_node = -2; });
  refused("realtime_priority is 100", [](auto &o) { o.realtime_priority = 100; });
  refused("realtime_priority is -1", [](auto &o) { o.realtime_priority = -1; });
}

// Known failure 29.
TEST(Options, PlacementThatTheSystemRefusesIsAnErrorOfStart) {
  const auto refused = [](const char *words, auto &&spoil) {
    bench b({4, 64, false}, {host_entry("reverse", reverse_handler)});
    spoil(b.options);
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(b.get(), &b.options));
    EXPECT_NE(cudaq_dispatcher_start(b.get()), CUDAQ_OK) << words;
    EXPECT_TRUE(error_names({"cudaq_dispatcher_start: ", words}));
    EXPECT_EQ(b.dispatcher->state(), CUDAQ_DISPATCHER_WIRED);
  };
  refused("core 1023", [](auto &o) { o.dispatcher_core = 1023; });
  refused("core 2147483647", [](auto &o) { o.dispatcher_core = INT_MAX; });
  refused("core 2147483647", [](auto &o) {
    o.handler_core_base = INT_MAX;
    o.handler_pool_size = 2;
  });
  refused("numa_node 1000", [](auto &o) { o.numa_node = 1000; });
  refused("numa_node 1000", [](auto &o) {
    o.numa_node = 1000;
    o.handler_pool_size = 64;
  });
}

struct ring_request {
  std::uint32_t kind = CUDAQ_MEMORY_HOST, num_slots = 4, slot_size = 100, in_place = 0, hugepages = 0;
  int node = -1, device = 0;
};

cudaq_status_t make_ring(const ring_request &r, cudaq_ringbuffer_memory_t *&memory, cudaq_ringbuffer_t &ring) {
  cudaq_ringbuffer_options_t o;
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_options_init(&o, sizeof(o)));
  o.memory_kind = r.kind;
  o.num_slots = r.num_slots;
  o.slot_size = r.slot_size;
  o.in_place = r.in_place;
  o.hugepages = r.hugepages;
  o.numa_node = r.node;
  o.device_id = r.device;
  return cudaq_ringbuffer_create(&o, &memory, &ring);
}

void expect_ring_refused(const ring_request &r, std::initializer_list<cudaq_status_t> statuses,
                         const std::string &words) {
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  const cudaq_status_t status = make_ring(r, memory, ring);
  EXPECT_NE(std::count(statuses.begin(), statuses.end(), status), 0) << words << ": " << cudaq_status_string(status);
  EXPECT_TRUE(error_names({"cudaq_ringbuffer_create: ", words}));
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(ring.rx_flags_host, nullptr);
}

// Known failure 8.
TEST(RingMemory, EachRuleNamesItsField) {
  const auto bad = {CUDAQ_ERR_INVALID_ARG};
  expect_ring_refused({.kind = 5}, bad, "memory_kind is 5");
  expect_ring_refused({.num_slots = 0}, bad, "num_slots is 0");
  expect_ring_refused({.num_slots = 0xFFFFFFFF}, bad, "num_slots is 4294967295");
  expect_ring_refused({.slot_size = 23}, bad, "slot_size is 23");
  expect_ring_refused({.slot_size = 0xFFFFFFFF}, bad, "slot_size is 4294967295");
  expect_ring_refused({.node = -2}, bad, "numa_node is -2");
  expect_ring_refused({.device = -1}, bad, "device_id is -1");
  expect_ring_refused({.kind = CUDAQ_MEMORY_MAPPED, .hugepages = 1}, {CUDAQ_ERR_UNSUPPORTED}, "hugepages");
  expect_ring_refused({.kind = CUDAQ_MEMORY_DEVICE, .node = 0}, {CUDAQ_ERR_UNSUPPORTED}, "numa_node");
  expect_ring_refused({.node = 900}, {CUDAQ_ERR_INVALID_ARG, CUDAQ_ERR_INTERNAL}, "numa_node 900");
  expect_ring_refused({.node = INT_MAX}, bad, "numa_node is 2147483647");
  expect_ring_refused({.num_slots = 1u << 24, .slot_size = 0xFFFFFFC0}, {CUDAQ_ERR_INTERNAL}, "no memory for a ring");
}

TEST(RingMemory, HostRingIsZeroedAlignedAndWhole) {
  for (const std::uint32_t slots : {1u, 3u, 1000u})
    for (const std::uint32_t size : {24u, 25u, 64u, 65u, 4096u})
      for (const std::uint32_t in_place : {0u, 1u}) {
        cudaq_ringbuffer_memory_t *memory = nullptr;
        cudaq_ringbuffer_t ring;
        CUDAQ_ASSERT_OK(make_ring({.num_slots = slots, .slot_size = size, .in_place = in_place}, memory, ring));
        EXPECT_EQ(ring.rx_stride_sz, (size + 63) / 64 * 64);
        EXPECT_EQ(ring.tx_stride_sz, ring.rx_stride_sz);
        EXPECT_EQ(ring.rx_data, nullptr) << "no device view";
        EXPECT_EQ(ring.tx_data_host == nullptr, in_place != 0);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ring.rx_data_host) % 64, 0u);
        for (std::uint32_t i = 0; i < slots; ++i)
          ASSERT_EQ(cudaq_host_ringbuffer_slot_available(&ring, i), 1);
        std::memset(ring.rx_data_host, 1, slots * ring.rx_stride_sz);
        if (in_place == 0)
          std::memset(ring.tx_data_host, 2, slots * ring.tx_stride_sz);
        for (std::uint32_t i = 0; i < slots; ++i)
          ASSERT_EQ(cudaq_host_ringbuffer_slot_available(&ring, i), 1) << "data and flags overlap";
        CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
      }
}

// Known failure 24.
TEST(RingMemory, CudaKindsSucceedOrSayWhyNot) {
  for (const std::uint32_t kind : {CUDAQ_MEMORY_MAPPED, CUDAQ_MEMORY_DEVICE, CUDAQ_MEMORY_DEVICE_RX})
    for (const int device : {0, 1000}) {
      cudaq_ringbuffer_memory_t *memory = nullptr;
      cudaq_ringbuffer_t ring{};
      const cudaq_status_t status = make_ring({.kind = kind, .device = device}, memory, ring);
      if (status == CUDAQ_OK) {
        EXPECT_EQ(device, 0);
        EXPECT_NE(ring.rx_data, nullptr);
        CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
        continue;
      }
      if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) == 0 ||
          access("/dev/nvidiactl", F_OK) != 0) {
        EXPECT_EQ(status, CUDAQ_ERR_UNSUPPORTED);
        EXPECT_TRUE(error_names({"options->memory_kind"}));
      } else if (kind == CUDAQ_MEMORY_DEVICE_RX && status == CUDAQ_ERR_UNSUPPORTED) {
        EXPECT_TRUE(error_names({"no way to map memory of device"}));
      } else {
        EXPECT_EQ(status, CUDAQ_ERR_CUDA);
      }
      EXPECT_GT(std::strlen(cudaq_last_error_message()), std::strlen("cudaq_ringbuffer_create: ") + 10);
      EXPECT_EQ(memory, nullptr);
      EXPECT_EQ(ring.rx_data, nullptr);
    }
}

// Known failure 29.
TEST(RingMemory, PagesLieOnTheRequestedNode) {
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  if (make_ring({.num_slots = 64, .slot_size = 4096, .node = 0}, memory, ring) != CUDAQ_OK) {
    EXPECT_TRUE(error_names({"numa_node 0"}));
    GTEST_SKIP() << "this kernel refuses NUMA placement: " << cudaq_last_error_message();
  }
  void *page = reinterpret_cast<void *>(reinterpret_cast<std::uintptr_t>(ring.tx_data_host) & ~std::uintptr_t{4095});
  int status = -1;
  const long moved = syscall(SYS_move_pages, 0, 1ul, &page, nullptr, &status, 0);
  const int error = errno;
  CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
  if (moved != 0)
    GTEST_SKIP() << "move_pages: " << std::strerror(error);
  EXPECT_EQ(status, 0) << "the node of the page, or the kernel's error";
}

TEST(RingMemory, HugePagesServeOrAreRefusedWithAHint) {
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  const cudaq_status_t status = make_ring({.num_slots = 3, .slot_size = 65, .hugepages = 1}, memory, ring);
  if (status == CUDAQ_OK) {
    CUDAQ_EXPECT_OK(cudaq_ringbuffer_destroy(memory));
    return;
  }
  EXPECT_EQ(status, CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"huge pages", "vm.nr_hugepages"}));
}

TEST(DumpState, IsCutOffAndTerminatedAtEveryLength) {
  bench b({2, 64, false}, {host_entry("reverse", reverse_handler)});
  b.client.send(fnv1a_hash("reverse"), {}, 1);
  std::size_t whole = 0, reported = 0;
  CUDAQ_ASSERT_OK(cudaq_dispatcher_dump_state(b.get(), nullptr, 0, &whole));
  const std::string text = b.dispatcher->dump();
  ASSERT_EQ(text.size(), whole);
  for (std::size_t length = 1; length <= whole + 2; ++length) {
    std::vector<char> buffer(length + 1, '#');
    CUDAQ_ASSERT_OK(cudaq_dispatcher_dump_state(b.get(), buffer.data(), length, &reported));
    ASSERT_EQ(reported, whole);
    ASSERT_EQ(std::string(buffer.data()), text.substr(0, length - 1));
    ASSERT_EQ(buffer[length], '#');
  }
  CUDAQ_EXPECT_OK(cudaq_dispatcher_dump_state(b.get(), nullptr, 0, nullptr));
}

// The header lists what dump_state prints: state, options as applied, counters, flags of every slot that is not free,
// and what each thread does.
// Known failure 13.
TEST(DumpState, SaysWhatTheHeaderPromises) {
  bench b({2, 64, false}, {host_entry("reverse", reverse_handler)});
  b.options.handler_pool_size = 2;
  b.options.wait_policy = CUDAQ_WAIT_BLOCK;
  b.start();
  b.client.send(fnv1a_hash("reverse"), {}, 1);
  EXPECT_TRUE(eventually([&] { return b.dispatcher->stats().responded == 1; }));
  const std::string text = b.dispatcher->dump();
  for (const char *word : {"running", "slot 0: rx", "dispatcher", "pool 1", "responded", "block"})
    EXPECT_NE(text.find(word), std::string::npos) << word << " is missing in:\n" << text;
}

} // namespace
} // namespace cudaq::realtime::test

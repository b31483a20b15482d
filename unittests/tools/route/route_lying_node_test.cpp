// SPDX-License-Identifier: Apache-2.0
// A node that is no decoding server and answers what it likes. The router and its requesters go on.
#include "unittests/tools/route/routed_servers.h"
#include "unittests/transport/provider_library.h"

#include <atomic>
#include <thread>

namespace cudaq::realtime::tools::test {
namespace {

/// A node in this process that answers every request with one status, from a thread of its own.
class lying_node {
public:
  explicit lying_node(std::int32_t status) : library_(CUDAQ_UCX_PROVIDER), status_(status) {
    EXPECT_NE(library_.table, nullptr) << library_.error;
    EXPECT_EQ(library_.create({"--tls=tcp"}, handle_), CUDAQ_OK) << library_.error_text();
    EXPECT_EQ(library_.table->get_cpu_dataplane(handle_, &plane_), CUDAQ_OK) << library_.error_text();
    thread_ = std::thread([this] { run(); });
  }
  lying_node(const lying_node &) = delete;
  lying_node &operator=(const lying_node &) = delete;
  ~lying_node() {
    ends_ = true;
    thread_.join();
    EXPECT_EQ(library_.table->disconnect(handle_), CUDAQ_OK);
    EXPECT_EQ(library_.table->destroy(handle_), CUDAQ_OK);
  }
  int port() const { return number_in(" " + library_.endpoint(handle_), "port"); }

private:
  void run() {
    while (!ends_) {
      std::uint32_t slot = 0;
      if (plane_.rx_poll(plane_.ctx, &slot) != CUDAQ_RX_READY) {
        std::this_thread::yield();
        continue;
      }
      cudaq_rpc_response_t answer{};
      answer.magic = CUDAQ_RPC_MAGIC_RESPONSE;
      answer.status = status_;
      std::memcpy(plane_.ring.tx_data_host + slot * plane_.ring.tx_stride_sz, &answer, sizeof answer);
      EXPECT_EQ(plane_.tx_publish(plane_.ctx, slot), CUDAQ_OK);
    }
  }

  const cudaq::realtime::test::provider_library library_;
  const std::int32_t status_;
  cudaq_realtime_bridge_handle_t handle_ = nullptr;
  cudaq_cpu_dataplane_t plane_{};
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

TEST(RouteLyingNode, AnswersWithTheNumberOfADeferredAnswerAndNoSlotIsLost) {
  constexpr std::uint32_t kSlots = 4;
  const scratch_folder folder;
  lying_node node(INT32_MIN);
  write(folder.path() / "route.yaml", "nodes:\n  - {name: liar, port: " + std::to_string(node.port()) +
                                          ", decoders: [0]}\ntls: tcp\nanswer_limit_ms: 20000\n");
  running_program router({"route", "--config", folder.path() / "route.yaml", "--transport", "udp", "--", "--port=0",
                          "--num-slots=" + std::to_string(kSlots), "--unified"},
                         folder.path() / "stderr");
  const std::string ready = router.line();
  ASSERT_TRUE(ready.starts_with("CUDAQ_REALTIME_ROUTER_READY ")) << ready << read_file(folder.path() / "stderr");
  ASSERT_NE(router.line().find("state=joined"), std::string::npos);
  detail::datagram_client_options options;
  options.port = static_cast<std::uint32_t>(number_in(ready, "port"));
  detail::datagram_client client;
  ASSERT_TRUE(client.open(options, detail::make_udp_wire(options.slot_size)).ok());
  for (std::uint32_t id = 1; id <= 3 * kSlots; ++id) {
    ASSERT_TRUE(client.send(id, kReset, numbers({0}), 1000 + id));
    const auto reply = client.receive_within(std::chrono::milliseconds(kLimitMs));
    ASSERT_TRUE(reply) << "request " << id;
    EXPECT_EQ(reply->header.status, CUDAQ_RPC_ERR_NO_RESPONSE);
    EXPECT_TRUE(reply->result.empty());
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test

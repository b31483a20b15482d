// SPDX-License-Identifier: Apache-2.0
// A client of shared memory over a fork: the child has the ring of its parent, and must not use it.
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

namespace cudaq::realtime::test {
namespace {

TEST(ShmFork, AChildIsRefusedAndItsParentGoesOn) {
  const std::string name = own_name("fork");
  peer_server server("unified", name);
  shm_client client(name);
  ASSERT_EQ(client.status, CUDAQ_OK) << client.text;
  client.send(0, kIncrement, "HAL", 3, 5);
  EXPECT_EQ(status_in_child([&] {
              cudaq_ringbuffer_t ring;
              int wrong = cudaq_shm_client_wait(client.get, 0, kPatience) == CUDAQ_ERR_STATE ? 0 : 1;
              wrong += std::string(cudaq_shm_client_error()).find("fork") == std::string::npos ? 2 : 0;
              wrong += cudaq_shm_client_ring(client.get, &ring, nullptr, nullptr) == CUDAQ_ERR_STATE ? 0 : 4;
              wrong += cudaq_shm_client_alive(client.get) == 0 ? 0 : 8;
              cudaq_shm_client_signal(client.get, 1); // a slot without a frame: the server would drop it
              wrong += cudaq_shm_client_detach(client.get) == CUDAQ_OK ? 0 : 16;
              return wrong;
            }),
            0);
  EXPECT_EQ(cudaq_shm_client_alive(client.get), 1) << "detach of the child closed the connection of its parent";
  ASSERT_EQ(cudaq_shm_client_wait(client.get, 0, kPatience), CUDAQ_OK) << cudaq_shm_client_error();
  EXPECT_NE(cudaq_host_ringbuffer_slot_available(&client.ring, 1), 0) << "the child signalled a slot of its parent";
  EXPECT_EQ(server.stop(), 1u);
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// An injector is held after it has taken its ticket and before it writes its slot. The flags show that slot as free.
#include "unittests/qec/pipeline/pipeline_rig.h"
#include "unittests/support/held_page.h"

namespace cudaq::qec::realtime::test {
namespace {

using cudaq::realtime::test::held_page;

TEST(PipelineSlowInjector, NoOtherInjectorGetsItsSlot) {
  pipeline_rig rig(pipeline_rig::small(1, 2), 2);
  held_page slow(PROT_NONE, payload_of(rig.first_id, 8)); // read where the payload is copied
  std::thread injecting([&] {
    ring_buffer_injector injector = rig.pipeline->create_injector();
    EXPECT_TRUE(injector.try_submit(kFunction, slow.data(), 8, rig.first_id));
  });
  ASSERT_TRUE(eventually([] { return held_page::has_waiting_thread(); }));
  ring_buffer_injector other = rig.pipeline->create_injector();
  rig.submit(other, 1);
  const std::vector<std::uint8_t> third = payload_of(99, 8);
  EXPECT_FALSE(other.try_submit(kFunction, third.data(), third.size(), 99))
      << "slot 0 looks free, but a ticket for it was taken";
  EXPECT_EQ(rig.pipeline->stats().submitted, 1u);
  slow.release();
  injecting.join();
  rig.pipeline->start();
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cpu_roce/cpu_roce_options.h"

#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::test {
namespace {

detail::expected<> parse(std::vector<std::string> words, detail::cpu_roce_options &out) {
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  return detail::parse_cpu_roce_options(static_cast<int>(argv.size()), argv.data(), out);
}

TEST(CpuRoceOptions, HaveTheValuesOfTheExistingProvider) {
  detail::cpu_roce_options o;
  EXPECT_EQ(parse({}, o).text(), "");
  EXPECT_EQ(o.device, "mlx5_0");
  EXPECT_EQ(o.local_address, 0x0A000002u);
  EXPECT_EQ(o.listen_ip, "10.0.0.2");
  EXPECT_EQ(o.num_slots, 8u);
  EXPECT_EQ(o.slot_size, 256u);
  EXPECT_EQ(o.frame_size, 256u);
  EXPECT_EQ(o.remote_qp, 2u);
  EXPECT_FALSE(o.sensor_bridge || o.reliable || o.unified);
  EXPECT_EQ(o.receives(), 16u);
}

TEST(CpuRoceOptions, AreReadInBothSpellings) {
  detail::cpu_roce_options o;
  EXPECT_EQ(parse({"--device", "rxe0", "--local-ip=10.9.0.1", "--qp_config=hsb_fpga", "--peer-ip", "10.9.0.7",
                   "--remote-qp=0x11", "--num-slots=64", "--slot-size=384", "--frame-size=100", "--qp-type=rc",
                   "--mtu=1024", "--wait=block", "--core=1", "--ib-port=2"},
                  o)
                .text(),
            "");
  EXPECT_TRUE(o.sensor_bridge && o.reliable);
  EXPECT_EQ(o.peer_address, 0x0A090007u);
  EXPECT_EQ(o.remote_qp, 0x11u);
  EXPECT_EQ(o.frame_size, 100u);
  EXPECT_EQ(o.wait, CUDAQ_WAIT_BLOCK);
  EXPECT_EQ(o.receives(), 64u);
  EXPECT_EQ(parse({"--qp-config=rendezvous", "--listen-ip=0.0.0.0", "--port=7", "--what=1"}, o = {}).text(), "");
  EXPECT_EQ(o.listen_ip, "0.0.0.0");
  EXPECT_EQ(o.ignored_words, " ignored=1 ignored_options=--what");
}

TEST(CpuRoceOptions, AreRefusedWithATextThatNamesOptionAndValue) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--what=1", "--strict"},
       "'--what=1': the cpu_roce provider has no such option; --lenient ignores unknown options"},
      {{"--num-slots=0"}, "--num-slots '0': a number from 1 to 4096"},
      {{"--slot-size=100"}, "--slot-size 100: a multiple of 64"},
      {{"--frame-size=512"}, "--frame-size 512: an answer is sent from a slot of --slot-size 256"},
      {{"--frame-size=23"}, "--frame-size '23'"},
      {{"--num-slots=4096", "--slot-size=1048576"}, "together at most 1073741824 bytes"},
      {{"--qp_config=fpga"}, "--qp_config 'fpga': one of rendezvous, hsb_fpga"},
      {{"--qp_config=hsb_fpga"}, "--peer-ip: it is missing"},
      {{"--qp_config=hsb_fpga", "--peer-ip=bridge"}, "--peer-ip 'bridge': one IPv4 address"},
      {{"--qp_config=hsb_fpga", "--peer-ip=10.0.0.3", "--num-slots=65"}, "at most 64 are accepted"},
      {{"--qp_config=hsb_fpga", "--peer-ip=10.0.0.3", "--port=1"}, "--port: with --qp_config=hsb_fpga"},
      {{"--peer-ip=10.0.0.3"}, "--peer-ip: only with --qp_config=hsb_fpga"},
      {{"--remote-qp=3"}, "--remote-qp: only with --qp_config=hsb_fpga"},
      {{"--qp-type=ud"}, "--qp-type 'ud': one of uc, rc"},
      {{"--mtu=1500"}, "--mtu '1500'"},
      {{"--local-ip=::1"}, "--local-ip '::1': one IPv4 address"},
      {{"--local-ip=0.0.0.0"}, "--local-ip '0.0.0.0'"},
      {{"--unified", "--core=1"}, "--core: with --unified"},
      {{"--unified", "--wait=spin"}, "--wait: with --unified"},
      {{"--device"}, "--device: the value is missing"},
  };
  for (const auto &[words, text] : cases) {
    detail::cpu_roce_options o;
    const detail::expected<> result = parse(words, o);
    EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG) << words.back();
    EXPECT_NE(result.text().find(text), std::string::npos) << result.text();
  }
}

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The options of each provider, by its parser: what is accepted, the defaults, and the text of each refusal.
#include "lib/transport/cpu_roce/cpu_roce_options.h"
#include "lib/transport/datagram/datagram_options.h"
#include "lib/transport/roce/roce_options.h"
#include "lib/transport/shm/shm_options.h"
#include "lib/transport/ucx/ucx_options.h"

#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

expected<> read(int argc, char **argv, datagram_options &out) { return option_reader(out, false).read(argc, argv); }
expected<> read(int argc, char **argv, roce_options &out) { return parse_roce_options(argc, argv, out); }
expected<> read(int argc, char **argv, cpu_roce_options &out) { return parse_cpu_roce_options(argc, argv, out); }
expected<> read(int argc, char **argv, shm_options &out) { return parse_shm_options(argc, argv, out); }
expected<> read(int argc, char **argv, ucx_options &out) { return read_ucx_options(argc, argv, out); }

using word_list = std::vector<std::string>;

template <class Options>
expected<> parse(word_list words, Options &out) {
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  return read(static_cast<int>(argv.size()), argv.data(), out);
}
template <class Options>
expected<> parse_new(const word_list &words) {
  Options options;
  return parse(words, options);
}

struct refusal {
  word_list words, texts; ///< the answer has each of the texts
};
struct refusals_of {
  const char *provider;
  expected<> (*parse)(const word_list &words);
  std::vector<refusal> all;
};

const std::vector<refusals_of> &refusals() {
  static const std::vector<refusals_of> each = {
      {"udp",
       parse_new<datagram_options>,
       {{{"--strict", "--prot", "1"}, {"'--prot'", "no such option", "--lenient"}},
        {{"--strict", "server"}, {"'server'", "begin with --"}},
        {{"--port"}, {"--port", "missing"}},
        {{"--port", "65536"}, {"--port", "65536", "0 to 65535"}},
        {{"--port="}, {"--port", "''"}},
        {{"--port=0x"}, {"--port", "'0x'"}},
        {{"--port", "-1"}, {"--port", "-1"}},
        {{"./server", "--port", "x"}, {"--port 'x'"}},
        {{"--num-slots=0"}, {"--num-slots", "'0'", "from 1"}},
        {{"--num-slots", "8x"}, {"--num-slots", "8x"}},
        {{"--slot-size", "23"}, {"--slot-size", "23", "24 to 65507"}},
        {{"--slot-size=65508"}, {"--slot-size", "65508"}},
        {{"--replay-window", "48"}, {"--replay-window 48", "power of two"}},
        {{"--replay-window=65536", "--max-peers=1000"}, {"--replay-window 65536", "--max-peers 1000", "bytes"}},
        {{"--max-peers", "3"}, {"--max-peers", "--replay-window"}},
        {{"--unified=1"}, {"--unified=1", "no value"}},
        {{"--unified", "--core", "0"}, {"--core", "no thread"}},
        {{"--unified", "--busy-poll-us", "0"}, {"--busy-poll-us", "no thread"}}}},
      {"roce",
       parse_new<roce_options>,
       {{{"--mtu=1500"}, {"--mtu '1500'", "256, 512, 1024, 2048, 4096"}},
        {{"--icrc=none"}, {"--icrc 'none'", "check, full, off"}},
        {{"--qp=0x1000000"}, {"--qp '0x1000000'"}},
        {{"--num-slots=4097"}, {"--num-slots 4097", "4096"}},
        {{"--device=mlx5_0", "--strict"}, {"the roce provider has no such option"}},
        {{"--max-peers=65536", "--slot-size=65507"}, {"--max-peers 65536", "bytes"}}}},
      {"cpu_roce",
       parse_new<cpu_roce_options>,
       {{{"--what=1", "--strict"},
         {"'--what=1': the cpu_roce provider has no such option; --lenient ignores unknown options"}},
        {{"--num-slots=0"}, {"--num-slots '0': a number from 1 to 4096"}},
        {{"--slot-size=100"}, {"--slot-size 100: a multiple of 64"}},
        {{"--frame-size=512"}, {"--frame-size 512: an answer is sent from a slot of --slot-size 256"}},
        {{"--frame-size=23"}, {"--frame-size '23'"}},
        {{"--num-slots=4096", "--slot-size=1048576"}, {"together at most 1073741824 bytes"}},
        {{"--qp_config=fpga"}, {"--qp_config 'fpga': one of rendezvous, hsb_fpga"}},
        {{"--qp_config=hsb_fpga"}, {"--peer-ip: it is missing"}},
        {{"--qp_config=hsb_fpga", "--peer-ip=bridge"}, {"--peer-ip 'bridge': one IPv4 address"}},
        {{"--qp_config=hsb_fpga", "--peer-ip=10.0.0.3", "--num-slots=65"}, {"at most 64 are accepted"}},
        {{"--qp_config=hsb_fpga", "--peer-ip=10.0.0.3", "--port=1"}, {"--port: with --qp_config=hsb_fpga"}},
        {{"--peer-ip=10.0.0.3"}, {"--peer-ip: only with --qp_config=hsb_fpga"}},
        {{"--remote-qp=3"}, {"--remote-qp: only with --qp_config=hsb_fpga"}},
        {{"--qp-type=ud"}, {"--qp-type 'ud': one of uc, rc"}},
        {{"--mtu=1500"}, {"--mtu '1500'"}},
        {{"--local-ip=::1"}, {"--local-ip '::1': one IPv4 address"}},
        {{"--local-ip=0.0.0.0"}, {"--local-ip '0.0.0.0'"}},
        {{"--unified", "--core=1"}, {"--core: with --unified"}},
        {{"--unified", "--wait=spin"}, {"--wait: with --unified"}},
        {{"--device"}, {"--device: the value is missing"}}}},
      {"shm",
       parse_new<shm_options>,
       {{{"--strict", "--nmu-slots=8"}, {"'--nmu-slots=8': the shm provider has no"}},
        {{"program", "stray", "--strict"}, {"'stray': the shm provider has no"}},
        {{"--num-slots=0"}, {"--num-slots '0'"}},
        {{"--num-slots=8x"}, {"a number from 1 to 65536 is accepted"}},
        {{"--slot-size=100"}, {"multiple of 8"}},
        {{"--slot-size"}, {"--slot-size: the value is missing"}},
        {{"--unified=yes"}, {"--unified=yes: this option has no value"}},
        {{"--mode=9"}, {"an octal number from 600 to 777 is accepted"}},
        {{"--max-clients=2"}, {"use --unified"}},
        {{"--wait-us=5"}, {"use --unified"}},
        {{"--num-slots=65536", "--slot-size=65536"}, {"at most"}},
        {{"--name", "../etc"}, {"--name is '../etc'"}},
        {{"--name", std::string(65, 'a')}, {"1 to 64"}},
        {{"--requests", "gpu", "--pinned", "--unified"}, {"unified shape"}},
        {{"--requests", "gpu"}, {"give --pinned"}},
        {{"--requests", "disk"}, {"disk"}},
        {{"--gpu", "1"}, {"--pinned and --requests gpu"}},
        {{"--gpu", "1", "--requests", "host"}, {"--pinned and --requests gpu"}}}},
      {"ucx",
       parse_new<ucx_options>,
       {{{"--strict", "--prot=1"},
         {"'--prot=1': the ucx provider has no such option; --lenient ignores unknown options; it has --bind, "
          "--lenient, --max-routers, --num-slots, --port, --silence-ms, --slot-size, --strict, --tls. Did you mean "
          "--port?"}},
        {{"--strict", "program"},
         {"'program': the ucx provider has no such option; options begin with --, and the first is argv[0]"}},
        {{"--port"}, {"--port: the value is missing"}},
        {{"--port=65536"}, {"--port '65536': a number from 0 to 65535 is accepted"}},
        {{"--port=x"}, {"--port 'x': a number from 0 to 65535 is accepted"}},
        {{"--silence-ms=9"}, {"--silence-ms '9': a number from 10 to 3600000 is accepted"}},
        {{"--slot-size=31"}, {"--slot-size '31': a number from 32 to 1048576 is accepted"}},
        {{"--num-slots=1"}, {"--num-slots 1: each of --max-routers 2 needs one slot or more"}},
        {{"--lenient=1"}, {"--lenient=1: this option has no value"}}}}};
  return each;
}

struct ProviderOptions : ::testing::TestWithParam<refusals_of> {};

TEST_P(ProviderOptions, AreRefusedWithATextThatNamesOptionAndValue) {
  for (const auto &[words, texts] : GetParam().all) {
    const expected<> result = GetParam().parse(words);
    EXPECT_EQ(result.status(), CUDAQ_ERR_INVALID_ARG) << words.back();
    for (const std::string &text : texts)
      EXPECT_NE(result.text().find(text), std::string::npos) << result.text();
    if (std::string(GetParam().provider) == "ucx") {
      EXPECT_EQ(result.text(), texts[0]) << "the whole text";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Provider, ProviderOptions, ::testing::ValuesIn(refusals()),
                         [](const auto &tested) { return std::string(tested.param.provider); });

TEST(UdpOptions, HaveTheDefaultsOfTheExistingProvider) {
  datagram_options options;
  EXPECT_EQ(parse({}, options).text(), "");
  EXPECT_EQ(options.bind_address, "127.0.0.1");
  EXPECT_EQ(options.port, 0u);
  EXPECT_EQ(options.num_slots, 8u);
  EXPECT_EQ(options.slot_size, 256u);
  EXPECT_EQ(options.replay_window, 0u);
  EXPECT_FALSE(options.unified || options.pinned_rings || options.busy_reply);
}

TEST(UdpOptions, TakeValuesInBothForms) {
  datagram_options options;
  EXPECT_EQ(parse({"--port", "5000", "--num-slots=16", "--slot-size", "512", "--bind=::1", "--unified", "--busy-reply",
                   "--replay-window=1024", "--max-peers", "5", "--peer-timeout-ms=10"},
                  options)
                .text(),
            "");
  EXPECT_EQ(options.port, 5000u);
  EXPECT_EQ(options.num_slots, 16u);
  EXPECT_EQ(options.slot_size, 512u);
  EXPECT_EQ(options.bind_address, "::1");
  EXPECT_EQ(options.replay_window, 1024u);
  EXPECT_EQ(options.max_peers, 5u);
  EXPECT_EQ(parse({"--port=0x1f40"}, options).text(), "");
  EXPECT_EQ(options.port, 8000u);
  EXPECT_EQ(options.peer_timeout_ms, 10u);
  EXPECT_TRUE(options.unified && options.busy_reply);
}

TEST(UdpOptions, MayBeAmongThoseOfTheWholeProgram) {
  struct {
    word_list argv;
    std::string ignored_words;
  } const cases[] = {
      {{"./server", "--port", "7"}, ""},
      {{"--port=7", "--lenient", "--strict"}, ""},
      {{"./server", "--transport=udp", "--timeout", "60", "--port", "7"},
       " ignored=2 ignored_options=--transport,--timeout"},
      {{"./server", "--verbose", "--port=7", "-v", "--prot"}, " ignored=3 ignored_options=--verbose,-v,--prot"},
      {{"./server", "run", "--port=7", "--strict", "--lenient"}, " ignored=1 ignored_options=run"},
      {{"--a b,c\n=1", "--port=7"}, " ignored=1 ignored_options=--a?b?c?"},
      {{"--port=7", "--" + std::string(70, 'a'), "--" + std::string(70, 'b'), "--c"},
       " ignored=3 ignored_options=--" + std::string(70, 'a') + ",..."},
  };
  for (const auto &c : cases) {
    datagram_options options;
    EXPECT_EQ(parse(c.argv, options).text(), "") << c.argv[0];
    EXPECT_EQ(options.port, 7u) << c.argv[0];
    EXPECT_EQ(options.ignored_words, c.ignored_words);
  }
}

TEST(UdpOptions, RefuseMissingWords) {
  datagram_options options;
  char *argv[] = {nullptr};
  EXPECT_EQ(option_reader(options, false).read(1, argv).text(), "argv[0]: is NULL");
  EXPECT_EQ(option_reader(options, false).read(1, nullptr).text(), "argc 1: argv is NULL");
  EXPECT_EQ(option_reader(options, false).read(-1, nullptr).text(), "");
}

TEST(RoceOptions, HaveTheNumbersOfASensorBridge) {
  roce_options options;
  EXPECT_EQ(parse({}, options).text(), "");
  EXPECT_EQ(options.common.port, 4791u);
  EXPECT_EQ(options.wire.peer_port, 4791u);
  EXPECT_EQ(options.wire.peer_qp, 2u);
  EXPECT_EQ(options.wire.mtu, 4096u);
  EXPECT_EQ(options.wire.icrc, icrc_policy::check);
  EXPECT_EQ(parse({"--qp=0x123456", "--remote-qp", "7", "--rkey=0xFFFFFFFF", "--mtu=1024", "--icrc=full",
                   "--peer-port=0", "--max-peers=3", "--num-slots=4096"},
                  options)
                .text(),
            "");
  EXPECT_EQ(options.wire.own_qp, 0x123456u);
  EXPECT_EQ(options.wire.peer_qp, 7u);
  EXPECT_EQ(options.wire.rkey, 0xFFFFFFFFu);
  EXPECT_EQ(options.wire.mtu, 1024u);
  EXPECT_EQ(options.wire.icrc, icrc_policy::full);
  EXPECT_EQ(options.wire.max_peers, 3u);
}

TEST(CpuRoceOptions, HaveTheValuesOfTheExistingProvider) {
  cpu_roce_options o;
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
  cpu_roce_options o;
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

TEST(UcxOptions, AreReadInBothSpellings) {
  ucx_options o;
  EXPECT_EQ(parse({"--bind=10.0.0.1", "--port", "7101", "--num-slots=32", "--slot-size", "0x400", "--max-routers=4",
                   "--silence-ms", "10", "--tls=posix,tcp", "--device=mlx5_0"},
                  o)
                .text(),
            "");
  EXPECT_EQ(o.bind_address, "10.0.0.1");
  EXPECT_EQ(o.port, 7101u);
  EXPECT_EQ(o.num_slots, 32u);
  EXPECT_EQ(o.slot_size, 1024u);
  EXPECT_EQ(o.max_routers, 4u);
  EXPECT_EQ(o.silence_ms, 10u);
  EXPECT_EQ(o.tls, "posix,tcp");
  EXPECT_EQ(o.ignored_words, " ignored=1 ignored_options=--device");
}

} // namespace
} // namespace cudaq::realtime::detail

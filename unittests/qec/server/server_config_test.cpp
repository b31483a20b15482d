// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/whole_file.h"
#include "lib/qec/server/decoder_types.h"
#include "lib/qec/server/server_config.h"
#include "unittests/qec/server/server_test_support.h"
#include "unittests/support/program_paths.h"

#include <initializer_list>
#include <sstream>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

const std::string kFolder = CUDAQ_TEST_SERVER_CONFIGS;

server_config config_of_file(const std::string &name) {
  const auto text = read_whole_file(kFolder + "/" + name);
  auto config = read_server_config(text.ok() ? *text : "");
  if (text.failed() || config.failed())
    throw std::runtime_error(text.ok() ? config.text() : text.text());
  return *config;
}

/// The error of reading, or else of building, a configuration of one decoder with id and type and these lines.
std::string error_of(const std::string &lines, const std::string &type = "lookup") {
  const auto config = read_server_config("decoders:\n  - id: 1\n    type: " + type + "\n" + lines);
  if (config.failed())
    return config.text();
  return build_decoders(*config, kFolder).text();
}

/// A model of one detector a round.
const std::string kRound = "      detector(0) D0\n      error(0.1) D0 L0\n      error(0.1) D0\n",
                  kShift = "      shift_detectors(1) 1\n",
                  kLoop =
                      "    dem: |\n" + kRound + kShift + "      repeat 9 {\n" + kRound + kShift + "      }\n" + kRound;

TEST(ServerConfig, ReadsTheExamples) {
  const server_config surface = config_of_file("surface_d3.yaml");
  ASSERT_EQ(surface.decoders.size(), 2u);
  EXPECT_EQ(surface.decoders[0].limits,
            (decoder_limits{.id = 0, .sequence = true, .queue_length = 128, .age_limit_ns = 2'000'000}));
  EXPECT_EQ(surface.decoders[1].limits.queue_length, 64u);
  EXPECT_EQ(surface.transport, "udp");
  EXPECT_EQ(surface.transport_args, (std::vector<std::string>{"--port", "7000"}));
  const server_config matrices = config_of_file("repetition_matrices.yaml");
  EXPECT_EQ(matrices.decoders[0].limits, (decoder_limits{.id = 7, .sequence = false, .queue_length = 0}));
}

TEST(ServerConfig, ReadsTheRealtimeSection) {
  const std::string decoder = "decoders: [{id: 1, type: lookup}]\n";
  const auto config =
      read_server_config(decoder + "realtime: {loop_core: 2, pool_cores: [3, 4], stream_cores: [5], "
                                   "priority: 50, lock_memory: true, cpu_dma_latency_us: 0, required: true}\n");
  ASSERT_TRUE(config.ok()) << config.text();
  EXPECT_EQ(config->realtime, (realtime_config{2, {3, 4}, {5}, 50, true, 0, true}));
  EXPECT_EQ(config->realtime.pool().of(2).core, 3) << "the list begins again";
  EXPECT_EQ(config->realtime.streams().of(1).realtime_priority, 50);
  EXPECT_EQ(read_server_config(decoder)->realtime, realtime_config{});
  for (const char *wrong : {"priority: 100", "loop_core: -1", "pool_cores: 3", "lock_memory: 1", "speed: 1"})
    EXPECT_NE(read_server_config(decoder + "realtime: {" + wrong + "}\n").text().find("line 2, column"),
              std::string::npos)
        << wrong;
}

TEST(ServerConfig, BuildsEveryDecoderOfTheExamples) {
  for (const char *name : {"surface_d3.yaml", "repetition_matrices.yaml"}) {
    const server_config config = config_of_file(name);
    if (config.decoders[0].type == "pymatching" && !pymatching_available())
      continue;
    const auto setups = build_decoders(config, kFolder);
    ASSERT_TRUE(setups.ok()) << setups.text();
    EXPECT_EQ(setups->size(), config.decoders.size());
  }
}

TEST(ServerConfig, DecodesWithMatrices) {
  auto setups = build_decoders(config_of_file("repetition_matrices.yaml"), kFolder);
  ASSERT_TRUE(setups.ok()) << setups.text();
  decoding_server server(std::move(*setups));
  // Measurements: 00 then the checks. The checks of a flip of bit 0 are 10, of bit 1 are 11, of bit 2 are 01.
  const std::pair<const char *, const char *> shots[] = {{"0010", "1"}, {"0011", "0"}, {"0001", "0"}, {"1101", "1"}};
  for (const auto &[shot, answer] : shots) {
    ASSERT_EQ(call(server, kEnqueueFunctionId, enqueue_payload(7, 0, shot)), answered(server_status::ok));
    EXPECT_EQ(call(server, kGetCorrectionsFunctionId, get_payload(7, 1, true)), answered(server_status::ok, answer))
        << shot;
  }
}

TEST(ServerConfig, UsesTheProbabilitiesOfTheErrors) {
  // Errors 0 and 1 have one detector; only error 1 flips the observable. The likelier one is taken.
  const std::string matrices =
      "    block_size: 2\n    syndrome_size: 1\n    H_sparse: [0, 1, -1]\n    O_sparse: [1, -1]\n";
  for (const auto &[rates, answer] : {std::pair("[0.01, 0.02]", "1"), std::pair("[0.02, 0.01]", "0")}) {
    const auto config = read_server_config("decoders:\n  - id: 1\n    type: lookup\n    queue_length: 0\n" + matrices +
                                           "    decoder_custom_args: {error_rate_vec: " + rates + "}\n");
    ASSERT_TRUE(config.ok()) << config.text();
    auto setups = build_decoders(*config, kFolder);
    ASSERT_TRUE(setups.ok()) << setups.text();
    decoding_server server(std::move(*setups));
    EXPECT_EQ(call(server, kOneShotFunctionId, packed("1")), answered(server_status::ok, answer)) << rates;
  }
}

TEST(ServerConfig, NamesTheFieldTheValueAndWhatIsAccepted) {
  const std::pair<const char *, const char *> cases[] = {
      {"    blok_size: 3\n",
       "line 4, column 5: decoders[0].blok_size: unknown field with the value \"3\"; accepted: id, "
       "type, stream, dispatch, cuda_device_id, block_size, syndrome_size, H_sparse, O_sparse, D_sparse, "
       "measurements, dem, dem_file, stim_dem_path, decoder_custom_args, counter, queue_length, age_limit_us, "
       "deadline_us, detector_rates, learn. Did you mean block_size?"},
      {"    block_size: 0\n",
       "line 4, column 17: decoders[0].block_size: \"0\" is not a whole number from 1 to 16777216"},
      {"    block_size: 3x\n",
       "line 4, column 17: decoders[0].block_size: \"3x\" is not a whole number from 1 to 16777216"},
      {"    block_size: [3]\n",
       "line 4, column 17: decoders[0].block_size: a list is not a whole number from 1 to 16777216"},
      {"    H_sparse: 5\n",
       "line 4, column 15: decoders[0].H_sparse: \"5\" is not a list; each element is a whole number "
       "from -1 to 16777216"},
      {"    H_sparse: [0, -2]\n",
       "line 4, column 19: decoders[0].H_sparse[1]: \"-2\" is not a whole number from -1 to 16777216"},
      {"    counter: off\n", "line 4, column 14: decoders[0].counter: \"off\" is not sequence or any"},
      {"    counter: sequence|any\n",
       "line 4, column 14: decoders[0].counter: \"sequence|any\" is not sequence or any"},
      {"    decoder_custom_args: {error_rate: 0.7}\n",
       "line 4, column 39: decoders[0].decoder_custom_args.error_rate: \"0.7\" is not a number from 0 to 0.5"},
      {"    decoder_custom_args: {osd_order: [1]}\n",
       "line 4, column 38: decoders[0].decoder_custom_args.osd_order: a list is not a text or a number"},
      {"    dispatch: gpu\n", "line 4, column 15: decoders[0].dispatch: \"gpu\" is not host or device_graph"},
      {"    dem_chunks: [a]\n",
       "line 4, column 17: dem_chunks: a model in parts is not available; give the whole model "
       "as dem, dem_file or H_sparse"},
      {"    id: 2\n", "line 4, column 5: decoders[0].id: the field is there twice"},
      {"transport: {port: 5}\n", "line 4, column 13: transport.port: unknown field with the value \"5\"; accepted: "
                                 "provider, args, device_graph"},
      {"    dem:\n", "line 4, column 5: decoders[0].dem: no value is not a text"},
  };
  for (const auto &[lines, error] : cases)
    EXPECT_EQ(error_of(lines), error) << lines;
}

TEST(ServerConfig, RefusesModelsThatContradictTheirSizes) {
  const std::string sizes = "    block_size: 3\n    syndrome_size: 2\n", h = "    H_sparse: [0, 1, -1, 1, 2, -1]\n";
  const std::string at = "line 2, column 5: decoders[0] (id 1): ";
  const std::string o = "    O_sparse: [0, -1]\n";
  EXPECT_EQ(error_of(sizes + h + o), "");
  const std::pair<std::string, std::string> cases[] = {
      {"", "it has no model; give one of dem, dem_file, H_sparse"},
      {"    dem: error(0.1) D0 L0\n" + sizes + h + o,
       "it has more than one model; give one of dem, dem_file, H_sparse"},
      {sizes + h, "H_sparse needs block_size, syndrome_size and O_sparse"},
      {"    block_size: 2\n    syndrome_size: 2\n" + h + o, "H_sparse: element 4 is 2, not below 2"},
      {"    block_size: 3\n    syndrome_size: 3\n" + h + o, "H_sparse has 2 rows, syndrome_size is 3"},
      {sizes + "    H_sparse: [0, 1, -1, 1, 2]\n" + o,
       "H_sparse: element 4 is the last one and not -1; every row ends with -1"},
      {sizes + "    H_sparse: [0, 0, -1, 1, 2, -1]\n" + o, "H_sparse: element 2 ends a row that has 0 twice"},
      {sizes + h + "    O_sparse: []\n", "O_sparse: it has no row; every row ends with -1"},
      {sizes + h + o + "    D_sparse: [0, -1]\n", "D_sparse has 1 rows, the model has 2 detectors"},
      {sizes + h + o + "    D_sparse: []\n", "D_sparse: it has no row; every row ends with -1"},
      {sizes + h + o + "    D_sparse: [-1, -1]\n", "D_sparse names no measurement"},
      {sizes + h + o + "    D_sparse: [0, -1, 3, -1]\n    measurements: 3\n", "D_sparse: element 2 is 3, not below 3"},
      {sizes + h + o + "    measurements: 3\n", "measurements is for D_sparse"},
      {sizes + h + o + "    decoder_custom_args: {error_rate_vec: [0.1]}\n",
       "error_rate_vec has 1 elements, block_size is 3"},
      {"    syndrome_size: 2\n    dem: error(0.1) D0 L0\n", "syndrome_size is 2, the model has 1 detectors"},
      {"    dem: error(0.1) D0\n", "the model has 1 detectors and 0 observables; it needs one of each"},
      {"    dem_file: missing.dem\n", kFolder + "/missing.dem: No such file or directory"},
  };
  for (const auto &[lines, error] : cases)
    EXPECT_EQ(error_of(lines), at + error) << lines;
}

TEST(ServerConfig, RefusesDecodersThatItDoesNotHaveByName) {
  const std::string dem = "    dem: error(0.1) D0 L0\n";
  for (const auto &[type, instead] : foreign_types()) {
    const std::string name(type), error = error_of(dem, name);
    EXPECT_NE(error.find("type: \"" + name + "\": " + std::string(instead)), std::string::npos) << error;
    EXPECT_NE(error.find("use "), std::string::npos) << error;
  }
  EXPECT_NE(error_of(dem, "mwpm").find("mwpm"), std::string::npos);
  EXPECT_NE(error_of(dem + "    decoder_custom_args: {speed: 3}\n").find("speed"), std::string::npos);
  EXPECT_NE(error_of(dem, "single_error_lut").find("is for H_sparse"), std::string::npos);
}

TEST(ServerConfig, AcceptsOrRefusesEachSettingOfTheExistingServerByItsValue) {
  const auto page = read_whole_file(CUDAQ_TEST_SERVER_SETTINGS_PAGE);
  ASSERT_TRUE(page.ok()) << page.text();
  const auto words_of = [](std::string_view list) {
    std::vector<std::string> words;
    std::istringstream stream{std::string(list)};
    for (std::string word; std::getline(stream, word, '|');)
      words.push_back(word == "*" ? "17" : word);
    return words;
  };
  for (const foreign_setting &setting : foreign_settings()) {
    const std::string name(setting.name);
    EXPECT_NE(page->find("| `" + name + "` |"), std::string::npos) << name << " is not in the table of the page";
    for (const std::string &type : words_of(setting.types)) {
      if (type.starts_with("pymatching") && !pymatching_available())
        continue;
      const auto error_with = [&](const std::string &value) {
        return error_of((type == "sliding-window" ? kLoop : "    dem: error(0.1) D0 L0\n") +
                            "    decoder_custom_args: {" + name + ": " + value + "}\n",
                        type);
      };
      for (const std::string &value : words_of(setting.accepted))
        EXPECT_EQ(error_with(value), "") << type << " " << name << " " << value;
      if (setting.accepted != "*") {
        EXPECT_NE(error_with("other").find("decoder_custom_args." + name + ": \"other\" is not available for " + type +
                                           ": " + std::string(setting.reason)),
                  std::string::npos)
            << error_with("other");
      }
    }
  }
  for (const foreign_type &foreign : foreign_types())
    EXPECT_NE(page->find("`" + std::string(foreign.type) + "`"), std::string::npos) << foreign.type;
}

/// A repetition code of distance 25: errors d and d + 1 flip detector d.
std::string long_chain() {
  std::string rows;
  for (int d = 0; d < 24; ++d)
    rows += std::to_string(d) + ", " + std::to_string(d + 1) + ", -1, ";
  return "    block_size: 25\n    syndrome_size: 24\n    H_sparse: [" + rows + "]\n    O_sparse: [0, -1]\n";
}

std::string shot_of(std::initializer_list<std::size_t> events) {
  std::string bits(24, '0');
  for (const std::size_t event : events)
    bits[event] = '1';
  return bits;
}

TEST(ServerConfig, RefusesALookupTableThatIsTooLargeAndNamesWhatToUse) {
  const std::string error = error_of(long_chain(), "lookup");
  EXPECT_NE(error.find("24 detectors"), std::string::npos) << error;
  EXPECT_NE(error.find("use the pymatching decoder; the decoder bp-osd takes such models"), std::string::npos) << error;
}

TEST(ServerConfig, TakesATableByDepthWhereATableOfEverySyndromeIsTooLarge) {
  for (const auto &[type, settings, two] :
       {std::tuple("multi_error_lut", "    decoder_custom_args: {lut_error_depth: 2}\n", true),
        std::tuple("multi_error_lut", "", false), std::tuple("single_error_lut", "", false)}) {
    const auto config = read_server_config("decoders:\n  - id: 1\n    type: " + std::string(type) +
                                           "\n    queue_length: 0\n" + long_chain() + settings);
    ASSERT_TRUE(config.ok()) << config.text();
    auto setups = build_decoders(*config, kFolder);
    ASSERT_TRUE(setups.ok()) << setups.text();
    decoding_server server(std::move(*setups));
    EXPECT_EQ(call(server, kOneShotFunctionId, packed(shot_of({}))), answered(server_status::ok, "0"));
    EXPECT_EQ(call(server, kOneShotFunctionId, packed(shot_of({0}))), answered(server_status::ok, "1"));
    EXPECT_EQ(call(server, kOneShotFunctionId, packed(shot_of({0, 10, 11}))),
              two ? answered(server_status::ok, "1")
                  : answered(static_cast<server_status>(decode_status::not_converged)));
  }
}

TEST(ServerConfig, TakesEveryStrategyOfMergingWhereNoErrorsAreMerged) {
  if (!pymatching_available())
    GTEST_SKIP() << "built without PyMatching";
  const std::string strategy = "    decoder_custom_args: {merge_strategy: smallest_weight}\n";
  EXPECT_EQ(error_of(long_chain() + strategy, "pymatching"), "");
  EXPECT_NE(error_of("    dem: |\n      error(0.1) D0 L0\n      error(0.2) D1\n      error(0.1) D0\n" + strategy,
                     "pymatching")
                .find("those of line 1 and line 3 have the same detectors (a line of the field dem)"),
            std::string::npos);
  EXPECT_NE(error_of("    stream: true\n" + kLoop + strategy, "pymatching").find("smallest_weight"), std::string::npos);
}

TEST(ServerConfig, TakesARelayOfTheExistingServerAsRelayBp) {
  const std::string relay = "      bp_method: 3\n      composition: 1\n      max_iterations: 50\n      gamma0: 0.125\n"
                            "      gamma_dist: [-0.2, 0.6]\n      use_sparsity: true\n      use_osd: false\n"
                            "      srelay_config:\n        pre_iter: 5\n        num_sets: 10\n";
  const auto settings_of = [&](const std::string &more) {
    const auto config = read_server_config("decoders:\n  - id: 1\n    type: nv-qldpc-decoder\n" + long_chain() +
                                           "    decoder_custom_args:\n" + relay + more);
    if (config.failed())
      return config.text();
    const auto setups = build_decoders(*config, kFolder);
    return setups.ok() ? setups->front().unit->identity()->name : setups.text();
  };
  const std::string shared = "set_max_iter=50,gamma0=0.125,gamma_lowest=-0.2,gamma_highest=0.6,pre_iter=5,num_sets=10";
  EXPECT_EQ(settings_of("        stopping_criterion: NConv\n        stop_nconv: 3\n"),
            "relay-bp:" + shared + ",stop_nconv=3");
  EXPECT_EQ(settings_of("        stopping_criterion: FirstConv\n      proc_float: fp64\n"),
            "relay-bp:stop_nconv=1," + shared + ",precision=double");
  EXPECT_EQ(settings_of("        stopping_criterion: All\n      opt_results: {num_iter: true}\n"),
            "relay-bp:stop_nconv=1000000," + shared);
  const std::pair<const char *, const char *> refusals[] = {
      {"      proc_float: fp16\n", "decoder_custom_args.proc_float: \"fp16\" is not available for nv-qldpc-decoder"},
      {"      clip_value: 20\n", "messages are not clipped"},
      {"      speed: 3\n", "decoder_custom_args.speed: \"3\" is not available for nv-qldpc-decoder"},
      {"        stopping_criterion: Never\n", "\"Never\" is not All or FirstConv or NConv"},
  };
  for (const auto &[line, error] : refusals)
    EXPECT_NE(settings_of(line).find(error), std::string::npos) << settings_of(line);
  for (const auto &[given, missing] :
       {std::pair{"composition: 1", "bp_method: nv-qldpc-decoder with srelay_config needs it: give 3"},
        std::pair{"bp_method: 3", "composition: nv-qldpc-decoder with srelay_config needs it: give 1"}}) {
    const std::string error = error_of(
        long_chain() + "    decoder_custom_args: {" + given + ", srelay_config: {pre_iter: 5}}\n", "nv-qldpc-decoder");
    EXPECT_NE(error.find(missing), std::string::npos) << error;
  }
  EXPECT_NE(error_of(long_chain() + "    decoder_custom_args: {max_iterations: 5}\n", "nv-qldpc-decoder")
                .find("without a relay use bp-osd"),
            std::string::npos);
}

TEST(ServerConfig, RefusesATypeThatItDoesNotHaveBeforeItsSettings) {
  const std::string error = error_of(long_chain() + "    decoder_custom_args: {engine: {path: [a]}}\n", "trt_decoder");
  EXPECT_NE(error.find("line 3, column 11: decoders[0].type: \"trt_decoder\": the server does not run neural"),
            std::string::npos)
      << error;
}

TEST(ServerConfig, RefusesOneIdForTwoDecoders) {
  EXPECT_EQ(read_server_config("decoders:\n- {id: 4, type: lookup}\n- {id: 4, type: lookup}\n").text(),
            "line 3, column 8: decoders[1].id: 4 is the id of an earlier decoder; each is used once");
}

TEST(ServerConfig, RefusesYamlThatNoConfigurationNeeds) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "line 1, column 1: the text is empty"},
      {"decoders: &a []\n", "line 1, column 11: an anchor (&name); write the value out where it is used"},
      {"decoders: !!seq []\n", "line 1, column 11: the tag tag:yaml.org,2002:seq; a configuration has no tags"},
      {"[1]: 2\n", "line 1, column 1: a key that is no word"},
      {"a: 1\n---\nb: 2\n", "line 3, column 1: a second document"},
      {"- 1\n", "line 1, column 1: the configuration is a list, not a map"},
      {"decoders: []\n", "line 1, column 11: decoders: a list is not a list of at least one map"},
      {"transport: {}\n", "line 1, column 1: decoders: the field is missing; it is a list of maps"},
  };
  for (const auto &[text, error] : cases)
    EXPECT_EQ(read_server_config(text).text(), error) << text;
  EXPECT_NE(read_server_config("decoders: [").text().find("not YAML"), std::string::npos);
  EXPECT_NE(read_server_config(std::string(100000, '[')).text(), "");
  EXPECT_NE(read_server_config(std::string(40, '[') + std::string(40, ']')).text().find("inside each other"),
            std::string::npos);
}

TEST(ServerConfig, RefusesMoreDecodersOrMemoryThanAServerMayHave) {
  std::string many = "decoders:\n";
  for (int id = 0; id <= 16384; ++id)
    many += "  - {id: " + std::to_string(id) + ", type: lookup, dem: 'error(0.1) D0 L0'}\n";
  EXPECT_EQ(read_server_config(many).text(),
            "line 16386, column 5: a list of more than 16384 maps; a server has at most so many decoders");
  EXPECT_TRUE(read_server_config(many.substr(0, many.rfind("  - "))).ok());
  const std::string error = error_of("    queue_length: 65536\n    measurements: 1048576\n    D_sparse: [0, -1]\n"
                                     "    dem: 'error(0.1) D0 L0'\n");
  EXPECT_NE(error.find("decoders[0] (id 1): the decoders up to this one need about 8"), std::string::npos) << error;
  EXPECT_NE(error.find(" MiB, at most 4096 are accepted; give fewer decoders, a smaller queue_length, or smaller "),
            std::string::npos)
      << error;
}

TEST(ServerConfig, ReadsRegularFilesOnly) {
  const std::string fifo = testing::TempDir() + "model_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string &path : {fifo, std::string("/dev/zero")}) {
    EXPECT_NE(read_whole_file(path).text().find(path + ": it is not a regular file"), std::string::npos);
    EXPECT_NE(error_of("    dem_file: " + path + "\n").find("it is not a regular file"), std::string::npos);
  }
  EXPECT_EQ(read_whole_file("/tmp").text(), "/tmp: Is a directory");
  unlink(fifo.c_str());
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
// What a server says of itself: the names of its decoders, and that it is another one after a restart.
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/server/server_config.h"
#include "lib/qec/stream/stream_factory.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/server/server_stream_support.h"
#include "unittests/support/scratch_folder.h"

namespace cudaq::qec::realtime::test {
namespace {

// get_decoder_name, and the places that texts about a configuration name.

std::string text_of(const full_answer &answer) { return {answer.result.begin(), answer.result.end()}; }

std::vector<decoder_setup> setups_of(const std::string &yaml) {
  const auto config = read_server_config(yaml);
  if (config.failed())
    throw std::runtime_error(config.text());
  auto setups = build_decoders(*config, ".");
  if (setups.failed())
    throw std::runtime_error(setups.text());
  return std::move(*setups);
}

TEST(ServerName, IsUnknownUnlessTheConfigurationHasIt) {
  decoding_server server(one_setup({.id = 1}, unit_for(rotated_model(4))));
  EXPECT_EQ(call(server, kNameFunctionId, reset_payload(1)), answered(server_status::ok));
  EXPECT_EQ(call(server, kNameFunctionId, reset_payload(2)), answered(server_status::invalid_decoder));
  EXPECT_EQ(call(server, kNameFunctionId, bytes(7)), answered(server_status::bad_request));
}

#ifdef CUDAQ_QEC_SERVER_HAS_YAML
constexpr const char *kTwo = "decoders:\n"
                             "  - {id: 3, type: 'bp-osd:osd_order=2', decoder_custom_args: {max_iterations: 9},\n"
                             "     queue_length: 0, dem: \"error(0.1) D0 L0\"}\n"
                             "  - {id: 7, type: auto, queue_length: 0, dem: \"error(0.1) D0 D1 D2 L0\"}\n";

TEST(ServerName, HasTheSettingsAndWhatAutoHasChosen) {
  decoding_server server(setups_of(kTwo));
  EXPECT_EQ(text_of(call(server, kNameFunctionId, reset_payload(3))), "bp-osd:osd_order=2,max_iterations=9");
  EXPECT_EQ(text_of(call(server, kNameFunctionId, {})), "bp-osd:osd_order=2,max_iterations=9") << "that of qec_decode";
  const std::string chosen = text_of(call(server, kNameFunctionId, reset_payload(7)));
  EXPECT_FALSE(chosen.empty());
  EXPECT_NE(chosen, "auto");
  EXPECT_TRUE(make_decoder(chosen, "error(0.1) D0 D1 D2 L0")) << chosen;
  bytes small(5);
  server_answer now;
  ASSERT_TRUE(server.submit(kNameFunctionId, reset_payload(3), small, {}, now));
  EXPECT_EQ(now.status, static_cast<std::int32_t>(server_status::bad_request)) << "the slot is too small";
}

TEST(ServerName, OfAutoWithHeraldsIsADecoderToo) {
  const cudaq::realtime::test::scratch_folder folder;
  const std::string dem = "error(0.1) D0 L0\nerror(0.1) D0\nerror(0.1) D1\n";
  const auto write = [&](const std::string &line) {
    std::ofstream(folder.path() / "h.txt") << heralds_text(dem, "detectors 3\n" + line);
  };
  const auto built = [&](const std::string &type) {
    const auto config =
        read_server_config("decoders: [{id: 3, type: '" + type +
                           "', queue_length: 0, dem: \"error(0.1) D0 L0\\nerror(0.1) D0\\nerror(0.1) D1\\n\"}]\n");
    EXPECT_TRUE(config.ok()) << config.text();
    return build_decoders(*config, folder.path());
  };
  // The path begins in the folder of the configuration.
  std::vector<bytes> facts;
  for (const char *line : {"herald 0 0 0.5\n", "herald 0 0 0.4\n"}) {
    write(line);
    auto setups = built("bp-osd:heralds=h.txt");
    ASSERT_TRUE(setups.ok()) << setups.text();
    decoding_server server(std::move(*setups));
    facts.push_back(call(server, kDescribeFunctionId, reset_payload(3)).result);
    EXPECT_EQ(text_of(call(server, kNameFunctionId, {})), "bp-osd:heralds=" + path_in(folder.path(), "h.txt"));
  }
  EXPECT_NE(facts.front(), facts.back()) << "other heralds have another digest";
  if (pymatching_available())
    for (const char *setting : {"heralds=./h.txt", "predecoder=local"}) {
      auto setups = built(std::string("auto:") + setting);
      ASSERT_TRUE(setups.ok()) << setups.text();
      decoding_server server(std::move(*setups));
      const std::string name = text_of(call(server, kNameFunctionId, {}));
      EXPECT_TRUE(name.starts_with("pymatching:")) << name;
      EXPECT_TRUE(make_decoder(name, dem)) << name;
    }
  write("herald 0 9 0.5\n");
  const std::string refusal = built("bp-osd:heralds=h.txt").text();
  EXPECT_NE(refusal.find("h.txt: line 4: "), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find("a line of the field dem"), std::string::npos) << refusal;
}

TEST(ServerName, OfAStreamMakesAStreamWithTheSameWindows) {
  std::string dem;
  const std::string model = rotated_stream_model(2);
  for (std::size_t at = 0, end = 0; at < model.size(); at = end + 1) {
    end = model.find('\n', at);
    end = end == std::string::npos ? model.size() : end;
    dem += "      " + model.substr(at, end - at) + "\n";
  }
  decoding_server server(setups_of(
      "decoders:\n  - id: 3\n    type: 'sliding-window:buffer=1,inner=lookup,commit=2'\n    stream: true\n"
      "    queue_length: 0\n"
      "    dem: |\n" +
      dem +
      "  - id: 4\n    type: sliding-window\n    stream: true\n    queue_length: 0\n"
      "    decoder_custom_args: {inner: bp-osd, osd_order: 2, commit: 4, buffer: 2, rounds: 'index:1'}\n"
      "    dem: |\n" +
      dem +
      "  - id: 5\n    type: 'sliding-window:commit=2,buffer=1,inner=race(bp-osd:osd_order=2|relay-bp,mode=best)'\n"
      "    stream: true\n    queue_length: 0\n    dem: |\n" +
      dem));
  EXPECT_EQ(text_of(call(server, kNameFunctionId, reset_payload(3))),
            "sliding-window:inner=lookup,commit=2,buffer=1,rounds=time,mode=sequential");
  const std::string second = text_of(call(server, kNameFunctionId, reset_payload(4)));
  EXPECT_EQ(second, "sliding-window:inner=bp-osd,commit=4,buffer=2,rounds=index:1,mode=sequential,osd_order=2");
  const std::string third = text_of(call(server, kNameFunctionId, reset_payload(5)));
  EXPECT_EQ(third, "sliding-window:inner=race(bp-osd:osd_order=2|relay-bp,mode=best),commit=2,buffer=1,rounds=time,"
                   "mode=sequential");
  for (const std::string &name : {second, third})
    EXPECT_TRUE(make_stream_decoder(model, {.decoder = name})) << name << " is a name";
}

TEST(ServerName, ChangesWithTheDecoder) {
  const auto with = [](const char *type) {
    return setups_of("decoders: [{id: 3, type: " + std::string(type) +
                     ", queue_length: 0, dem: \"error(0.1) D0 L0\"}]\n");
  };
  decoding_server server(with("lookup"));
  ASSERT_EQ(server.reload(with("bp-osd"), soon()).outcome, reload_outcome::applied);
  EXPECT_EQ(text_of(call(server, kNameFunctionId, {})), "bp-osd");
}

TEST(ServerConfigPlaces, AreThoseOfTheNewFileInARejectedReload) {
  decoding_server server(setups_of(kTwo));
  const auto reason_for = [&](const std::string &yaml) { return server.reload(setups_of(yaml), soon()).reason; };
  const std::string first =
      "# a comment\ndecoders:\n  - {id: 3, type: lookup, queue_length: 0, dem: \"error(0.1) D0 L0\"}\n";
  EXPECT_EQ(reason_for(first + "  - {id: 8, type: lookup, queue_length: 0, dem: \"error(0.1) D0 D1 D2 L0\"}\n"),
            "line 4, column 5: decoders[1] (id 8): the running server has id 7 in this place; ids and their order are "
            "fixed");
  EXPECT_EQ(reason_for(first + "  - {id: 7, type: lookup, queue_length: 0, dem: \"error(0.1) D0 L0\"}\n"),
            "line 4, column 5: decoders[1] (id 7): the new model has 1 bit per shot, 1 detector and 1 observable, "
            "the running one has 3 bits per shot, 3 detectors and 1 observable; these are fixed");
}

TEST(ServerConfigPlaces, SayWhoseLinesATextCounts) {
  const auto text_for = [](const std::string &yaml) {
    const auto config = read_server_config(yaml);
    EXPECT_TRUE(config.ok()) << config.text();
    const auto setups = build_decoders(*config, ".");
    return setups.failed() ? setups.text() : std::string();
  };
  for (const char *stream : {"", "    stream: true\n"}) {
    const std::string text = text_for(std::string("decoders:\n  - id: 3\n    type: lookup\n") + stream +
                                      "    dem: |\n      error(0.1) D0 L0\n      nonsense\n");
    EXPECT_TRUE(text.starts_with("line 2, column 5: decoders[0] (id 3): ")) << text;
    EXPECT_NE(text.find("line 2"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(" (a line of the field dem)")) << text;
  }
}
#endif

// A server that takes the place of one that has ended, and one that ends.

constexpr std::uint64_t kId = 5;

struct served {
  explicit served(bool sequence = true, std::unique_ptr<decoding_unit> unit = unit_for(rotated_model(4)))
      : server(one_setup({.id = kId, .sequence = sequence}, std::move(unit))) {}
  full_answer enqueue(std::uint64_t counter, const std::string &bits) {
    return call(server, kEnqueueFunctionId, enqueue_payload(kId, counter, bits));
  }
  full_answer corrections() { return call(server, kGetCorrectionsFunctionId, get_payload(kId, 4, true)); }
  full_answer reset() { return call(server, kResetFunctionId, reset_payload(kId)); }
  std::optional<server_facts> facts() {
    bytes payload = reset_payload(kId);
    append_number(payload, 1);
    return read_server_facts(call(server, kDescribeFunctionId, payload).result);
  }
  decoding_server server;
};

const full_answer kOk = answered(server_status::ok), kDropped = answered(server_status::syndromes_dropped);

TEST(ServerRestart, DoesNotJoinTheHalvesOfTwoShots) {
  auto before = std::make_unique<served>();
  ASSERT_EQ(before->reset(), kOk);
  ASSERT_EQ(before->enqueue(6, "01"), kOk);
  before.reset();
  served after;
  EXPECT_EQ(after.enqueue(7, "10"), kDropped) << "its first half is missing";
  EXPECT_EQ(after.enqueue(8, "01"), kDropped) << "latched";
  EXPECT_EQ(after.corrections(), kDropped);
  EXPECT_EQ(after.reset(), kOk);
  EXPECT_EQ(after.enqueue(9, "0110"), kOk) << "after a reset any number begins";
  EXPECT_EQ(after.corrections(), answered(server_status::ok, "0110"));
}

TEST(ServerRestart, DoesNotLoseAWholeShotSilently) {
  served after; // the requester has sent a shot to the server before, and reads its correction here
  EXPECT_EQ(after.corrections(), kDropped);
  EXPECT_EQ(after.enqueue(2, "0110"), kDropped);
}

TEST(ServerRestart, LetsARequesterBeginWithoutAReset) {
  for (const std::uint64_t first : {0U, 1U}) {
    served s;
    EXPECT_EQ(s.enqueue(first, "01"), kOk);
    EXPECT_EQ(s.enqueue(first + 1, "10"), kOk);
    EXPECT_EQ(s.corrections(), answered(server_status::ok, "0110"));
  }
  served any(false);
  EXPECT_EQ(any.enqueue(17, "0110"), kOk) << "counters are ignored";
}

TEST(ServerRestart, RefusesRoundsOfAStreamThatBeganBefore) {
  served s(true, stream_unit_for(rotated_stream_model(4)));
  EXPECT_EQ(s.enqueue(12, "0110"), kDropped);
  EXPECT_EQ(call(s.server, kGetCommittedFunctionId, committed_payload(kId, 4)), kDropped);
}

TEST(ServerRestart, IsSeenInTheBootId) {
  served first, second;
  ASSERT_TRUE(first.facts() && second.facts());
  EXPECT_NE(first.facts()->boot_id, 0u);
  EXPECT_EQ(first.facts()->boot_id, first.facts()->boot_id);
  EXPECT_NE(first.facts()->boot_id, second.facts()->boot_id);
  bytes payload = reset_payload(kId);
  append_number(payload, 1);
  const bytes longer = call(first.server, kDescribeFunctionId, payload).result;
  const bytes shorter = call(first.server, kDescribeFunctionId, reset_payload(kId)).result;
  EXPECT_EQ(shorter.size(), 32u) << "as before";
  EXPECT_EQ(bytes(longer.begin(), longer.begin() + 32), shorter);
  payload[8] = 5; // no form of the answer
  EXPECT_EQ(call(first.server, kDescribeFunctionId, payload), answered(server_status::bad_request));
  payload[8] = 1;
  payload[0] = kId + 1;
  EXPECT_EQ(call(first.server, kDescribeFunctionId, payload), answered(server_status::invalid_decoder));
}

TEST(ServerEnd, GivesOutCorrectionsAndLetsShotsEndButBeginsNone) {
  served s;
  ASSERT_EQ(s.enqueue(0, "0110"), kOk);
  ASSERT_EQ(s.enqueue(1, "10"), kOk);
  EXPECT_TRUE(s.server.has_unfinished());
  EXPECT_FALSE(s.facts()->ends);
  s.server.begin_end();
  EXPECT_TRUE(s.facts()->ends);
  EXPECT_EQ(s.corrections(), answered(server_status::ok, "0110"));
  EXPECT_TRUE(s.server.has_unfinished()) << "half a shot";
  EXPECT_EQ(s.enqueue(2, "00"), kOk);
  EXPECT_EQ(s.enqueue(3, "1111"), answered(server_status::not_ready)) << "a new shot";
  EXPECT_EQ(s.corrections(), answered(server_status::ok, "1000")) << "the refusal has not latched";
  EXPECT_FALSE(s.server.has_unfinished());
  EXPECT_EQ(call(s.server, kOneShotFunctionId, packed("0110")).status, -4);
  s.server.close();
  EXPECT_EQ(s.corrections(), answered(server_status::not_ready));
  EXPECT_TRUE(s.facts()->ends);
  EXPECT_EQ(s.server.strays(), 0U) << "each request has named a decoder";
}

TEST(ServerEnd, GivesOutTheFinalRoundsOfAStreamButTakesNone) {
  served s(true, stream_unit_for(rotated_stream_model(4)));
  ASSERT_EQ(s.enqueue(0, "100001000010"), kOk);
  EXPECT_TRUE(s.server.has_unfinished());
  s.server.begin_end();
  EXPECT_EQ(s.enqueue(1, "0001"), answered(server_status::not_ready));
  EXPECT_EQ(call(s.server, kGetCommittedFunctionId, committed_payload(kId, 4)), committed(2, 3, "1100"));
  EXPECT_FALSE(s.server.has_unfinished());
}

TEST(ServerEnd, WaitsForNoDecoderWithoutCorrections) {
  served s;
  EXPECT_FALSE(s.server.has_unfinished());
  ASSERT_EQ(s.enqueue(0, "01"), kOk);
  EXPECT_TRUE(s.server.has_unfinished());
  ASSERT_EQ(s.enqueue(5, "01"), kDropped);
  EXPECT_FALSE(s.server.has_unfinished()) << "nothing can be read any more";
}

// dispatch device_graph: the decoder on the GPU or a refusal, never the CPU.

/// What the builder makes of a decoder of this type.
expected<std::vector<decoder_setup>> built_for_gpu(const std::string &type) {
  decoder_config config;
  config.place = "decoders[0]";
  config.type = type;
  config.dem = "error(0.1) D0 D1 L0\nerror(0.1) D0\nerror(0.1) D1\n";
  config.is_on_gpu = true;
  config.cuda_device_id = 3;
  server_config all;
  all.decoders.push_back(config);
  return build_decoders(all, ".");
}

TEST(ServerGpuDecoder, IsRefusedForTypesThatRunOnTheCpuOnly) {
  for (const std::string type : {"bp-osd", "lookup", "auto", "relay-bp-gpu", "pymatching",
                                 "pymatching:predecoder=local", "bp-osd:predecoder=model=FILE"}) {
    const auto result = built_for_gpu(type);
    ASSERT_TRUE(result.failed()) << type;
    EXPECT_NE(
        result.text().find("only relay-bp, and pymatching after a network (predecoder=model=FILE), decode on a GPU"),
        std::string::npos)
        << result.text();
  }
}

TEST(ServerGpuDecoder, IsNeverReplacedByTheCpu) {
  const auto result = built_for_gpu("relay-bp:seed=1");
  if (result.ok()) // a machine with four GPUs
    EXPECT_STREQ(result->front().unit->decoder_name(), "relay-bp-gpu");
  else
    EXPECT_NE(result.text().find("relay-bp-gpu"), std::string::npos) << result.text();
}

// The settings go along, so a wrong one is refused by the decoder on the GPU.
TEST(ServerGpuDecoder, OfANetworkIsNeverReplacedByTheCpu) {
  const auto result = built_for_gpu("pymatching:edges=1,predecoder=model=/absent/file");
  ASSERT_TRUE(result.failed());
  EXPECT_NE(result.text().find("model-gpu"), std::string::npos) << result.text();
}

} // namespace
} // namespace cudaq::qec::realtime::test

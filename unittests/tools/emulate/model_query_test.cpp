// SPDX-License-Identifier: Apache-2.0
// The query for a server's model, to servers that are functions.
#include "tools/emulate/model_query.h"

#include "lib/qec/decoding/dem.h"
#include "lib/qec/server/session/wire_requests.h"
#include "tools/common/api_objects.h"
#include "tools/emulate/server_query.h"
#include "tools/emulate/stream_plan.h"
#include "tools/shots/shot_plan.h"
#include "unittests/qec/model_text.h"
#include "unittests/qec/stream/stream_test_support.h"
#include "unittests/support/scratch_folder.h"

#include <fstream>
#include <functional>
#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.2) D0 D1\nerror(0.1) D1\n";

class answering_link final : public link {
public:
  using answers = std::function<std::optional<link_answer>(std::uint32_t id, std::size_t payload)>;
  explicit answering_link(answers a) : answers_(std::move(a)) {}

  bool send(std::uint32_t id, std::uint32_t sent, std::span<const std::uint8_t> payload, std::uint64_t) override {
    EXPECT_EQ(sent, function);
    next_ = answers_(id, payload.size());
    ++queries;
    ids.push_back(id);
    return true;
  }
  std::optional<link_answer> receive() override { return std::exchange(next_, std::nullopt); }
  void give_up(std::uint32_t) override { ++given_up; }
  bool alive() override { return lives; }
  std::string end_text() const override { return "nothing listens at port 9"; }
  link_counters counters() const override { return {}; }
  std::string describe() const override { return "a function"; }

  std::uint32_t function = qec::kDescribeFunctionId;
  int queries = 0, given_up = 0;
  bool lives = true;
  std::vector<std::uint32_t> ids;

private:
  answers answers_;
  std::optional<link_answer> next_;
};

std::span<const std::uint8_t> bytes_of(const std::string &text) {
  return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

qec::model_facts facts_of(const std::string &text) {
  const auto model = qec::parse_dem(text);
  return {model->num_detectors, model->num_detectors, model->num_observables, qec::model_digest(*model)};
}

struct query_bench {
  query_bench() {
    options.timeout_s = 0.01;
    shots.name = "the shots";
    shots.dem_text = kModel;
    shots.num_detectors = 2;
    shots.num_observables = 1;
  }
  model_query query(link &to) const { return query_model(to, options, shots, nullptr); }
  /// A server with this model.
  answering_link::answers with(const std::string &text) {
    qec::write_model_facts(facts_of(text), result);
    return [this](std::uint32_t id, std::size_t) { return std::optional(link_answer{{0, 0, 32, id, 0}, result}); };
  }

  emulate_options options;
  qec::shot_set shots;
  std::array<std::uint8_t, qec::kModelFactsBytes> result{};
};

TEST(ModelQuery, IsSilentAboutTheSameModel) {
  query_bench b;
  answering_link server(b.with("# the same\nerror(0.1) D1\nerror(1e-1) D0 L0\ndetector(1, 2) D0\nerror(0.2) D0 D1\n"));
  const model_query q = b.query(server);
  EXPECT_TRUE(q.answered);
  EXPECT_EQ(q.note, "");
}

TEST(ModelQuery, NamesBothModelsIfTheContentDiffers) {
  query_bench b;
  answering_link server(b.with("error(0.1) D0 L0\nerror(0.3) D0 D1\nerror(0.1) D1\n"));
  const std::string note = b.query(server).note;
  EXPECT_TRUE(note.starts_with("the server has another model than the shots: 2 detectors, 1 observable, digest "))
      << note;
  EXPECT_NE(note.find("; the shots has 2 detectors, 1 observable, digest "), std::string::npos) << note;
}

TEST(ModelQuery, RefusesAModelOfAnotherSize) {
  query_bench b;
  answering_link server(b.with("error(0.1) D0 L0\nerror(0.2) D2\n"));
  EXPECT_THROW(b.query(server), usage_error);
  b.options.protocol = "server";
  answering_link other(b.with("error(0.1) D0 L1\nerror(0.2) D1\n"));
  EXPECT_THROW(b.query(other), usage_error);
}

TEST(ModelQuery, AsksForEachDecoderThatIsUsed) {
  query_bench b;
  b.options.protocol = "server";
  b.options.decoder_ids = {3, 5, 8};
  answering_link server(b.with(kModel));
  EXPECT_TRUE(b.query(server).answered);
  EXPECT_EQ(server.queries, 3);
  EXPECT_EQ(server.ids, (std::vector<std::uint32_t>{0, 1, 2})) << "the player's requests come after them";
}

TEST(ModelQuery, LeavesAServerThatDoesNotKnowItAsItIs) {
  query_bench b;
  answering_link drops([](std::uint32_t, std::size_t) { return std::nullopt; });
  EXPECT_FALSE(b.query(drops).answered);
  EXPECT_EQ(drops.given_up, 1);
  answering_link refuses([](std::uint32_t id, std::size_t) {
    return std::optional(link_answer{{0, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION, 0, id, 0}, {}});
  });
  EXPECT_FALSE(b.query(refuses).answered);
}

TEST(ModelQuery, RefusesAServerThatDoesNotDescribeItsSoftValues) {
  query_bench b;
  b.options.protocol = "server";
  b.options.decoder_ids = {3};
  const cudaq::realtime::test::scratch_folder folder;
  readout_files files;
  files.readout = folder.path() / "readout.txt";
  files.leakage = folder.path() / "flags";
  std::ofstream(files.readout) << qec::test::head_of_text("cudaq-realtime-readout 1", kModel) + "flags 1\n";
  b.shots.shots = 1;
  std::ofstream(files.leakage) << '\x02';
  const recorded_readout readout(files, b.shots);
  answering_link old(b.with(kModel)); // it answers each form with 32 bytes
  try {
    query_model(old, b.options, b.shots, &readout);
    FAIL() << "it was played";
  } catch (const usage_error &e) {
    EXPECT_STREQ(e.what(), "decoder 3 of the server does not tell which soft values it takes: the server is of an "
                           "earlier version, or its slots have less than 120 bytes");
  }
  EXPECT_TRUE(query_model(old, b.options, b.shots, nullptr).answered);
}

TEST(ModelQuery, EndsAtOnceIfNoServerListens) {
  query_bench b;
  b.options.timeout_s = 3600;
  answering_link none([](std::uint32_t, std::size_t) { return std::nullopt; });
  none.lives = false;
  EXPECT_THROW(b.query(none), api_error);
}

TEST(ServedName, IsNotMadeHereIfItsAnswersDependOnTimeOrOnAFileOfTheServer) {
  for (const char *name : {"race:bp-osd|relay-bp", "sliding-window:inner=race(bp-osd|relay-bp,mode=best),commit=2"})
    EXPECT_EQ(check_served_decoder(name).text(), "the answers of a race depend on time") << name;
  for (const char *name : {"./mine.so", "sliding-window:inner=./mine.so,commit=2"})
    EXPECT_EQ(check_served_decoder(name).text(), "it is a plug-in") << name;
  for (const char *name : {"pymatching:heralds=/dev/zero", "sliding-window:inner=pymatching(heralds=list),commit=2"})
    EXPECT_EQ(check_served_decoder(name).text(), "it reads a file of heralds") << name;
  for (const char *name :
       {"pymatching:predecoder=model=/n", "sliding-window:inner=pymatching(predecoder=model=n),commit=2"})
    EXPECT_EQ(check_served_decoder(name).text(), "it reads the file of a network") << name;
  for (const char *name : {"relay-bp:deadline_us=50", "sliding-window:inner=relay-bp(deadline_us=50),commit=2"})
    EXPECT_EQ(check_served_decoder(name).text(), "it has a deadline, so its answers depend on time") << name;
  for (const char *name : {"bp-osd:osd_order=2", "sliding-window:inner=pymatching,commit=2"})
    EXPECT_TRUE(check_served_decoder(name).ok()) << name;
}

TEST(ServedName, OfADecoderThatDoesNotEndIsNotChecked) {
  query_bench b;
  b.shots.shots = 2;
  b.shots.detections = {0b01, 0b11};
  b.shots.predictions = {0, 1};
  shot_plan plan(b.shots, 0);
  decode_service quick("bp-osd", b.shots, 1),
      slow("relay-bp:num_sets=1000000,stop_nconv=1000000,deadline_us=1000", b.shots, 1);
  EXPECT_FALSE(plan.expect_answers_of(quick, 2, std::chrono::nanoseconds(0)));
  EXPECT_FALSE(plan.expect_answers_of(slow, 2, kServedCheckLimit)) << "a decode that ends at its deadline";
  EXPECT_FALSE(plan.expects_offline());
  EXPECT_EQ(plan.expected_row(1)[0], 1) << "as before";
  EXPECT_TRUE(plan.expect_answers_of(quick, 2, kServedCheckLimit));
  EXPECT_TRUE(plan.expects_offline());
  EXPECT_EQ(with_decode_limit("lookup"), "lookup:deadline_us=5000000");
  EXPECT_EQ(with_decode_limit("bp-osd:osd_order=2"), "bp-osd:osd_order=2,deadline_us=5000000");
}

TEST(ServedName, OfAStreamThatIsTooLargeOrTooSlowIsNotChecked) {
  const std::string model = qec::test::repetition_dem(3, 0.02, 1, 100);
  const auto plan_with = [&](const std::string &name, std::chrono::nanoseconds limit) {
    return stream_plan(model, name, 0, 200, 7, limit);
  };
  try {
    plan_with("sliding-window:inner=lookup,commit=1000000,buffer=1000000", kServedCheckLimit);
    FAIL() << "it was made";
  } catch (const usage_error &e) {
    EXPECT_NE(std::string(e.what()).find("a decoder that only the server names may take"), std::string::npos)
        << e.what();
  }
  stream_plan slow = plan_with("sliding-window:inner=lookup,commit=2,buffer=3", std::chrono::nanoseconds(0));
  const stream_frames frames{{2, 4}, {0, 0}};
  EXPECT_TRUE(slow.check(0, frames).too_slow);
  EXPECT_EQ(slow.check(0, frames).wrong, 0U);
  stream_plan quick = plan_with("sliding-window:inner=lookup,commit=2,buffer=3", kServedCheckLimit);
  EXPECT_FALSE(quick.check(0, frames).too_slow);
}

TEST(ServedName, IsEmptyIfItIsLongerThanANameCanBe) {
  query_bench b;
  for (const std::size_t length : {1024U, 1025U}) {
    const std::string name(length, 'x');
    answering_link named([&](std::uint32_t id, std::size_t) {
      return std::optional(link_answer{{0, 0, 0, id, 0}, bytes_of(name)});
    });
    named.function = qec::kNameFunctionId;
    std::uint32_t id = 0;
    EXPECT_EQ(query_name(named, b.options, id).size(), length == 1024 ? length : 0U);
  }
}

} // namespace
} // namespace cudaq::realtime::tools

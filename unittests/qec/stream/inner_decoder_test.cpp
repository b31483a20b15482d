// SPDX-License-Identifier: Apache-2.0
// What a stream asks of the decoder of its windows: in which form that takes errors, and what it has at a deadline.
#include "lib/qec/decoders/error_form.h"
#include "unittests/qec/stream/stream_test_support.h"

#include <dlfcn.h>

namespace cudaq::qec::realtime::test {
namespace {

std::string plugin(error_form form) {
  return std::string(CUDAQ_TEST_SINGLE_ERROR_FOLDER) + "/libsingle_error_plugin_" +
         std::to_string(static_cast<int>(form)) + ".so";
}

/// Rounds of two detectors. Detectors of the first kind have errors of their own that flip L0, and so have errors with
/// the next round. The second kind flips no observable alone, but each of its errors is a component of one of the first
/// kind.
const std::string kRound = "detector(0,0) D0\ndetector(1,0) D1\nerror(0.1) D0 L0\n";
const std::string kCrossing = "error(0.02) D0 D2 ^ D1 D3\n";
const std::string kText = kRound + kCrossing + "shift_detectors(0,1) 2\nrepeat 100 {\n" + kRound + kCrossing +
                          "shift_detectors(0,1) 2\n}\n" + kRound;

std::string name_of(error_form form) {
  const auto found = error_form_of(plugin(form));
  return found.ok() ? std::to_string(static_cast<int>(*found)) : found.text();
}

/// The text of the last window of a stream with this decoder. The library is loaded once more, so its memory stays.
std::string window_text(error_form form) {
  const std::string path = plugin(form);
  void *const library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr)
    throw std::runtime_error(dlerror());
  stream_or_throw(kText, {.decoder = path, .commit = 3, .buffer = 3});
  const auto text = reinterpret_cast<const char *(*)()>(dlsym(library, "single_error_plugin_text"));
  std::string last = text();
  dlclose(library);
  return last;
}

bool has(const std::string &text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(InnerDecoder, APlugInSaysHowItTakesErrors) {
  for (const error_form form : {error_form::joined, error_form::components, error_form::whole})
    EXPECT_EQ(name_of(form), std::to_string(static_cast<int>(form)));
  // The last window has closed near sides: it begins at a line.
  const std::string joined = window_text(error_form::joined), components = window_text(error_form::components),
                    whole = window_text(error_form::whole);
  EXPECT_TRUE(has(joined, "D0 D2") && has(joined, " ^ D1 D3")) << joined;
  EXPECT_TRUE(has(components, "D0 D2") && !has(components, "D1 D3")) << "D1 flips no observable: " << components;
  EXPECT_TRUE(has(whole, "D0 D1 D2 D3") && !has(whole, "^")) << whole;
}

TEST(InnerDecoder, EachNameHasAForm) {
  const auto form = [](std::string_view name) {
    const auto found = error_form_of(name);
    return found.ok() ? *found : throw std::runtime_error(found.text());
  };
  EXPECT_EQ(form("pymatching-correlated"), error_form::joined);
  for (const char *name : {"auto", "pymatching:edges=1", "lookup"})
    EXPECT_EQ(form(name), error_form::components) << name;
  for (const char *name : {"bp-osd", "relay-bp:num_sets=3", "relay-bp-gpu", "race:relay-bp(seed=1)|bp-osd,mode=best"})
    EXPECT_EQ(form(name), error_form::whole) << name;
  EXPECT_EQ(form("race:relay-bp|" + plugin(error_form::joined)), error_form::joined);
  for (const char *name : {"bp-ods", "absent.so", "race:relay-bp", "race:relay-bp|absent.so"})
    EXPECT_FALSE(error_form_of(name).ok()) << name;
  EXPECT_TRUE(has(make_stream_decoder(kText, {.decoder = "absent.so", .commit = 3, .buffer = 3}).error, "absent.so"));
}

TEST(InnerDecoder, MatchingTakesEdgesOnlyAlsoInARace) {
  for (const char *name : {"pymatching:edges=1", "pymatching-correlated", "race:bp-osd|pymatching-correlated"})
    EXPECT_TRUE(takes_edges_only(name)) << name;
  EXPECT_EQ(takes_edges_only("auto"), pymatching_available());
  for (const std::string name : {"lookup", "bp-osd", "relay-bp:num_sets=3", "race:relay-bp(seed=1)|bp-osd", "bp-ods",
                                 "./pymatching.so", "race:pymatching"})
    EXPECT_FALSE(takes_edges_only(name)) << name;
}

struct ended_stream {
  decode_status status;
  std::vector<std::uint8_t> observables;
  std::uint64_t committed_rounds;
  stream_statistics counts;
  std::string fault;
};

ended_stream play(const std::string &decoder, std::size_t workers) {
  const repeating_model model = repeating_or_throw(kText);
  const auto unrolled = model.unrolled(40);
  component_sampler sampler(*unrolled, 5);
  const auto shot = sampler.next();
  const auto stream =
      stream_or_throw(kText, {.decoder = decoder, .commit = 3, .buffer = 3, .workers = workers, .queue_rounds = 4096});
  const std::uint64_t before = 2 * 41;
  decode_status status = stream->push(shot.events, before);
  if (status == decode_status::ok)
    status = stream->finish(part_of(shot.events, before, 2), 2);
  const stream_progress end = stream->wait_committed(42, soon());
  if (status == decode_status::ok)
    status = end.status;
  return {status,
          {stream->observables().begin(), stream->observables().end()},
          end.committed_rounds,
          stream->statistics(),
          stream->fault()};
}

TEST(InnerDecoder, TheBestSolutionSoFarOfAWindowAtItsDeadlineIsCommitted) {
  const std::string name = plugin(error_form::components);
  const ended_stream all = play(name, 0);
  ASSERT_EQ(all.status, decode_status::ok);
  EXPECT_EQ(all.counts.deadlines.missed, 0U);
  for (const std::size_t workers : {0U, 2U}) {
    const ended_stream timed = play(name + ":best=1,deadline_us=1000", workers);
    EXPECT_EQ(timed.status, decode_status::ok) << decode_status_text(timed.status);
    EXPECT_EQ(timed.committed_rounds, 42U);
    EXPECT_EQ(timed.counts.deadlines.missed, timed.counts.windows);
    EXPECT_EQ(timed.counts.deadlines.met, 0U);
    EXPECT_GE(timed.counts.windows, 12U);
    if (workers == 0) {
      EXPECT_EQ(timed.observables, all.observables);
    }
  }
}

TEST(InnerDecoder, ASolutionThatDoesNotCauseTheEventsOfItsWindowIsAnInternalError) {
  for (const std::size_t workers : {0U, 2U}) {
    const ended_stream wrong = play(plugin(error_form::components) + ":best=3", workers);
    EXPECT_EQ(wrong.status, decode_status::internal_error) << decode_status_text(wrong.status);
    EXPECT_TRUE(has(wrong.fault, "not those of a correction that causes its events")) << wrong.fault;
    EXPECT_LT(wrong.committed_rounds, 42U);
  }
}

TEST(InnerDecoder, AWindowWithoutASolutionAtItsDeadlineBreaksTheStream) {
  const ended_stream timed = play(plugin(error_form::components) + ":best=0,deadline_us=1000", 0);
  EXPECT_EQ(timed.status, decode_status::deadline);
  EXPECT_EQ(timed.committed_rounds, 0U);
  EXPECT_EQ(timed.counts.windows, 0U);
  EXPECT_EQ(timed.counts.deadlines.missed, 1U);
}

TEST(InnerDecoder, ABestSolutionThatDoesNotExplainTheEventsIsNoneAtTheDeadline) {
  const ended_stream timed = play(plugin(error_form::components) + ":best=2,deadline_us=1000", 0);
  EXPECT_EQ(timed.status, decode_status::deadline);
  EXPECT_EQ(timed.counts.deadlines.missed, 1U);
}

TEST(InnerDecoder, ADeadlineThatIsNotReachedChangesNothing) {
  const ended_stream plain = play("bp-osd", 0), timed = play("bp-osd:deadline_us=1000000", 0);
  EXPECT_EQ(timed.status, decode_status::ok);
  EXPECT_EQ(timed.observables, plain.observables);
  EXPECT_EQ(timed.counts.deadlines.met, timed.counts.windows);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
// Names of decoders in names of decoders: which level has a setting, and where a relative plug-in is.
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoders/stream_settings.h"
#include "unittests/qec/qec_test_support.h"

namespace cudaq::qec::realtime::test {
namespace {

stream_options options_of(const std::string &name) {
  const auto made = with_settings_of_name({.decoder = name});
  if (made.failed())
    throw std::runtime_error(made.text());
  return *made;
}

TEST(NestedNames, GiveAModeToTheRaceOrToTheWindows) {
  const stream_options both = options_of("sliding-window:inner=race(bp-osd|relay-bp(seed=1),mode=best),mode=parallel");
  EXPECT_EQ(both.decoder, "race:bp-osd|relay-bp(seed=1),mode=best");
  EXPECT_EQ(both.mode, stream_mode::parallel);
  const stream_options one = options_of("sliding-window:inner=race(bp-osd|relay-bp),mode=sequential,deadline_us=50");
  EXPECT_EQ(one.decoder, "race:bp-osd|relay-bp,deadline_us=50");
  EXPECT_EQ(one.mode, stream_mode::sequential);
  EXPECT_EQ(options_of("sliding-window:inner=bp-osd(osd_order=3),commit=4").decoder, "bp-osd:osd_order=3");
  EXPECT_EQ(options_of("sliding-window:inner=bp-osd,osd_order=3,commit=4").decoder, "bp-osd:osd_order=3");
  EXPECT_EQ(options_of("sliding-window:inner=./a.so:x=1,commit=4").decoder, "./a.so:x=1");
}

TEST(NestedNames, RefuseAModeThatNoLevelAtThisPlaceHas) {
  const auto refused = with_settings_of_name({.decoder = "sliding-window:inner=race:bp-osd|relay-bp,mode=best"});
  ASSERT_TRUE(refused.failed());
  EXPECT_EQ(refused.text(), "sliding-window: mode=best: expected one of auto, sequential, parallel; the mode of a race "
                            "stands in its parentheses: inner=race(NAME|NAME,mode=best)");
  EXPECT_TRUE(with_settings_of_name({.decoder = "sliding-window:inner=sliding-window(commit=3)"}).failed());
}

TEST(NestedNames, OfARaceInWindowsMakeADecoder) {
  const std::string loop = "error(0.1) D0 L0\nrepeat 9 {\nerror(0.1) D0 D1\nshift_detectors 1\n}\nerror(0.1) D0\n";
  const auto with =
      make_or_throw("sliding-window:inner=race(bp-osd|relay-bp,mode=best),rounds=index:1,commit=2,buffer=2", loop);
  EXPECT_EQ(decode(*with, {0}), (answer{decode_status::ok, {1}}));
  EXPECT_NE(make_decoder("sliding-window:inner=race(bp-osd|relay-bp,mode=worst),rounds=index:1,commit=2,buffer=2", loop)
                .error.find("mode=worst: expected one of first, best"),
            std::string::npos);
}

TEST(NestedNames, HaveAFolderBeforeEachRelativePath) {
  for (const auto &[name, full] : std::initializer_list<std::pair<const char *, const char *>>{
           {"lookup", "lookup"},
           {"./x.so", "/f/x.so"},
           {"x.so", "/f/x.so"},
           {".//./x.so", "/f/x.so"},
           {"a/x.so:file=b/c,y=1", "/f/a/x.so:file=b/c,y=1"},
           {"/a/x.so", "/a/x.so"},
           {"bp-osd:osd_order=3", "bp-osd:osd_order=3"},
           {"race:./a.so(k=v/w)|/b.so|c.so:deadline_us=3,mode=best",
            "race:/f/a.so(k=v/w)|/b.so|/f/c.so:deadline_us=3,mode=best"},
           {"sliding-window:commit=3,inner=./a.so,buffer=2", "sliding-window:commit=3,inner=/f/a.so,buffer=2"},
           {"sliding-window:inner=race(./a.so|lookup)", "sliding-window:inner=race(/f/a.so|lookup)"},
           {"bp-osd:heralds=h.txt,osd_order=3", "bp-osd:heralds=/f/h.txt,osd_order=3"},
           {"bp-osd:osd_order=3,heralds=./a/h(1).txt", "bp-osd:osd_order=3,heralds=/f/a/h(1).txt"},
           {"bp-osd:heralds=/h.txt", "bp-osd:heralds=/h.txt"},
           {"model-gpu:weights=n.safetensors,device=1", "model-gpu:weights=/f/n.safetensors,device=1"},
           {"x.so:weights=n", "/f/x.so:weights=n"},
           {"pymatching:predecoder=model=n.safetensors,edges=1",
            "pymatching:predecoder=model=/f/n.safetensors,edges=1"},
           {"pymatching:predecoder=local", "pymatching:predecoder=local"},
           {"auto:heralds=,predecoder=local", "auto:heralds=,predecoder=local"},
           {"./x.so:heralds=h.txt", "/f/x.so:heralds=/f/h.txt"},
           {"race:bp-osd(heralds=h.txt)|x.so,heralds=./h.txt",
            "race:bp-osd(heralds=/f/h.txt)|/f/x.so,heralds=/f/h.txt"}})
    EXPECT_EQ(with_folder(name, "/f"), full);
}

} // namespace
} // namespace cudaq::qec::realtime::test

// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/decoding_config.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/stages/decode_stage.h"
#include "unittests/qec/qec_test_support.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"

#include <cstdlib>

namespace cudaq::qec::realtime::test {
namespace {

TEST(DecodingConfig, ShapesAreThoseOfThePublishedModels) {
  struct row {
    const char *name;
    std::uint32_t input_rows, rounds;
    std::size_t input_bytes;
    std::uint32_t residual_detectors, stabilizers, slices;
    std::size_t slot_size;
  };
  // The table of the specification; the last row is computed with its formulas.
  for (const row &r :
       {row{"d7", 72, 7, 2016, 336, 24, 14, 4096}, row{"d13", 252, 13, 13104, 2184, 84, 26, 16384},
        row{"d21", 660, 21, 55440, 9240, 220, 42, 65536}, row{"d31", 1440, 31, 178560, 29760, 480, 62, 262144},
        row{"d13_T104", 252, 104, 104832, 17472, 84, 208, 131072}}) {
    const decoding_config *c = find_decoding_config(r.name);
    ASSERT_NE(c, nullptr) << r.name;
    EXPECT_EQ(c->input_rows(), r.input_rows) << r.name;
    EXPECT_EQ(c->rounds, r.rounds) << r.name;
    EXPECT_EQ(c->int32_input_bytes(), r.input_bytes) << r.name;
    EXPECT_EQ(c->num_detectors(), r.residual_detectors) << r.name;
    EXPECT_EQ(c->stabilizers(), r.stabilizers) << r.name;
    EXPECT_EQ(c->num_detectors() / c->stabilizers(), r.slices) << r.name;
    EXPECT_EQ(c->slot_size, r.slot_size) << r.name;
  }
  EXPECT_EQ(find_decoding_config("d8"), nullptr);
}

TEST(DecodingConfig, SlotsHoldEveryFormOfARequestAndItsResponse) {
  for (const decoding_config &c : kDecodingConfigs)
    for (const std::size_t bytes : {c.int32_input_bytes(), std::size_t{c.num_detectors()} * sizeof(std::int32_t),
                                    c.uint8_input_bytes(), c.packed_input_bytes(), decode_response_bytes(1)})
      EXPECT_LE(CUDAQ_RPC_HEADER_SIZE + bytes, c.slot_size) << c.name;
}

TEST(DecodingConfig, CommittedModelsHaveTheSizesThatItSays) {
  for (const char *name : {"d7", "d13"})
    for (const char *noise : {"0.003", "0.005"}) {
      const decoding_config &c = *find_decoding_config(name);
      const shot_set set = load_committed(c.shot_set_name(noise));
      const auto model = parse_dem(set.dem_text);
      ASSERT_TRUE(model.ok()) << model.text();
      EXPECT_EQ(model->num_detectors, c.num_detectors());
      EXPECT_EQ(model->num_observables, 1u);
      EXPECT_EQ(set.rounds, c.rounds);
    }
}

TEST(DecodingConfig, GeneratedModelsHaveTheSizesThatItSays) {
  const char *folder = std::getenv("CUDAQ_REALTIME_DATA");
  if (folder == nullptr)
    GTEST_SKIP() << "CUDAQ_REALTIME_DATA does not name a folder with the sets of make_data.py --pipeline";
  int found = 0;
  for (const decoding_config &c : kDecodingConfigs) {
    const auto set = load_shot_set(folder, c.shot_set_name("0.003"));
    if (set.failed())
      continue;
    ++found;
    const auto model = parse_dem(set->dem_text);
    ASSERT_TRUE(model.ok()) << model.text();
    EXPECT_EQ(model->num_detectors, c.num_detectors()) << c.name;
    EXPECT_EQ(model->num_observables, 1u) << c.name;
    EXPECT_EQ(set->rounds, c.rounds) << c.name;
  }
  EXPECT_GT(found, 0) << "in " << folder;
}

TEST(DecodingConfig, NamesItsShots) {
  EXPECT_EQ(find_decoding_config("d21")->shot_set_name("0.003"), "surface_x_d21_p0.003");
  EXPECT_EQ(find_decoding_config("d13_T104")->shot_set_name("0.006"), "surface_z_d13_t104_p0.006");
  EXPECT_EQ(find_decoding_config("d7")->shot_set_name("0.005"), shot_set_name(7, "0.005"));
}

} // namespace
} // namespace cudaq::qec::realtime::test

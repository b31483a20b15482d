// SPDX-License-Identifier: Apache-2.0
// A user's own models and shots, as `pipeline --dem --in` reads them, with the events passed through on a GPU: the
// answers are PyMatching's files byte for byte.
#include "tools/shots/own_data.h"
#include "unittests/gpu/qec/pipeline_gpu_rig.h"
#include "unittests/tools/decode/own_sets.h"

namespace cudaq::realtime::test {
namespace {

enum class kind { graphs, resident };
void PrintTo(kind k, std::ostream *out) { *out << (k == kind::graphs ? "graphs" : "resident"); }

class OwnDataOnGpu : public gpu_test, public ::testing::WithParamInterface<std::tuple<tools::test::own_set, kind>> {};

// Known failure 68.
TEST_P(OwnDataOnGpu, IsDecodedAsByPyMatching) {
  SKIP_WITHOUT_PYMATCHING();
  constexpr int kWorkers = 2;
  const auto &[own, served_by] = GetParam();
  const qec::shot_set set =
      tools::load_own_shots({own.file("dem"), {own.file("dets"), ""}, {own.file("obs"), ""}, {own.file("pred"), ""}});
  ASSERT_EQ(set.shots, static_cast<std::uint64_t>(tools::test::kOwnShots));
  EXPECT_EQ(set.offline_logical_errors, static_cast<std::uint64_t>(own.logical_errors));

  const auto expected = offline_answers(set, *offline_worker(set, "passthrough"));
  for (std::uint64_t shot = 0; shot < set.shots; ++shot) {
    const auto predicted = set.prediction_row(shot);
    ASSERT_EQ(std::memcmp(expected[shot].data() + sizeof(qec::DecodeResponse), predicted.data(), predicted.size()), 0)
        << "shot " << shot;
  }

  const qec::predecoder_layout layout{static_cast<std::uint32_t>(set.num_detectors),
                                      static_cast<std::uint32_t>(set.num_observables)};
  const std::size_t slot_size =
      (CUDAQ_RPC_HEADER_SIZE + std::max(set.detection_bytes() + 8, expected.front().size()) + 63) / 64 * 64;
  std::vector<std::unique_ptr<gpu::predecoding_worker>> on_graphs;
  std::unique_ptr<gpu::resident_workers> resident;
  std::vector<std::unique_ptr<qec::decoding_worker>> matchers;
  for (int id = 0; id < kWorkers; ++id)
    matchers.push_back(offline_worker(set, "passthrough"));
  if (served_by == kind::resident)
    resident = gpu::resident_predecoders(kWorkers, layout, nullptr, slot_size, test_device(), CUDAQ_MEMORY_AUTO);
  for (int id = 0; id < kWorkers && served_by == kind::graphs; ++id)
    on_graphs.push_back(std::make_unique<gpu::predecoding_worker>(layout, nullptr, gpu::staging::automatic, slot_size));
  expect_offline_answers(gpu_pipeline(kWorkers, 16, slot_size), set,
                         resident != nullptr ? stage_of(*resident) : stage_of(on_graphs), matchers, expected, 2000);
}

INSTANTIATE_TEST_SUITE_P(Models, OwnDataOnGpu,
                         ::testing::Combine(::testing::ValuesIn(tools::test::kOwnSets),
                                            ::testing::Values(kind::graphs, kind::resident)),
                         [](const auto &tested) {
                           return std::get<0>(tested.param).name + std::string("_") +
                                  ::testing::PrintToString(std::get<1>(tested.param));
                         });

} // namespace
} // namespace cudaq::realtime::test

// SPDX-License-Identifier: Apache-2.0
// The input is the file of a flight recorder without the unused bytes of its head: 64 bytes, then the places. What the
// reader returns is inside its record.
#include "lib/qec/server/record/answer_check.h"
#include "lib/qec/server/record/record_reader.h"
#include "unittests/fuzz/fuzz_input.h"

#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  const auto head = input.bytes(sizeof(record_file_head)), places = input.rest();
  const int file = memfd_create("recording", MFD_CLOEXEC);
  require(file >= 0, "a file in memory");
  const bool is_written =
      pwrite(file, head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) &&
      pwrite(file, places.data(), places.size(), kRecordHeadBytes) == static_cast<ssize_t>(places.size());
  require(is_written, "the file has the input");
  const auto opened = record_reader::read_from(file, "input");
  if (opened.failed()) {
    require(opened.text().starts_with("input: "), "a refusal names the file");
    return 0;
  }
  record_reader &reader = **opened;
  require(reader.size() + reader.torn() + reader.damaged() <= reader.places(), "a place has one request");
  for (std::size_t k = 0; k < reader.size(); ++k) {
    require(k == 0 || reader.number(k - 1) < reader.number(k), "numbers ascend");
    const auto one = reader.read(k);
    if (!one)
      continue;
    require(one->number == reader.number(k), "the request of this number");
    require(one->payload.size() <= one->payload_bytes && one->payload.size() <= kMaxRecordBytes, "the payload");
    require(one->result.size() <= one->result_bytes && one->result.size() <= kMaxRecordBytes, "the result");
    require(one->is_answered || one->result.empty(), "no answer has no result");
    const given_answer answer{one->status, one->result};
    const answer_verdict same = compare_answers(one->function_id, answer, answer);
    require(same == answer_verdict::equal || same == answer_verdict::depends_on_time, "an answer is equal to itself");
  }
  return 0;
}

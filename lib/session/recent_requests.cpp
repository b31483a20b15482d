// SPDX-License-Identifier: Apache-2.0
#include "lib/session/recent_requests.h"

#include <algorithm>
#include <cstring>

namespace cudaq::realtime::detail {

recent_requests::recent_requests(std::uint32_t count, std::chrono::nanoseconds life, std::size_t answer_bytes)
    : life_(life), answer_bytes_(answer_bytes), ids_(count), records_(count),
      answers_(new std::uint8_t[count * answer_bytes]) {}

recent_requests::evidence recent_requests::search(const request_identity &again) const noexcept {
  evidence e;
  const std::uint64_t size = std::min<std::uint64_t>(count_, records_.size());
  for (std::uint64_t age = 0; age < size; ++age) {
    const std::size_t place = place_of(age);
    const bool same_id = ids_[place] == again.id, same_time = records_[place].time == again.time;
    e.times_differ = e.times_differ || !same_time;
    if (same_id && same_time && records_[place].content == again.content && !e.is_there) {
      e.is_there = true;
      e.age = age;
      continue;
    }
    e.id_is_used = e.id_is_used || same_id;
    e.time_is_used = e.time_is_used || same_time;
    e.both_are_used = e.both_are_used || (same_id && same_time);
  }
  return e;
}

bool recent_requests::proves(const evidence &e, const request_identity &again, request_proof wanted) noexcept {
  // Several requests may be sent at one time, with different ids. A time that all requests have says nothing.
  if (again.time != 0 && (!e.time_is_used || (!e.both_are_used && e.times_differ)))
    return true;
  const bool is_last = e.age == 0;
  switch (wanted) {
  case request_proof::time:
    return false;
  case request_proof::time_or_id:
    return is_last && again.id != 0 && !e.id_is_used;
  case request_proof::time_or_counter:
    return is_last;
  }
  return false;
}

recent_requests::found recent_requests::find(const request_identity &again, request_proof wanted,
                                             time now) const noexcept {
  if (again.id == 0 && again.time == 0)
    return {};
  std::uint32_t same_ids = 0;
  for (const std::uint32_t id : ids_) // without a branch: usually there is none
    same_ids += id == again.id ? 1U : 0U;
  if (same_ids == 0)
    return {};
  const evidence e = search(again);
  if (!e.is_there || !proves(e, again, wanted))
    return {};
  const std::size_t place = place_of(e.age);
  const record &r = records_[place];
  if (now - r.arrival > life_)
    return {};
  return {r.state, r.status, {answers_.get() + place * answer_bytes_, r.bytes}};
}

void recent_requests::add(const request_identity &request, request_state state, std::int32_t status,
                          std::span<const std::uint8_t> answer, time now) noexcept {
  const std::size_t place = count_++ % records_.size();
  ids_[place] = request.id;
  records_[place] = {request.time, request.content, now, status, static_cast<std::uint32_t>(answer.size()), state};
  if (!answer.empty())
    std::memcpy(answers_.get() + place * answer_bytes_, answer.data(), answer.size());
}

} // namespace cudaq::realtime::detail

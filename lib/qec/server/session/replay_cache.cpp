// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/session/replay_cache.h"

#include <algorithm>
#include <cstring>

namespace cudaq::qec::realtime {

replay_cache::replay_cache(std::size_t answer_bytes)
    : answer_bytes_(answer_bytes), answers_(new std::uint8_t[kRequests * answer_bytes]) {} // no memory until it is used

std::optional<replay_cache::kept_answer> replay_cache::find(const wire_request &again, proof wanted,
                                                            time now) const noexcept {
  if (again.request_id == 0 && again.timestamp == 0)
    return {};
  std::uint32_t same_ids = 0;
  for (const std::uint32_t id : ids_) // without a branch: usually there is none
    same_ids += id == again.request_id ? 1U : 0U;
  if (same_ids == 0)
    return {};
  const std::uint64_t size = std::min<std::uint64_t>(count_, kRequests);
  std::uint64_t found = size; // its distance from the last request
  bool id_is_used = again.request_id == 0, time_is_used = false, both_are_used = false, times_differ = false;
  for (std::uint64_t distance = 0; distance < size; ++distance) {
    const std::size_t place = (count_ - 1 - distance) % kRequests;
    const record &r = records_[place];
    const bool same_id = ids_[place] == again.request_id, same_time = r.timestamp == again.timestamp;
    times_differ = times_differ || !same_time;
    if (same_id && same_time && r.content == again.content && found == size) {
      found = distance;
    } else {
      id_is_used = id_is_used || same_id;
      time_is_used = time_is_used || same_time;
      both_are_used = both_are_used || (same_id && same_time);
    }
  }
  if (found == size)
    return {};
  const std::size_t place = (count_ - 1 - found) % kRequests;
  const record &r = records_[place];
  // Several requests may be sent at one time, with different ids. A time that all requests have says nothing.
  const bool by_time = again.timestamp != 0 && (!time_is_used || (!both_are_used && times_differ));
  const bool is_last = found == 0;
  const bool proven = by_time || (wanted == proof::time_or_id && is_last && !id_is_used) ||
                      (wanted == proof::time_or_counter && is_last);
  if (!proven || now - r.arrival > kLife)
    return {};
  return kept_answer{r.status, {answer_of(place), r.bytes}};
}

void replay_cache::keep(const wire_request &request, std::int32_t status, std::span<const std::uint8_t> answer,
                        time now) noexcept {
  const std::size_t place = count_++ % kRequests;
  ids_[place] = request.request_id;
  records_[place] = {request.timestamp, request.content, now, status, static_cast<std::uint32_t>(answer.size())};
  if (!answer.empty())
    std::memcpy(answer_of(place), answer.data(), answer.size());
}

} // namespace cudaq::qec::realtime

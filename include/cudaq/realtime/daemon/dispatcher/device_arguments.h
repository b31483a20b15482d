// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of a request and writes the results of a response by the schema of the function. For handlers on
// the device and on the host.
//
//   CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_handler_schema_t decode_schema() {
//     return make_schema({make_type_desc(TYPE_BIT_PACKED, 128), make_type_desc(TYPE_ARRAY_FLOAT32, 16)},
//                        {make_type_desc(TYPE_UINT8, 1)});
//   }
//
// serves both the function table and the handler; the compiler folds it into the accesses. Fields follow each other
// without padding, so most of them are misaligned: all loads and stores here use memcpy. No access is beyond arg_len or
// max_result_len. A field that does not fit reads as zero and is not written; ok() is false after that, so check it at
// the end.
//
// A reader or writer belongs to one thread. If several threads run a handler, each has its own.
#ifndef CUDAQ_REALTIME_DEVICE_ARGUMENTS_H
#define CUDAQ_REALTIME_DEVICE_ARGUMENTS_H

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <cstring>
#include <type_traits>

namespace cudaq::realtime {

/// A schema from its descriptors. make_type_desc(type, 0) describes a field of variable size.
template <std::size_t NumArgs, std::size_t NumResults>
CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_handler_schema_t
make_schema(const cudaq_type_desc_t (&args)[NumArgs], const cudaq_type_desc_t (&results)[NumResults]) {
  static_assert(NumArgs <= CUDAQ_MAX_ARGS && NumResults <= CUDAQ_MAX_RESULTS, "at most 8 arguments and 4 results");
  cudaq_handler_schema_t schema{};
  schema.num_args = static_cast<std::uint8_t>(NumArgs);
  schema.num_results = static_cast<std::uint8_t>(NumResults);
  for (std::size_t i = 0; i < NumArgs; ++i)
    schema.args[i] = args[i];
  for (std::size_t i = 0; i < NumResults; ++i)
    schema.results[i] = results[i];
  return schema;
}

/// True if a T is one element of the payload type. BIT_PACKED is read as bytes.
template <class T>
CUDAQ_REALTIME_HOST_DEVICE constexpr bool is_element_of(std::uint8_t type_id) {
  static_assert(std::is_arithmetic_v<T> && std::is_same_v<T, std::remove_cv_t<T>>);
  if constexpr (std::is_same_v<T, std::uint8_t>)
    return type_id == TYPE_UINT8 || type_id == TYPE_ARRAY_UINT8 || type_id == TYPE_BIT_PACKED;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return type_id == TYPE_INT32 || type_id == TYPE_ARRAY_INT32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return type_id == TYPE_UINT32;
  else if constexpr (std::is_same_v<T, float>)
    return type_id == TYPE_FLOAT32 || type_id == TYPE_ARRAY_FLOAT32;
  else if constexpr (std::is_same_v<T, double>)
    return type_id == TYPE_FLOAT64 || type_id == TYPE_ARRAY_FLOAT64;
  else
    return std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8 && type_id == TYPE_INT64;
}

/// Offsets and sizes of the fields in a payload of `total` bytes. One field may be of variable size (size_bytes 0): it
/// gets the bytes that the others leave. Without such a field, the bytes after the last field are unused.
class payload_layout {
public:
  /// `fields` must outlive the layout.
  CUDAQ_REALTIME_HOST_DEVICE constexpr payload_layout(const cudaq_type_desc_t *fields, std::uint32_t count,
                                                      std::uint32_t total)
      : fields_(fields), count_(count), variable_(count) {
    std::uint64_t fixed = 0;
    std::uint32_t variables = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      fixed += fields[i].size_bytes;
      if (fields[i].size_bytes == 0) {
        variable_ = i;
        ++variables;
      }
    }
    fits_ = variables <= 1 && fixed <= total;
    spare_ = fits_ ? static_cast<std::uint32_t>(total - fixed) : 0;
  }

  /// The fixed fields fit, and at most one is of variable size. If not, every field has 0 bytes.
  CUDAQ_REALTIME_HOST_DEVICE constexpr bool fits() const { return fits_; }
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t count() const { return count_; }
  CUDAQ_REALTIME_HOST_DEVICE constexpr bool has_variable() const { return variable_ != count_; }
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint8_t type(std::uint32_t i) const {
    return i < count_ ? fields_[i].type_id : std::uint8_t{0};
  }
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t bytes(std::uint32_t i) const {
    if (i >= count_ || !fits_)
      return 0;
    return i == variable_ ? spare_ : fields_[i].size_bytes;
  }
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t offset(std::uint32_t i) const {
    std::uint32_t sum = 0;
    for (std::uint32_t before = 0; before < i && before < count_; ++before)
      sum += bytes(before);
    return sum;
  }
  /// Number of bits of a BIT_PACKED field, else number of elements: num_elements if the schema states it, but not more
  /// than the bytes of the field hold.
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t elements(std::uint32_t i) const {
    if (i >= count_)
      return 0;
    const std::uint32_t element_bytes = payload_element_bytes(fields_[i].type_id);
    const std::uint64_t held = element_bytes == 0 ? std::uint64_t{bytes(i)} * 8 : bytes(i) / element_bytes;
    const std::uint32_t stated = fields_[i].num_elements == 0 ? UINT32_MAX : fields_[i].num_elements;
    return held < stated ? static_cast<std::uint32_t>(held) : stated;
  }

private:
  const cudaq_type_desc_t *fields_;
  std::uint32_t count_;
  std::uint32_t variable_; ///< index of the field of variable size; count_: no such field
  std::uint32_t spare_ = 0;
  bool fits_ = false;
};

/// Reads the arguments of one request.
class argument_reader {
public:
  /// `schema` must outlive the reader; so temporaries are refused.
  CUDAQ_REALTIME_HOST_DEVICE constexpr argument_reader(const cudaq_handler_schema_t &schema, const void *payload,
                                                       std::uint32_t arg_len)
      : layout_(schema.args, schema.num_args <= CUDAQ_MAX_ARGS ? schema.num_args : 0u, arg_len),
        payload_(static_cast<const std::uint8_t *>(payload)), ok_(layout_.fits()) {}
  argument_reader(const cudaq_handler_schema_t &&, const void *, std::uint32_t) = delete;

  /// True if the arguments fit into arg_len and no access so far was to a missing argument or element.
  CUDAQ_REALTIME_HOST_DEVICE constexpr bool ok() const { return ok_; }
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t bytes(std::uint32_t i) const { return layout_.bytes(i); }
  /// Number of elements of argument i in this request; of BIT_PACKED: bits.
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t elements(std::uint32_t i) const { return layout_.elements(i); }
  /// First byte of argument i, of any alignment. bytes(i) bytes may be read.
  CUDAQ_REALTIME_HOST_DEVICE constexpr const std::uint8_t *data(std::uint32_t i) const {
    return payload_ + layout_.offset(i);
  }

  /// Element k of argument i.
  template <class T>
  CUDAQ_REALTIME_HOST_DEVICE T get(std::uint32_t i, std::uint32_t k = 0) {
    T value{};
    const bool there = is_element_of<T>(layout_.type(i)) && k < layout_.bytes(i) / sizeof(T) &&
                       (layout_.type(i) == TYPE_BIT_PACKED ||
                        k < layout_.elements(i)); // BIT_PACKED: elements() are bits, k counts bytes
    if (there)
      std::memcpy(&value, data(i) + std::size_t{k} * sizeof(T), sizeof(T));
    else
      ok_ = false;
    return value;
  }

  /// Bit k of a BIT_PACKED argument.
  CUDAQ_REALTIME_HOST_DEVICE bool bit(std::uint32_t i, std::uint32_t k) {
    if (!holds_bit(i, k))
      return false;
    return (data(i)[k / 8] >> (k % 8) & 1) != 0;
  }
  /// Bits 32w .. 32w+31 of a BIT_PACKED argument. Bit 32w is the lowest; bits after the last one are 0.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t bits(std::uint32_t i, std::uint32_t w) {
    const std::uint64_t first = std::uint64_t{w} * 32;
    const std::uint32_t count = layout_.elements(i);
    if (first >= count || !holds_bit(i, static_cast<std::uint32_t>(first)))
      return ok_ = false, 0;
    const std::uint32_t left = count - static_cast<std::uint32_t>(first);
    const std::uint8_t *from = data(i) + first / 8;
    std::uint32_t word = 0;
    for (std::uint32_t b = 0; b < 4 && b * 8 < left; ++b)
      word |= std::uint32_t{from[b]} << (8 * b);
    return left < 32 ? word & ((1u << left) - 1) : word;
  }
  /// 4-bit value k of an ARRAY_UINT8 that holds two per byte, the first in the low half.
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t nibble(std::uint32_t i, std::uint32_t k) {
    if (layout_.type(i) != TYPE_ARRAY_UINT8 || k / 2 >= layout_.bytes(i))
      return ok_ = false, std::uint8_t{0};
    return static_cast<std::uint8_t>(data(i)[k / 2] >> (k % 2 * 4) & 15);
  }

private:
  CUDAQ_REALTIME_HOST_DEVICE bool holds_bit(std::uint32_t i, std::uint32_t k) {
    const bool there = layout_.type(i) == TYPE_BIT_PACKED && k < layout_.elements(i);
    ok_ = ok_ && there;
    return there;
  }

  payload_layout layout_;
  const std::uint8_t *payload_;
  bool ok_;
};

/// Writes the results of one response. A result of variable size has `variable_bytes` bytes.
class result_writer {
public:
  /// `schema` must outlive the writer; so temporaries are refused.
  CUDAQ_REALTIME_HOST_DEVICE constexpr result_writer(const cudaq_handler_schema_t &schema, void *output,
                                                     std::uint32_t max_result_len, std::uint32_t variable_bytes = 0)
      : layout_(schema.results, schema.num_results <= CUDAQ_MAX_RESULTS ? schema.num_results : 0u, max_result_len),
        length_(max_result_len), output_(static_cast<std::uint8_t *>(output)), ok_(false) {
    // First the layout of the whole area; then, if the results fit, the layout of the bytes that are used.
    std::uint64_t used = variable_bytes;
    for (std::uint32_t i = 0; i < layout_.count(); ++i)
      used += schema.results[i].size_bytes;
    if (!layout_.fits() || used > max_result_len || (variable_bytes != 0 && !layout_.has_variable()))
      return;
    length_ = static_cast<std::uint32_t>(used);
    layout_ = payload_layout(schema.results, layout_.count(), length_);
    ok_ = true;
  }
  result_writer(const cudaq_handler_schema_t &&, void *, std::uint32_t, std::uint32_t = 0) = delete;

  /// True if the results fit into max_result_len and no write so far was outside of them.
  CUDAQ_REALTIME_HOST_DEVICE constexpr bool ok() const { return ok_; }
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t bytes(std::uint32_t i) const { return layout_.bytes(i); }
  /// First byte of result i, of any alignment. bytes(i) bytes may be written. Not valid if ok() is false.
  CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint8_t *data(std::uint32_t i) const { return output_ + layout_.offset(i); }

  /// Element k of result i.
  template <class T>
  CUDAQ_REALTIME_HOST_DEVICE void set(std::uint32_t i, T value, std::uint32_t k = 0) {
    if (ok_ && is_element_of<T>(layout_.type(i)) && k < layout_.bytes(i) / sizeof(T))
      std::memcpy(data(i) + std::size_t{k} * sizeof(T), &value, sizeof(T));
    else
      ok_ = false;
  }
  /// Sets bits 32w .. 32w+31 of a BIT_PACKED result, and clears the unused bits of its last byte. The output area is
  /// not cleared before the handler runs, so write all words.
  CUDAQ_REALTIME_HOST_DEVICE void set_bits(std::uint32_t i, std::uint32_t w, std::uint32_t word) {
    const std::uint64_t first = std::uint64_t{w} * 32;
    if (!ok_ || layout_.type(i) != TYPE_BIT_PACKED || first >= layout_.elements(i)) {
      ok_ = false;
      return;
    }
    const std::uint32_t left = layout_.elements(i) - static_cast<std::uint32_t>(first);
    if (left < 32)
      word &= (1u << left) - 1;
    for (std::uint32_t b = 0; b < 4 && b * 8 < left; ++b)
      data(i)[first / 8 + b] = static_cast<std::uint8_t>(word >> (8 * b));
  }

  /// Sets the handler's *result_len: the size of all results if ok(), else 0. Returns ok().
  CUDAQ_REALTIME_HOST_DEVICE bool finish(std::uint32_t *result_len) const {
    *result_len = ok_ ? length_ : 0;
    return ok_;
  }

private:
  payload_layout layout_;
  std::uint32_t length_;
  std::uint8_t *output_;
  bool ok_;
};

} // namespace cudaq::realtime

#endif

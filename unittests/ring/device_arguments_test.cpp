// SPDX-License-Identifier: Apache-2.0
// Arguments and results located by a schema: misaligned fields, sizes that do not fit, bits, a field of variable size.
#include "cudaq/realtime/daemon/dispatcher/device_arguments.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace cudaq::realtime::test {
namespace {

/// A copy on the heap that begins at an odd address. The sanitizers report every access beyond its ends.
class odd_bytes {
public:
  explicit odd_bytes(const std::vector<std::uint8_t> &bytes) : memory_(bytes.size() + 1) {
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + 1);
  }
  std::uint8_t *get() { return memory_.data() + 1; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(memory_.size() - 1); }
  std::vector<std::uint8_t> copy() const { return {memory_.begin() + 1, memory_.end()}; }

private:
  std::vector<std::uint8_t> memory_;
};

template <class... T>
std::vector<std::uint8_t> packed(T... values) {
  std::vector<std::uint8_t> out((sizeof(values) + ... + 0));
  std::size_t at = 0;
  ((void)(std::memcpy(out.data() + at, &values, sizeof(values)), at += sizeof(values)), ...);
  return out;
}

constexpr cudaq_handler_schema_t one_of_each() {
  return make_schema({make_type_desc(TYPE_UINT8, 1), make_type_desc(TYPE_INT32, 1), make_type_desc(TYPE_INT64, 1),
                      make_type_desc(TYPE_FLOAT32, 1), make_type_desc(TYPE_FLOAT64, 1), make_type_desc(TYPE_UINT32, 1),
                      make_type_desc(TYPE_ARRAY_INT32, 2), make_type_desc(TYPE_BIT_PACKED, 10)},
                     {make_type_desc(TYPE_UINT8, 1), make_type_desc(TYPE_FLOAT32, 1),
                      make_type_desc(TYPE_BIT_PACKED, 37), make_type_desc(TYPE_ARRAY_FLOAT64, 2)});
}

// Known failure 27.
TEST(DeviceArguments, ReadFieldsOfEveryTypeAtAnyAlignment) {
  constexpr cudaq_handler_schema_t schema = one_of_each();
  static_assert(schema.num_args == 8 && schema.num_results == 4, "must be usable at compile time");
  odd_bytes payload(packed(std::uint8_t{200}, std::int32_t{-7}, std::int64_t{-1} << 40, 1.5f, -2.25,
                           std::uint32_t{0xFFFFFFFE}, std::int32_t{5}, std::int32_t{-6}, std::uint16_t{0x0201}));
  argument_reader a(schema, payload.get(), payload.size());
  EXPECT_EQ(a.get<std::uint8_t>(0), 200);
  EXPECT_EQ(a.get<std::int32_t>(1), -7);
  EXPECT_EQ(a.get<std::int64_t>(2), std::int64_t{-1} << 40);
  EXPECT_EQ(a.get<float>(3), 1.5f);
  EXPECT_EQ(a.get<double>(4), -2.25);
  EXPECT_EQ(a.get<std::uint32_t>(5), 0xFFFFFFFEu);
  EXPECT_EQ(a.get<std::int32_t>(6, 1), -6);
  EXPECT_EQ(a.elements(6), 2u);
  EXPECT_TRUE(a.bit(7, 0));
  EXPECT_TRUE(a.bit(7, 9));
  EXPECT_EQ(a.bits(7, 0), 0x201u);
  EXPECT_EQ(a.get<std::uint8_t>(7, 1), 2) << "packed bits can also be read as bytes";
  EXPECT_EQ(a.data(7), payload.get() + 37);
  EXPECT_TRUE(a.ok());
}

TEST(DeviceArguments, RefuseWhatIsNotThere) {
  constexpr cudaq_handler_schema_t schema = one_of_each();
  odd_bytes payload(std::vector<std::uint8_t>(39, 0xFF));
  const auto refused = [&](auto &&query) {
    argument_reader a(schema, payload.get(), payload.size());
    EXPECT_TRUE(a.ok());
    const bool zero = query(a) == 0;
    return zero && !a.ok();
  };
  EXPECT_TRUE(refused([](auto &a) { return a.template get<std::int32_t>(0); })) << "another type";
  EXPECT_TRUE(refused([](auto &a) { return a.template get<std::int32_t>(6, 2); })) << "element after the last one";
  EXPECT_TRUE(refused([](auto &a) { return a.template get<std::uint8_t>(0, 0xFFFFFFFF); }));
  EXPECT_TRUE(refused([](auto &a) { return a.template get<std::uint8_t>(8); })) << "argument after the last one";
  EXPECT_TRUE(refused([](auto &a) { return a.template get<std::uint8_t>(7, 2); })) << "byte after the last bit";
  EXPECT_TRUE(refused([](auto &a) { return a.bit(7, 10); })) << "an unused bit of the last byte";
  EXPECT_TRUE(refused([](auto &a) { return a.bit(6, 0); })) << "not packed";
  EXPECT_TRUE(refused([](auto &a) { return static_cast<int>(a.bits(7, 1)); }));
  EXPECT_TRUE(refused([](auto &a) { return static_cast<int>(a.bits(7, 0x08000000)); }))
      << "32 * word overflows 32 bits";
  EXPECT_TRUE(refused([](auto &a) { return a.nibble(7, 0); }));
}

TEST(DeviceArguments, WordsOfPackedBitsEndWithTheLastBit) {
  constexpr auto schema = make_schema({make_type_desc(TYPE_BIT_PACKED, 52)}, {make_type_desc(TYPE_UINT8, 1)});
  odd_bytes payload({1, 2, 3, 4, 5, 6, 0xFF});
  argument_reader a(schema, payload.get(), payload.size());
  EXPECT_EQ(a.bits(0, 0), 0x04030201u);
  EXPECT_EQ(a.bits(0, 1), 0x000F0605u);
  EXPECT_TRUE(a.ok());
}

TEST(DeviceArguments, NibblesStandTwoToAByteTheFirstLow) {
  cudaq_handler_schema_t schema{};
  schema.num_args = 1;
  schema.args[0] = {TYPE_ARRAY_UINT8, {0, 0, 0}, 2, 3};
  odd_bytes payload({0x21, 0x03});
  argument_reader a(schema, payload.get(), payload.size());
  EXPECT_EQ(a.nibble(0, 0), 1);
  EXPECT_EQ(a.nibble(0, 1), 2);
  EXPECT_EQ(a.nibble(0, 2), 3);
  EXPECT_TRUE(a.ok());
  EXPECT_EQ(a.nibble(0, 4), 0);
  EXPECT_FALSE(a.ok());
}

TEST(DeviceArguments, APayloadThatIsTooShortHasNoArguments) {
  constexpr cudaq_handler_schema_t schema = one_of_each();
  for (std::uint32_t length = 0; length < 39; ++length) {
    odd_bytes payload(std::vector<std::uint8_t>(length, 0xFF));
    argument_reader a(schema, payload.get(), payload.size());
    EXPECT_FALSE(a.ok()) << length;
    EXPECT_EQ(a.bytes(0), 0u);
    EXPECT_EQ(a.get<std::uint8_t>(0), 0) << length;
    EXPECT_EQ(a.get<std::int32_t>(6, 1), 0) << length;
  }
  odd_bytes longer(std::vector<std::uint8_t>(64, 0xFF));
  EXPECT_TRUE(argument_reader(schema, longer.get(), longer.size()).ok()) << "bytes after the last argument are ignored";
}

// The field of variable size takes the bytes that the other fields leave, at any place in the schema.
TEST(DeviceArguments, OneArgumentMayBeOfVariableSize) {
  constexpr auto schema =
      make_schema({make_type_desc(TYPE_UINT8, 1), make_type_desc(TYPE_BIT_PACKED, 0), make_type_desc(TYPE_UINT32, 1)},
                  {make_type_desc(TYPE_UINT8, 1)});
  for (std::uint32_t variable = 0; variable < 9; ++variable) {
    std::vector<std::uint8_t> bytes(1 + variable, 0x80);
    const std::vector<std::uint8_t> last = packed(std::uint32_t{77});
    bytes.insert(bytes.end(), last.begin(), last.end());
    odd_bytes payload(bytes);
    argument_reader a(schema, payload.get(), payload.size());
    EXPECT_TRUE(a.ok());
    EXPECT_EQ(a.elements(1), variable * 8);
    EXPECT_EQ(a.get<std::uint32_t>(2), 77u);
    if (variable != 0) {
      EXPECT_TRUE(a.bit(1, variable * 8 - 1));
    }
    EXPECT_TRUE(a.ok());
  }
  odd_bytes payload(std::vector<std::uint8_t>(4));
  EXPECT_FALSE(argument_reader(schema, payload.get(), payload.size()).ok()) << "the fixed fields do not fit";
}

TEST(DeviceArguments, SchemasThatSayNothingUsableAreRefused) {
  constexpr auto two = make_schema({make_type_desc(TYPE_BIT_PACKED, 0), make_type_desc(TYPE_ARRAY_UINT8, 0)},
                                   {make_type_desc(TYPE_UINT8, 1)});
  odd_bytes payload(std::vector<std::uint8_t>(16));
  EXPECT_FALSE(argument_reader(two, payload.get(), payload.size()).ok())
      << "two fields of variable size have no defined sizes";
  cudaq_handler_schema_t huge{};
  huge.num_args = 2;
  huge.args[0] = {TYPE_ARRAY_UINT8, {0, 0, 0}, 0xFFFFFFF8, 0xFFFFFFF8};
  huge.args[1] = {TYPE_ARRAY_UINT8, {0, 0, 0}, 16, 16};
  EXPECT_FALSE(argument_reader(huge, payload.get(), payload.size()).ok()) << "the sum overflows 32 bits";
  const cudaq_handler_schema_t nothing{};
  argument_reader a(nothing, payload.get(), payload.size());
  EXPECT_TRUE(a.ok()) << "a zeroed schema has no rules";
  EXPECT_EQ(a.get<std::uint8_t>(0), 0);
  EXPECT_FALSE(a.ok());
}

TEST(DeviceArguments, WriteResultsUnpaddedAndNothingElse) {
  constexpr cudaq_handler_schema_t schema = one_of_each();
  odd_bytes output(std::vector<std::uint8_t>(40, 0xA5));
  result_writer r(schema, output.get(), output.size());
  r.set(0, std::uint8_t{3});
  r.set(1, 0.75f);
  r.set_bits(2, 0, 0xFFFFFFFF);
  r.set_bits(2, 1, 0xFFFFFFFF);
  r.set(3, 1.0, 0);
  r.set(3, 2.0, 1);
  std::uint32_t length = 0;
  EXPECT_TRUE(r.finish(&length));
  EXPECT_EQ(length, 26u);
  std::vector<std::uint8_t> expected =
      packed(std::uint8_t{3}, 0.75f, std::uint32_t{0xFFFFFFFF}, std::uint8_t{0x1F}, 1.0, 2.0);
  expected.resize(40, 0xA5);
  EXPECT_EQ(output.copy(), expected);
}

TEST(DeviceArguments, ResultsThatDoNotFitAreNotWritten) {
  constexpr cudaq_handler_schema_t schema = one_of_each();
  for (std::uint32_t room = 0; room <= 26; ++room) {
    odd_bytes output(std::vector<std::uint8_t>(room, 0xA5));
    result_writer r(schema, output.get(), output.size());
    r.set(0, std::uint8_t{3});
    r.set_bits(2, 1, 0);
    r.set(3, 2.0, 1);
    std::uint32_t length = 7;
    EXPECT_EQ(r.finish(&length), room == 26);
    EXPECT_EQ(length, room == 26 ? 26u : 0u);
    if (room != 26) {
      EXPECT_EQ(output.copy(), std::vector<std::uint8_t>(room, 0xA5));
    }
  }
  odd_bytes output(std::vector<std::uint8_t>(26, 0xA5));
  for (const bool beyond : {false, true}) {
    result_writer r(schema, output.get(), output.size());
    beyond ? r.set(3, 1.0, 2) : r.set(1, 1.0);
    EXPECT_FALSE(r.ok()) << (beyond ? "element after the last one" : "another type");
  }
  EXPECT_EQ(output.copy(), std::vector<std::uint8_t>(26, 0xA5));
}

TEST(DeviceArguments, AResultOfVariableSizeHasTheLengthThatWasSet) {
  constexpr auto schema = make_schema({make_type_desc(TYPE_UINT8, 1)},
                                      {make_type_desc(TYPE_ARRAY_UINT8, 0), make_type_desc(TYPE_UINT32, 1)});
  odd_bytes output(std::vector<std::uint8_t>(16));
  result_writer r(schema, output.get(), output.size(), 3);
  r.set(0, std::uint8_t{9}, 2);
  r.set(1, std::uint32_t{5});
  std::uint32_t length = 0;
  EXPECT_TRUE(r.finish(&length));
  EXPECT_EQ(length, 7u);
  EXPECT_EQ(output.get()[2], 9);
  EXPECT_EQ(output.get()[3], 5);
  EXPECT_FALSE(result_writer(schema, output.get(), output.size(), 13).ok());
  EXPECT_FALSE(result_writer(schema, output.get(), output.size(), 0xFFFFFFFF).ok());
  constexpr auto fixed = make_schema({make_type_desc(TYPE_UINT8, 1)}, {make_type_desc(TYPE_UINT8, 1)});
  EXPECT_FALSE(result_writer(fixed, output.get(), output.size(), 1).ok()) << "no result is of variable size";
}

} // namespace
} // namespace cudaq::realtime::test

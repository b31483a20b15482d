// SPDX-License-Identifier: Apache-2.0
#include "lib/base/affinity.h"

#include <gtest/gtest.h>
#include <locale>

namespace cudaq::realtime::test {
namespace {

using detail::cpus_in_list;
using list = std::vector<int>;

TEST(CpuList, ReadsTheKernelsFormat) {
  EXPECT_EQ(cpus_in_list("0-3,8,10-11"), (list{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(cpus_in_list("7"), list{7});
  EXPECT_EQ(cpus_in_list("0,4-5\n"), (list{0, 4, 5}));
}

TEST(CpuList, EndsAtWhatIsNoNumber) {
  for (const char *nothing : {"", "\n", "x", "-", ","})
    EXPECT_TRUE(cpus_in_list(nothing).empty()) << nothing;
  EXPECT_EQ(cpus_in_list("1,x"), list{1});
  EXPECT_EQ(cpus_in_list("1,2-"), list{1});
  EXPECT_TRUE(cpus_in_list("99999999999").empty());
}

/// Digits in groups of three, divided by commas, as in many locales.
struct grouped_digits : std::numpunct<char> {
  char do_thousands_sep() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(CpuList, DoesNotDependOnTheProgramsLocale) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new grouped_digits));
  EXPECT_EQ(cpus_in_list("0,128,256-257"), (list{0, 128, 256, 257}));
  std::locale::global(before);
}

} // namespace
} // namespace cudaq::realtime::test

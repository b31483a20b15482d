// SPDX-License-Identifier: Apache-2.0
// How the loader finds a provider's library, what it checks of the table, and what it does with create.
#include "unittests/transport/bridge_fixture.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

/// Sets an environment variable for its lifetime.
class variable {
public:
  variable(const char *name, const std::string &value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~variable() { unsetenv(name_); }
  variable(const variable &) = delete;
  variable &operator=(const variable &) = delete;

private:
  const char *name_;
};

char untouched; // a value that no handle has

cudaq_status_t load(const std::string &library) {
  cudaq_realtime_bridge_handle_t handle = &untouched;
  const cudaq_status_t status = cudaq_bridge_create_from_library(&handle, library.c_str(), 0, nullptr);
  EXPECT_EQ(handle, &untouched) << "a handle was published";
  return status;
}

TEST(BridgeLoad, RefusesArgumentsByName) {
  cudaq_realtime_bridge_handle_t handle = &untouched;
  const std::string library = double_library("double_v3");
  char option[] = "a";
  char *one[] = {option, nullptr};
  const auto from = [&](void **out, const char *name, int argc, char **argv) {
    return cudaq_bridge_create_from_library(out, name, argc, argv);
  };
  EXPECT_EQ(from(nullptr, library.c_str(), 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"out_handle is NULL"}));
  EXPECT_EQ(from(&handle, nullptr, 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"library is NULL"}));
  EXPECT_EQ(from(&handle, "", 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"library is empty"}));
  EXPECT_EQ(from(&handle, library.c_str(), -1, one), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"argc is -1"}));
  EXPECT_EQ(from(&handle, library.c_str(), 1, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"argc is 1", "argv is NULL"}));
  EXPECT_EQ(from(&handle, library.c_str(), 2, one), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"argc is 2", "argv[1] is NULL"}));
  EXPECT_EQ(cudaq_bridge_create(nullptr, CUDAQ_PROVIDER_EXTERNAL, 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"cudaq_bridge_create", "out_handle is NULL"}));
  EXPECT_EQ(handle, &untouched);
}

TEST(BridgeLoad, RefusesAnUnknownProvider) {
  cudaq_realtime_bridge_handle_t handle = &untouched;
  for (const int provider : {2, -1, 77}) {
    EXPECT_EQ(cudaq_bridge_create(&handle, static_cast<cudaq_realtime_bridge_provider_t>(provider), 0, nullptr),
              CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"provider is " + std::to_string(provider), "allowed: 0", "CUDAQ_PROVIDER_EXTERNAL"}));
  }
  EXPECT_EQ(handle, &untouched);
}

TEST(BridgeLoad, ExternalProviderIsTheOneOfTheVariable) {
  cudaq_realtime_bridge_handle_t handle = nullptr;
  unsetenv("CUDAQ_REALTIME_BRIDGE_LIB");
  EXPECT_EQ(cudaq_bridge_create(&handle, CUDAQ_PROVIDER_EXTERNAL, 0, nullptr), CUDAQ_ERR_INVALID_ARG);
  EXPECT_TRUE(error_names({"CUDAQ_REALTIME_BRIDGE_LIB is not set"}));
  {
    const variable empty("CUDAQ_REALTIME_BRIDGE_LIB", "");
    EXPECT_EQ(cudaq_bridge_create(&handle, CUDAQ_PROVIDER_EXTERNAL, 0, nullptr), CUDAQ_ERR_INVALID_ARG);
    EXPECT_TRUE(error_names({"CUDAQ_REALTIME_BRIDGE_LIB is empty"}));
  }
  const variable path("CUDAQ_REALTIME_BRIDGE_LIB", double_library("double_v2"));
  double_script script;
  std::string option = script_option(script);
  char *argv[] = {option.data()};
  CUDAQ_ASSERT_OK(cudaq_bridge_create(&handle, CUDAQ_PROVIDER_EXTERNAL, 1, argv));
  EXPECT_EQ(script.logged(), "create");
  CUDAQ_EXPECT_OK(cudaq_bridge_destroy(handle));
  EXPECT_EQ(script.logged(), "create destroy");
}

TEST(BridgeLoad, GpuRoceIsALibraryOfThatName) {
  if (dlopen("libcudaq-realtime-bridge-gpu-roce.so", RTLD_NOW | RTLD_LOCAL) != nullptr)
    GTEST_SKIP() << "skipped: this machine has the provider";
  cudaq_realtime_bridge_handle_t handle = &untouched;
  EXPECT_EQ(cudaq_bridge_create(&handle, CUDAQ_PROVIDER_GPU_ROCE, 0, nullptr), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"libcudaq-realtime-bridge-gpu-roce.so", "cannot open shared object file"}));
  EXPECT_EQ(handle, &untouched);
}

TEST(BridgeLoad, TextOfTheDynamicLinkerIsPassedOn) {
  EXPECT_EQ(load("/nowhere/lib-no-such-provider.so"), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"/nowhere/lib-no-such-provider.so cannot be loaded", "cannot open shared object file"}));
  EXPECT_EQ(load("/proc/self/maps"), CUDAQ_ERR_INTERNAL); // a file that is no library
  EXPECT_TRUE(error_names({"/proc/self/maps cannot be loaded"}));
  EXPECT_EQ(load("/nowhere/libcudaq-realtime-bridge-cpu-roce.so"), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"only built where libibverbs-dev is installed"}));
  EXPECT_EQ(load("lib-in-no-folder-of-the-search.so"), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"lib-in-no-folder-of-the-search.so"}));
  EXPECT_EQ(load(std::string(5000, 'x')), CUDAQ_ERR_INTERNAL);
}

TEST(BridgeLoad, LibraryThatIsNotWholeIsRefusedBeforeItIsMapped) {
  const std::string library = ::testing::TempDir() + std::to_string(getpid()) + "_bridge_double_cut.so";
  const std::uintmax_t whole = std::filesystem::file_size(double_library("double_v3"));
  for (const std::uintmax_t bytes : {std::uintmax_t{1000}, std::uintmax_t{4096}, std::uintmax_t{12288}, whole - 1}) {
    std::filesystem::copy_file(double_library("double_v3"), library);
    std::filesystem::resize_file(library, bytes);
    EXPECT_EQ(load(library), CUDAQ_ERR_INTERNAL) << bytes;
    EXPECT_TRUE(error_names({"bridge_double_cut.so cannot be loaded: the file is not whole: it has"})) << bytes;
    std::filesystem::remove(library);
  }
}

TEST(BridgeLoad, LibraryWithoutGetterIsRefused) {
  EXPECT_EQ(load(double_library("double_empty")), CUDAQ_ERR_INTERNAL);
  EXPECT_TRUE(error_names({"libbridge_double_empty.so", "cudaq_realtime_get_bridge_interface"}));
}

struct wrong_table {
  const char *variable;
  std::vector<std::string> text;
};

TEST(BridgeLoad, WrongTablesAreRefusedWithWhatIsWrong) {
  static int runs = 0; // the getter of an accepted library is not called again: each run of the test has a copy
  const std::string library =
      ::testing::TempDir() + std::to_string(getpid()) + "_" + std::to_string(++runs) + "_bridge_double_tables.so";
  ASSERT_TRUE(std::filesystem::copy_file(double_library("double_tables"), library));
  const wrong_table all[] = {
      {"null", {"cudaq_realtime_get_bridge_interface returned NULL"}},
      {"throw", {"threw an exception", "no table today"}},
      {"throw-int", {"threw an exception that is not a std::exception"}},
      {"version=0", {"version of its table is 0", "allowed: 1 to 3"}},
      {"version=4", {"version of its table is 4", "allowed: 1 to 3"}},
      {"version=-1", {"version of its table is -1"}},
      {"missing=create", {"these entries are NULL: create"}},
      {"missing=destroy", {"these entries are NULL: destroy"}},
      {"missing=get_transport_context", {"these entries are NULL: get_transport_context"}},
      {"missing=connect", {"these entries are NULL: connect"}},
      {"missing=launch", {"these entries are NULL: launch"}},
      {"missing=disconnect", {"these entries are NULL: disconnect"}},
  };
  for (const wrong_table &wrong : all) {
    const variable v("DOUBLE_TABLE", wrong.variable);
    EXPECT_EQ(load(library), CUDAQ_ERR_INTERNAL) << wrong.variable;
    EXPECT_TRUE(error_names(wrong.text));
    EXPECT_TRUE(error_names({"bridge_double_tables.so"}));
  }
  EXPECT_EQ(load(library), CUDAQ_ERR_UNSUPPORTED) << "a table that is complete later is accepted";
  const variable v("DOUBLE_TABLE", "null");
  EXPECT_EQ(load(library), CUDAQ_ERR_UNSUPPORTED) << "the getter is not called again";
  std::filesystem::remove(library);
}

TEST(BridgeLoad, GetterIsCalledOnceAndTheLibraryStays) {
  const std::string library = double_library("double_v3");
  for (int i = 0; i < 20; ++i)
    double_bridge().destroy();
  void *const loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(loaded, nullptr);
  const auto getter_calls = reinterpret_cast<int (*)()>(dlsym(loaded, "cudaq_test_double_getter_calls"));
  ASSERT_NE(getter_calls, nullptr);
  EXPECT_EQ(getter_calls(), 1);
  dlclose(loaded);
}

TEST(BridgeCreate, ProviderGetsACopyOfTheArguments) {
  double_script script;
  std::string first = "--first", second = script_option(script), third;
  char *argv[] = {first.data(), second.data(), third.data()};
  cudaq_realtime_bridge_handle_t handle = nullptr;
  CUDAQ_ASSERT_OK(cudaq_bridge_create_from_library(&handle, double_library("double_v3").c_str(), 3, argv));
  EXPECT_EQ(script.arguments, (std::vector<std::string>{"--first", ""}));
  EXPECT_TRUE(script.null_after_arguments);
  EXPECT_EQ(first, "--first") << "the provider has changed the caller's string";
  CUDAQ_EXPECT_OK(cudaq_bridge_destroy(handle));
}

TEST(BridgeCreate, HandleIsNotTheProvidersPointer) {
  double_bridge a, b;
  EXPECT_NE(a.handle, b.handle);
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(a.handle), 1u << 20);
}

struct failing_create {
  act does;
  cudaq_status_t status;
  std::vector<std::string> text;
};

TEST(BridgeCreate, FailureIsPassedOnAndTheHandleStaysUntouched) {
  const failing_create all[] = {
      {act::fail, CUDAQ_ERR_CUDA, {"create", "the double fails in create"}},
      {act::throw_error, CUDAQ_ERR_INTERNAL, {"create threw an exception", "the double threw"}},
      {act::throw_int, CUDAQ_ERR_INTERNAL, {"create threw an exception that is not a std::exception"}},
      {act::bad_status, CUDAQ_ERR_INTERNAL, {"create returned 99, which is no cudaq_status_t"}},
      {act::negative_status, CUDAQ_ERR_INTERNAL, {"create returned -3, which is no cudaq_status_t"}},
      {act::leave_out, CUDAQ_ERR_INTERNAL, {"create returned CUDAQ_OK, but stored no handle"}},
  };
  for (const failing_create &wanted : all) {
    double_script script;
    script.does["create"] = wanted.does;
    cudaq_realtime_bridge_handle_t handle = &untouched;
    EXPECT_EQ(create_double(handle, script), wanted.status);
    EXPECT_TRUE(error_names(wanted.text));
    EXPECT_TRUE(error_names({"cudaq_bridge_create_from_library: provider", "libbridge_double_v3.so"}));
    EXPECT_EQ(handle, &untouched);
  }
}

TEST(BridgeCreate, FailureOfAProviderWithoutTextsNamesTheStatus) {
  double_script script;
  script.does["create"] = act::fail;
  cudaq_realtime_bridge_handle_t handle = &untouched;
  EXPECT_EQ(create_double(handle, script, "double_v1"), CUDAQ_ERR_CUDA);
  EXPECT_TRUE(error_names({"create returned CUDAQ_ERR_CUDA"}));
}

} // namespace
} // namespace cudaq::realtime::test

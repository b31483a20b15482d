// SPDX-License-Identifier: Apache-2.0
// A library that is no provider.
extern "C" __attribute__((visibility("default"))) int cudaq_test_double_without_getter() { return 0; }

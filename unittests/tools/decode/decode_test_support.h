// SPDX-License-Identifier: Apache-2.0
// Tests that run the program on a user's own files.
#pragma once

#include "unittests/tools/common/run_program.h"
#include "unittests/tools/decode/own_sets.h"

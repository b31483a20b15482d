// SPDX-License-Identifier: Apache-2.0
#include "unittests/codegen/flag_word_probe.h"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that a check of this folder finds what it forbids: self_test.py CHECK (its name without .py). The test makes a
small tree that passes, in a scratch folder. Then it plants one offence at a time; the check must fail and name the
file. Checks run inside this process, and all offences are planted in the same repository: this makes the test fast."""
import contextlib
import io
import os
import pathlib
import runpy
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SPDX = "SPDX-License-Identifier: Apache-2.0"
CODE, SCRIPT, TEXT = f"// {SPDX}\n", f"# {SPDX}\n", f"<!-- {SPDX} -->\n"
REALTIME = "include/cudaq/realtime"
FLAG_WORD = f"{REALTIME}/detail/base/flag_word.h"
FAILURES = "docs/guide/known_failures.md"
NAMES = "docs/guide/specification_names.md"
C_API = f"{REALTIME}/daemon/dispatcher/cudaq_realtime.h"


def including(*names):
    return CODE + "".join(f'#include "{name}"\n' for name in names)


def lines(head, number):
    return head + "\n" * (number - head.count("\n") - 1) + "// end\n"


def many(folder, number):
    return {f"{folder}/file_{i}.txt": SCRIPT for i in range(number)}


CHANGES = f"{TEXT}# Changes\n\n## [Unreleased]\n\n### Added\n\n- More.\n"
VERSION = "".join(f"#define CUDAQ_REALTIME_VERSION_{part}\n" for part in ("MAJOR 0", "MINOR 1", "PATCH 0"))
STATUS = CODE + "".join(f'const char *{name}(int) {{\n  return "fine";\n}}\n'
                        for name in ("cudaq_status_string", "cudaq_rpc_status_string"))
WIRE = "include/cudaq/qec/realtime/decoding_server_wire.h"
STATUSES = f"/* {SPDX} */\n" + """typedef enum cudaq_qec_server_status_t {
  CUDAQ_QEC_SERVER_OK = 0,
  CUDAQ_QEC_SERVER_BUSY = 1 /* no effect */
} cudaq_qec_server_status_t;
"""
TREE = {
    "README.md": "# A tree\n\nSee [its rooms](docs/design.md#the-rooms).\n",
    "docs/design.md": f"{TEXT}# Design\n\n## The rooms\n\n```c\nint main(void) {{ return 0; }}\n```\n",
    "docs/examples/program.c": CODE + "int main(void) { return 0; }\n",
    C_API: CODE,
    FLAG_WORD: CODE + "#include <atomic>\n",
    "lib/base/text.h": including("cudaq/realtime/detail/base/flag_word.h", "cudaq/realtime/version.h"),
    "lib/api/call.cpp": including("lib/base/text.h", "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"),
    "unittests/api/call_test.cpp": including("lib/base/text.h"),
    "docs/changelog.md": CHANGES,
    f"{REALTIME}/version.h": CODE + VERSION,
    "docs/guide/errors.md": f"{TEXT}| `fine` |\n| `... is closed: ...` |\n",
    "lib/api/status.cpp": STATUS,
    "lib/qec/decoders/decode_status_text.cpp": CODE + 'const char *decode_status_text(int) {\n  return "fine";\n}\n',
    "docs/testing.md": f"{TEXT}`Call.Works`\n",
    NAMES: f"{TEXT}| specification | kind | here | where |\n|---|---|---|---|\n| `old` | test | absent: because | |\n",
    FAILURES: f"{TEXT}| 1 | wrong | `Call.*` |\n| 2 | slow | no test: needs hardware |\n",
    "lib/cudaq-realtime.map": f"/* {SPDX} */\nN {{\n  global:\n    cudaq_start;\n    cudaq_loop_spec;\n}};\n",
    "unittests/fault_injection/start_test.cpp": CODE + "auto a = cudaq_start(), b = cudaq_loop();\n",
    "unittests/base/text_test.cpp": CODE + "// Known failure 1.\nTEST(Call, Works) {}\n",
    "docs/performance/report.json": '{"p50": 2}\n',
}

# Check: (files to write into the tree, what the check must print), one offence each. With None instead of a text, the
# files are allowed, and the check must pass; it also passes with a warning.
OFFENCES = {
    "layers": (
        ({"lib/base/up.cpp": CODE + '\n#include "lib/api/call.h"\n', "lib/api/call.h": CODE},
         "lib/base/up.cpp:3: lib/base must not include lib/api"),
        ({C_API: including("../../detail/base/flag_word.h")},
         f"{C_API}:2: include must not include {REALTIME}/detail/base"),
        ({"lib/qec/stages/up.cpp": including("lib/base/text.h")},
         "lib/qec/stages/up.cpp:2: lib/qec/stages must not include lib/base"),
        ({"lib/new_room/call.cpp": CODE}, "lib/new_room/call.cpp: a room without a rule"),
        ({f"{REALTIME}/detail/new_room/call.h": CODE}, f"{REALTIME}/detail/new_room/call.h: a room without a rule"),
        ({"lib/base/unused.h": CODE}, "lib/base/unused.h: no file includes this header"),
        ({"lib/base/selfish.h": including("lib/base/selfish.h")}, "lib/base/selfish.h: no file includes this header"),
        ({"lib/base/tested.h": CODE, "unittests/base/tested_test.cpp": including("lib/base/tested.h")},
         "lib/base/tested.h: only tests include this header"),
        ({"lib/base/lost.cpp": including("lib/base/gone.h")}, "lib/base/lost.cpp:2: lib/base/gone.h is not a file"),
        ({"tools/demo/a.h": including("tools/serve/b.h"), "tools/serve/b.h": including("tools/top/c.h"),
          "tools/top/c.h": including("tools/demo/a.h")},
         "tools/demo: a circle of includes: tools/demo -> tools/serve -> tools/top -> tools/demo"),
        ({"lib/qec/decoders/one/a.h": including("lib/qec/decoders/two/b.h"), "lib/qec/decoders/one/c.h": CODE,
          "lib/qec/decoders/two/b.h": CODE, "lib/qec/decoders/two/b.cpp": including("lib/qec/decoders/one/c.h")},
         "lib/qec/decoders/one: a circle of includes: lib/qec/decoders/one -> lib/qec/decoders/two -> "
         "lib/qec/decoders/one"),
        ({"lib/base/a.h": including("lib/base/b.h"), "lib/base/b.h": including("lib/base/a.h")},
         "lib/base/a.h: a circle of includes: lib/base/a.h -> lib/base/b.h -> lib/base/a.h"),
        ({"tools/html/up.h": including("tools/services/call.h"), "tools/services/call.h": including("lib/base/text.h")},
         "tools/html/up.h:2: tools/html must not include tools/services"),
        ({"tools/demo/a.h": including("tools/demo/b.h", "tools/common/c.h"), "tools/demo/b.h": CODE,
          "tools/common/c.h": CODE, "tools/main.cpp": including("tools/demo/a.h")}, None),
        ({"lib/base/comment.cpp": CODE + '// #include "lib/api/call.h"\n'}, None),
        ({"lib/api/down.cpp": including("lib/base/text.h")}, None),
    ),
    "small": (
        ({"lib/base/long.cpp": lines(CODE, 601)}, "lib/base/long.cpp: 601 lines, at most 600"),
        ({"scripts/long.sh": lines(SCRIPT, 601)}, "scripts/long.sh: 601 lines, at most 600"),
        ({"cmake/Long.cmake": lines(SCRIPT, 601)}, "cmake/Long.cmake: 601 lines, at most 600"),
        ({"unittests/lint/long.py": lines(SCRIPT, 601)}, "unittests/lint/long.py: 601 lines, at most 600"),
        ({"include/cudaq/realtime/long.h": lines(CODE, 601)}, "include/cudaq/realtime/long.h: 601 lines, at most 600"),
        ({"lib/base/long.cpp": lines(CODE, 401)}, "warning: lib/base/long.cpp: 401 lines, more than 400"),
        ({"lib/base/open.cpp": CODE + "// TO" "DO: more\n"}, "lib/base/open.cpp:2: unfinished"),
        ({"docs/concepts/long.md": TEXT + "word " * 896 + "end\n"}, "docs/concepts/long.md: 901 words, at most 900"),
        ({"lib/base/blank.cpp": CODE + "int i; \n"}, "lib/base/blank.cpp:2: blanks"),
        ({"lib/base/tab.cpp": CODE + "\tint i;\n"}, "lib/base/tab.cpp:2: a tab"),
        ({"lib/base/cut.cpp": CODE + "int i;"}, "lib/base/cut.cpp: must end with one newline"),
        ({"lib/base/long.cpp": lines(CODE, 600), "unittests/model/long.pml": lines(CODE, 600),
          "docs/long.md": lines(TEXT, 2000), "unittests/abi/long.abi": lines(TEXT, 2000)}, None),
    ),
    "folders": (
        (many("lib/base", 25), "lib/base: 26 files, at most 25"),
        (many("docs/notes", 26), "docs/notes: 26 files, at most 25"),
        ({"tools/text.h": CODE}, "tools/text.h: has the name of lib/base/text.h"),
        ({"unittests/base/call_test.cpp": CODE}, "call_test.cpp: has the name of unittests/api/call_test.cpp"),
        ({**many("unittests/base", 24), **many("tools/data", 26), "unittests/text.h": CODE,
          "lib/CMakeLists.txt": SCRIPT, "lib/base/CMakeLists.txt": SCRIPT,
          "unittests/install/c/main.c": CODE, "unittests/install/cxx/main.c": CODE}, None),
    ),
    "one_word": (
        ({"lib/base/order.cpp": CODE + "auto order = std::memory_order_acquire;\n"},
         "lib/base/order.cpp:2: 'memory_order'"),
        ({"kernels/fence.cu": CODE + "void f() { __threadfence_system(); }\n"},
         "kernels/fence.cu:2: '__threadfence_system'"),
        ({f"{REALTIME}/detail/base/slot_memory.h": CODE + "auto order = std::memory_order_acquire;\n"},
         f"{REALTIME}/detail/base/slot_memory.h:2: 'memory_order'"),
        ({f"{REALTIME}/detail/base/shared_word.h": CODE + "auto order = std::memory_order_acq_rel;\n"}, None),
        ({"include/cast.h": CODE + "int f(volatile int *p) { return *const_cast<int *>(p); }\n"}, "include/cast.h:2: "),
        ({"unittests/api/builtin_test.cpp": CODE + "int i = __atomic_load_n(&j, 2);\n"},
         "unittests/api/builtin_test.cpp:2: '__atomic_load_n'"),
        ({"unittests/api/own_test.cpp": CODE + "std::atomic<int> own; // not __atomic_load_n\n"}, None),
        ({"tools/demo/send.cpp": CODE + "void f() { cudaq_host_ringbuffer_signal_slot(ring, 0); }\n"},
         "tools/demo/send.cpp:2: 'cudaq_host_ringbuffer_signal_slot'"),
        ({"tools/ring/ring_port.h": CODE + "void f() { cudaq_host_ringbuffer_signal_slot(ring, 0); }\n"}, None),
    ),
    "fault_names": (
        ({"unittests/fault_injection/start_test.cpp": CODE + "auto b = cudaq_loop(); // not cudaq_start\n"},
         "lib/cudaq-realtime.map: cudaq_start is in no test of unittests/fault_injection/"),
        ({"unittests/fault_injection/start_test.cpp": CODE + 'auto a = cudaq_start("cudaq_loop");\n'},
         "lib/cudaq-realtime.map: cudaq_loop_spec is in no test"),
        ({"unittests/fault_injection/more_test.cpp": CODE + "auto v = cudaq_realtime_version();\n"},
         "lib/cudaq-realtime.map: cudaq_realtime_version is in EXEMPT"),
        ({"lib/cudaq-realtime.map": f"/* {SPDX} */\nN {{\n  global:\n    cudaq_status_string;\n}};\n"}, None),
    ),
    "threads": (
        ({"lib/base/more.cpp": CODE + "std::thread t;\n"}, "lib/base/more.cpp:2: 'std::thread'"),
        ({"kernels/more.cu": CODE + "auto f = std::async([] {});\n"}, "kernels/more.cu:2: 'std::async'"),
        ({"lib/base/own.cpp": CODE + "void f() { std::this_thread::yield(); } // not std::thread\n"}, None),
    ),
    "quiet": (
        ({"lib/base/loud.cpp": CODE + 'void f() { std::fprintf(stderr, "text"); }\n'},
         "lib/base/loud.cpp:2: std::fprintf"),
        ({"kernels/end.cu": CODE + "void f() { abort(); }\n"}, "kernels/end.cu:2: abort"),
        ({"include/check.h": CODE + "#include <cassert>\n"}, "include/check.h:2: #include <cassert>"),
        ({"lib/base/thrown.cpp": CODE + "void f() { throw 1; }\n"}, "lib/base/thrown.cpp:2: throw"),
        ({"lib/base/passed.cpp": CODE + "void f() { throw; }\n",
          "lib/qec/thrown.cpp": CODE + "void f() { throw 1; }\n"}, None),
        ({"tools/main.cpp": CODE + 'int main() { puts("text"); }\n',
          "lib/base/text.cpp": CODE + "void f() { snprintf(0); }\n"}, None),
    ),
    "spdx": (
        ({"lib/base/plain.cpp": "int i;\n"}, "lib/base/plain.cpp: no SPDX line"),
        ({"scripts/late.sh": f"#!/bin/sh\n\n{SCRIPT}"}, "scripts/late.sh: no SPDX line"),
        ({"docs/page.md": "# A page\n"}, None),
    ),
    "links": (
        ({"docs/page.md": f"{TEXT}[gone](gone.md)\n"}, "docs/page.md: gone.md does not exist"),
        ({"docs/design.md": f"{TEXT}# Design\n"}, "README.md: docs/design.md#the-rooms: no such heading"),
        ({f"docs/tutorials/{name}.md": f"{TEXT}--port{form}5001\n" for name, form in (("a", "="), ("b", " "))},
         "docs/tutorials/b.md: docs/tutorials/a.md has the port 5001, too"),
        ({"docs/page.md": f"{TEXT}`[gone](gone.md)` and [there](https://example.com/gone)\n"}, None),
    ),
    "specified_names": (
        ({NAMES: f"{TEXT}| `old` | test | `main` | [program.c](../examples/program.c) |\n"}, None),
        ({NAMES: f"{TEXT}| `old` | test | `other` | [program.c](../examples/program.c) |\n"},
         f"{NAMES}:2: 'other' is not in program.c"),
        ({NAMES: f"{TEXT}| `old` | test | `main` | [ended.c](../examples/ended.c) |\n"},
         f"{NAMES}:2: ended.c does not exist"),
        ({NAMES: f"{TEXT}| `old` | test | here | |\n"}, f"{NAMES}:2: a row needs a name and a file"),
        ({NAMES: f"{TEXT}| `old` | test | absent | |\n"}, f"{NAMES}:2: no reason why it is absent"),
    ),
    "snippets": (
        ({"docs/examples/program.c": CODE + "int main(void) { return 1; }\n"},
         "docs/design.md:6: not found word for word"),
        ({"docs/page.md": f"{TEXT}```c\nint i;\n"}, "docs/page.md:2: the block does not end"),
        ({"docs/page.md": f"{TEXT}```text\nno code\n```\n"}, None),
    ),
    "changelog": (
        ({"docs/changelog.md": f"{TEXT}# Changes\n\n## 0.1.0, unreleased\n"}, "must be '## [Unreleased]'"),
        ({"docs/changelog.md": CHANGES + "\n## [0.1.0]\n"}, "'[0.1.0]': write '[1.2.3] - 2030-01-31'"),
        ({"docs/changelog.md": CHANGES + "\n## [0.0.9] - 2030-01-31\n\n## [0.1.0] - 2030-02-01\n"},
         "the newest version must come first"),
        ({"docs/changelog.md": CHANGES + "\n## [0.1.0-rc1] - 2030-01-31\n\n## [0.1.0] - 2030-02-01\n"},
         "the newest version must come first"),
        ({"docs/changelog.md": CHANGES + "\n## [0.1.0-rc2] - 2030-01-31\n\n## [0.1.0-rc10] - 2030-02-01\n"},
         "the newest version must come first"),
        ({"docs/changelog.md": CHANGES + "\n## [9.0.0] - 2030-01-31\n"},
         "[9.0.0] - 2030-01-31 is released, but the version of version.h is older"),
        ({"docs/changelog.md": CHANGES.replace("Added", "News")}, "[Unreleased]: sections are Added, Changed"),
        ({"docs/changelog.md": CHANGES + "\n### Fixed\n"}, "[Unreleased]: 'Fixed' is empty"),
        ({"docs/changelog.md": CHANGES + 210 * "- Some.\n"}, "lines, at most 200: join some"),
        ({"docs/changelog.md": CHANGES + "\n## [0.1.0] - 2030-01-31\n\n### Added\n\n- All.\n"}, None),
    ),
    "tables": (
        ({"README.md": "| a | b |\n|---|---|\n| `x|y` | z |\n"}, "README.md:3: cells in this row: 3"),
        ({"README.md": "| a | b |\n|---|---|\n| z |\n"}, "README.md:3: cells in this row: 1"),
        ({"README.md": "| a | b |\n|---|---|\n| x | y |\nmore\n"}, "README.md:4: cells in this row: 1"),
        ({"docs/design.md": f"{TEXT}| a | b |\n|---|\n"}, "docs/design.md:3: 1 columns under a head of 2"),
        ({"README.md": "| a | b |\n|:--|--:|\n| `x\\|y` | |\n\n```\n|---|\na | b | c\n```\n"}, None),
    ),
    "test_names": (
        ({"docs/testing.md": f"{TEXT}`Call.IsGone`"}, "docs/testing.md: no test has the name `Call.IsGone`"),
        ({"unittests/flaky_tests.txt": "# x\nCall.IsGone | 2030-01-31 | late\n"},
         "unittests/flaky_tests.txt:2: no test has the name `Call.IsGone`"),
        ({"unittests/flaky_tests.txt": "Call.Works | late\n"},
         "unittests/flaky_tests.txt:1: write 'name | 2030-01-31 | cause'"),
        ({"unittests/flaky_tests.txt": "# x\n\ntsan.Two/Call.Works/3 | 2030-01-31 | late\n",
          "unittests/api/call_test.cpp": CODE + "TEST_P(Call, Works) {}\nINSTANTIATE_TEST_SUITE_P(Two, Call, all);\n"},
         None),
        ({"docs/testing.md": f"{TEXT}`Call.Row7_*`"}, "docs/testing.md: no test has the name `Call.Row7_*`"),
        ({"docs/testing.md": f"{TEXT}`Call.Works`, `Two/Call.Wo*`, `lib/base/text.h`, `Script.*Row_*`, `a.b`",
          "unittests/api/call_test.cpp": CODE + "TEST_P(Call, Works) {}\nINSTANTIATE_TEST_SUITE_P(Two, Call, all);\n",
          "unittests/api/CMakeLists.txt": SCRIPT + "add_test(NAME Script.${kind}Row_1)\n"}, None),
    ),
    "figures": (
        ({"docs/performance/long.json": '{"cases": [{"p50": 2, "histogram": [[1, 1]]}]}\n'},
         "docs/performance/long.json: not in the stored form"),
        ({"docs/archive/old.json": '{"cases": [{"p50": 2, "histogram": [[1, 1]]}]}\n'},
         "docs/archive/old.json: not in the stored form"),
        ({"docs/performance/one_line.json": '{"cases": [{"p50": 2}, {"p50": 3}]}\n'},
         "docs/performance/one_line.json: not in the stored form"),
        ({"docs/performance/stored.json":
          '{\n "cases": [\n  {"p50": 2, "rounds": [1, 3]},\n  {"p50": 3}\n ]\n}\n'}, None),
    ),
    "known_failures": (
        ({"unittests/base/more_test.cpp": CODE + "// Known failure 1.\nTEST_P(More, Works) {}\n"},
         f"{FAILURES}: scripts/known_failures.py was not run after the tests changed: | 1 | wrong |"),
        ({"unittests/base/text_test.cpp": CODE + "TEST(Call, Works) {}\n"}, f"{FAILURES}: failure 1 has no test"),
        ({FAILURES: f"{TEXT}| 1 | wrong | `Call.*` |\n| 2 | slow | |\n"}, f"{FAILURES}: failure 2 has no test; write"),
        ({FAILURES: f"{TEXT}| 2 | slow | no test: needs hardware |\n"}, f"{FAILURES}: no row 1, which the comment"),
        ({"unittests/base/form_test.cpp": CODE + "// Known failure 1\nTEST(Call, Ends) {}\n"}, "form_test.cpp:2: no"),
        ({"unittests/base/lost_test.cpp": CODE + "// Known failure 1.\nint i;\n"}, "lost_test.cpp:2: no test follows"),
        ({FAILURES: f"{TEXT}| 1 | wrong | `A.*`, `Call.*`, `Two.*` |\n| 2 | slow | `A.*`, `Model.Ring.*` |\n",
          "unittests/api/CMakeLists.txt": SCRIPT + "# Known failures 1, 2.\ncudaq_add_script_test(NAME A.${b})\n"
                                                   "# Known failure 2.\nmodel_test(Ring Ends ring.pml pass)\n",
          "unittests/base/two_test.cpp": CODE + "// Known failure 1.\n// Why.\nTYPED_TEST(Two, Works) {}\n"}, None),
    ),
    "errors": (
        ({"lib/base/text.cpp": CODE + 'auto r = make_reason(CUDAQ_ERR_STATE, "slot %u "\n  "is gone");\n'},
         "lib/base/text.cpp: docs/guide/errors.md lacks the text `slot ... is gone`"),
        ({"lib/api/status.cpp": STATUS.replace("fine", "bad")}, "lacks the text `bad`"),
        ({"docs/guide/errors.md": TEXT}, "lacks the text `fine`"),
        ({"tools/common/report.h": CODE + "enum exit_code : int {\n  kExitOk = 0,\n  kExitGone = 9 ///< gone\n};\n",
          "docs/guide/errors.md": f"{TEXT}| `fine` |\n\n## Exit status of the program\n\n| 0 | `kExitOk` |\n"},
         "lacks kExitGone = 9 under"),
        ({"lib/base/text.cpp": CODE + 'auto r = make_reason(CUDAQ_ERR_STATE, "%s is closed: %" PRIu64, a, b);\n'
                               'auto s = make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", a);\n'}, None),
    ),
    "statuses": (
        ({WIRE: STATUSES, "python/cudaq_realtime/client.py": "BAD, BUSY = 2, 5\n"}, "client.py: BUSY is 5"),
        ({WIRE: STATUSES, "docs/transport/server_wire.md": f"{TEXT}| 0 | OK | |\n| 2 | BUSY | |\n"},
         "server_wire.md: BUSY: 2"),
        ({WIRE: STATUSES, "docs/transport/route.md": f"{TEXT}| 4 | BUSY | |\n"}, "route.md: BUSY: 4"),
        ({WIRE: STATUSES, "docs/design.md": f"{TEXT}# Design\n\n## The rooms\n\nBUSY (5)\n"}, "design.md: BUSY is 5"),
        ({WIRE: STATUSES, "docs/design.md": f"{TEXT}# Design\n\n## The rooms\n\n| 1 to 8, or -1 to -6 |\n"},
         "design.md: 1 to 8;"),
        ({WIRE: STATUSES.replace(" /* no effect */", "")}, "BUSY has no meaning"),
        ({WIRE: STATUSES.replace("no effect", "no [effect]")}, "BUSY: the build makes a text"),
        ({WIRE: STATUSES, "docs/transport/server_wire.md": f"{TEXT}| 0 | OK | |\n| 1 | BUSY | |\n"}, None),
    ),
    "plain_english": (
        ({"lib/base/comment.cpp": CODE + "int i; // Whoever calls this\n"}, "comment.cpp:2: 'whoever': write "),
        ({"lib/base/block.h": CODE + "/* First line.\n * He waits. */\n"}, "lib/base/block.h:3: 'he'"),
        ({"lib/base/string.cpp": CODE + """char quote = '"'; auto text = "is told";\n"""}, "string.cpp:2: 'told'"),
        ({"lib/base/raw.cpp": CODE + 'auto text = R"x(a " quote\nforever)x";\n'}, "raw.cpp:3: 'forever'"),
        ({"lib/base/include.h": CODE + '#include "lib/base/text.h" // upon request\n'}, "include.h:2: 'upon'"),
        ({"lib/base/phrase.cpp": CODE + "// The flag in\n// front of the slot\n"}, "phrase.cpp:2: 'in front of'"),
        ({"lib/base/split.cpp": CODE + 'auto text = "in "\n    "work";\n'}, "split.cpp:2: 'in work'"),
        ({"unittests/model/ring.pml": CODE + "/* somebody else */\n"}, "unittests/model/ring.pml:2: 'somebody'"),
        ({"docs/page.md": f"{TEXT}Text\nbehind `code`\n"}, "docs/page.md:3: 'behind'"),
        ({"docs/page.md": f"{TEXT}```text\ncode\n```\nIt sees through it.\n"}, "docs/page.md:5: 'sees through'"),
        ({"docs/page.md": f"{TEXT}| a | nobody |\n"}, "docs/page.md:2: 'nobody'"),
        ({"docs/page.md": f"{TEXT}The seeds say this.\n"}, "docs/page.md:2: 'seeds'"),
        ({"scripts/run.sh": SCRIPT + "# It runs for ever.\n"}, "scripts/run.sh:2: 'for ever'"),
        ({"scripts/run.py": SCRIPT + '"""Text\nof its own accord"""\n'}, "run.py:3: 'of its own accord'"),
        ({"cmake/Run.cmake": SCRIPT + 'message("his file")\n'}, "cmake/Run.cmake:2: 'his'"),
        ({"docs/page.md": TEXT + "word " * 23 + "and more\n"}, "docs/page.md:2: 123 columns, at most 120"),
        ({"docs/page.md": f"{TEXT}{'word ' * 25} http://a.com\n"}, "docs/page.md:2: 138 columns, at most 120"),
        ({"lib/base/wide.cpp": CODE + "x" * 121 + "\n"}, "lib/base/wide.cpp:2: 121 columns, at most 120"),
        ({"scripts/wide.sh": SCRIPT + "echo " + "x" * 116 + "\n"}, "scripts/wide.sh:2: 121 columns, at most 120"),
        ({"lib/base/names.cpp": CODE + "int seeds = 1'000 * desk.behind; // kept_behind, told_, he(), --his, his.txt\n"
                                "call(\"in\",\n     \"work\");\n", "unittests/model/names.pml": CODE + "byte desk;\n",
          "lib/base/include.cpp": CODE + '#include "lib/behind/his.h"\n',
          "lib/base/wide.cpp": CODE + "x" * 120 + "\n",
          "scripts/names.py": SCRIPT + "told = seeds\n",
          "scripts/names.sh": SCRIPT + 'desk="$crew ${ledger}"\n',
          "docs/page.md": f"{TEXT}`behind` or `` ` behind\nhis `` or [this](../his) or https://his.com/behind\n"
                          f"```text\n{'x' * 121}\n\nnobody\n```\n| {'x ' * 80}|\nword https://{'x' * 120}\n",
          "docs/figures.json": '"whoever"\n'}, None),
    ),
    "plain_names": (
        ({"lib/base/name.cpp": CODE + "// text\nint said = 0;\n"}, "name.cpp:3: 'said' in said: write 'response'"),
        ({"lib/base/member.h": CODE + "bool lent_ = false;\n"}, "lib/base/member.h:2: 'lent' in lent_"),
        ({"lib/base/kept.h": CODE + "call(kAskedAtOnce);\n"}, "lib/base/kept.h:2: 'asked' in kAskedAtOnce"),
        ({"lib/base/macro.h": CODE + "#define TOLD_TO_STOP 1\n"}, "lib/base/macro.h:2: 'told' in TOLD_TO_STOP"),
        ({"lib/base/case.cpp": CODE + "TEST(Ring, HarmsNobodyElse)\n"}, "case.cpp:2: 'nobody' in HarmsNobodyElse"),
        ({"lib/base/phrase.cpp": CODE + "int in_front_of_it;\n"}, "phrase.cpp:2: 'in front of' in in_front_of_it"),
        ({"lib/base/seat_map.h": CODE}, "lib/base/seat_map.h: 'seat' in the path: write 'member_entry'"),
        ({"lib/behind/text.h": CODE}, "lib/behind/text.h: 'behind' in the path"),
        ({"lib/ring.map": "{ global: gone_fn; };\n"}, "lib/ring.map:1: 'gone' in gone_fn"),
        ({"scripts/run.py": SCRIPT + "def tell_it(x):\n"}, "scripts/run.py:2: 'tell' in tell_it"),
        ({"cmake/Run.cmake": SCRIPT + "set(whom 1)\n"}, "cmake/Run.cmake:2: 'whom' in whom"),
        ({"scripts/run.sh": SCRIPT + 'for seat in "$@"; do\n'}, "scripts/run.sh:2: 'seat' in seat"),
        ({"scripts/run.sh": SCRIPT + 'local told=1\n'}, "scripts/run.sh:2: 'told' in told"),
        ({"lib/base/call.cpp": CODE + "ask_server();\n"}, "lib/base/call.cpp:2: 'ask' in ask_server: write 'query'"),
        ({"lib/base/call.cpp": CODE + "int kMostSends;\n"}, "lib/base/call.cpp:2: 'most' in kMostSends: write 'max_'"),
        ({"lib/base/names.cpp": CODE + '// said\n/* told */ auto text = "nobody";\nint kSeeds, seated, talent;\n'
                                       '#include "lib/seat.h"\n',
          "scripts/run.py": SCRIPT + '"""Gone."""\nserver.serve_forever()  # behind\n',
          "unittests/base/names_test.cpp": CODE + "TEST(Ring, SaysWhatItAsks)\n",
          "scripts/run.sh": SCRIPT + 'echo "he said" # seat\n',
          "cmake/Run.cmake": SCRIPT + 'message("he said") # seat\n'}, None),
    ),
}

# The same for subjects of commits: each is committed after the first commit.
SUBJECTS = (
    ("Long " + "x" * 68, "a subject of 73 characters, at most 72: Long x"),
    ("A sentence.", "a subject that ends in a period: A sentence."),
    ("Long " + "x" * 67 + "\n\nThe body may have lines of any length, and ends in a period: " + "x" * 72 + ".", None),
)
# git must not use the caller's repository or configuration. A hook of git, for example, sets GIT_DIR.
for variable in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[variable]
os.environ.update({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"})


def git(root, *arguments):
    subprocess.run(["git", "-C", root, "-c", "user.name=nobody", "-c", "user.email=nobody@example.com",
                    "-c", "maintenance.auto=false", *arguments], check=True, capture_output=True)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def restore(root, files):
    """Removes planted files and folders; restores those that replaced a file of the tree."""
    for name in files:
        if name in TREE:
            (root / name).write_text(TREE[name])
        else:
            os.remove(root / name)
            with contextlib.suppress(OSError):
                os.removedirs((root / name).parent)  # stops at the first folder that is not empty


def run(check, root, *arguments, status, text=""):
    """Returns whether the check ends with another status than it must, or does not print the text."""
    sys.argv = [f"{check}.py", str(root), *arguments]
    ended = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            runpy.run_path(str(HERE / sys.argv[0]), run_name="__main__")
        except SystemExit as end:
            ended = end.code
    if ended == status and text in printed.getvalue():
        return False
    print(f"{check}.py must end with {status} and print '{text}'; it ended with {ended} and printed:\n"
          f"{printed.getvalue()}")
    return True


def test_files(check, root):
    git(root, "init", "--quiet")
    write(root, TREE)
    failed = run(check, root, status=0)
    for files, text in OFFENCES[check]:
        write(root, files)
        passes = not text or text.startswith("warning: ")
        failed += run(check, root, status=0 if passes else 1, text=text or "")
        restore(root, files)
    return failed


def test_subjects(check, folder):
    root = folder / "repository"
    write(root, TREE)
    git(folder, "init", "--quiet", "repository")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "x" * 80)
    git(root, "tag", "first")
    failed = run(check, root, "first", status=0)
    for message, text in SUBJECTS:
        git(root, "commit", "--quiet", "--allow-empty", "-m", message)
        failed += run(check, root, "first", status=1 if text else 0, text=text or "")
        git(root, "reset", "--quiet", "--soft", "first")
    git(root, "checkout", "--quiet", "-b", "other")
    git(root, "commit", "--quiet", "--allow-empty", "-m", "On a branch")
    git(root, "checkout", "--quiet", "-")
    git(root, "merge", "--quiet", "--no-ff", "-m", "x" * 80, "other")
    failed += run(check, root, "first", status=0)
    git(folder, "clone", "--quiet", "--depth", "1", root.as_uri(), "shallow")
    failed += run(check, folder / "shallow", status=77, text="skipped: the history does not reach back")
    shutil.rmtree(root / ".git")
    failed += run(check, root, status=77, text="skipped: the tree was exported without its history")
    return failed


def main(check):
    if not shutil.which("git"):
        print("skipped: git is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        failed = (test_subjects if check == "commits" else test_files)(check, pathlib.Path(folder))
    print(f"{check}.py: {failed} failures" if failed else f"{check}.py finds each offence")
    sys.exit(bool(failed))


main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/compare_machine_code.py reports "the same" for equal code under other names, and finds each other change.
Usage: machine_code_comparison.py SCRIPT. This test writes the code in nvdisasm's format, so it needs no CUDA tool."""
import pathlib
import subprocess
import sys
import tempfile

# Names in the form that the compiler generates: a kernel, functions that it calls, and a table.
KERNEL, COPY, JUDGE, TABLE = "_ZN5cudaq4loop_kernelEv", "_ZN5cudaq4copyEv", "_ZN5cudaq5judgeEv", "_ZN5cudaq5judgeEv$7"


def function(name, *instructions):
    """A section of code. An instruction that ends in a colon is a label."""
    text, at = f'\t.section\t.text.{name},"ax",@progbits\n\t.align\t128\n.text.{name}:\n{name}:\n', 0
    for instruction in instructions:
        if instruction.endswith(":"):
            text += f"{instruction}\n"
        else:
            text += f"        /*{at:04x}*/                   {instruction} ;\n"
            at += 16
    return text


def data(name, *numbers):
    return (f'\t.section\t.nv.global.init,"aw",@"SHT_CUDA_GLOBAL_INIT"\n\t.align\t4\n.nv.global.init:\n'
            f"\t.weak\t\t{name}\n{name}:\n"
            f"        /*0000*/ \t.byte\t{', '.join(f'0x{number:02x}' for number in numbers)}\n")


def call(name):
    return f"CALL.ABS.NOINC `({name})"


def address(name):
    return f"MOV R4, 32@lo(fun@unified({name}))"


copy = function(COPY, "LDG.E R0, desc[UR4][R2.64]", "STG.E desc[UR4][R4.64], R0", "RET.ABS.NODEC R20 0x0")
judge = function(JUDGE, "ISETP.NE.AND P0, PT, R0, RZ, PT", f"UMOV UR4, 32@lo({TABLE})", "RET.ABS.NODEC R20 0x0")
table = data(TABLE, 1, 0, 0, 0)
LOOP = (".L_x_1:", call(JUDGE), "@P0 BRA `(.L_x_2)", call(COPY), "BRA `(.L_x_1)", ".L_x_2:", address(COPY), "EXIT")
kernel = function(KERNEL, *LOOP)
OLD = kernel + copy + judge + table


def changed(old, new):
    """The code with each occurrence of `old` in the loop replaced by `new`."""
    assert any(old in line for line in LOOP)
    return function(KERNEL, *(line.replace(old, new) for line in LOOP)) + copy + judge + table


def wrapped(name):
    """A kernel that calls one of two wrappers. The wrappers differ only in the function that they call."""
    return function(KERNEL, call(name), "EXIT") + function("_ZN5cudaq1aEv", call(COPY)) + \
        function("_ZN5cudaq1bEv", call(JUDGE)) + copy + judge + table


SAME, DIFFERENT, NOTHING = 0, 1, 2
# The change, the code before it, the code after it, the exit status, the text that must be printed.
CASES = (
    ("nothing", OLD, OLD, SAME, "3 functions: the same machine code"),
    ("names are others", OLD,
     OLD.replace("copy", "moved").replace("loop_kernel", "run_kernel").replace("judge", "rules"), SAME,
     "3 functions: the same machine code"),
    ("labels are others", OLD, OLD.replace(".L_x_", ".L_x_10"), SAME, "3 functions: the same machine code"),
    ("the order is another", OLD, table + judge + kernel + copy, SAME, "3 functions: the same machine code"),
    ("an instruction", OLD, OLD.replace("STG.E desc", "STG.E.64 desc"), DIFFERENT, COPY),
    ("an operand", OLD, OLD.replace("R0, RZ, PT", "R1, RZ, PT"), DIFFERENT, JUDGE),
    ("one instruction more", OLD, OLD.replace("        /*0000*/", "        /*fff0*/  NOP ;\n        /*0000*/", 1),
     DIFFERENT, KERNEL),
    ("the target of a branch", OLD, changed("BRA `(.L_x_1)", "BRA `(.L_x_2)"), DIFFERENT, KERNEL),
    ("the target of a call", OLD, changed(call(COPY), call(JUDGE)), DIFFERENT, KERNEL),
    ("an address that is taken", OLD, changed(address(COPY), address(JUDGE)), DIFFERENT, KERNEL),
    ("a call of a foreign function", changed(COPY, "cudaGraphLaunch"), changed(COPY, "cudaGraphDestroy"), DIFFERENT,
     KERNEL),
    ("a call two steps away", wrapped("_ZN5cudaq1aEv"), wrapped("_ZN5cudaq1bEv"), DIFFERENT, KERNEL),
    ("a table", OLD, OLD.replace("0x01", "0x02"), DIFFERENT, f"{JUDGE}  (only its references differ)"),
    ("a function is missing", OLD, OLD.replace(copy, ""), DIFFERENT, COPY),
    ("a function is new", OLD, OLD + function("_ZN5cudaq3newEv", "EXIT"), DIFFERENT, "_ZN5cudaq3newEv"),
    ("a second function of equal code", OLD, OLD + copy.replace("copy", "twin"), DIFFERENT, "1 differences"),
    ("all functions are missing", OLD, table, DIFFERENT, KERNEL),
    ("no function on either side", table, table, NOTHING, "no device function was found"),
)


def main(script):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        before, after = (pathlib.Path(folder) / f"{side}.nvdisasm" for side in ("before", "after"))
        for what, old, new, status, text in CASES:
            before.write_text(old)
            after.write_text(new)
            done = subprocess.run([sys.executable, script, before, after], capture_output=True, text=True)
            if done.returncode != status or text not in done.stdout + done.stderr:
                failed += 1
                print(f"{what}: it must end with {status} and print '{text}'; it ended with {done.returncode} and "
                      f"printed:\n{done.stdout}{done.stderr}")
    print(f"{failed} of {len(CASES)} comparisons are wrong" if failed else f"{len(CASES)} comparisons are right")
    sys.exit(bool(failed))


main(sys.argv[1])

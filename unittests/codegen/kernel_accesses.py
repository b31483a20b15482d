#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks in the PTX of the dispatch kernels how they access shared words. They poll flags with single acquire loads,
and publish with single release stores, with the scope that the kernel was instantiated for. No other instruction
accesses or orders flags. The check traces the address of each access to a member of the kernel's argument.
Kernels for requests in device memory give a slot back by one fence and relaxed stores; the check counts both.
The kernels read requests only with loads that the compiler can neither repeat nor split, and read each word once.
The kernel over device hooks accesses no flag: its hooks do, and they tell it where a request lies.

usage: kernel_accesses.py [--mutant NAME] <root of the sources> <PTX to write> <nvcc> <argument>...
--mutant introduces an error into a copy of a header; the check must find it. nvcc takes 5 s for a mutant: without
CUDAQ_TEST_WHOLE=1 only those in SAMPLE are compiled. The others must still fit the headers.
"""
import os
import re
import shutil
import sys

from compiled import compiled

DETAIL = "include/cudaq/realtime/detail/"
FLAG_WORD, SLOT_MEMORY = DETAIL + "base/flag_word.h", DETAIL + "base/slot_memory.h"
FETCH, COPY = DETAIL + "loop/fetch.h", DETAIL + "loop/block_copy.h"
POSTED = DETAIL + "loop/posted_ring_transport.h"
COUNT = "    store_relaxed(slot.rx_flag[slot.lap_offset], count);\n"
FENCE = "    fence_before_stores();\n"
SAMPLE = ("seq_cst_store", "plain_request_load")  # with these, one or two mutants of each kernel
MUTANTS = {  # name: (header, text in it, its replacement)
    "seq_cst_store": (FLAG_WORD, ".store(value, order::memory_order_release)",
                      ".store(value, order::memory_order_seq_cst)"),
    "volatile_poll": (FLAG_WORD,
                      "return word_ref<T, Scope>(const_cast<T &>(word)).load(order::memory_order_acquire);",
                      "return word;"),
    "relaxed_poll": (FLAG_WORD, "(word)).load(order::memory_order_acquire)",
                     "(word)).load(order::memory_order_relaxed)"),
    "claim_by_test_and_store": (FLAG_WORD, """  return word_ref<T, Scope>(const_cast<T &>(word))
      .compare_exchange_strong(expected, desired, order::memory_order_acquire, order::memory_order_relaxed);
""", """  word_ref<T, Scope> it(const_cast<T &>(word));
  if (it.load(order::memory_order_acquire) != expected)
    return false;
  it.store(desired, order::memory_order_release);
  return true;
"""),
    "plain_request_load": (SLOT_MEMORY, """asm volatile("ld.relaxed.sys.v4""", """asm volatile("ld.v4"""),
    "length_read_twice": (FETCH, "r.arg_len = held.part[2]", "r.arg_len = load_frame<word16>(from).part[2]"),
    "request_gathered_twice": (FETCH, "held[u] = load_frame<Word>(frame + at);",
                               "held[u] = load_frame<Word>(frame + at), held[u] = load_frame<Word>(frame + at);"),
    "given_back_without_fence": (POSTED, FENCE, ""),
    "count_after_the_fence": (POSTED, COUNT + FENCE, FENCE + COUNT),
    "each_lap_at_once": (POSTED, "    if (ring_.num_slots == 1)\n", ""),
    "no_lap_alone": (POSTED, "    store_release(*owed_, owed_count_);\n", ""),
    "lap_alone_without_order": (POSTED, "store_release(*owed_", "store_relaxed(*owed_"),
    "released_one_by_one": (FLAG_WORD, "  store_relaxed(word, value);\n#else", "  store_release(word, value);\n#else"),
    "request_copied_by_plain_loads": (COPY, "kFrom == copied_from::slot ?", "kFrom != kFrom ?"),
}
# The loads of a request: 16 bytes, or 8 where a ring is not aligned to 16.
WIDE, NARROW = "ld.relaxed.sys.v4.b32", "ld.relaxed.sys.b64"
# What copies requests outside of the kernels: the exact number of loads in each instance.
COPIES = {"gather": ({WIDE: 4}, {NARROW: 8}), "copy_request": ({WIDE: 8, NARROW: 8},)}
TOKEN = "atom.cas.acquire.gpu.b32"  # a graph scheduler takes the free token with it
HELD = ("atom.or.relaxed.gpu.b32", "atom.and.release.gpu.b32")  # a graph scheduler sets and clears slot bits with them
FLAGS = ("ring.rx_flags", "ring.tx_flags")
INBOX = ("inbox.entries", "inbox.answers")
ADDRESS = r"\[(%\w+|\w+)(?:\+(-?\d+))?\]"
ACCESS = re.compile(r"(?:@!?%\w+\s+)?((?:ld|st|atom|red)\.[\w.]+)\s[^\[;]*" + ADDRESS)
ORDERS = re.compile(r"\b(?:fence|membar|(?:ld|st)\.volatile)\b[.\w]*")
ORDER = "fence.acq_rel.sys"
# How a kernel for requests in device memory gives slots back: (places with one fence, which leave the lap to the next
# request unless the ring has one slot; places with two, the lap at once; laps posted alone)
GIVEN_BACK = {"regular": (2, 2, 2), "cooperative": (1, 3, 2), "side_by_side": (0, 4, 0)}


def offsets(root):
    with open(os.path.join(root, "unittests/codegen/dispatch_params_offsets.h")) as file:
        found = re.findall(r"offsetof\(dispatch_params, ([\w.]+)\) == (\d+)\)", file.read())
    return {int(offset): name for name, offset in found}


def entries(ptx):
    """Yields (name, body) of each kernel."""
    for start in re.finditer(r"^\.entry (\w+)\(", re.sub(r"\.(?:weak|visible) (?=\.entry)", "", ptx), flags=re.M):
        text = start.string[start.end():]
        yield start.group(1), text[:re.search(r"^\}", text, flags=re.M).start()]


def functions(ptx):
    """Yields (name, body) of each function that is not inlined into the kernels."""
    for start in re.finditer(r"^(?:\.(?:weak|visible|common) )?\.func\s+(?:\([^)]*\)\s*)?(\w+)\(", ptx, flags=re.M):
        text = ptx[start.end():]
        if re.search(r"[;{]", text).group(0) == "{":  # else a declaration
            yield start.group(1), text[:re.search(r"^\}", text, flags=re.M).start()]


def short(name):
    if "dispatch_hooks_kernel" in name:
        return "hooks"
    kernel = re.search(r"dispatch_(in_order|side_by_side)_kernel", name)
    graph = re.search(r"graph_(root|scheduler)_kernel", name)
    if graph:
        return "graph_root" if graph.group(1) == "root" else "graph_gpu" if "scopeE1E" in name else "graph_sys"
    shared = re.search(r"dispatch_in_order_kernel.*(routed|common)_ring", name)
    if shared:
        return shared.group(1)
    ring = "_posted" if "posted_ring" in name else "_gpu" if "scopeE1E" in name else "_sys"
    return kernel.group(1) + ring if kernel else name


class provenance:
    """The named members of the kernel's argument from which each address was computed."""

    def __init__(self, name, body, members):
        self.argument, self.definitions, users = name + "_param_0", {}, {}
        for line in body.split("\n"):
            match = re.match(r"\s*(?:\{ )?(?:@!?%\w+\s+)?([\w.]+)\s+(\{[^}]*\}|%\w+),\s*(.*);", line)
            if match and not match.group(1).startswith("st"):
                for position, register in enumerate(re.findall(r"%\w+", match.group(2))):
                    self.definitions.setdefault(register, []).append((match.group(1), position, match.group(3)))
        self.from_members, loaded = {}, []
        for register, definitions in self.definitions.items():
            for operation, position, source in definitions:
                address = re.match(ADDRESS, source)
                if operation.startswith("ld.param") and address and self.place(address.group(1)) is not None:
                    width = int(re.search(r"(\d+)$", operation).group(1)) // 8
                    at = self.place(address.group(1)) + int(address.group(2) or 0) + position * width
                    if at in members:
                        loaded.append((register, members[at]))
                elif not operation.startswith(("ld", "atom", "setp")):  # a comparison makes no address
                    for operand in re.findall(r"%\w+", source):
                        users.setdefault(operand, []).append(register)
        while loaded:
            register, member = loaded.pop()
            if member not in self.of(register):
                self.from_members.setdefault(register, set()).add(member)
                loaded += [(user, member) for user in users.get(register, [])]

    def place(self, operand):
        """Returns the offset in the argument that a register points to, or None."""
        if operand == self.argument:
            return 0
        for operation, _, source in self.definitions.get(operand, []):
            parts = [part.strip() for part in source.split(",")]
            base = self.place(parts[0]) if operation in ("mov.b64", "mov.u64", "add.s64") else None
            if base is not None and (len(parts) == 1 or re.fullmatch(r"-?\d+", parts[1])):
                return base + (int(parts[1]) if len(parts) > 1 else 0)
        return None

    def of(self, register):
        return self.from_members.get(register, set())

    def always(self, register, member):
        """True if each definition of the register uses the member: else it holds other addresses at other times."""
        return all(any(member in self.of(operand) for operand in re.findall(r"%\w+", source))
                   or (operation.startswith("ld.param") and member in self.of(register))
                   for operation, _, source in self.definitions.get(register, []))


def polled(kernel):
    """The members that a 64-bit acquire load may read. On a common ring also magic and function id of a request."""
    return {"routed": INBOX[:1], "common": (*FLAGS, "ring.rx_data")}.get(kernel, FLAGS)


def allowed(kernel, cooperative, scope):
    """The allowed atomic and ordered accesses: {instruction: the members it may access}."""
    flag = {f"ld.acquire.{scope}.b64": polled(kernel), f"st.release.{scope}.b64": FLAGS}
    if kernel == "routed":
        flag["st.release.sys.b64"] = (*FLAGS, *INBOX[1:])
    control = {"ld.acquire.sys.b32": ("library_shutdown", "caller_shutdown"), "st.relaxed.sys.b64": ("reports",),
               "st.relaxed.sys.b32": ("reports",),
               "atom.add.relaxed.gpu.b64": ("caller_stats",)}
    if kernel == "hooks":
        return control
    may = {**flag, **control}
    if kernel == "graph_sys":  # the counts of requests in device memory
        may["ld.relaxed.sys.b64"] = FLAGS[:1]
        may["st.relaxed.sys.b64"] = (*may["st.relaxed.sys.b64"], FLAGS[0])
    if kernel.endswith("_posted"):
        may["ld.relaxed.sys.b64"] = FLAGS[:1]
        may["st.relaxed.sys.b64"] = (*may["st.relaxed.sys.b64"], *FLAGS)
        may["st.release.sys.b64"] = FLAGS[1:]
    if cooperative:  # the sequence number of a command, and the arrivals
        for what in ("ld.acquire.gpu.b64", "st.release.gpu.b64", "ld.acquire.gpu.b32", "atom.add.release.gpu.b32"):
            may[what] = (*may.get(what, ()), "command")
    return may


def scheduler_state(kernel):
    """The allowed accesses to addresses from no named member: the state and the words of a graph scheduler."""
    words = ("ld.acquire.gpu.b32", "ld.acquire.gpu.b64", "st.release.gpu.b32", "ld.relaxed.sys.b32",
             "ld.relaxed.sys.b64", "st.relaxed.sys.b32", "st.relaxed.sys.b64",
             "st.release.sys.b64",  # the count of silent graphs, after the word that names the last one
             *HELD, TOKEN)
    return words if kernel.startswith("graph_") else ()


def check_requests(kernel, loads):
    """A kernel for FIFO reads a request by one load, a word per lane. A
    graph scheduler also reads the header of a request that it answers without a launch. The rest is in COPIES."""
    expected = {} if kernel.startswith("side_by_side") else {WIDE: 1}
    headers = loads.get(NARROW, 0) if kernel.startswith("graph_") else 0
    if headers % 3 == 0 and loads == {**expected, **({NARROW: headers} if headers else {})}:
        return []
    return [f"loads of requests: {loads or 'none'}, expected {expected or 'none'}: a word is read again or not at all"]


def check_copies(ptx):
    problems, seen = [], set()
    for name, body in functions(ptx):
        what = next((copy for copy in COPIES if re.search(rf"\d{copy}[A-Z]", name)), None)
        if what is None:
            continue
        seen.add(what)
        loads = {}
        for load in re.findall(r"\b(ld\.(?!param|local)[\w.]+)\s", body):
            loads[load] = loads.get(load, 0) + 1
        if loads not in COPIES[what]:
            problems.append(f"{what}: loads {loads}, expected one of {COPIES[what]}")
    return problems + [f"no function {what}" for what in COPIES if what not in seen]


def check_given_back(kernel, cooperative, body, source):
    """Each place that gives a slot back: its count, a fence, and after it tx, the owed lap and rx = 0, relaxed; then
    the slot's own lap by a release, which a branch skips if the lap is owed."""
    steps = []
    for line in body.split("\n"):
        match = ACCESS.search(line)
        to = source.of(match.group(2)) & set(FLAGS) if match else set()
        if ORDER in line:
            steps.append("fence")
        elif re.match(r"\s*(?:@|\$\w+:)", line) and (not match or line.strip().startswith("@")):
            steps.append("branch")
        if match and match.group(1).startswith("st.") and to:
            steps.append(("release " if ".release." in match.group(1) else "") + to.pop()[5:7])
    text = re.sub(r"(branch )+", "branch ", " ".join(steps) + " ")
    give_back = r"rx (?:branch )?fence (?:branch )?(?:tx )?(?:branch )?(?:tx )?(?:branch )?rx (branch )?release tx "
    places = [match.group(1) is None for match in re.finditer(give_back, text)]
    rest = re.sub(r"\bbranch ", "", re.sub(give_back, "", text)).split()
    found = (places.count(False), places.count(True), rest.count("release"))
    in_order = "cooperative" if cooperative else "regular"
    wanted = GIVEN_BACK[in_order if kernel.startswith("in_order") else "side_by_side"]
    problems = [] if found == wanted else [f"slots are given back in {found} places, expected {wanted}: {text}"]
    return problems + ([] if rest == ["release", "tx"] * found[2] else [f"stores to flags out of order: {rest}"])


def check_entry(name, body, members):
    scope = "gpu" if "thread_scopeE1E" in name else "sys"
    cooperative = "CooperativeKernel" in name
    kernel = short(name)
    may = allowed(kernel, cooperative, scope)
    source, seen, releases, problems, claims = provenance(name, body, members), {}, [], [], 0
    requests = {}  # loads of requests
    counts = set()  # registers whose value a count gets; its lap gets the same
    for line in body.split("\n"):
        match = ACCESS.search(line)
        if not match or match.group(1).startswith(("ld.param", "st.param")):
            continue
        what = re.sub(r"\.[us]64\b", ".b64", re.sub(r"\.[us]32\b", ".b32", match.group(1)))
        to = source.of(match.group(2))
        if what.startswith(("atom", "red")) or re.search(r"\.(?:acquire|release|relaxed|acq_rel)\b", what):
            if what in scheduler_state(kernel) and not to:
                claims += what == TOKEN
                continue
            if to == (set() if kernel == "hooks" else {"ring.rx_data"}) and what in (WIDE, NARROW):
                requests[what] = requests.get(what, 0) + 1
                continue
            if what not in may or len(to) != 1 or not to <= set(may[what]):
                problems.append(f"{what} of {', '.join(sorted(to)) or 'an unknown address'}: {line.strip()}")
            for member in to:
                seen[what, member] = seen.get((what, member), 0) + 1
            value = line.rstrip(";").split(",")[-1].strip()
            if what == "st.relaxed.sys.b64" and to == {FLAGS[0]}:
                counts.add(value)
            if what.startswith("st.release") and to <= set(FLAGS + INBOX) and not kernel.endswith("_posted"):
                releases += ["lap"] if to == {FLAGS[1]} and value in counts else to
        elif to & set(FLAGS + INBOX) or (what.startswith("ld") and "ring.rx_data" in to and
                                         source.always(match.group(2), "ring.rx_data")):
            problems.append(f"a plain access to {', '.join(sorted(to))}: {line.strip()}")
    problems += check_requests(kernel, requests)
    if kernel.endswith("_posted"):
        problems += check_given_back(kernel, cooperative, body, source)
    poll, publish = f"ld.acquire.{scope}.b64", f"st.release.{scope}.b64"
    flags = ((poll, polled(kernel)[0]), (publish, FLAGS[1]), *(() if kernel.endswith("_posted") else
                                                                ((publish, FLAGS[0]),)))
    for wanted in (*(() if kernel == "hooks" else flags),
                   ("ld.acquire.sys.b32", "library_shutdown"), ("ld.acquire.sys.b32", "caller_shutdown"),
                   ("st.relaxed.sys.b64", "reports")):
        if wanted not in seen:
            problems.append(f"no {wanted[0]} of {wanted[1]}")
    if claims != kernel.startswith("graph_"):
        problems.append(f"{claims} times {TOKEN}: a scheduler must take the token in exactly one place")
    for at, flag in enumerate(releases):
        if flag == "lap" and releases[at - 1:at] != [FLAGS[0]]:
            problems.append("a lap does not follow the clearing of its request's flag")
        if flag == FLAGS[1] and releases[at + 1:at + 2] != [FLAGS[0]]:
            problems.append("after the answer is published, the request's flag is not cleared")
        if flag == FLAGS[0] and kernel == "routed" and releases[at + 1:at + 2] != [INBOX[1]]:
            problems.append("after the request's flag is cleared, the router is not notified")
    return problems


def check(ptx, members, kernels):
    """Returns the problems of a compilation unit that must contain exactly these kernels."""
    ptx = re.sub(r"//[^\n]*", "", ptx)
    found = list(entries(ptx))
    others = ptx
    for name, body in found:
        if short(name).endswith("_posted"):
            others = others.replace(body, body.replace(ORDER, ""))
    problems = [f"a fence or a volatile access: {match.group(0)}" for match in ORDERS.finditer(others)]
    names = sorted(short(name) for name, _ in found)
    if names != sorted(kernels):
        problems.append(f"kernels {names}, expected {sorted(kernels)}")
    for name, body in found:
        if short(name) == "graph_root":  # launches the schedulers; does not access a ring
            continue
        problems += [f"{short(name)}: {problem}" for problem in check_entry(name, body, members)]
    return problems


def mutated(root, output, name):
    """Writes the header with the error. Returns the include folder for the compiler."""
    header, text, replacement = MUTANTS[name]
    with open(os.path.join(root, header)) as file:
        source = file.read()
    if text not in source:
        sys.exit(f"{header} does not contain the text that {name} replaces")
    shutil.rmtree(f"{output}.sources", ignore_errors=True)  # a run of another version may have left another header
    os.makedirs(os.path.dirname(f"{output}.sources/{header}"))
    with open(f"{output}.sources/{header}", "w") as file:
        file.write(source.replace(text, replacement))
    return f"{output}.sources/include"


def unnoticed(ptx, members, kernels, faults, more=None):
    """faults: {name: (match, text instead of it)}. more: {name: whole text}. Returns the names that are not found."""
    texts = {fault: ptx[:where.start()] + "\n" + text + ptx[where.end():] for fault, (where, text) in faults.items()}
    problems = check(ptx, members, kernels)
    for fault, text in {**texts, **(more or {})}.items():
        if not check(text, members, kernels):
            problems.append(f"the check does not find a fault: {fault}")
    return problems


def self_test(ptx, members):
    """Plants one fault at a time in a kernel. Returns the faults that the check does not find."""
    name, body = next(entries(re.sub(r"//[^\n]*", "", ptx)))
    ptx, kernels = f".entry {name}(\n{body}\n}}\n", [short(name)]
    source = provenance(name, body, members)
    count = re.search(r"^\s*st\.relaxed\.sys\.b64 \[(%\w+)\]", ptx, flags=re.M)
    if kernels == ["hooks"]:
        load = re.search(r"^\s*ld\.relaxed\.sys\.v4\.b32.*$", ptx, flags=re.M)
        return unnoticed(ptx, members, kernels, {
            "fence": (load, load.group(0) + "\nfence.acq_rel.sys;"),
            "request read twice": (load, 2 * (load.group(0) + "\n")),
            "request read by another load": (load, load.group(0).replace("relaxed.sys", "acquire.sys")),
            "release of a counter": (count, count.group(0).replace("relaxed", "release")),
        })

    def of_flag(access):  # an access to a flag or an inbox, not to the command words of a grid
        return next(match for match in re.finditer(rf"^\s*{access}\.(\w+)\.b64[^\[]*\[(%\w+).*$", ptx, flags=re.M)
                    if source.of(match.group(2)) & set(FLAGS + INBOX))

    poll, answer = of_flag(r"ld\.acquire"), of_flag(r"st\.release")
    loaded, address = re.search(r"(%\w+),\s*(\[%\w+\])", poll.group(0)).groups()
    other = {"sys": "gpu", "gpu": "sys"}[poll.group(1)]
    faults = {
        "fence": (answer, "fence.acq_rel.sys;\n" + answer.group(0)),
        "membar": (answer, "membar.gl;\n" + answer.group(0)),
        "poll of another scope": (poll, poll.group(0).replace(f".{poll.group(1)}.", f".{other}.")),
        "store of another scope": (answer, answer.group(0).replace(f".{answer.group(1)}.", f".{other}.")),
        "relaxed poll": (poll, poll.group(0).replace("acquire", "relaxed")),
        "volatile poll": (poll, f"ld.volatile.global.u64 {loaded}, {address};"),
        "plain poll": (poll, f"ld.global.u64 {loaded}, {address};"),
        "atomic on a flag": (poll, f"atom.exch.acquire.{poll.group(1)}.b64 {loaded}, {address}, 0;"),
        "counting on a flag": (poll, f"atom.add.relaxed.gpu.u64 {loaded}, {address}, 1;"),
        "relaxed store to a flag": (poll, poll.group(0) + f"\nst.relaxed.sys.b64 {address}, {loaded};"),
        "release of a counter": (count, count.group(0).replace("relaxed", "release")),
    }
    return unnoticed(ptx, members, kernels, faults, {"no answer": re.sub(r"st\.release\.", "st.", ptx)})


def main(arguments):
    mutant = None
    if arguments[0] == "--mutant":
        mutant, arguments = arguments[1], arguments[2:]
    root, output, compiler, *options = arguments
    broken = ["-I", mutated(root, output, mutant)] if mutant else []
    if mutant and mutant not in SAMPLE and os.environ.get("CUDAQ_TEST_WHOLE") != "1":
        print(f"skipped: only whole runs (scripts/test.sh --all) compile the mutant {mutant}")
        sys.exit(77)
    ptx = compiled(compiler, *broken, *options, output=output)
    kernels = ["in_order_gpu", "in_order_sys", "in_order_posted", "routed", "common"] * 2
    if not any("cooperative" in option for option in options):
        kernels = kernels[:5] + ["side_by_side_gpu", "side_by_side_sys", "side_by_side_posted"]
    graph = any("dispatch_graph" in option for option in options)
    if graph:
        kernels = ["graph_root", "graph_gpu", "graph_sys"]
    if any("dispatch_hooks" in option for option in options):
        kernels = ["hooks"]
    problems = check(ptx, offsets(root), kernels) + check_copies(re.sub(r"//[^\n]*", "", ptx))
    if mutant:
        print("\n".join(problems[:4]) or f"the check does not find the mutant {mutant}")
        sys.exit(not problems)
    problems += [] if graph else self_test(ptx, offsets(root))
    print("\n".join(problems) or f"{len(kernels)} kernel(s) access flags only with acquire loads and release stores, "
                                 "and read each word of a request once")
    sys.exit(bool(problems))


main(sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test takes at most LIMIT seconds of processor time, or stands in a list with the reason: check_times.py TIMES LIST
The limit is that of release. Code with a sanitizer or under an emulator takes longer: SLOWER has how many times.
TIMES has the lines of measure.sh. Each line of LIST is a pattern of names, then the reason; # begins a comment."""
import fnmatch
import sys

LIMIT = 5.0
SLOWER = {"tsan.": 3, "asan.": 3, "aarch64.": 4}


def limit_of(name):
    return LIMIT * next((times for prefix, times in SLOWER.items() if name.startswith(prefix)), 1)


def read_times(path):
    times = {}
    with open(path) as lines:
        for line in lines:
            word, *rest = line.split(maxsplit=3)
            if word == "processor_time":  # the shell adds lines of its own if a test is ended by a signal
                user, system, name = rest
                times[name.strip()] = float(user) + float(system)
    return times


def read_list(path):
    listed = {}
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split(maxsplit=1)
            if len(words) == 1:
                sys.exit(f"{path}:{number}: {words[0]} has no reason")
            if words:
                listed[words[0]] = words[1].strip()
    return listed


def main(times_path, list_path):
    times, listed = read_times(times_path), read_list(list_path)
    long = {name: seconds for name, seconds in times.items() if seconds > limit_of(name)}
    unlisted = {name: s for name, s in long.items() if not any(fnmatch.fnmatchcase(name, p) for p in listed)}
    print(f"{len(times)} tests, {sum(times.values()):.0f} s of processor time; {len(long)} of them take more than "
          f"their limit ({LIMIT:g} s in release), {sum(long.values()):.0f} s together")
    for pattern in listed:
        if not fnmatch.filter(long, pattern):
            print(f"no test as long as this now: {pattern}")
    if unlisted:
        print(f"\nMore processor time than the limit ({LIMIT:g} s in release).")
        print(f"Make the test shorter, or add it to {list_path}:")
        for name, seconds in sorted(unlisted.items(), key=lambda entry: -entry[1]):
            print(f"{seconds:8.1f} s  {name}")
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

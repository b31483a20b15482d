# SPDX-License-Identifier: Apache-2.0
"""Reads structs, enumerators and exported functions from the public headers.

This is not a C parser: it relies on the style of these headers (typedef struct X {...} X; one declaration per line).
The checks that use it fail when it finds nothing.
"""
import pathlib
import re


def headers(include):
    """The headers with a stable interface. detail/ is not stable: a program compiles its templates with one version."""
    detail = pathlib.Path(include) / "cudaq/realtime/detail"
    return sorted(p for p in pathlib.Path(include).rglob("*") if p.suffix in (".h", ".cuh") and detail not in p.parents)


def code(path):
    """The text of a file without comments and preprocessor lines."""
    text = path.read_text()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    text = re.sub(r"\\\n", " ", text)
    # A name that a header binds to the symbol of another function is not a symbol (upstream_interface.h).
    text = re.sub(r"^\w[^;{}]*\bCUDAQ_REALTIME_BOUND_TO\([^;]*;", " ", text, flags=re.M)
    return re.sub(r"^[ \t]*#.*$", " ", text, flags=re.M)


def _body(text, open_brace):
    depth = 0
    for i in range(open_brace, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[open_brace + 1:i]
    raise ValueError("unbalanced braces")


def _fields(body):
    # Text in inner braces (a union's members, an initializer) contains no fields of this struct.
    while "{" in body:
        start = body.index("{")
        body = body[:start] + body[start + len(_body(body, start)) + 2:]
    names = []
    for declaration in body.split(";"):
        declaration = declaration.split("=")[0].strip()
        function_pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
        if not declaration:
            continue
        if function_pointer:
            names.append(function_pointer.group(1))
            continue
        if "(" in declaration:
            continue  # a member function
        for part in re.sub(r"\[[^]]*\]", "", declaration).split(","):
            names.append(re.findall(r"\w+", part)[-1])
    return names


def structs(include):
    """Returns {struct name: ([field, ...], header)} of every struct that has a body."""
    found = {}
    for path in headers(include):
        text = code(path)
        for match in re.finditer(r"\bstruct\s+(?:__attribute__\(\(packed\)\)\s+)?(\w+)\s*\{", text):
            found[match.group(1)] = (_fields(_body(text, match.end() - 1)), path)
    return found


def enumerators(include):
    """Returns {enumerator: header} of every enumeration of the C API."""
    found = {}
    for path in headers(include):
        text = code(path)
        for match in re.finditer(r"\btypedef\s+enum\s+\w*\s*\{", text):
            for name in re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", _body(text, match.end() - 1).strip()):
                found[name] = path
    return found


def functions(include):
    """Returns {function: header} of every function that is declared as exported."""
    found = {}
    for path in headers(include):
        api = r"\bCUDAQ_(?:REALTIME|QEC_(?:DECODER|STREAM|CLIENT|SERVER))_API\b([^;]*);"
        for declaration in re.findall(api, code(path)):
            match = re.search(r"(\w+)\s*\(", declaration)
            if match:
                found[match.group(1)] = path
    return found


def archive_functions(include):
    """Returns {function: header} of the C functions that are declared but not exported: the archive of kernels."""
    found = {}
    for path in headers(include):
        for declaration in re.findall(r"^(?:void|cudaError_t) (cudaq_\w+)\([^;{]*\);", code(path), flags=re.M):
            found[declaration] = path
    return found


def prototypes(include):
    """Returns {name: declaration in one line} of all C functions, of the types of functions that callers give, and of
    the members of structs that point to functions (struct.member)."""
    function = r"^(?!static\b|inline\b|typedef\b)(\w[\w \t*]*?\b(cudaq_\w+)\s*\([^;{]*\));"
    of_callers = r"^(typedef\s[^;{}]*\(\s*\*\s*(cudaq_\w+)\s*\)[^;{]*);"
    found = {}
    for path in headers(include):
        for text, name in re.findall(function, code(path), flags=re.M) + re.findall(of_callers, code(path), flags=re.M):
            found[name] = " ".join(re.sub(r"\bCUDAQ_\w+_(API|EXPORT)\b", "", text).split())
        for struct in re.finditer(r"\btypedef\s+struct\s+(\w+)\s*\{", code(path)):
            body = _body(code(path), struct.end() - 1)
            for text, name in re.findall(r"(\w[\w \t*]*\(\s*\*\s*(\w+)\s*\)\s*\([^;]*\));", body):
                found[f"{struct[1]}.{name}"] = " ".join(text.split())
    return found

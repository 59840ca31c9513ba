"""The parameters of a kernel as its source declares them: names, and the types that are plain.

The service's table has offsets and sizes; the source has what the table may lack: which parameter is a pointer, to what, and which is a
number of which type. Whatever is not understood is left open, and then only the sizes are checked."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

_TYPES: Dict[str, str] = {
    "bool": "bool", "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "short int": "i16", "unsigned short": "u16",
    "unsigned short int": "u16", "int": "i32", "signed": "i32", "signed int": "i32", "unsigned": "u32", "unsigned int": "u32",
    "long": "i64", "long int": "i64", "unsigned long": "u64", "unsigned long int": "u64", "long long": "i64", "long long int": "i64",
    "unsigned long long": "u64", "unsigned long long int": "u64", "size_t": "u64", "ptrdiff_t": "i64", "int8_t": "i8", "int16_t": "i16",
    "int32_t": "i32", "int64_t": "i64", "uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64", "ushort": "u16",
    "uint": "u32", "ulong": "u64", "float": "f32", "double": "f64", "__half": "f16", "half": "f16", "__nv_bfloat16": "bf16",
}
_NOISE = re.compile(r"\b(const|volatile|register|struct|__restrict__|__restrict|restrict|__grid_constant__)\b")
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Declared:
    """One parameter. `kind` is a scalar's type; `pointee` what a pointer points to; None: not known."""
    name: str
    pointer: bool
    kind: Optional[str]
    pointee: Optional[str]


def plain(source: str) -> str:
    """Without comments; string literals are emptied, so that no bracket in them counts."""
    return _COMMENT.sub(lambda m: '""' if m.group(0)[0] == '"' else " ", source)


def signature(source: str, kernel: str) -> Optional[List[Declared]]:
    """None when the kernel's declaration is not found, not understood, or there are several that differ."""
    base, arguments = _split_template(kernel)
    found = {tuple(one) for one in _declarations(plain(source), base, arguments)}
    return list(found.pop()) if len(found) == 1 else None


def _split_template(kernel: str) -> Tuple[str, List[str]]:
    base, less, rest = kernel.partition("<")
    base = base.strip().rpartition("::")[2]
    return base, _top_level(rest.rstrip()[:-1]) if less else []


def _declarations(text: str, base: str, arguments: List[str]) -> List[List[Declared]]:
    found: List[List[Declared]] = []
    for match in re.finditer(r"\b" + re.escape(base) + r"\s*\(", text):
        start = max(text.rfind(c, 0, match.start()) for c in ";}{") + 1
        lead = text[start:match.start()]
        inner = _balanced(text, match.end())
        if "__global__" not in lead or inner is None:
            continue
        names = _template_names(lead)
        if arguments and len(names) < len(arguments):
            continue
        meaning = dict(zip(names, arguments))
        found.append([_declared(one, meaning) for one in _top_level(inner) if one.strip() not in ("", "void")])
    return found


def _template_names(lead: str) -> List[str]:
    match = re.search(r"\btemplate\s*<(.*?)>", lead, re.S)
    return [_WORD.findall(one.partition("=")[0])[-1] for one in _top_level(match.group(1))] if match else []


def _balanced(text: str, at: int) -> Optional[str]:
    """What stands between the bracket that was opened before `at` and its partner."""
    depth = 1
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[at:i]
    return None


def _top_level(text: str) -> List[str]:
    """Split at the commas that no bracket encloses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _declared(text: str, meaning: Dict[str, str]) -> Declared:
    text = _NOISE.sub(" ", text.partition("=")[0])
    pointers = text.count("*") + text.count("[")
    words = _WORD.findall(text.partition("[")[0])
    name = words.pop() if len(words) > 1 and words[-1] not in _TYPES else ""
    unclear = any(c in text for c in "&<(:")
    kind = None if unclear else _type(" ".join(words), meaning)
    if pointers:
        return Declared(name, True, None, kind if pointers == 1 else None)
    return Declared(name, False, kind, None)


def _type(words: str, meaning: Dict[str, str]) -> Optional[str]:
    words = meaning.get(words, words)
    return _TYPES.get(" ".join(_NOISE.sub(" ", words).split()))

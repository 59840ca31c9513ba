"""The elementwise operations in GLSL, as elementwise.py has them in CUDA C++: those that are not here, a vulkan device does not compute.

By the kind of their operands: "b" booleans, "i" signed and "u" unsigned whole numbers, "f" 32-bit floats and halves, "d" 64-bit floats; ""
stands for any. {T} is the result's type as a function, {bits} the size of an operand. A value of fewer than 32 bits is kept in 32."""

from __future__ import annotations

from typing import Dict, Optional

from ..._values.dtypes import DType


def _compared(sign: str, of_bools: str) -> Dict[str, str]:
    """Of floats NaN is looked for: compilers may turn what denies a comparison into the opposite one."""
    plain = "{a} " + sign + " {b}"
    ordered = plain if sign in ("==", "!=") else "!is_nan({a}) && !is_nan({b}) && " + plain
    return {"iu": plain, "fd": ordered, "b": of_bools, "mixed": "compare_mixed({a}, {b}) " + sign + " 0"}


_TABLE: Dict[str, Dict[str, str]] = {
    "identity": {"": "{a}"},
    "add": {"iufd": "{a} + {b}", "b": "{a} || {b}"},
    "subtract": {"iufd": "{a} - {b}"},
    "multiply": {"iufd": "{a} * {b}", "b": "{a} && {b}"},
    "divide": {"f": "abs({b}) > 8.5e37 ? ({a} * 0.25) / ({b} * 0.25) : {a} / {b}", "d": "{a} / {b}"},  # see quotient() in real.glsl
    "floor_divide": {"iufd": "quotient_down({a}, {b})"},
    "remainder": {"iufd": "remainder_of({a}, {b})"},
    "fmod": {"iu": "remainder_towards_0({a}, {b})", "fd": "exact_remainder({a}, {b})"},
    "power": {"i": "power_signed({a}, {b}, {flag})", "u": "power_unsigned({a}, {b})", "fd": "exact_pow({a}, {b})"},
    "negative": {"iu": "{T}(0) - {a}", "fd": "-{a}"},
    "absolute": {"bu": "{a}", "i": "{a} < {T}(0) ? {T}(0) - {a} : {a}", "fd": "with_sign({a}, false)"},
    "sign": {"i": "{a} > {T}(0) ? {T}(1) : {a} < {T}(0) ? {T}(-1) : {T}(0)", "u": "{a} > {T}(0) ? {T}(1) : {T}(0)",
             "fd": "is_nan({a}) ? {a} : {a} > {T}(0) ? {T}(1) : {a} < {T}(0) ? {T}(-1) : {T}(0)"},
    "square": {"iufd": "{a} * {a}", "b": "{a}"},
    "reciprocal": {"i": "{a} == {T}(1) || {a} == {T}(-1) ? {a} : {T}(0)", "u": "{a} == {T}(1) ? {T}(1) : {T}(0)", "fd": "{T}(1) / {a}"},
    "maximum": {"b": "{a} || {b}", "iufd": "nan_max({a}, {b})"},
    "minimum": {"b": "{a} && {b}", "iufd": "nan_min({a}, {b})"},
    "fmax": {"b": "{a} || {b}", "iufd": "is_nan({b}) || !is_nan({a}) && {a} >= {b} ? {a} : {b}"},
    "fmin": {"b": "{a} && {b}", "iufd": "is_nan({b}) || !is_nan({a}) && {a} <= {b} ? {a} : {b}"},
    "equal": _compared("==", "{a} == {b}"),
    "not_equal": {**_compared("!=", "{a} != {b}"), "fd": "is_nan({a}) || is_nan({b}) || {a} != {b}"},
    "less": _compared("<", "!{a} && {b}"),
    "less_equal": _compared("<=", "!{a} || {b}"),
    "greater": _compared(">", "{a} && !{b}"),
    "greater_equal": _compared(">=", "{a} || !{b}"),
    "logical_and": {"": "is_true({a}) && is_true({b})"},
    "logical_or": {"": "is_true({a}) || is_true({b})"},
    "logical_xor": {"": "is_true({a}) != is_true({b})"},
    "logical_not": {"": "!is_true({a})"},
    "bitwise_and": {"b": "{a} && {b}", "iu": "{a} & {b}"},
    "bitwise_or": {"b": "{a} || {b}", "iu": "{a} | {b}"},
    "bitwise_xor": {"b": "{a} != {b}", "iu": "{a} ^ {b}"},
    "invert": {"b": "!{a}", "iu": "~{a}"},
    "left_shift": {"iu": "shift_left({a}, {b}, {bits}u)"},
    "right_shift": {"iu": "shift_right({a}, {b}, {bits}u)"},
    "isnan": {"biu": "false", "fd": "is_nan({a})"},
    "isinf": {"biu": "false", "fd": "!is_nan({a}) && !is_finite({a})"},
    "isfinite": {"biu": "true", "fd": "is_finite({a})"},
    "signbit": {"fd": "is_negative({a})"},
    "floor": {"biu": "{a}", "fd": "{a} == {T}(0) ? {a} : floor({a})"},
    "ceil": {"biu": "{a}", "fd": "with_sign(ceil({a}), is_negative({a}))"},
    "trunc": {"biu": "{a}", "fd": "with_sign(trunc({a}), is_negative({a}))"},
    "rint": {"fd": "with_sign(roundEven({a}), is_negative({a}))"},
    "where": {"": "{a} ? {b} : {c}"},
    "arange": {"iufd": "{a} + {T}({i}) * {b}"},
    "eye": {"b": "int64_t(uint64_t({i}) / {a}) + {b} == int64_t(uint64_t({i}) - uint64_t({i}) / {a} * {a})"},
    "sqrt": {"fd": "sqrt({a})"},
    **{name: {"fd": f"exact_{name}({{a}})"} for name in ("exp", "exp2", "log", "log2", "log10", "log1p")},
    **{name: {"fd": f"exact_{name}({{a}})"} for name in ("expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt")},
    **{name: {"f": f"exact_{name}({{a}})"} for name in ("erf", "erfc")},
    **{f"arc{name}": {"fd": f"exact_a{name}({{a}})"} for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": {"fd": "exact_atan2({a}, {b})"},
    "hypot": {"f": "is_nan({a}) || is_nan({b}) ? (is_nan({a}) && !is_nan({b}) && !is_finite({b})) || (is_nan({b}) && !is_nan({a}) && !is_finite({a})) ? "
                   "INFINITE : NOT_A_NUMBER : exact_hypot({a}, {b})", "d": "exact_hypot({a}, {b})"},
    "copysign": {"fd": "with_sign({a}, is_negative({b}))"},
    "logaddexp": {"fd": "log_add_exp({a}, {b})"},
    "logaddexp2": {"fd": "log_add_exp2({a}, {b})"},
    "positive": {"iufd": "{a}"},
    "conjugate": {"iufd": "{a}"},
    "fabs": {"fd": "with_sign({a}, false)"},
    "gcd": {"iu": "{T}(greatest_common(magnitude({a}), magnitude({b})))"},
    "lcm": {"iu": "{T}(least_common(magnitude({a}), magnitude({b})))"},
    "heaviside": {"fd": "is_nan({a}) ? {a} : {a} == {T}(0) ? {b} : {T}({a} > {T}(0) ? 1 : 0)"},
    "bitwise_count": {"iu": "uint(bitCount(uint(magnitude({a}))) + bitCount(uint(magnitude({a}) >> 32)))"},
    "deg2rad": {"f": "{a} * 0.017453292519943295", "d": "{a} * 0.017453292519943295LF"},
    "rad2deg": {"f": "{a} * 57.29577951308232", "d": "{a} * 57.29577951308232LF"},
    "expit": {"fd": "{T}(1) / ({T}(1) + exact_exp(-{a}))"},
    "logit": {"fd": "exact_log({a} / ({T}(1) - {a}))"},
    "xlogy": {"fd": "!is_nan({b}) && {a} == {T}(0) ? {T}(0) : {a} * exact_log({b})"},
    "random_random": {"f": "random_float({a}, {b} + u64_t({i}))", "d": "random_double({a}, {b} + u64_t({i}))"},
    "random_below": {"iu": "random_below({a}, {b} + u64_t({i}), {c})"},
    "random_bits": {"iu": "random_bits({a}, {b} + u64_t({i}))"},
    "random_uniform": {"fd": "{T}({c} + ({d} - {c}) * random_double({a}, {b} + u64_t({i})))"},
    "random_standard_normal": {"fd": "{T}(random_normal({a}, {b} + u64_t({i})))"},
    "random_normal": {"fd": "{T}({c} + {d} * random_normal({a}, {b} + u64_t({i})))"},
    "random_lognormal": {"fd": "{T}(exact_exp({c} + {d} * random_normal({a}, {b} + u64_t({i}))))"},
    "random_standard_exponential": {"fd": "{T}({c} * -exact_log(random_open({a}, {b} + u64_t({i}))))"},
}

OPERATIONS: Dict[str, Dict[str, str]] = {
    name: {letter: text for letters, text in rows.items() for letter in (letters if letters not in ("", "mixed") else (letters,))}
    for name, rows in _TABLE.items()}
OF_DOUBLES = frozenset({"random_uniform", "random_standard_normal", "random_normal", "random_lognormal", "random_standard_exponential"})


def kind_of(dtype: DType) -> str:
    """The letter of its kind."""
    return "d" if dtype.name == "float64" else dtype.kind


def template(op: str, operand: Optional[DType], mixed: bool = False) -> Optional[str]:
    """None: there is no such operation of such operands."""
    rows = OPERATIONS.get(op, {})
    if mixed:
        return rows.get("mixed")
    return rows.get(kind_of(operand), rows.get("")) if operand is not None and operand.kind != "c" else rows.get("")

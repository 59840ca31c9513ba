"""The elementwise operations: what each is in CUDA C++, by the kind of its operands.

In a template {a} {b} {c} {d} {e} are operands, already of the operation's operand type; {T} is the result's C type, {S} the operands', {U} an
unsigned type as wide as the operands' arithmetic; {i} is the element's number in C order. A template for "f" serves halves, too: they
are computed as float and rounded behind every operation. Complex numbers have the operators and functions of prelude_complex.py."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

from ..._values.dtypes import DType
from .prelude_random import DISTRIBUTIONS, RULES, distribution_template, rule_template


class Op(NamedTuple):
    templates: Dict[str, str]  # by the operands' kind, "" for any
    indexed: bool = False  # uses {i}

    def template(self, kind: str) -> Optional[str]:
        return self.templates.get(kind, self.templates.get(""))

    def reports(self, dtype: Optional[DType]) -> bool:
        """Whether it may find something wrong with its operands, and then says so in the word that {flag} points to."""
        return "{flag}" in (self.template_for(dtype, False) or "")

    def template_for(self, dtype: Optional[DType], mixed: bool) -> Optional[str]:
        """`mixed`: signed beside unsigned 64-bit integers. Halves have a template of their own where their bits matter."""
        if dtype is not None and dtype.name == "float16" and "half" in self.templates:
            return self.templates["half"]
        return self.template("mixed" if mixed else dtype.kind if dtype is not None else "")


def _math(name: str, of_complex: bool = True) -> Op:
    text = name + "({a})"
    return Op({"f": text, "c": text} if of_complex else {"f": text})


def _comparison(sign: str) -> Op:
    return Op({"": "{a} " + sign + " {b}", "mixed": "compare_mixed({a}, {b}) " + sign + " 0"})


def _wrapping(sign: str, for_bool: Optional[str] = None) -> Op:
    """Integers wrap around, which C promises for unsigned ones only."""
    whole = "({T})(({U}){a} " + sign + " ({U}){b})"
    plain = "{a} " + sign + " {b}"
    templates = {"i": whole, "u": whole, "f": plain, "c": plain}
    if for_bool:
        templates["b"] = for_bool
    return Op(templates)


def _bitwise(sign: str) -> Op:
    return Op({"b": "{a} " + sign + " {b}", "i": "({T})({a} " + sign + " {b})", "u": "({T})({a} " + sign + " {b})"})


def _by_order(sign: str, nan: str) -> Dict[str, str]:
    """The first operand where the order, or NaN of one operand, is for it."""
    text = "({a} " + sign + " {b} || " + nan + " != " + nan + ") ? {a} : {b}"
    return {"f": text, "c": text}


OPS: Dict[str, Op] = {
    "identity": Op({"": "{a}"}),
    "add": _wrapping("+", "{a} | {b}"),
    "subtract": _wrapping("-"),
    "multiply": _wrapping("*", "{a} & {b}"),
    "divide": Op({"f": "{a} / {b}", "c": "{a} / {b}"}),
    "floor_divide": Op({"i": "floor_divide_signed({a}, {b})", "u": "{b} ? ({T})({a} / {b}) : ({T})0", "f": "floor_divide_float({a}, {b})"}),
    "remainder": Op({"i": "remainder_signed({a}, {b})", "u": "{b} ? ({T})({a} % {b}) : ({T})0", "f": "remainder_float({a}, {b})"}),
    "fmod": Op({"i": "fmod_signed({a}, {b})", "u": "{b} ? ({T})({a} % {b}) : ({T})0", "f": "fmod({a}, {b})"}),
    "power": Op({"i": "power_signed({a}, {b}, {flag})", "u": "power_unsigned({a}, {b})", "f": "pow({a}, {b})", "c": "pow({a}, {b})"}),
    "negative": Op({"i": "({T})(0 - ({U}){a})", "u": "({T})(0 - ({U}){a})", "f": "-{a}", "c": "-{a}"}),
    "absolute": Op({"b": "{a}", "u": "{a}", "i": "{a} < 0 ? ({T})(0 - ({U}){a}) : {a}", "f": "fabs({a})", "c": "abs({a})"}),
    "sign": Op({"i": "({T})(({a} > 0) - ({a} < 0))", "u": "({T})({a} > 0)", "f": "{a} != {a} ? {a} : ({T})(({a} > 0) - ({a} < 0))", "c": "complex_sign({a})"}),
    "square": _wrapping("*")._replace(templates={k: v.replace("{b}", "{a}") for k, v in _wrapping("*").templates.items()}),
    "reciprocal": Op({"i": "({T})({a} ? 1 / {a} : 0)", "u": "({T})({a} ? 1 / {a} : 0)", "f": "({T})1 / {a}", "c": "complex_reciprocal({a})"}),
    "maximum": Op({"b": "{a} | {b}", "": "{a} >= {b} ? {a} : {b}", **_by_order(">=", "{a}")}),
    "minimum": Op({"b": "{a} & {b}", "": "{a} <= {b} ? {a} : {b}", **_by_order("<=", "{a}")}),
    "fmax": Op({"b": "{a} | {b}", "": "{a} >= {b} ? {a} : {b}", **_by_order(">=", "{b}")}),
    "fmin": Op({"b": "{a} & {b}", "": "{a} <= {b} ? {a} : {b}", **_by_order("<=", "{b}")}),
    "equal": _comparison("=="),
    "not_equal": _comparison("!="),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "greater": _comparison(">"),
    "greater_equal": _comparison(">="),
    "logical_and": Op({"": "({a} != 0) && ({b} != 0)"}),
    "logical_or": Op({"": "({a} != 0) || ({b} != 0)"}),
    "logical_xor": Op({"": "({a} != 0) != ({b} != 0)"}),
    "logical_not": Op({"": "{a} == 0"}),
    "bitwise_and": _bitwise("&"),
    "bitwise_or": _bitwise("|"),
    "bitwise_xor": _bitwise("^"),
    "invert": Op({"b": "!{a}", "i": "({T})~{a}", "u": "({T})~{a}"}),
    "left_shift": Op({"i": "shift_left({a}, {b})", "u": "shift_left({a}, {b})"}),
    "right_shift": Op({"i": "shift_right({a}, {b})", "u": "shift_right({a}, {b})"}),
    "isnan": Op({"": "false", "f": "{a} != {a}", "c": "{a} != {a}"}),
    "isinf": Op({"": "false", "f": "{a} == {a} && ({a} - {a}) != 0", "c": "is_infinite({a}.re) || is_infinite({a}.im)"}),
    "isfinite": Op({"": "true", "f": "({a} - {a}) == 0", "c": "is_finite({a}.re) && is_finite({a}.im)"}),
    "signbit": Op({"f": "copysign(({S})1, {a}) < 0"}),
    "floor": Op({"": "{a}", "f": "floor({a})"}),
    "ceil": Op({"": "{a}", "f": "ceil({a})"}),
    "trunc": Op({"": "{a}", "f": "trunc({a})"}),
    "where": Op({"": "{a} ? {b} : {c}"}),
    "arange": Op({"": "({T})({a} + ({T}){i} * {b})"}, indexed=True),
    "eye": Op({"": "(long long)({i} / {a}) + {b} == (long long)({i} - {i} / {a} * {a})"}, indexed=True),
    "random_random": Op({"": "random_uniform<{T}>({a}, {b} + {i})"}, indexed=True),
    "random_below": Op({"": "random_below({a}, {b} + {i}, {c})"}, indexed=True),
    **{name: Op({"": distribution_template(name)}, indexed=True) for name in DISTRIBUTIONS},
    **{f"random_{rule}": Op({"": rule_template(rule)}) for rule in RULES},
    **{name: _math(name) for name in ("sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh",
                                      "tanh", "rint")},
    "cbrt": _math("cbrt", of_complex=False),
    **{"arc" + name: _math("a" + name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": Op({"f": "atan2({a}, {b})"}),
    "hypot": Op({"f": "hypot({a}, {b})"}),
    "copysign": Op({"f": "copysign({a}, {b})"}),
    "logaddexp": Op({"f": "log_add_exp({a}, {b})"}),
    "logaddexp2": Op({"f": "log_add_exp2({a}, {b})"}),
    "positive": Op({"i": "{a}", "u": "{a}", "f": "{a}", "c": "{a}"}),
    "conjugate": Op({"i": "{a}", "u": "{a}", "f": "{a}", "c": "conj({a})"}),
    "fabs": Op({"f": "fabs({a})"}),
    "float_power": Op({"f": "pow({a}, {b})", "c": "pow({a}, {b})"}),
    "gcd": Op({"i": "greatest_common_signed({a}, {b})", "u": "({T})greatest_common({a}, {b})"}),
    "lcm": Op({"i": "({T})least_common(magnitude({a}), magnitude({b}))", "u": "({T})least_common({a}, {b})"}),
    "heaviside": Op({"f": "{a} != {a} ? {a} : {a} == 0 ? {b} : ({T})({a} > 0)"}),
    "ldexp": Op({"i": "ldexp({a}, (int)nan_min<long long>(nan_max<long long>({b}, -100000), 100000))"}),
    "nextafter": Op({"f": "nextafter({a}, {b})", "half": "half_next({a}, {b})"}),
    "spacing": Op({"f": "spacing_of({a})", "half": "half_spacing({a})"}),
    "modf_fraction": Op({"f": "modf_fraction({a})"}),
    "frexp_mantissa": Op({"f": "frexp_mantissa({a})"}),
    "frexp_exponent": Op({"f": "frexp_exponent({a})"}),
    "bitwise_count": Op({"i": "({T})__popcll(magnitude({a}))", "u": "({T})__popcll((u64_t){a})"}),
    "bessel_i0": Op({"f": "({T})cyl_bessel_i0((double){a})"}),
    "complex": Op({"f": "{T}({a}, {b})"}),  # of its parts
    "turn": Op({"f": "{T}(cospi({a}), sinpi({a}))"}),  # of length 1, so many half turns from the real axis
    "scale": Op({"f": "{T}({a}.re * {b}, {a}.im * {b})"}),  # by a real number
    "join_halves": Op({"c": "join_halves({a}, {b}, {c})"}),  # of transforms of real numbers
    "split_halves": Op({"c": "split_halves({a}, {b}, {c})"}),
    "times_i": Op({"c": "times_i({a})"}),
    "angle": Op({"c": "arg({a})"}),
    "square_of_size": Op({"c": "norm({a})"}),
    "deg2rad": Op({"f": "{a} * ({T})0.017453292519943295"}),
    "rad2deg": Op({"f": "{a} * ({T})57.29577951308232"}),
}

# Of scipy.special; cupyx.scipy.special has them as functions.
OPS.update({
    **{name: _math(name) for name in ("erf", "erfc", "erfcx", "erfinv", "erfcinv", "j0", "j1", "y0", "y1", "exp10")},
    **{name: _math(other) for name, other in (("ndtr", "normcdf"), ("ndtri", "normcdfinv"), ("gamma", "tgamma"), ("gammaln", "lgamma"))},
    "log_ndtr": Op({"f": "{a} < -1 ? log(erfcx({a} * ({T})-0.7071067811865476) / 2) - {a} * {a} / 2 : log1p(-erfc({a} * ({T})0.7071067811865476) / 2)"}),
    "rgamma": Op({"f": "{a} <= 0 && {a} == floor({a}) ? ({T})0 : 1 / tgamma({a})"}),
    "beta": Op({"f": "{a} * {b} == 0 ? ({T})__int_as_float(0x7f800000) : fabs({a}) + fabs({b}) < 30 ? tgamma({a}) * tgamma({b}) / tgamma({a} + {b}) : "
                     "exp(lgamma({a}) + lgamma({b}) - lgamma({a} + {b}))"}),
    "betaln": Op({"f": "{a} * {b} == 0 ? ({T})__int_as_float(0x7f800000) : lgamma({a}) + lgamma({b}) - lgamma({a} + {b})"}),
    "bessel_i1": Op({"f": "({T})cyl_bessel_i1((double){a})"}),
    "expit": Op({"f": "1 / (1 + exp(-{a}))"}),
    "log_expit": Op({"f": "{a} >= 0 ? -log1p(exp(-{a})) : {a} - log1p(exp({a}))"}),
    "logit": Op({"f": "log({a} / (1 - {a}))"}),
    "entr": Op({"f": "{a} > 0 ? -{a} * log({a}) : {a} == 0 ? ({T})0 : {a} != {a} ? {a} : -({T})__int_as_float(0x7f800000)"}),
    "rel_entr": Op({"f": "{a} != {a} || {b} != {b} ? {a} + {b} : {a} > 0 && {b} > 0 ? {a} * log({a} / {b}) : {a} == 0 && {b} >= 0 ? ({T})0 : ({T})__int_as_float(0x7f800000)"}),
    "kl_div": Op({"f": "{a} != {a} || {b} != {b} ? {a} + {b} : {a} > 0 && {b} > 0 ? {a} * log({a} / {b}) - {a} + {b} : "
                       "{a} == 0 && {b} >= 0 ? {b} : ({T})__int_as_float(0x7f800000)"}),
    "xlogy": Op({"f": "{a} == 0 && {b} == {b} ? ({T})0 : {a} * log({b})"}),
    "xlog1py": Op({"f": "{a} == 0 && {b} == {b} ? ({T})0 : {a} * log1p({b})"}),
    "huber": Op({"f": "{a} < 0 ? ({T})__int_as_float(0x7f800000) : fabs({b}) <= {a} ? {b} * {b} / 2 : {a} * (fabs({b}) - {a} / 2)"}),
    "pseudo_huber": Op({"f": "{a} < 0 ? ({T})__int_as_float(0x7f800000) : {a} == 0 || {b} == 0 ? ({T})0 : {a} * {a} * (sqrt(1 + {b} / {a} * ({b} / {a})) - 1)"}),
    "boxcox": Op({"f": "fabs({b}) < ({T})1e-19 ? log({a}) : expm1({b} * log({a})) / {b}"}),
    "boxcox1p": Op({"f": "fabs({b}) < ({T})1e-19 ? log1p({a}) : expm1({b} * log1p({a})) / {b}"}),
    "inv_boxcox": Op({"f": "{b} == 0 ? exp({a}) : exp(log1p({b} * {a}) / {b})"}),
    "inv_boxcox1p": Op({"f": "{b} == 0 ? expm1({a}) : expm1(log1p({b} * {a}) / {b})"}),
    "sindg": Op({"f": "sinpi({a} / 180)"}),
    "cosdg": Op({"f": "cospi({a} / 180)"}),
    "tandg": Op({"f": "sinpi({a} / 180) / cospi({a} / 180)"}),
    "cotdg": Op({"f": "cospi({a} / 180) / sinpi({a} / 180)"}),
    "cosm1": Op({"f": "-2 * sin({a} / 2) * sin({a} / 2)"}),
    **{name: Op({"f": "({T})special_" + text.format(a="(double){a}", b="(double){b}", c="(double){c}")}) for name, text in (
        ("digamma", "digamma({a})"), ("zeta", "zeta({a}, {b})"), ("polygamma", "polygamma({a}, {b})"), ("exp1", "exp1({a})"),
        ("ellipkm1", "ellipkm1({a})"), ("ellipk", "ellipkm1(1 - {a})"), ("gammainc", "gammainc({a}, {b}, false)"), ("gammaincc", "gammainc({a}, {b}, true)"),
        ("chdtr", "gammainc({a} / 2, {b} / 2, false)"), ("chdtrc", "gammainc({a} / 2, {b} / 2, true)"),
        ("pdtr", "gammainc(floor({a}) + 1, {b}, true)"), ("pdtrc", "gammainc(floor({a}) + 1, {b}, false)"),
        ("gdtr", "gammainc({b}, {a} * {c}, false)"), ("gdtrc", "gammainc({b}, {a} * {c}, true)"), ("betainc", "betainc({a}, {b}, {c})"),
        ("btdtr", "betainc({a}, {b}, {c})"), ("bdtr", "betainc({b} - floor({a}), floor({a}) + 1, 1 - {c})"),
        ("bdtrc", "betainc(floor({a}) + 1, {b} - floor({a}), {c})"), ("nbdtr", "betainc({b}, {a} + 1, {c})"), ("nbdtrc", "betainc({a} + 1, {b}, 1 - {c})"),
        ("fdtr", "betainc({a} / 2, {b} / 2, {a} * {c} / ({b} + {a} * {c}))"), ("fdtrc", "betainc({b} / 2, {a} / 2, {b} / ({b} + {a} * {c}))"))},
    "exprel": Op({"f": "{a} == 0 ? ({T})1 : {a} > 0 && {a} - {a} != 0 ? {a} : expm1({a}) / {a}"}),
})


def emit(name: str, operand: Optional[DType], result: DType, values: Dict[str, str], mixed: bool = False) -> str:
    """The C expression of one operation on values of type `operand` (None: it has none)."""
    template = OPS[name].template_for(operand, mixed)
    if template is None:
        raise TypeError(f"gpurest has no {name} for {operand}")
    ctype = operand.ctype if operand is not None else result.ctype
    wide = "unsigned long long" if operand is not None and operand.itemsize == 8 else "unsigned int"
    text = template.format(T=result.ctype, S=ctype, U=wide, **values)
    return f"half_rounded({text})" if result.name == "float16" and name not in EXACT_IN_HALF else text


# These give one of their operands, or something that a half holds anyway.
EXACT_IN_HALF = frozenset({"identity", "negative", "absolute", "maximum", "minimum", "fmax", "fmin", "where", "floor", "ceil", "trunc", "rint",
                           "sign", "copysign"})


def cast(value: str, source: DType, target: DType) -> str:
    """A value of one type as one of another, the way NumPy's astype() does it."""
    if source is target:
        return value
    if target.kind == "b":
        return f"({value} != 0)"
    if source.kind == "c" and target.kind != "c":
        return cast(f"{value}.re", source.part, target)
    if target.name != "float16":
        return f"(({target.ctype}){value})"
    if source.name in ("float64", "int64", "uint64", "int32", "uint32"):
        return f"half_rounded_once((double){value})"
    return f"half_rounded((float){value})"


def has_kind(name: str, dtype: DType) -> bool:
    """Whether an operation computes with operands of this element type."""
    return OPS[name].template(dtype.kind) is not None

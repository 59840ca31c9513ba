"""Functions that generated shaders call, as prelude.py has them for CUDA C++. GLSL has no templates: there is one for each type."""

from __future__ import annotations

import pathlib
import re
from typing import List, Tuple

_SHADERS = pathlib.Path(__file__).resolve().parent / "shaders"  # as the service's built-in kernels have them; a test compares

EXTENSIONS = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#define threadIdx gl_LocalInvocationID
#define blockIdx gl_WorkGroupID
#define blockDim gl_WorkGroupSize
#define gridDim gl_NumWorkGroups
#define __syncthreads() barrier()
#define u32_t uint
#define u64_t uint64_t
"""

# NaN is found by its bits: compilers of shaders may assume that there is none.
_FLOATS = """
#define INFINITE uintBitsToFloat(0x7f800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
bool is_true(float x) { return (floatBitsToUint(x) & 0x7fffffffu) != 0u; }
bool is_negative(float x) { return floatBitsToUint(x) >= 0x80000000u; }
float with_sign(float a, bool negative) { return uintBitsToFloat(floatBitsToUint(a) & 0x7fffffffu | (negative ? 0x80000000u : 0u)); }
float halved(float x) { return 0.5 * x; }
bool is_nan(bool x) { return false; }
bool is_true(bool x) { return x; }
"""
_DOUBLES = """
bool is_nan(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    uint  high = bits.y & 0x7fffffffu;
    return high > 0x7ff00000u || (high == 0x7ff00000u && bits.x != 0u);
}
bool is_finite(double x) { return (unpackDouble2x32(x).y & 0x7ff00000u) != 0x7ff00000u; }
bool is_true(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    return (bits.y & 0x7fffffffu | bits.x) != 0u;
}
bool is_negative(double x) { return unpackDouble2x32(x).y >= 0x80000000u; }
double with_sign(double a, bool negative)
{
    uvec2 bits = unpackDouble2x32(a);
    return packDouble2x32(uvec2(bits.x, bits.y & 0x7fffffffu | (negative ? 0x80000000u : 0u)));
}
/* What a / b, rounded towards 0, leaves: exact, digit by digit of 11 bits. */
double exact_remainder(double a, double b)
{
    uvec2 wa = unpackDouble2x32(a), wb = unpackDouble2x32(b);
    uint64_t x = uint64_t(wa.y & 0x7fffffffu) << 32 | uint64_t(wa.x), y = uint64_t(wb.y & 0x7fffffffu) << 32 | uint64_t(wb.x);
    uint sign = wa.y & 0x80000000u;

    if (!is_finite(a) || is_nan(b) || y == 0UL)
        return packDouble2x32(uvec2(0u, 0x7ff80000u));
    if (x < y)
        return a;
    uint e = max(uint(x >> 52), 1u), least = max(uint(y >> 52), 1u);
    uint64_t r = x & 0xfffffffffffffUL | (x >> 52 != 0UL ? 0x10000000000000UL : 0UL);
    uint64_t d = y & 0xfffffffffffffUL | (y >> 52 != 0UL ? 0x10000000000000UL : 0UL);
    r -= r / d * d;
    for (uint left = e - least; left > 0u && r != 0UL;) {
        uint now = min(left, 11u);
        r <<= now;
        r -= r / d * d;
        left -= now;
    }
    while (r != 0UL && r < 0x10000000000000UL && least > 1u) {
        r <<= 1;
        least--;
    }
    if (r >= 0x10000000000000UL)
        r = r & 0xfffffffffffffUL | uint64_t(least) << 52;
    return packDouble2x32(uvec2(uint(r & 0xffffffffUL), uint(r >> 32) | sign));
}
double quotient_down(double a, double b)
{
    precise double plain = a / b; /* a may be a product with b, which a compiler would take out */
    if (b == 0.0LF)
        return plain;
    double r = exact_remainder(a, b);
    precise double q = (a - r) / b;
    if (is_nan(q))
        return q;
    if (r != 0.0LF && (b < 0.0LF) != (r < 0.0LF))
        q -= 1.0LF;
    if (q == 0.0LF)
        return with_sign(0.0LF, is_negative(a) != is_negative(b));
    double w = floor(q);
    return q - w > 0.5LF ? w + 1.0LF : w;
}
double remainder_of(double a, double b)
{
    double r = exact_remainder(a, b);
    if (is_nan(r))
        return r;
    if (r == 0.0LF)
        return b == 0.0LF ? r : with_sign(0.0LF, is_negative(b));
    return (b < 0.0LF) != (r < 0.0LF) ? r + b : r;
}
"""

# For every type of a value. X is the type.
_EACH = """
bool sorts_before(X a, X b) { return !is_nan(a) && (is_nan(b) || a < b); }
X nan_max(X a, X b) { return is_nan(a) || !is_nan(b) && a >= b ? a : b; }
X nan_min(X a, X b) { return is_nan(a) || !is_nan(b) && a <= b ? a : b; }
/* Whether (a, i) comes before (b, j) as a place of the greatest or least: the first NaN, else the first of the best. */
bool arg_before(bool greatest, X a, int64_t i, X b, int64_t j)
{
    if (is_nan(a) != is_nan(b))
        return is_nan(a);
    if (is_nan(a) || a == b)
        return i < j;
    return greatest ? a > b : a < b;
}
"""
_BOOLS = """
bool sorts_before(bool a, bool b) { return !a && b; }
bool arg_before(bool greatest, bool a, int64_t i, bool b, int64_t j) { return a == b ? i < j : greatest ? a : b; }
"""
# For whole numbers. U is the unsigned type of their size.
_WHOLE = """
bool is_nan(X x) { return false; }
bool is_true(X x) { return x != X(0); }
X shift_left(X a, X b, uint bits) { return U(b) < U(bits) ? a << uint(b) : X(0); }
X shift_right(X a, X b, uint bits) { return U(b) < U(bits) ? a >> uint(b) : a < X(0) ? X(-1) : X(0); }
"""
_UNSIGNED = """
X quotient_down(X a, X b) { return b == X(0) ? X(0) : a / b; }
X remainder_of(X a, X b) { return b == X(0) ? X(0) : a - a / b * b; }
X remainder_towards_0(X a, X b) { return remainder_of(a, b); }
uint64_t magnitude(X a) { return uint64_t(a); }
X power_unsigned(X base, X exponent)
{
    X result = X(1), square = base;
    for (X e = exponent; e != X(0); e >>= 1) {
        if ((e & X(1)) != X(0))
            result *= square;
        square *= square;
    }
    return result;
}
"""
# Of quotients of negative numbers GLSL says nothing.
_SIGNED = """
X quotient_down(X a, X b)
{
    if (b == X(0))
        return X(0);
    if (b == X(-1))
        return X(U(0) - U(a));
    U    q = (a < X(0) ? U(0) - U(a) : U(a)) / (b < X(0) ? U(0) - U(b) : U(b));
    bool less = (a < X(0)) != (b < X(0));
    X    down = less ? X(U(0) - q) : X(q);
    return less && down * b != a ? down - X(1) : down;
}
X remainder_of(X a, X b) { return b == X(0) || b == X(-1) ? X(0) : a - quotient_down(a, b) * b; }
X remainder_towards_0(X a, X b)
{
    if (b == X(0) || b == X(-1))
        return X(0);
    U x = a < X(0) ? U(0) - U(a) : U(a), y = b < X(0) ? U(0) - U(b) : U(b);
    X r = X(x - x / y * y);
    return a < X(0) ? -r : r;
}
uint64_t magnitude(X a) { return a < X(0) ? 0UL - uint64_t(int64_t(a)) : uint64_t(a); }
X power_signed(X base, X exponent, uint64_t flag)
{
    if (exponent < X(0)) {
        P_int(flag).v = 2;
        return X(0);
    }
    return X(power_unsigned(U(base), U(exponent)));
}
"""
_OTHERS = """
/* int64_t(x). A comparison of that with a literal 0 is taken for one of 32 unsigned bits by the compiler of Mesa 22.3. */
int64_t widened(int x) { return packInt2x32(ivec2(x, x >> 31)); }
/* <0, 0 or >0: the sign of a - b, with nothing lost. */
int compare_mixed(int64_t a, uint64_t b) { return a < 0L ? -1 : uint64_t(a) > b ? 1 : uint64_t(a) < b ? -1 : 0; }
int compare_mixed(uint64_t a, int64_t b) { return -compare_mixed(b, a); }
uint64_t greatest_common(uint64_t a, uint64_t b)
{
    while (b != 0UL) {
        uint64_t rest = a - a / b * b;
        a = b;
        b = rest;
    }
    return a;
}
uint64_t least_common(uint64_t a, uint64_t b) { return a != 0UL && b != 0UL ? a / greatest_common(a, b) * b : 0UL; }
int64_t index_checked(int64_t number, int64_t extent, uint64_t flag)
{
    int64_t place = number < 0L ? number + extent : number;
    if (place >= 0L && place < extent)
        return place;
    P_int(flag).v = 1;
    return 0L;
}
"""
# A real number as a whole one: the nearest limit where it does not fit; NaN becomes 0. F is the type, and S what its literals end with.
_TO_WHOLE = """
int whole_int(F x) { return is_nan(x) ? 0 : x >= 2147483648.0S ? 2147483647 : x <= -2147483648.0S ? -2147483647 - 1 : int(x); }
uint whole_uint(F x) { return is_nan(x) ? 0u : x >= 4294967296.0S ? 0xffffffffu : x <= 0.0S ? 0u : uint(x); }
int64_t whole_int64_t(F x)
{
    return is_nan(x) ? 0L : x >= 9223372036854775808.0S ? 9223372036854775807L : x <= -9223372036854775808.0S ? -9223372036854775807L - 1L : int64_t(x);
}
uint64_t whole_uint64_t(F x) { return is_nan(x) ? 0UL : x >= 18446744073709551616.0S ? 0xffffffffffffffffUL : x <= 0.0S ? 0UL : uint64_t(x); }
"""
_SUMS_OF_LOGARITHMS = """
F log_add_exp(F a, F b)
{
    if (a == b)
        return a + F(0.6931471805599453S);
    F high = a > b ? a : b, low = a > b ? b : a;
    return is_nan(a) || is_nan(b) ? a + b : high + exact_log1p(exact_exp(low - high));
}
F log_add_exp2(F a, F b)
{
    if (a == b)
        return a + F(1);
    F high = a > b ? a : b, low = a > b ? b : a;
    return is_nan(a) || is_nan(b) ? a + b : high + exact_log1p(exact_exp2(low - high)) * F(1.4426950408889634S);
}
"""
_RANDOM = """
/* Philox 4x32, 10 rounds (Salmon et al., 2011): 128 random bits per key and counter. */
uvec4 philox(uint64_t key, uint64_t low, uint64_t high)
{
    uint k0 = uint(key), k1 = uint(key >> 32);
    uvec4 c = uvec4(uint(low), uint(low >> 32), uint(high), uint(high >> 32));
    for (int turn = 0; turn < 10; turn++) {
        uint64_t p0 = 0xD2511F53UL * uint64_t(c.x), p1 = 0xCD9E8D57UL * uint64_t(c.z);
        c = uvec4(uint(p1 >> 32) ^ c.y ^ k0, uint(p1), uint(p0 >> 32) ^ c.w ^ k1, uint(p0));
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}
uint64_t random_bits(uint64_t key, uint64_t counter)
{
    uvec4 r = philox(key, counter, 0UL);
    return uint64_t(r.x) << 32 | uint64_t(r.y);
}
float random_float(uint64_t key, uint64_t counter) { return float(philox(key, counter, 0UL).x >> 8) * (1.0 / 16777216.0); }
uint64_t high_of_product(uint64_t a, uint64_t b)
{
    uint64_t al = a & 0xffffffffUL, ah = a >> 32, bl = b & 0xffffffffUL, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (middle & 0xffffffffUL);
    return ah * bh + (middle >> 32) + (other >> 32);
}
/* Every number below `range` alike (Lemire, 2019); 0 stands for 2^64. */
uint64_t random_below(uint64_t key, uint64_t counter, uint64_t range)
{
    for (uint64_t attempt = 0UL; attempt < 1000UL; attempt++) {
        uvec4 r = philox(key, counter, attempt);
        uint64_t bits = uint64_t(r.x) << 32 | uint64_t(r.y);
        if (range == 0UL)
            return bits;
        uint64_t below = 0UL - range;
        if (bits * range >= below - below / range * range)
            return high_of_product(bits, range);
    }
    return 0UL; /* after 1000 attempts, each of which succeeds every other time at least */
}
"""
_RANDOM_DOUBLES = """
double random_double(uint64_t key, uint64_t counter) { return double(random_bits(key, counter) >> 11) * (1.0LF / 9007199254740992.0LF); }
/* In (0, 1), and as far from 0 as from 1. */
double random_open(uint64_t key, uint64_t counter) { return (double(random_bits(key, counter) >> 12) + 0.5LF) * (1.0LF / 4503599627370496.0LF); }
/* cos(pi x), x from 0 to 2. Polynomials: Sun's fdlibm (1993). */
double cos_pi(double x)
{
    double k = roundEven(2.0LF * x), r = (x - 0.5LF * k) * 3.14159265358979311600LF, z = r * r;
    double c = 1.0LF - 0.5LF * z + z * z * (4.16666666666666019037e-02LF + z * (-1.38888888888741095749e-03LF + z * (2.48015872894767294178e-05LF +
                   z * (-2.75573143513906633035e-07LF + z * (2.08757232129817482790e-09LF + z * -1.13596475577881948265e-11LF)))));
    double s = r + r * z * (-1.66666666666666324348e-01LF + z * (8.33333333332248946124e-03LF + z * (-1.98412698298579493134e-04LF +
                   z * (2.75573137070700676789e-06LF + z * (-2.50507602534068634195e-08LF + z * 1.58969099521155010221e-10LF)))));
    int quarter = int(k) & 3;
    return quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}
/* Box and Muller; 1 - u keeps the logarithm's argument above 0. */
double random_normal(uint64_t key, uint64_t counter)
{
    uvec4 r = philox(key, counter, 0UL);
    double u = double((uint64_t(r.x) << 32 | uint64_t(r.y)) >> 11) * (1.0LF / 9007199254740992.0LF);
    double v = double((uint64_t(r.z) << 32 | uint64_t(r.w)) >> 11) * (1.0LF / 9007199254740992.0LF);
    return sqrt(-2.0LF * exact_log(1.0LF - u)) * cos_pi(2.0LF * v);
}
"""
_WORDS: Tuple[Tuple[str, str], ...] = (("int", "uint"), ("uint", "uint"), ("int64_t", "uint64_t"), ("uint64_t", "uint64_t"))


def _for(text: str, kind: str, unsigned: str) -> str:
    return text.replace("X", kind).replace("U(", unsigned + "(").replace("U ", unsigned + " ")


def _for_float(text: str, kind: str) -> str:
    return text.replace("F(", kind + "(").replace("F ", kind + " ").replace("S ", "LF " if kind == "double" else " ").replace(
        "S)", "LF)" if kind == "double" else ")")


def _shader(name: str) -> str:
    return (_SHADERS / name).read_text(encoding="utf-8")


# What circular64.glsl has: it is long, and each expression is compiled anew.
CIRCULAR = re.compile("exact_(a?(sin|cos|tan)h?|atan2|expm1|cbrt|hypot|pow)[(]")


def prelude(own: str) -> str:
    """What a kernel of that text needs: a device without 64-bit floats does not take a module that has any."""
    doubles, halves, rounded = "double" in own, "half_" in own, "exact_" in own or "log_add_exp" in own
    parts: List[str] = [_FLOATS, _DOUBLES if doubles else ""]
    parts += [_for(_WHOLE, *one) for one in _WORDS]
    parts += [_for(_UNSIGNED, "uint", "uint"), _for(_UNSIGNED, "uint64_t", "uint64_t"), _for(_SIGNED, "int", "uint"), _for(_SIGNED, "int64_t", "uint64_t")]
    parts += [_for(_EACH, kind, "") for kind in ("int", "uint", "int64_t", "uint64_t", "float", *(("double",) if doubles else ()))]
    parts += [_BOOLS, _OTHERS, _for_float(_TO_WHOLE, "float"), _for_float(_TO_WHOLE, "double") if doubles else ""]
    parts += [_shader("half.glsl") if halves else "", _shader("half64.glsl") if halves and doubles else ""]
    if rounded or "quotient_down" in own or "remainder_" in own or "random_" in own:
        parts += [_shader("real.glsl"), _shader("circular.glsl") if rounded else ""]
        parts += [_shader("real64.glsl") if doubles else "", _shader("circular64.glsl") if doubles and rounded and CIRCULAR.search(own) else ""]
    if "log_add_exp" in own:
        parts += [_for_float(_SUMS_OF_LOGARITHMS, "float"), _for_float(_SUMS_OF_LOGARITHMS, "double") if doubles else ""]
    if "random_" in own:
        parts += [_RANDOM, _RANDOM_DOUBLES if doubles else ""]
    return "".join(parts)

/* Numbers of 64 bits as those of 16, behind half.glsl. */

/* Rounding twice would err: round to odd on the way. */
float half_rounded_once(double x)
{
    float f = float(x);
    if (double(f) != x && is_finite(f)) {
        uint bits = floatBitsToUint(f);
        if (abs(double(f)) > abs(x))
            bits--;
        f = uintBitsToFloat(bits | 1u);
    }
    return half_rounded(f);
}

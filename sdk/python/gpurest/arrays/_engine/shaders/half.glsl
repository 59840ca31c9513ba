/* Numbers of 16 bits as f32, and back, by their bits: a device may store them and know no arithmetic with them. */

float half_load(uint h)
{
    uint sign = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
    if (e == 31u)
        return uintBitsToFloat(sign | 0x7f800000u | m << 13);
    if (e > 0u)
        return uintBitsToFloat(sign | (e + 112u) << 23 | m << 13);
    return uintBitsToFloat(sign | floatBitsToUint(float(m) * uintBitsToFloat(0x33800000u)));
}
/* To the nearest, of two the even one. */
uint half_store(float f)
{
    uint bits = floatBitsToUint(f), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return sign | 0x7e00u | size >> 13 & 0x1ffu;
    if (size >= 0x477ff000u)
        return sign | 0x7c00u;
    if (size >= 0x38800000u)
        return sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    if (size < 0x33000000u)
        return sign;
    uint shift = 126u - (size >> 23), m = size & 0x7fffffu | 0x800000u, rest = m & (1u << shift) - 1u, middle = 1u << shift - 1u, low = m >> shift;
    return sign | low + (rest > middle || (rest == middle && (low & 1u) != 0u) ? 1u : 0u);
}
float half_rounded(float f) { return half_load(half_store(f)); }

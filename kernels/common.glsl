/* What the shaders of the built-in kernels share: the element type as T, numbers that are none, powers and logarithms as exact as CUDA's, and
 * the blocks. The service defines T_f32, T_i32 or T_u32, and KERNEL_ with the kernel's name. */
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_8bit_storage : require

#define THREADS 256
layout(local_size_x = THREADS) in;

#if defined(T_f32)
#define T float
#define WIDE float
#define REAL
#define LOWEST (-INFINITE)
#define HIGHEST INFINITE
#elif defined(T_i32)
#define T int
#define WIDE int64_t
#define LOWEST (-2147483647 - 1)
#define HIGHEST 2147483647
#else
#define T uint
#define WIDE uint64_t
#define LOWEST 0u
#define HIGHEST 0xffffffffu
#endif

#define INFINITE uintBitsToFloat(0x7f800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

/* By bits: compilers of shaders may assume that there are none. */
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_nan(int x) { return false; }
bool is_nan(uint x) { return false; }
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

/* 2 to the k, k from -126 to 127. */
float power_of_two(int k) { return uintBitsToFloat(uint(k + 127) << 23); }

/* x = k ln 2 + r with k whole, ln 2 in two parts of which the first times k is exact; a polynomial of r. Within 2 roundings. */
float exact_exp(float x)
{
    if (is_nan(x))
        return x;
    if (x > 88.7228394)
        return INFINITE;
    if (x < -103.972084)
        return 0.0;
    float         k = roundEven(x * 1.44269504);
    precise float r = x - k * 0.693359375;
    r = r + k * 2.12194440e-4;
    float p = ((((1.9875691500e-4 * r + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r + 1.6666665459e-1) * r + 5.0000001201e-1;
    p = p * r * r + r + 1.0;
    int half_k = int(k) / 2;
    return p * power_of_two(half_k) * power_of_two(int(k) - half_k);
}

/* x = m 2^e with m about 1, and a polynomial of m - 1. Within 2 roundings. */
float exact_log(float x)
{
    if (is_nan(x) || x < 0.0)
        return NOT_A_NUMBER;
    if (x == 0.0 || !is_finite(x))
        return x == 0.0 ? -INFINITE : x;
    int e = 0;
    if (floatBitsToUint(x) < 0x00800000u) {
        x *= 8388608.0;
        e = -23;
    }
    uint  bits = floatBitsToUint(x);
    float m = uintBitsToFloat((bits & 0x007fffffu) | 0x3f000000u);
    e += int(bits >> 23) - 126;
    if (m < 0.707106781) {
        e--;
        m += m;
    }
    m -= 1.0;
    float z = m * m;
    float p = ((((((((7.0376836292e-2 * m - 1.1514610310e-1) * m + 1.1676998740e-1) * m - 1.2420140846e-1) * m + 1.4249322787e-1) * m - 1.6668057665e-1) * m +
                 2.0000714765e-1) * m - 2.4999993993e-1) * m + 3.3333331174e-1) * m * z;
    p += float(e) * -2.12194440e-4 - 0.5 * z;
    return m + p + float(e) * 0.693359375;
}

"""CUDA sources that read textures and write surfaces, one kernel for each function of CUDA's headers."""

FETCHES = {
    "1d": "tex1D<T>(t, c.x)", "2d": "tex2D<T>(t, c.x, c.y)", "3d": "tex3D<T>(t, c.x, c.y, c.z)",
    "1d_layered": "tex1DLayered<T>(t, c.x, (int)c.w)", "2d_layered": "tex2DLayered<T>(t, c.x, c.y, (int)c.w)",
    "cube": "texCubemap<T>(t, c.x, c.y, c.z)", "cube_layered": "texCubemapLayered<T>(t, c.x, c.y, c.z, (int)c.w)",
    "fetch": "tex1Dfetch<T>(t, (int)c.x)",
    "lod_1d": "tex1DLod<T>(t, c.x, 0)", "lod_2d": "tex2DLod<T>(t, c.x, c.y, 0)", "lod_3d": "tex3DLod<T>(t, c.x, c.y, c.z, 0)",
    "grad_2d": "tex2DGrad<T>(t, c.x, c.y, make_float2(0.1f, 0), make_float2(0, 0.1f))",
    "gather_0": "tex2Dgather<T>(t, c.x, c.y, 0)", "gather_1": "tex2Dgather<T>(t, c.x, c.y, 1)",
    "gather_2": "tex2Dgather<T>(t, c.x, c.y, 2)", "gather_3": "tex2Dgather<T>(t, c.x, c.y, 3)",
}


def fetches():
    """get_<name>_<T>(texture, coordinates, out, n)"""
    return "".join(f"""
extern "C" __global__ void get_{name}_{kind}(cudaTextureObject_t t, const float4 *at, {kind} *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 c = at[i];
    out[i] = {call.replace("<T>", f"<{kind}>")};
}}""" for name, call in FETCHES.items() for kind in ("float4", "int4", "uint4"))


SURFACES = """
struct place { int x, y, z, layer; };
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; place p = at[i]
#define BOTH(name, T, read, write, mode)                                                                        \\
    extern "C" __global__ void read_##name(cudaSurfaceObject_t s, const place *at, T *out, int n)               \\
    { EACH; T v; read; out[i] = v; }                                                                            \\
    extern "C" __global__ void write_##name(cudaSurfaceObject_t s, const place *at, const T *in, int n)         \\
    { EACH; T v = in[i]; write; }
#define ALL(T, mode)                                                                                            \\
    BOTH(1d_##T##_##mode, T, surf1Dread(&v, s, p.x * (int)sizeof v, cudaBoundaryMode##mode),                     \\
         surf1Dwrite(v, s, p.x * (int)sizeof v, cudaBoundaryMode##mode), mode)                                   \\
    BOTH(2d_##T##_##mode, T, surf2Dread(&v, s, p.x * (int)sizeof v, p.y, cudaBoundaryMode##mode),                \\
         surf2Dwrite(v, s, p.x * (int)sizeof v, p.y, cudaBoundaryMode##mode), mode)                              \\
    BOTH(3d_##T##_##mode, T, surf3Dread(&v, s, p.x * (int)sizeof v, p.y, p.z, cudaBoundaryMode##mode),           \\
         surf3Dwrite(v, s, p.x * (int)sizeof v, p.y, p.z, cudaBoundaryMode##mode), mode)                         \\
    BOTH(1d_layered_##T##_##mode, T, surf1DLayeredread(&v, s, p.x * (int)sizeof v, p.layer, cudaBoundaryMode##mode), \\
         surf1DLayeredwrite(v, s, p.x * (int)sizeof v, p.layer, cudaBoundaryMode##mode), mode)                   \\
    BOTH(2d_layered_##T##_##mode, T, surf2DLayeredread(&v, s, p.x * (int)sizeof v, p.y, p.layer, cudaBoundaryMode##mode), \\
         surf2DLayeredwrite(v, s, p.x * (int)sizeof v, p.y, p.layer, cudaBoundaryMode##mode), mode)              \\
    BOTH(cube_##T##_##mode, T, surfCubemapread(&v, s, p.x * (int)sizeof v, p.y, p.layer, cudaBoundaryMode##mode), \\
         surfCubemapwrite(v, s, p.x * (int)sizeof v, p.y, p.layer, cudaBoundaryMode##mode), mode)                \\
    BOTH(cube_layered_##T##_##mode, T, surfCubemapLayeredread(&v, s, p.x * (int)sizeof v, p.y, p.layer, cudaBoundaryMode##mode), \\
         surfCubemapLayeredwrite(v, s, p.x * (int)sizeof v, p.y, p.layer, cudaBoundaryMode##mode), mode)
"""


def surfaces(*kinds):
    """read_<dimension>_<T>_<mode>(surface, places, out, n), write_...(surface, places, in, n)"""
    return SURFACES + "".join(f"ALL({kind}, {mode})\n" for kind, mode in kinds)

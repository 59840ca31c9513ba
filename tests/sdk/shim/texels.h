/* PTX of kernels that read textures at the middle of texel tid.x of w * h * …, x fastest, with coordinates scaled by sx and sy, and write a
 * surface there. All take (texture or surface, out, w, h, sx, sy); `fetch` reads integers by index. */
#pragma once

extern const char texels_ptx[];

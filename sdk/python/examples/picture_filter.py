"""Filters over a picture: blur, sharpen, edges, emboss. A filter is a sum of shifted views, which becomes one kernel.

    python picture_filter.py in.png out.png [--filter edges]
"""
import argparse

import numpy as np
import pictures

import gpurest as gp

BLUR = [[1, 4, 6, 4, 1], [4, 16, 24, 16, 4], [6, 24, 36, 24, 6], [4, 16, 24, 16, 4], [1, 4, 6, 4, 1]]
EMBOSS = [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]
ACROSS = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
DOWN = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]


def convolve(picture, weights):
    """Every pixel's neighbourhood weighted and added up; beyond the edge the edge's pixels go on."""
    height, width = picture.shape[:2]
    reach = len(weights) // 2
    rows = gp.arange(-reach, height + reach).clip(0, height - 1)
    columns = gp.arange(-reach, width + reach).clip(0, width - 1)
    wide = picture[rows][:, columns]
    total = gp.zeros(picture.shape, "f4")
    for y, line in enumerate(weights):
        for x, weight in enumerate(line):
            if weight:
                total = total + weight * wide[y:y + height, x:x + width]
    return total


def blur(picture):
    return convolve(picture, BLUR) / 256


FILTERS = {
    "blur": blur,
    "sharpen": lambda picture: 2.5 * picture - 1.5 * blur(picture),
    "edges": lambda picture: gp.hypot(convolve(picture, ACROSS), convolve(picture, DOWN)),
    "emboss": lambda picture: convolve(picture, EMBOSS),
}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("picture")
    options.add_argument("out")
    options.add_argument("--filter", choices=FILTERS, default="edges")
    given = options.parse_args()
    picture = gp.asarray(pictures.read_png(given.picture)).astype("f4")
    result = FILTERS[given.filter](picture).clip(0, 255).round()
    pictures.write_png(given.out, result.astype(np.uint8).get())
    print(f"{given.out}: {given.filter}, mean {float(result.mean()):.2f}")


if __name__ == "__main__":
    main()

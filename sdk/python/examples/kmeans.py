"""The k colours that a picture can be painted with best: k-means over its pixels.

    python kmeans.py in.png out.png [--colours 8] [--rounds 12]
"""
import argparse

import numpy as np
import pictures

import gpurest as gp


def cluster(points, k, rounds):
    """(centres, the number of each point's centre). The centres start on points, far from each other as they come."""
    centres = [points[0]]
    for _ in range(k - 1):
        nearest = gp.stack([((points - one) ** 2).sum(axis=1) for one in centres]).min(axis=0)
        centres.append(points[gp.argmax(nearest)])
    centres = gp.stack(centres)
    for _ in range(rounds):
        label = distances(points, centres).argmin(axis=1)
        member = (label.reshape(-1, 1) == gp.arange(k)).astype("f4")
        count = member.sum(axis=0).reshape(-1, 1)
        centres = gp.where(count > 0, member.T @ points / gp.maximum(count, 1), centres)
    return centres, distances(points, centres).argmin(axis=1)


def distances(points, centres):
    """Squared, of every point from every centre."""
    return ((points.reshape(-1, 1, 3) - centres) ** 2).sum(axis=2)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("picture")
    options.add_argument("out")
    options.add_argument("--colours", type=int, default=8)
    options.add_argument("--rounds", type=int, default=12)
    given = options.parse_args()
    picture = pictures.read_png(given.picture)
    points = gp.asarray(picture.reshape(-1, 3)).astype("f4")
    centres, label = cluster(points, given.colours, given.rounds)
    painted = centres[label]
    error = float(((painted - points) ** 2).mean())
    pictures.write_png(given.out, painted.round().astype(np.uint8).get().reshape(picture.shape))
    print(f"{given.out}: {given.colours} colours, mean squared error {error:.2f}")


if __name__ == "__main__":
    main()

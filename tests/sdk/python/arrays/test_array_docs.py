"""The code of the arrays page and the gallery runs."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

SDK = pathlib.Path(__file__).resolve().parents[4] / "sdk" / "python"
IMAGE_BYTES_MAX = 60 * 1024
PROGRAMS = {
    "mandelbrot.py": ["out.png", "--size", "64x48", "--iterations", "20"],
    "heat.py": ["out.png", "--size", "32", "--steps", "20"],
    "kmeans.py": [str(SDK / "docs/img/heat.png"), "out.png", "--colours", "4", "--rounds", "3"],
    "picture_filter.py": [str(SDK / "docs/img/heat.png"), "out.png", "--filter", "emboss"],
}


def run(service, folder, program, *arguments):
    environment = {**os.environ, "GPUREST_URL": service.url, "PYTHONPATH": str(SDK)}
    done = subprocess.run([sys.executable, SDK / "examples" / program, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def pictures(monkeypatch):
    monkeypatch.syspath_prepend(str(SDK / "examples"))
    import pictures
    return pictures


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_of_the_gallery(array_service, tmp_path, pictures, program):
    assert "out.png" in run(array_service, tmp_path, program, *PROGRAMS[program])
    picture = pictures.read_png(tmp_path / "out.png")
    assert picture.ndim == 3 and picture.shape[2] == 3 and len(np.unique(picture.reshape(-1, 3), axis=0)) > 2


def test_heat_is_what_numpy_computes(g, pictures):
    import heat
    n, steps = 48, 30
    held, fixed = (one.get() for one in heat.held_spots(n))
    u = fixed.copy()
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = np.where(held[1:-1, 1:-1], fixed[1:-1, 1:-1], np.float32(0.25) * around)
    np.testing.assert_array_equal(heat.flow(n, steps).get(), u)


def test_clusters_are_found(g, pictures):
    import kmeans
    rng = np.random.default_rng(2)
    corners = np.array([[0, 0, 0], [200, 0, 0], [0, 200, 90]])
    points = (corners[np.arange(300) % 3] + rng.normal(size=(300, 3))).astype("f4")
    centres, label = kmeans.cluster(g.asarray(points), 3, 5)
    label = label.get()
    assert all(len(set(label[at::3])) == 1 for at in range(3)) and len(set(label)) == 3
    for at in range(3):
        np.testing.assert_allclose(centres.get()[label[at]], points[at::3].mean(axis=0), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["blur", "edges"])
def test_filters_are_what_numpy_computes(g, pictures, name):
    import picture_filter
    picture = np.random.default_rng(4).integers(0, 255, (13, 17, 3)).astype("f4")

    def convolve(weights):
        reach = len(weights) // 2
        wide = np.pad(picture, ((reach, reach), (reach, reach), (0, 0)), mode="edge")
        return sum(weights[y][x] * wide[y:y + 13, x:x + 17] for y in range(len(weights)) for x in range(len(weights)))

    expected = {"blur": lambda: convolve(picture_filter.BLUR) / 256,
                "edges": lambda: np.hypot(convolve(picture_filter.ACROSS), convolve(picture_filter.DOWN))}[name]()
    np.testing.assert_allclose(picture_filter.FILTERS[name](g.asarray(picture)).get(), expected, rtol=1e-4, atol=1e-3)


def test_pictures_are_read_as_they_were_written(pictures, tmp_path):
    picture = np.random.default_rng(3).integers(0, 256, (11, 7, 3)).astype(np.uint8)
    pictures.write_png(tmp_path / "a.png", picture)
    np.testing.assert_array_equal(pictures.read_png(tmp_path / "a.png"), picture)
    with pytest.raises(ValueError):
        (tmp_path / "b.png").write_bytes(b"something else")
        pictures.read_png(tmp_path / "b.png")


def test_the_pictures_of_the_gallery_are_there_and_small(pictures):
    text = (SDK / "docs/gallery.md").read_text()
    named = re.findall(r"\((img/\w+\.png)\)", text)
    assert len(named) == 4
    for name in named:
        assert (SDK / "docs" / name).stat().st_size < IMAGE_BYTES_MAX
        assert pictures.read_png(SDK / "docs" / name).shape[2] == 3


def test_code_on_the_page_runs(g, capsys):
    text = (SDK / "docs/arrays.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "arrays.md", "exec"), {})
    expected = np.sqrt(np.arange(1_000_000, dtype="f4") * 2 + 1).sum(dtype="f8")
    printed = [line for line in capsys.readouterr().out.splitlines() if re.fullmatch(r"\d+\.\d+", line)]
    assert abs(float(printed[0]) / expected - 1) < 1e-5

"""Members of arrays, what tells of types and memory, files, and NumPy's functions called with our arrays."""
import io
import pickle
import pydoc

import numpy as np
import pytest
from gpurest import cupy
from .array_values import same


def test_memory_and_layout(g):
    a = np.arange(24).reshape(4, 6)
    x = g.asarray(a)
    for ours, theirs in ((x, a), (x.T, a.T), (x[:, ::2], a[:, ::2]), (x[1:], a[1:]), (g.broadcast_to(x[0], (3, 6)), np.broadcast_to(a[0], (3, 6)))):
        for flag in ("c_contiguous", "f_contiguous"):
            assert getattr(ours.flags, flag) == getattr(theirs.flags, flag)
        assert ours.flags["C"] == theirs.flags["C"] and ours.flags["WRITEABLE"] == theirs.flags["WRITEABLE"]
    with pytest.raises(KeyError, match="Unknown flag"):
        x.flags["SHINY"]
    assert x.base is None and x.flags.owndata and x[1:].base.shape == (4, 6) and not x[1:].flags.owndata
    assert g.isfortran(x.T) and not g.isfortran(x)
    assert g.shares_memory(x, x[1:]) and g.may_share_memory(x[:2], x[1:3]) and not g.may_share_memory(x[:2], x[2:]) and not g.shares_memory(x, x + 1)
    assert not g.shares_memory(x[:, ::2], x[:, 1::2]) and g.may_share_memory(x[:, ::2], x[:, 1::2]) and g.shares_memory(x[:, ::2], x[:, ::3])
    assert g.asfortranarray(x).strides == np.asfortranarray(a).strides and x.copy("F").strides == a.copy("F").strides
    assert x.reshape(6, 4, order="F").tolist() == a.reshape(6, 4, order="F").tolist()
    with pytest.raises(ValueError, match="avoid creating a copy"):
        x.T.reshape(24, copy=False)
    with pytest.raises(ValueError, match="order must be one of"):
        x.ravel("Z")


def test_what_other_arrays_have_is_refused_with_what_there_is_instead(g):
    x = g.arange(3)
    for owner in (x, g.ndarray):
        assert not hasattr(owner, "ctypes") and not hasattr(owner, "nothing") and hasattr(owner, "sum")
    with pytest.raises(AttributeError, match=r"^'ndarray' object has no attribute 'cpu': x\.get\(\)$"):
        x.cpu
    with pytest.raises(AttributeError, match="^'ndarray' object has no attribute 'nothing'$"):
        x.nothing
    assert "cpu" not in dir(x) and "sum" in dir(x)
    for owner in (g.ones((2, 2)), g.ndarray, cupy.ndarray):
        assert not [name for name in dir(owner) if not hasattr(owner, name)]
    assert "Arrays do not have it: kernels take x itself." in pydoc.plain(pydoc.render_doc(g.ndarray))


def test_flat_real_and_turned(g):
    x, a = g.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    x.flat[1:4], a.flat[1:4] = [7, 8, 9], [7, 8, 9]
    x.T.flat[0], a.T.flat[0] = 5, 5
    same(x, a)
    same(x.flat[[1, 2]], a.flat[[1, 2]])
    assert len(x.flat) == 6 and x.flat.copy().shape == (6,)
    x.flat, a.flat = [1, 2], [1, 2]
    same(x, a)
    x.real, a.real = 3, 3
    same(x.real, a.real)
    same(x.imag, a.imag)
    same(g.real(x), a.real)
    same(g.imag(x), a.imag)
    same(x.mT, a.mT)
    same(x.conj(), a.conj())
    with pytest.raises(ValueError):
        x[0].mT
    assert [float(one) for one in x.flat] == x.ravel().tolist()


def test_in_place(g):
    x, a = g.asarray([3, 1, 2]), np.array([3, 1, 2])
    x.resize(2, 2)
    a.resize(2, 2, refcheck=False)
    same(x, a)
    x.resize(2)
    assert x.tolist() == [3, 1]
    y, b = g.asarray([[3, 1, 2]]), np.array([[3, 1, 2]])
    y.partition(1)
    assert y.tolist() == [[1, 2, 3]] and y.argpartition(1).shape == (1, 3)
    same(y.byteswap(), np.sort(b).byteswap())
    assert y.byteswap(inplace=True) is y
    same(y, np.sort(b).byteswap())
    y.put([0, 1], [9, 8])
    assert y.tolist()[0][:2] == [9, 8]
    same(g.asarray([1, 0, 2]).choose([10, g.asarray([4, 5, 6]), 12]), np.array([1, 0, 2]).choose([10, [4, 5, 6], 12]))
    same(g.arange(4).compress([True, False, True]), np.arange(4).compress([True, False, True]))
    same(g.nan_to_num(g.asarray([np.nan, 1.0]), copy=False), np.array([0.0, 1.0]))


def test_to_files_and_back(g, tmp_path, capsys):
    x, a = g.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    g.save(tmp_path / "a.npy", x)
    same(g.load(tmp_path / "a.npy"), a)
    for write in (g.savez, g.savez_compressed):
        write(tmp_path / "a.npz", x, named=x * 2)
        with g.load(tmp_path / "a.npz") as found:
            assert len(found) == 2 and "named" in found and sorted(found.files) == ["arr_0", "named"]
            same(found["named"], a * 2)
    g.savetxt(tmp_path / "a.txt", x)
    same(g.loadtxt(tmp_path / "a.txt"), a)
    same(g.genfromtxt(tmp_path / "a.txt"), a)
    x.tofile(tmp_path / "a.bin")
    same(g.fromfile(tmp_path / "a.bin"), a.ravel())
    x.tofile(tmp_path / "b.txt", sep=",")
    same(g.fromstring((tmp_path / "b.txt").read_text(), sep=","), a.ravel())
    same(g.fromiter(range(3), dtype="i4"), np.arange(3, dtype="i4"))
    with open(tmp_path / "c.bin", "wb") as file:
        x.tofile(file)
    assert (tmp_path / "c.bin").read_bytes() == a.tobytes() and x.tobytes("F") == a.tobytes("F")
    x.dump(str(tmp_path / "a.pickle"))
    with open(tmp_path / "a.pickle", "rb") as file:
        np.testing.assert_array_equal(pickle.load(file), a)
    buffer = io.BytesIO()
    x.dump(buffer)
    np.testing.assert_array_equal(pickle.loads(buffer.getvalue()), pickle.loads(x.dumps()))
    same(g.from_dlpack(a), a)
    assert g.from_dlpack(x) is x
    same(g.frombuffer(b"\1\2\3\4", "u1", count=2, offset=1), np.array([2, 3], "u1"))
    for wrong in (lambda: g.frombuffer(b"12", "u1", offset=3), lambda: g.frombuffer(b"12", "u1", count=3)):
        with pytest.raises(ValueError):
            wrong()


def test_types_and_texts(g, capsys):
    x = g.arange(3, dtype="i4")
    assert g.can_cast(x, "f8") == np.can_cast(np.dtype("i4"), "f8") and g.result_type(x, np.float32) == np.result_type(np.dtype("i4"), np.float32)
    assert g.common_type(x, g.ones(2, "f4")) is np.float64 and g.promote_types("i4", "u4") == np.dtype("i8") and g.min_scalar_type(300) == np.dtype("u2")
    assert g.min_scalar_type(x) == np.dtype("i4") and g.isdtype(x.dtype, "integral") and g.issubdtype(x.dtype, np.integer)
    assert g.typename("f") == np.typename("f") and g.mintypecode("fd") == "d" and g.base_repr(5, 2) == "101" and g.binary_repr(5) == "101"
    assert g.format_float_positional(1.5) == "1.5" and g.format_float_scientific(1.5) == "1.5e+00"
    assert g.array2string(x) == np.array2string(np.arange(3)) and g.array_str(x) == str(x) and g.array_repr(x) == repr(x)
    assert "..." in g.array2string(g.zeros(5000)) and g.get_printoptions()["threshold"] == 1000
    same(g.astype(x, "f4"), np.arange(3, dtype="f4"))
    for wrong in (lambda: g.common_type(g.ones(2, "?")), lambda: g.astype([1], "f4"), lambda: g.copyto([1], 2), lambda: g.put([1], 0, 2), lambda: g.place([1], [True], 2),
                  lambda: g.putmask([1], [True], 2), lambda: g.put_along_axis([1], [0], 2, 0)):
        with pytest.raises(TypeError):
            wrong()
    g.show_config()
    assert "gpurest" in capsys.readouterr().out


def test_questions(g):
    x, a = g.asarray([1.0, np.inf, -np.inf, np.nan, -2.0]), np.array([1.0, np.inf, -np.inf, np.nan, -2.0])
    for name in ("isreal", "iscomplex", "isposinf", "isneginf", "angle", "fix", "real_if_close"):
        same(getattr(g, name)(x), np.asarray(getattr(np, name)(a)), what=name)
    assert g.isrealobj(x) and not g.iscomplexobj(x) and g.iterable(x) and not g.iterable(3) and g.iterable([1]) and not g.iterable(x[0])
    assert g.isscalar(3) and g.isscalar(np.float64(3)) and not g.isscalar(x) and not g.isscalar(np.zeros(()))
    assert g.ndim([[1]]) == 1 + 1 and g.shape([[1, 2]]) == (1, 2) and g.size([[1, 2]]) == 2 and g.size([[1, 2]], 0) == 1
    assert g.array_equal([1, np.nan], [1, np.nan], equal_nan=True) and not g.array_equal([1], [1, 2]) and g.array_equiv([1, 1], 1) and not g.array_equiv([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="infs or NaNs"):
        g.asarray_chkfinite(x)
    same(g.asarray_chkfinite([1.0]), np.array([1.0]))
    same(g.asanyarray([1]), np.array([1]))
    assert x.__array_namespace__() is g


def test_lists_of_arrays_and_copies(g):
    x = g.arange(3)
    same(g.asarray([x, x * 2]), np.array([[0, 1, 2], [0, 2, 4]]))
    assert g.asarray(x) is x and g.asarray(x, copy=True) is not x and g.array(x, ndmin=3).shape == (1, 1, 3)
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        g.asarray([1], copy=False)
    assert g.full((2, 3), [1, 2, 3], order="F").strides == np.full((2, 3), [1, 2, 3], order="F").strides
    assert g.empty((2, 3), order="F").strides == np.empty((2, 3), order="F").strides
    assert g.require(x, "f8", ["F", "O"]).flags.f_contiguous
    same(g.linspace(0, 1, 5, retstep=True)[0], np.linspace(0, 1, 5))
    assert g.linspace(0, 1, 5, retstep=True)[1] == 0.25


def test_numpys_functions_compute_on_the_device(g):
    x, a = g.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4)
    for call in (lambda y: np.median(y, axis=0), lambda y: np.sum(y), lambda y: np.stack([y, y]), lambda y: np.where(y > 3, y, 0), lambda y: np.linalg.norm(y),
                 lambda y: np.percentile(y, 30), lambda y: np.add.outer(y[0], y[1]), lambda y: np.maximum.accumulate(y), lambda y: np.matvec(y, y[0]),
                 lambda y: np.radians(y), lambda y: np.clip(y, 2, 5), lambda y: np.bincount(y[0].astype(int)), lambda y: np.angle(y * 1j)):
        ours = call(x)
        assert isinstance(ours, g.ndarray)
        same(ours, np.asarray(call(a)), exact=False)
    fraction, whole = np.modf(x / 2)
    same(whole, np.modf(a / 2)[1])
    same(fraction, np.modf(a / 2)[0])
    same(np.fft.rfft2(x), np.fft.rfft2(a), exact=False, relative=1e-12)
    with pytest.raises(TypeError):
        np.polynomial.polynomial.polyvander(x, 2)


def test_what_is_wrong_is_said_before_anything_is_sent(g, requests):
    x = g.ones((2, 3))
    g.flush()
    requests()
    for wrong, kind, text in (
            (lambda: g.sum(x, axis=2), np.exceptions.AxisError, "axis 2 is out of bounds for array of dimension 2"),
            (lambda: g.concatenate([x, g.ones((3, 3))], 1), ValueError, "along dimension 0, the array at index 0 has size 2 and the array at index 1 has size 3"),
            (lambda: g.add(x, x, out=g.ones((2, 3), "i4")), TypeError, "Cannot cast ufunc 'add' output"),
            (lambda: g.add(x, x, out=g.ones(3)), ValueError, "non-broadcastable output operand"),
            (lambda: g.add(x, x, x, x), TypeError, "positional arguments"),
            (lambda: g.add(x, x, x, out=x), TypeError, "both a positional and keyword"),
            (lambda: g.add(x, x, out=3), TypeError, "return arrays must be of ArrayType"),
            (lambda: g.add(x, x, where=x), TypeError, "according to the rule 'safe'"),
            (lambda: g.add(x, x, casting="some"), ValueError, "casting must be one of"),
            (lambda: x.astype("i4", casting="safe"), TypeError, "according to the rule 'safe'"),
            (lambda: g.max(x, where=x > 0), ValueError, "does not have an identity"),
            (lambda: g.subtract.reduce(x, axis=(0, 1)), ValueError, "not reorderable"),
            (lambda: g.negative.reduce(x), ValueError, "only supported for binary functions"),
            (lambda: g.divmod.reduce(x), ValueError, "single value"),
            (lambda: g.add.accumulate(x[0, 0]), TypeError, "cannot accumulate on a scalar"),
            (lambda: g.less.reduce(x), TypeError, "not compatible"),
            (lambda: g.add.at([1], [0], 1), TypeError, "first operand must be array"),
            (lambda: g.add.at(x, [0]), ValueError, "second operand needed"),
            (lambda: g.where(x, x), ValueError, "either both or neither"),
            (lambda: g.take(x, [9]), IndexError, "index 9 is out of bounds"),
            (lambda: g.percentile(x, 101), ValueError, "range \\[0, 100\\]"),
            (lambda: g.pad(x, 1, "sideways"), ValueError, "not supported"),
            (lambda: g.pad(x, -1), ValueError, "negative values"),
            (lambda: g.pad(x, 0.5), TypeError, "integral type"),
            (lambda: g.sort(x, kind="bubble"), ValueError, "sort kind"),
            (lambda: g.sort(x, order="name"), ValueError, "no fields"),
            (lambda: g.histogram(x, "auto"), TypeError, "by a name"),
            (lambda: g.average(x, weights=[1, 2, 3]), TypeError, "Axis must be specified"),
            (lambda: g.matmul(x, x, out=x), ValueError, "matmul"),
            (lambda: g.isin(x, x, kind="magic"), ValueError, "Invalid kind")):
        with pytest.raises(kind, match=text):
            wrong()
    assert requests() == 0

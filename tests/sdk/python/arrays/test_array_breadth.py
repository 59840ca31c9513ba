"""Which of NumPy's and CuPy's names there are: tables, printed with `python3 tests/sdk/python/arrays/test_array_breadth.py`. The bounds are what
has been reached; a name that is given up must be taken from them."""
import inspect
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "sdk" / "python"))

import gpurest  # noqa: E402
import numpy as np  # noqa: E402

CUPY_NAMES = pathlib.Path(__file__).with_name("data") / "cupy_names.txt"
FUNCTIONS_REACHED = 354  # all of them
UFUNCS_REACHED = 105  # of 106 names
MEMBERS_REACHED = 65  # of 70
# Not there, each with its reason.
FUNCTIONS_MISSING = {}
LINALG_REACHED = 31  # all of them
UFUNCS_MISSING = {"isnat": "there are no dates"}
MEMBERS_MISSING = {"ctypes": "the memory is another process's", "data": "the memory is another process's", "getfield": "elements have no fields",
                   "setfield": "elements have no fields", "setflags": "arrays are writable, unless elements share memory"}


def shared_functions():
    """The functions that both NumPy and CuPy have."""
    names = [line for line in CUPY_NAMES.read_text().split("\n") if line and not line.startswith("#")]
    return sorted(name for name in names if callable(getattr(np, name, None)) and not inspect.isclass(getattr(np, name)))


def ufuncs():
    return [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)]


def of_linalg():
    """The functions of numpy.linalg."""
    return [name for name in dir(np.linalg) if inspect.isroutine(getattr(np.linalg, name)) and name != "test"]


def members():
    return [name for name in dir(np.ndarray) if not name.startswith("_")]


def there(names, owner):
    return [name for name in names if getattr(owner, name, None) is not None]


def missing(names, owner):
    return sorted(set(names) - set(there(names, owner)))


def test_functions_of_numpy_and_cupy():
    names = shared_functions()
    assert len(names) >= 340, "the list of names is cut"
    assert set(missing(names, gpurest)) <= set(FUNCTIONS_MISSING)
    assert len(there(names, gpurest)) >= min(FUNCTIONS_REACHED, len(names) - len(FUNCTIONS_MISSING))
    assert not [name for name in there(names, gpurest) if not callable(getattr(gpurest, name))]


def test_functions_say_what_they_do():
    undocumented = [name for name in there(shared_functions(), gpurest) if not (getattr(gpurest, name).__doc__ or "").strip()]
    assert not undocumented


def test_ufuncs_have_their_methods():
    assert set(missing(ufuncs(), gpurest)) <= set(UFUNCS_MISSING) and len(there(ufuncs(), gpurest)) >= UFUNCS_REACHED
    elementwise = [name for name in there(ufuncs(), gpurest) if getattr(np, name).signature is None]
    for name in elementwise:
        ours, theirs = getattr(gpurest, name), getattr(np, name)
        assert (ours.nin, ours.nout, ours.nargs) == (theirs.nin, theirs.nout, theirs.nargs), name
        for method in ("reduce", "accumulate", "outer", "at"):
            assert callable(getattr(ours, method)), (name, method)
        if theirs.identity is not None and isinstance(theirs.identity, (bool, int, float)):
            assert ours.identity == theirs.identity, name


def test_functions_of_linalg():
    names = of_linalg()
    assert not missing(names, gpurest.linalg) and len(names) >= LINALG_REACHED


def test_members_of_arrays(g):
    assert set(missing(members(), gpurest.ndarray)) <= set(MEMBERS_MISSING) and len(there(members(), gpurest.ndarray)) >= MEMBERS_REACHED
    x = g.arange(6.0).reshape(2, 3)
    a = np.arange(6.0).reshape(2, 3)
    for name in there(members(), gpurest.ndarray):
        assert callable(getattr(x, name)) == callable(getattr(a, name)), name


def table(what, names, owner, reasons):
    found = there(names, owner)
    print(f"{what}: {len(found)} of {len(names)}")
    for name in missing(names, owner):
        print(f"    missing {name}: {reasons.get(name, '')}")


if __name__ == "__main__":
    table("functions that NumPy and CuPy share", shared_functions(), gpurest, FUNCTIONS_MISSING)
    table("functions of numpy.linalg", of_linalg(), gpurest.linalg, {})
    table("NumPy's ufuncs, by their names", ufuncs(), gpurest, UFUNCS_MISSING)
    table("members of numpy.ndarray", members(), gpurest.ndarray, MEMBERS_MISSING)

"""How loops are compiled, and where the compiled code is kept.

Numba keeps compiled code beside the source unless told otherwise, and the folder of an
installed package may not be writable. So the code goes into Millstream's cache, and a
second start compiles nothing. Import `compiled` from here, never numba itself: the
place must be known before numba is loaded.

Numba notices a change of the file a function stands in, but not of functions it calls in
other files. Hence one rule: whatever is compiled stands in `COMPILED`, and what is kept is kept
by the contents of its own file and of all files of `COMPILED` that this one imports, directly
or not. A function from elsewhere cannot be lent to a loop.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from millstream.cache import COMPILED, cache_directory, digest_of_file

F = TypeVar("F", bound=Callable[..., Any])


_FOLDER = Path(os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_directory() / "numba")))

import llvmlite.binding  # noqa: E402  the line above must come first
import numba  # noqa: E402
from numba.core.caching import (  # noqa: E402
    CompileResultCacheImpl,
    FunctionCache,
    UserProvidedCacheLocator,
)
from numba.core.runtime.nrt import rtsys  # noqa: E402

from millstream.lending import Lending, for_all_constants  # noqa: E402


def _lend_wide_division() -> None:
    """Tell LLVM how to divide 128 bits: it may, to know how often a loop goes round.

    If it finds no such function, it ends the process.
    """
    try:
        library = ctypes.CDLL("libgcc_s.so.1")
        for name in ("__udivti3", "__umodti3", "__divti3", "__modti3"):
            address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            llvmlite.binding.add_symbol(name, address)
    except (OSError, AttributeError):
        return  # another system, which may have its own


_lend_wide_division()
_njit: Any = numba.njit
_config: Any = numba.config
_config.CACHE_DIR = str(_FOLDER)  # in case numba was loaded before


class _ByContent(UserProvidedCacheLocator):
    """A folder named by contents only, so that another checkout or installation finds it too."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)  # type: ignore[no-untyped-call]
        self._cache_path = str(Path(_config.CACHE_DIR) / Path(py_file).parent.name)


class _KeptByContent(CompileResultCacheImpl):
    _locator_classes = [_ByContent, *CompileResultCacheImpl._locator_classes]  # noqa: RUF012, SLF001


class _Kept(FunctionCache):
    """What numba keeps of a function, loaded without all that numba would compile it with.

    Numba makes ready to compile (a hundred modules, all its declarations) before it looks
    whether it has to, which takes longer than loading. It does so again when it compiles.
    """

    _impl_class = _KeptByContent

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # what compiled code counts references to arrays with
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def kept(dispatcher: Any) -> Any:
    """Let what is compiled of a function be kept, where `CACHE_DIR` of numba says now."""
    cache = _Kept(dispatcher.py_func)  # type: ignore[no-untyped-call]
    dispatcher._cache = cache  # noqa: SLF001 - there is no other way in
    return dispatcher


def compiled(function: F) -> F:
    """Compile a function at its first call; it may make arrays.

    Call it with one combination of argument types only, or it is compiled again: pass
    arrays that are only read through `frozen`.
    """
    return _compiled(function, _nrt=True)


def tight(function: F) -> F:
    """Compile a loop that makes no arrays, so that no references to any are counted.

    Numba counts them at each call and at each look into a tuple, and cannot always see
    that this is in vain; in the loop of an aggregate it takes nine tenths of the time.
    """
    return _compiled(function, _nrt=False)


def inlined(function: F) -> F:
    """Compile a function that makes no arrays into the bodies of those that call it.

    It can only be called by compiled functions.
    """
    return _lent(function, forceinline=True)


def lent(function: Any) -> Any:
    """Compile a plain function of another part as `inlined`, and apart those that it calls."""
    return inlined(_with_compiled(function, apart, {}))


def raising(function: Any, instead: Mapping[str, Any]) -> Any:
    """Compile a plain function of another part that may raise: those that call it must catch.

    All exceptions are one. Dividing by zero raises, as it does in Python; to have no value at
    all, such as the logarithm of -1, gives NaN. What it calls by some names may be others here.
    """
    return _raising(_with_compiled(function, _raising, instead))


def _with_compiled(
    function: FunctionType, lend: Callable[[Any], Any], instead: Mapping[str, Any]
) -> FunctionType:
    home = Path(function.__code__.co_filename)
    assert _is_ours(home), f"{home} is not in COMPILED"
    known = function.__globals__ | {n: f for n, f in instead.items() if n in function.__globals__}
    called = {n: known[n] for n in function.__code__.co_names if n in known and n not in instead}
    plain = {
        n: lend(_with_compiled(f, lend, instead))
        for n, f in called.items()
        if isinstance(f, FunctionType)
    }
    return FunctionType(function.__code__, known | plain, function.__name__, function.__defaults__)


def apart(function: F) -> F:
    """Compile a function that makes no arrays on its own, called by compiled functions only."""
    return _lent(function, forceinline=False)


def _raising(function: F) -> F:
    return _lent(function, forceinline=False, error_model="python")


def _lent(function: F, *, forceinline: bool, error_model: str = "numpy") -> F:
    """It is kept on its own, unless it lies in a generated source, when it is first called.

    To look for a place for each of some hundred functions takes longer than to load the few.
    """
    if _config.DISABLE_JIT:
        return function
    made = _njit(
        _nrt=False, forceinline=forceinline, no_cpython_wrapper=True, pipeline_class=Lending,
        **(_OPTIONS | {"error_model": error_model}),
    )(function)  # fmt: skip
    home = Path(function.__code__.co_filename)
    # The same function may be lent in both ways.
    way = "-inlined" if forceinline else ("" if error_model == "numpy" else "-raising")

    def keep() -> None:
        if _is_ours(home):
            _keep(made, home, way)

    return for_all_constants(made, keep)  # type: ignore[no-any-return]


def _is_ours(home: Path) -> bool:
    return any(home.is_relative_to(place) for place in COMPILED)


_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def _compiled(function: F, **options: Any) -> F:
    if _config.DISABLE_JIT:  # loops are to be run by Python itself
        return function
    made = _njit(**options, **_OPTIONS)(function)
    _keep(made, Path(function.__code__.co_filename))
    return made  # type: ignore[no-any-return]


def _keep(dispatcher: Any, home: Path, way: str = "") -> None:
    before = _config.CACHE_DIR
    _config.CACHE_DIR = str(_FOLDER / (digest_of_file(home).hex()[:16] + way))
    try:
        kept(dispatcher)
    except RuntimeError:
        return  # no folder at all can be written to: it is compiled at every start
    finally:
        _config.CACHE_DIR = before

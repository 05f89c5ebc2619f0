"""How what loops call is compiled: as LLVM's code only, which becomes part of those that call it.

Numba makes machine code of every function that it compiles, and optimises it, with all that it
calls, once for itself and once more in each that calls it. A function that only loops call needs
neither: its code is handed on as it was lowered, and is optimised where it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding
from numba.core import compiler, types
from numba.core.codegen import JITCodeLibrary

_ENVIRONMENT = "_ZN08NumbaEnv"
_Library: Any = JITCodeLibrary
_Compiler: Any = compiler.Compiler
_wide: Any = types.unliteral


class LentLibrary(_Library):  # type: ignore[misc]
    """The code of a function, and of those it calls, which is there to be linked only.

    What is made into machine code are the pointers to its environments, which numba fills.
    """

    _final_module: Any

    def finalize(self) -> None:
        self._raise_if_finalized()
        lent = self._final_module
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as numba itself does
            lent.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        for function in lent.functions:
            if not function.is_declaration:
                function.linkage = "linkonce_odr"
        self._shared_module = lent
        names = [v.name for v in lent.global_variables if v.name.startswith(_ENVIRONMENT)]
        lines = [f"@{name} = common global ptr null" for name in names]
        self._final_module = llvmlite.binding.parse_assembly("\n".join(lines))
        self._final_module.name = lent.name
        self._finalize_final_module()


class Lending(_Compiler):  # type: ignore[misc]
    """Numba's compiler, for what is only linked."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *more: Any) -> None:
        super().__init__(typingctx, targetctx, library, *more)
        if library is None:
            self.state.library = LentLibrary(targetctx.codegen(), "lent")
            self.state.library.enable_object_caching()


def for_all_constants(dispatcher: Any, before_first: Callable[[], None]) -> Any:
    """Compile a function once for all constants that it is given.

    Numba would make a form for each of them; where it is inlined they are seen anyway.
    """
    template = dispatcher.get_call_template
    todo = [before_first]

    def widened(args: Any, kws: Any) -> Any:
        if todo:
            todo.pop()()
        return template(tuple(_wide(t) for t in args), {n: _wide(t) for n, t in kws.items()})

    dispatcher.get_call_template = widened
    return dispatcher

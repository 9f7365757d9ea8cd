"""Settings with scikit-learn's manners and without its import, which alone would take a hundred megabytes.

`sklearn.base.clone` asks for no more than this.
"""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any, Self

import numpy as np

from dpsr.errors import ParameterError


class Parameters:
    """The constructor only stores its arguments, under their own names."""

    @classmethod
    def _parameters(cls) -> list[Parameter]:
        return list(signature(cls).parameters.values())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments as they are now."""
        return {parameter.name: getattr(self, parameter.name) for parameter in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change some of them."""
        names = [parameter.name for parameter in self._parameters()]
        for name, value in params.items():
            if name not in names:
                raise ParameterError(f"{type(self).__name__} has the settings {', '.join(names)}, found {name}.")
            setattr(self, name, value)
        return self

    def unfitted(self) -> Self:
        """Another with the same settings that has learned nothing."""
        return type(self)(**self.get_params())

    def __repr__(self) -> str:
        """As one would write it: settings that were left alone are left out, but never epsilon."""
        values = [(p, getattr(self, p.name)) for p in self._parameters()]
        own = [(p.name, value) for p, value in values if p.name == "epsilon" or not _is_default(value, p.default)]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in own)})"


def _is_default(value: Any, default: Any) -> bool:
    """Whether a setting was left alone; lists and arrays are not compared element by element."""
    return value is default or (np.ndim(value) == 0 and bool(value == default))

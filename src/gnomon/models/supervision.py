"""A name that `sppca_fitted.from_supervised` imports; nothing calls that function any more."""

from typing import Any

Supervised = Any

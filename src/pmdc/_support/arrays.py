"""Type aliases of arrays, for the whole library."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

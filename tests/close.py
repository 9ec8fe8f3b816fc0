"""Compare numbers up to rounding errors, which grow with the size of the numbers and differ between processors."""

import numpy as np
import torch

BFLOAT16, FLOAT32, FLOAT64 = 2e-2, 1e-5, 1e-12  # relative tolerances: about 3, 80 and 4,500 units in the last place
ROUNDING = {torch.float64: FLOAT64, torch.float32: FLOAT32, torch.bfloat16: BFLOAT16}


def assert_close(actual: object, expected: object, tolerance: float = 0.0, scale: float | np.ndarray = 0.0) -> None:
    """Assert that |actual - expected| <= tolerance x scale everywhere.

    Args:
        actual: Tensor, array, list or number.
        expected: An object of the same shape, or one number for all elements; preferably computed in float64.
        tolerance: By default, the tolerance of the less precise type. Python's numbers count as float64: pass
            `FLOAT32` if they were computed in float32, and a multiple of the default if many errors add up.
        scale: The size of the numbers that were rounded; by default the largest |expected|. Pass it if large numbers
            cancel each other and give a small result.
    """
    sides = [
        torch.as_tensor(each if hasattr(each, "detach") else np.array(each, order="C")) for each in (actual, expected)
    ]
    left, right = (np.asarray(side.detach().cpu().to(torch.promote_types(side.dtype, torch.float64))) for side in sides)
    assert right.shape in (left.shape, ()), f"shapes {left.shape} and {right.shape}"
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        assert actual.dtype == expected.dtype
    tolerance = tolerance or max(ROUNDING.get(side.real.dtype, FLOAT64) for side in sides)
    if not np.any(scale):
        scale = np.abs(right[np.isfinite(right)]).max(initial=np.finfo(np.float64).tiny)
    np.testing.assert_allclose(left / scale, right / scale, rtol=0, atol=tolerance, equal_nan=False)

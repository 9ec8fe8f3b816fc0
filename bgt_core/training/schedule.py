"""The learning rate of each step."""

from __future__ import annotations

from bgt_core.training.config import TrainConfig


def learning_rate(step: int, steps: int, config: TrainConfig) -> float:
    """Linear to the peak, then 1 / sqrt (Vaswani et al. 2017), or constant without warm-up; `cooldown` adds a linear
    fall to 0 at the end."""
    done = step + 1
    warmup = config.warmup_steps
    rate = config.learning_rate * (min(done / warmup, (warmup / done) ** 0.5) if warmup else 1.0)
    falling = config.cooldown * steps
    return rate * min(1.0, (steps - step) / falling) if falling else rate

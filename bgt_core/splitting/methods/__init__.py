"""Ways to split, a file each: `fit(statistics, held_out, rows)` -> `Split`."""

// Paints the points of a map: as copies of prepared images of the marks, or pixel by pixel if there are very many points.
const SHAPES = { // corners of each mark, in radii from its middle; null for a circle
  circle: null,
  diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  "triangle-up": [[0, -1.25], [1.15, 0.75], [-1.15, 0.75]],
  cross: [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  pentagon: [[0, -1.1], [1.05, -0.34], [0.65, 0.89], [-0.65, 0.89], [-1.05, -0.34]],
  hourglass: [[-1, -1], [1, -1], [-1, 1], [1, 1]],
  star: Array.from({ length: 10 }, (_, at) => [0, 1].map((side) => (at % 2 ? 0.6 : 1.5) * [Math.sin, (turn) => -Math.cos(turn)][side]((at * Math.PI) / 5))),
};
const [HIDDEN, FILTERED, FADED, SHOWN] = [0, 1, 2, 3]; // states of a row, the same on all maps
const ALPHA = [0, 0.06, 0.2, 1];
const UNLIT = [128, 128, 128]; // colour of points that are filtered out, if they are squares
const SPRITES = 10_000; // maximum number of points whose marks have shapes; more points are squares of pixels
const VECTORS = 20_000; // maximum number of points in an SVG drawing; most programs can't open larger drawings
const CELLS = 64; // number of cells on each side of the grid in which points are counted for their density
const LEVELS = 7; // number of contour lines

// Returns [red, green, blue] of any CSS colour.
function rgb(colour) {
  const context = document.createElement("canvas").getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

// Returns the radius of a mark in pixels. It is larger for the first language, so that a translation drawn at the same
// place leaves a visible rim.
function radius(total, first) {
  if (total > SPRITES) return 1.25;
  if (total > 3000) return first ? 3.2 : 2.4;
  return first ? 5.2 : 3.2;
}

function trace(context, shape, x, y, size) {
  context.beginPath();
  if (!SHAPES[shape]) context.arc(x, y, size, 0, 2 * Math.PI);
  else SHAPES[shape].forEach(([dx, dy], at) => context[at ? "lineTo" : "moveTo"](x + dx * size, y + dy * size));
  context.closePath();
}

// Returns an image of a mark. Each different mark is drawn only once, and kept in `cache`.
function sprite(cache, shape, colour, size, ratio, edge) {
  const key = [shape, colour, size, ratio, edge].join();
  if (!cache.has(key)) {
    const picture = document.createElement("canvas");
    picture.width = picture.height = Math.ceil(2 * ratio * (1.6 * size + 1));
    const context = picture.getContext("2d");
    context.scale(ratio, ratio);
    trace(context, shape, picture.width / ratio / 2, picture.width / ratio / 2, size);
    [context.fillStyle, context.strokeStyle, context.lineWidth] = [colour, edge, 0.7];
    context.fill();
    context.stroke();
    cache.set(key, picture);
  }
  return cache.get(key);
}

// Paints the marks of a panel's rows, the faintest first. `look` has functions that return a row's shape, size and colour.
function paintMarks(context, panel, place, look, states, cache, ratio) {
  for (let state = FILTERED; state <= SHOWN; state++) {
    for (let step = 0; step < panel.rows.length; step++) {
      const at = panel.order ? panel.order[step] : step;
      const row = panel.rows[at];
      if (states[row] !== state) continue;
      const [x, y] = place(panel.x[at], panel.y[at]);
      if (x < -8 || y < -8 || x > panel.box.width + 8 || y > panel.box.height + 8) continue;
      const colour = state === FILTERED ? look.edge : look.colour(row);
      const depth = cue(panel, at);
      context.globalAlpha = depth.alpha * ALPHA[state];
      const picture = sprite(cache, look.shape(row), colour, depth.size * look.size(row), ratio, look.own(row) ? look.ink : look.edge);
      const side = picture.width / ratio;
      context.drawImage(picture, x - side / 2, y - side / 2, side, side);
    }
  }
  context.globalAlpha = 1;
}

// Paints very many points: each is a small square, whose colour is mixed into the pixels of an image.
function paintPixels(context, panel, look, states, ratio, ground, total) {
  const [width, height] = [panel.box.width, panel.box.height].map((side) => Math.max(1, Math.round(side * ratio)));
  const data = new Float32Array(4 * width * height); // bytes would round faint colours to wrong ones
  for (let at = 0; at < data.length; at += 4) [data[at], data[at + 1], data[at + 2], data[at + 3]] = [...ground, 255];
  const usual = Math.max(2, Math.round(2 * radius(total) * ratio));
  const strength = Math.max(0.12, Math.min(1, (SPRITES / total) ** 0.5));
  const shades = look.palette.map(rgb);
  const { scale, x: middleX, y: middleY } = panel.view;
  for (let state = FILTERED; state <= SHOWN; state++) {
    for (let step = 0; step < panel.rows.length; step++) {
      const at = panel.order ? panel.order[step] : step;
      const row = panel.rows[at];
      if (states[row] !== state) continue;
      const depth = cue(panel, at);
      const alpha = depth.alpha * ALPHA[state] * strength;
      const side = Math.max(1, Math.round(depth.size * usual));
      const left = Math.round(width / 2 + (panel.x[at] - middleX) * scale * ratio - side / 2);
      const top = Math.round(height / 2 - (panel.y[at] - middleY) * scale * ratio - side / 2);
      if (left < 0 || top < 0 || left + side > width || top + side > height) continue;
      const [red, green, blue] = state === FILTERED ? UNLIT : shades[look.code(row)];
      for (let line = 0; line < side; line++) {
        for (let spot = 4 * ((top + line) * width + left), end = spot + 4 * side; spot < end; spot += 4) {
          data[spot] += (red - data[spot]) * alpha;
          data[spot + 1] += (green - data[spot + 1]) * alpha;
          data[spot + 2] += (blue - data[spot + 2]) * alpha;
        }
      }
    }
  }
  const picture = new ImageData(width, height);
  picture.data.set(data);
  context.putImageData(picture, Math.round(panel.box.left * ratio), Math.round(panel.box.top * ratio));
}

// Returns the lines of equal density of a panel's points, each as [x, y, x, y] in map coordinates.
function contours({ x, y }) {
  const sides = [x, y].map(range).map(([low, high]) => {
    const margin = 0.1 * (high - low || 1);
    return { low: low - margin, cell: (high - low + 2 * margin) / CELLS };
  });
  const counts = new Float64Array(CELLS * CELLS);
  x.forEach((_, at) => {
    const [col, row] = [x, y].map((values, side) => Math.floor((values[at] - sides[side].low) / sides[side].cell));
    counts[row * CELLS + col]++;
  });
  const smooth = smoothed(smoothed(counts, 1), CELLS);
  const highest = range(smooth)[1];
  const lines = [];
  for (let level = 1; level <= LEVELS; level++) {
    for (const cut of cuts(smooth, (highest * level) / (LEVELS + 1))) {
      lines.push(cut.map((value, at) => sides[at % 2].low + (value + 0.5) * sides[at % 2].cell));
    }
  }
  return lines;
}

// Smooths a grid along one direction by three passes of a moving average, which is nearly a Gaussian filter.
function smoothed(grid, step) {
  for (let pass = 0; pass < 3; pass++) {
    const result = new Float64Array(grid.length);
    for (let at = 0; at < grid.length; at++) {
      const place = step === 1 ? at % CELLS : Math.floor(at / CELLS);
      for (let shift = -2; shift <= 2; shift++) {
        if (place + shift >= 0 && place + shift < CELLS) result[at] += grid[at + shift * step] / 5;
      }
    }
    grid = result;
  }
  return grid;
}

// Returns the line segments along which a grid has the value `level` (marching squares).
function cuts(grid, level) {
  const found = [];
  const share = (from, to) => (level - from) / (to - from);
  for (let row = 0; row + 1 < CELLS; row++) {
    for (let col = 0; col + 1 < CELLS; col++) {
      const at = row * CELLS + col;
      const [a, b, c, d] = [grid[at], grid[at + 1], grid[at + CELLS + 1], grid[at + CELLS]];
      const ends = [];
      if (a > level !== b > level) ends.push([col + share(a, b), row]);
      if (b > level !== c > level) ends.push([col + 1, row + share(b, c)]);
      if (c > level !== d > level) ends.push([col + share(d, c), row + 1]);
      if (d > level !== a > level) ends.push([col, row + share(a, d)]);
      for (let end = 0; end + 1 < ends.length; end += 2) found.push([...ends[end], ...ends[end + 1]]);
    }
  }
  return found;
}

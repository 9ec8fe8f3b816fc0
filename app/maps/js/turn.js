// Maps in three dimensions: how they are turned, and how depth is shown. A turn is {right, down}: the degrees by which the
// side of a map that is near to the viewer is turned to the right and down. All maps of a page have the same turn.
const OPENING = { right: -30, down: 20 }; // the turn when a map opens, which shows at once that the map has depth
const DEGREES = 0.5; // degrees by which a map turns when the pointer is dragged by a pixel
const KEYED = 5; // degrees by which an arrow key turns a map
const DEPTHS = 16; // number of levels of depth; each has its own size and opacity of marks
const [FAR, NEAR] = [{ size: 0.55, alpha: 0.3 }, { size: 1.35, alpha: 1 }]; // of the farthest and of the nearest marks
const FLAT = { size: 1, alpha: 1 }; // of all marks on a map in two dimensions
const CUES = Array.from({ length: DEPTHS }, (_, level) => {
  const between = (from, to) => from + ((to - from) * level) / (DEPTHS - 1);
  return { size: between(FAR.size, NEAR.size), alpha: between(FAR.alpha, NEAR.alpha) };
});
const LEAST_ROOM = 180; // width and height in pixels from which a panel shows the directions of its axes
const TRIPOD = 26; // length in pixels of the lines that show the directions of the axes

// Adds degrees to a turn. To the right, a map turns all the way round; up and down, until it is seen from above or below.
function further(turn, right, down) {
  const round = (turn.right + right + 540) % 360;
  return { right: (round < 0 ? round + 360 : round) - 180, down: Math.max(-90, Math.min(90, turn.down + down)) };
}

// `turnOf` reads a turn from a text such as "-30:20"; `turnText` writes it.
function turnOf(text) {
  const [right, down] = (/^-?\d{1,3}:-?\d{1,2}$/.test(text) ? text.split(":") : []).map(Number);
  return right === undefined ? OPENING : further({ right: 0, down: 0 }, right, down);
}

const turnText = ({ right, down }) => `${Math.round(right)}:${Math.round(down)}`;

// Describes a turn for screen readers.
function turnInWords({ right, down }) {
  const way = (degrees, ahead, back) => (Math.round(degrees) ? `${Math.abs(Math.round(degrees))}° ${degrees > 0 ? ahead : back}` : "");
  return [way(right, "to the right", "to the left"), way(down, "down", "up")].filter(Boolean).join(", ") || "front view";
}

// Returns the directions of the screen in the coordinates of a map: to the right, upwards, and towards the viewer.
function directions({ right, down }) {
  const [a, b] = [right, down].map((degrees) => (degrees * Math.PI) / 180);
  const [sinA, cosA, sinB, cosB] = [Math.sin(a), Math.cos(a), Math.sin(b), Math.cos(b)];
  return [[cosA, 0, sinA], [sinA * sinB, cosB, -cosA * sinB], [-sinA * cosB, sinB, cosA * cosB]];
}

// Prepares a panel whose points have three coordinates: their middle, their greatest distance from it, and their spread.
function solidOf({ x, y, z }) {
  const middle = [x, y, z].map(range).map(([low, high]) => (low + high) / 2 || 0);
  let [greatest, sum] = [0, 0];
  for (let at = 0; at < x.length; at++) {
    const square = (x[at] - middle[0]) ** 2 + (y[at] - middle[1]) ** 2 + (z[at] - middle[2]) ** 2;
    greatest = Math.max(greatest, square);
    sum += square;
  }
  return { x, y, z, middle, reach: Math.sqrt(greatest) || 1, spread: 2 * Math.sqrt(sum / (3 * x.length || 1)) || 1 };
}

// Turns the points of a panel: sets their x and y on the screen, their depth, their level of depth, and the order in which
// they are painted, the farthest first.
function turnPanel(panel, turn) {
  const { solid: { x, y, z, middle: [midX, midY, midZ], spread } } = panel;
  const [[ax, ay, az], [bx, by, bz], [cx, cy, cz]] = directions(turn);
  const size = x.length;
  panel.depth ??= new Float32Array(size);
  panel.level ??= new Uint8Array(size);
  panel.order ??= new Int32Array(size);
  if (panel.x === x) [panel.x, panel.y] = [new Float32Array(size), new Float32Array(size)];
  const first = new Int32Array(DEPTHS + 1);
  for (let at = 0; at < size; at++) {
    const dx = x[at] - midX;
    const dy = y[at] - midY;
    const dz = z[at] - midZ;
    panel.x[at] = midX + ax * dx + ay * dy + az * dz;
    panel.y[at] = midY + bx * dx + by * dy + bz * dz;
    const depth = cx * dx + cy * dy + cz * dz;
    panel.depth[at] = depth;
    const level = Math.max(0, Math.min(DEPTHS - 1, Math.floor((depth / spread + 1) * 0.5 * DEPTHS)));
    panel.level[at] = level;
    first[level + 1]++;
  }
  for (let level = 0; level < DEPTHS; level++) first[level + 1] += first[level];
  for (let at = 0; at < size; at++) panel.order[first[panel.level[at]]++] = at;
  panel.contours = null;
}

// `seenAt` turns a place {x, y, z} of a map to [x, y, depth] on the screen; `placeOf` turns it back. On a map in two
// dimensions, both return the coordinates unchanged.
function seenAt({ solid }, { x, y, z }, turn) {
  if (!solid) return [x, y, 0];
  const from = [x, y, z].map((value, side) => value - solid.middle[side]);
  const [right, up, near] = directions(turn).map((way) => way.reduce((sum, part, side) => sum + part * from[side], 0));
  return [solid.middle[0] + right, solid.middle[1] + up, near];
}

function placeOf({ solid }, [x, y, depth], turn) {
  if (!solid) return { x, y };
  const from = [x - solid.middle[0], y - solid.middle[1], depth];
  const ways = directions(turn);
  const [px, py, pz] = solid.middle.map((middle, side) => middle + ways.reduce((sum, way, at) => sum + way[side] * from[at], 0));
  return { x: px, y: py, z: pz };
}

// Returns the size and the opacity that show the depth of a panel's point.
const cue = ({ level }, at) => (level ? CUES[level[at]] : FLAT);

// Draws the directions of the three axes in the lower left corner of a panel; `shorter` is the part of each that is seen.
function tripod(layer, { box }, turn) {
  const [left, top] = [box.left + TRIPOD + 10, box.top + box.height - TRIPOD - 10];
  const [right, up] = directions(turn);
  ["x", "y", "z"].forEach((name, side) => {
    const [x, y] = [left + TRIPOD * right[side], top - TRIPOD * up[side]];
    shape(layer, "line", { x1: left, y1: top, x2: x, y2: y, class: "bgt-axis" });
    shape(layer, "text", { x: left + 1.3 * (x - left) - 3, y: top + 1.3 * (y - top) + 4, class: "bgt-text" }, name);
  });
}

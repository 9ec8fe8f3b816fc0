// Functions of points and of sets of rows; they do not use the page.

// Decodes numbers as Python sends them: a list, or a typed array in base64.
function numbers(values) {
  if (!values?.bdata) return Float64Array.from(values ?? []);
  const bytes = Uint8Array.from(atob(values.bdata), (char) => char.charCodeAt(0));
  const kind = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, i4: Int32Array }[values.dtype];
  return new kind(bytes.buffer);
}

// `unpacked` decodes a set of rows from base64 to bits, the lowest bit first; `packed` encodes it.
function unpacked(text) {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

function packed(bits) {
  let text = "";
  for (let start = 0; start < bits.length; start += 8192) {
    text += String.fromCharCode(...bits.subarray(start, start + 8192));
  }
  return btoa(text);
}

const emptyBits = (size) => new Uint8Array((size + 7) >> 3);
const has = (bits, at) => (bits[at >> 3] >> (at & 7)) & 1;
const add = (bits, at) => { bits[at >> 3] |= 1 << (at & 7); };
const bitsOf = (rows, size) => {
  const bits = emptyBits(size);
  rows.forEach((row) => add(bits, row));
  return bits;
};

function count(bits) {
  let total = 0;
  for (let byte of bits) for (; byte; byte &= byte - 1) total++;
  return total;
}

// Returns the smallest and the largest number.
function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// Returns whether (x, y) is inside a polygon, [[x, y], ...].
function inside(polygon, x, y) {
  let odd = false;
  for (let at = 0, before = polygon.length - 1; at < polygon.length; before = at++) {
    const [ax, ay] = polygon[at];
    const [bx, by] = polygon[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

// Returns the rows of a panel that are inside a polygon, as bits. `open(row)` says whether a row may be selected.
function rowsInside(panel, polygon, size, open) {
  const bits = emptyBits(size);
  const [left, right] = range(polygon.map(([x]) => x));
  const [low, high] = range(polygon.map(([, y]) => y));
  panel.rows.forEach((row, at) => {
    const [x, y] = [panel.x[at], panel.y[at]];
    if (x < left || x > right || y < low || y > high || !open(row)) return;
    if (inside(polygon, x, y)) add(bits, row);
  });
  return bits;
}

// Returns the row of a panel that is nearest to (x, y), in map coordinates; -1 if no row is nearer than `within`. Where
// points overlap on a map in three dimensions, one that is nearer to the viewer is preferred.
function nearestRow(panel, x, y, within, open) {
  let [nearest, least] = [-1, within * within];
  for (let at = 0; at < panel.rows.length; at++) {
    const distance = ((panel.x[at] - x) ** 2 + (panel.y[at] - y) ** 2) / cue(panel, at).alpha;
    if (distance < least && open(panel.rows[at])) [nearest, least] = [panel.rows[at], distance];
  }
  return nearest;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
// Returns the index in `places`, pixels [[x, y], ...], of the point that a key leads to from the point `at`: an arrow key to
// the nearest point in its direction, Page Down and Page Up to the next and the previous point. Returns -1 if there is none.
// A place is null if its point is outside the visible part. If there is no place `at`, arrow keys begin at the pixel `start`.
function reached(key, places, at, start) {
  if (key === "PageDown") return (at + 1) % places.length;
  if (key === "PageUp") return (Math.max(at, 0) || places.length) - 1;
  const [[x, y], [dx, dy]] = [places[at] ?? start, ARROWS[key]];
  let [best, least] = [-1, Infinity];
  places.forEach((place, each) => {
    const [right, down] = place ? [place[0] - x, place[1] - y] : [0, 0];
    const [along, across] = [right * dx + down * dy, Math.abs(right * dy) + Math.abs(down * dx)];
    if (along > 1 && along + 2 * across < least) [best, least] = [each, along + 2 * across];
  });
  return best;
}

// Returns the rows, as bits, whose text contains `words` as whole words, or, if there are none, as parts of words.
function rowsWith(texts, words, size) {
  const sought = words.trim().toLowerCase();
  const [parts, whole] = [emptyBits(size), emptyBits(size)];
  const letter = /[\p{L}\p{N}_]/u;
  const open = (text, at, edge) => !letter.test(edge) || !letter.test(text[at] ?? "");
  texts.forEach((text, row) => {
    for (let at = text.indexOf(sought); at >= 0; at = text.indexOf(sought, at + 1)) {
      add(parts, row);
      if (open(text, at - 1, sought[0]) && open(text, at + sought.length, sought.at(-1))) add(whole, row);
    }
  });
  return whole.some(Boolean) ? whole : parts;
}

// Shortens a text to at most `most` letters; cuts it between words if possible, and drops a language's mark before "…".
function shortened(text, most) {
  if (text.length <= most) return text;
  const cut = text.slice(0, most - 1);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), most / 2)).replace(/[\s\p{S}]+$/u, "")}…`;
}

const SAMPLED = 3000; // maximum number of points from which groups are computed
const ROUNDS = 12; // number of iterations of k-means

// Clusters points by k-means, which starts from rows spread evenly over the list, and returns the row nearest to each mean,
// the largest cluster first. Rows for which `preferred(row)` is true are preferred. Only rows with `open(row)` count.
function typicalRows({ rows, x, y }, number, open, preferred) {
  const all = [...rows.keys()].filter((at) => open(rows[at]));
  const places = all.filter((_, at) => at % Math.ceil(all.length / SAMPLED) === 0);
  const size = Math.min(number, Math.ceil(places.length / 8));
  let means = Array.from({ length: size }, (_, at) => places[Math.floor(((at + 0.5) * places.length) / size)]).map((at) => [x[at], y[at]]);
  const away = (at, [left, top]) => (x[at] - left) ** 2 + (y[at] - top) ** 2;
  let groups = [];
  for (let round = 0; round < ROUNDS; round++) {
    groups = means.map(() => []);
    for (const at of places) {
      let nearest = 0;
      means.forEach((mean, each) => { if (away(at, mean) < away(at, means[nearest])) nearest = each; });
      groups[nearest].push(at);
    }
    groups = groups.filter((group) => group.length);
    means = groups.map((group) => [x, y].map((values) => group.reduce((sum, at) => sum + values[at], 0) / group.length));
  }
  const named = groups.map((group, each) => {
    const cost = (at) => away(at, means[each]) * (preferred(rows[at]) ? 1 : 4);
    return { size: group.length, row: rows[group.reduce((best, at) => (cost(at) < cost(best) ? at : best))] };
  });
  return named.sort((left, right) => right.size - left.size).map(({ row }) => row);
}

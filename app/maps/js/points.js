// Points of a drawn plotly figure, and which of them are where.

// Numbers as plotly sends them: a list, or base64 of a typed array.
function numbers(values) {
  if (!values?.bdata) return Float64Array.from(values ?? []);
  const bytes = Uint8Array.from(atob(values.bdata), (char) => char.charCodeAt(0));
  const kind = { f4: Float32Array, f8: Float64Array, i1: Int8Array, i2: Int16Array, i4: Int32Array }[values.dtype];
  return new kind(bytes.buffer);
}

// Ids that a bitset holds, in base64, the lowest bit first.
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

// The distance of the smallest and the largest number.
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return high - low;
}

const has = (bits, at) => (bits[at >> 3] >> (at & 7)) & 1;
const count = (bits) => bits.reduce((sum, byte) => sum + [...byte.toString(2)].filter((bit) => bit === "1").length, 0);

// Whether (x, y) is inside a polygon, [[x, y], ...].
function inside(polygon, x, y) {
  let odd = false;
  for (let at = 0, before = polygon.length - 1; at < polygon.length; before = at++) {
    const [ax, ay] = polygon[at];
    const [bx, by] = polygon[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

// The points of a figure's markers as arrays over the rows of the table: x, y, panel (-1: not on this figure), trace.
function readPoints(figure, rowOf) {
  const size = rowOf.size;
  const points = { x: new Float64Array(size), y: new Float64Array(size), panel: new Int16Array(size).fill(-1), traces: [] };
  const panels = [...new Set(figure.data.map((trace) => trace.xaxis ?? "x"))];
  figure.data.forEach((trace, number) => {
    if (trace.mode !== "markers" || !trace.customdata || trace.visible === false) return;
    const [x, y] = [numbers(trace.x), numbers(trace.y)];
    const rows = Int32Array.from(trace.customdata, (id) => rowOf.get(id) ?? -1);
    rows.forEach((row, at) => {
      if (row < 0) return;
      points.x[row] = x[at];
      points.y[row] = y[at];
      points.panel[row] = panels.indexOf(trace.xaxis ?? "x");
    });
    points.traces.push({ number, rows });
  });
  points.panels = panels;
  return points;
}

// The rows inside a polygon of a panel, as a bitset.
function rowsInside(points, panel, polygon) {
  const bits = new Uint8Array((points.x.length + 7) >> 3);
  const [xs, ys] = [polygon.map(([x]) => x), polygon.map(([, y]) => y)];
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  for (let row = 0; row < points.x.length; row++) {
    const [x, y] = [points.x[row], points.y[row]];
    if (points.panel[row] !== panel || x < left || x > right || y < low || y > high) continue;
    if (inside(polygon, x, y)) bits[row >> 3] |= 1 << (row & 7);
  }
  return bits;
}

// The row nearest to (x, y) of a panel within a distance, all in the units of its axes; -1 if there is none.
function nearestRow(points, panel, x, y, within) {
  let [nearest, least] = [-1, within * within];
  for (let row = 0; row < points.x.length; row++) {
    if (points.panel[row] !== panel) continue;
    const distance = (points.x[row] - x) ** 2 + (points.y[row] - y) ** 2;
    if (distance < least) [nearest, least] = [row, distance];
  }
  return nearest;
}

// Draws a map as SVG for a file.
const round = (value) => Math.round(value * 100) / 100;
const COPIED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-style", "font-weight", "paint-order"]; // styles

// Returns the map as SVG of this size in pixels. More than `VECTORS` points are an embedded image.
function drawing(map, width, height) {
  const before = map.printed;
  map.printed = true; // print all texts, also of a map that is small on the screen
  map.resize(width, height);
  const parts = [`<rect width="${width}" height="${height}" fill="#f7f7f7"/>`];
  if (map.view.size > VECTORS) parts.push(`<image width="${width}" height="${height}" href="${map.canvas.toDataURL()}"/>`);
  else map.panels.forEach((panel) => parts.push(...marks(map, panel, width < 350 ? 0.5 : 0.65)));
  if (map.view.dense) parts.push(contourLines(map));
  parts.push(styled(map.over).innerHTML);
  map.printed = before;
  return parts.join("");
}

// Returns the marks of a panel's points, the farthest first; `scale` is their size relative to the screen.
function marks(map, panel, scale) {
  const [look, parts] = [map.view.look(), []];
  for (let step = 0; step < panel.rows.length; step++) {
    const at = panel.order ? panel.order[step] : step;
    const row = panel.rows[at];
    const [state, depth] = [map.view.states[row], cue(panel, at)];
    const [left, top] = map.inPanel(panel, panel.x[at], panel.y[at]);
    if (!state || left < 0 || top < 0 || left > panel.box.width || top > panel.box.height) continue;
    const [x, y, size] = [left + panel.box.left, top + panel.box.top, scale * depth.size * look.size(row)].map(round);
    const corners = SHAPES[look.shape(row)]?.map(([dx, dy]) => [round(x + dx * size), round(y + dy * size)]);
    const d = corners ? `M${corners.join("L")}Z` : `M${round(x - size)} ${y}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0`;
    parts.push(`<path d="${d}" fill="${look.colour(row)}" opacity="${round(depth.alpha * ALPHA[state])}"/>`);
  }
  return parts;
}

// Returns the lines of equal density of all panels.
function contourLines(map) {
  const path = map.panels.flatMap((panel) => (panel.contours ??= contours(panel)).map(([x, y, toX, toY]) => {
    const ends = [[x, y], [toX, toY]].map((end) => map.inPanel(panel, ...end).map((value, side) => round(value + [panel.box.left, panel.box.top][side])));
    return `M${ends.join("L")}`;
  }));
  return `<path d="${path.join("")}" fill="none" stroke="#999" stroke-width="0.6"/>`;
}

// Returns a copy of an SVG layer whose elements have the page's styles as attributes.
function styled(layer) {
  const copy = layer.cloneNode(true);
  const [from, to] = [layer, copy].map((root) => [...root.querySelectorAll("*")]);
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    COPIED.forEach((name) => to[at].setAttribute(name, style.getPropertyValue(name)));
  });
  return copy;
}

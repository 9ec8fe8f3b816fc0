// One map: points on a canvas, and above them an SVG layer with lasso, rings, star and names, and a card.
const SVG = "http://www.w3.org/2000/svg";
const STAR = "0,-11 2.9,-3.6 10.5,-3.4 4.6,1.4 6.5,8.9 0,4.6 -6.5,8.9 -4.6,1.4 -10.5,-3.4 -2.9,-3.6";
const CLICK = 4; // maximum number of pixels that the pointer moves during a click
const REACH = { mouse: 12, pen: 12, touch: 24 }; // maximum distance in pixels from the pointer to the point that it takes
const MARGIN = 22; // pixels around all points of a map
const TITLE = 22; // height in pixels of a panel's title
const MOST_LINES = 500; // maximum number of translations joined by a line; more lines would hide the points
const LETTERS = { group: 34, near: 40 }; // maximum number of letters of a text on the map
const ZOOMS = { finer: 2, sentences: 4 }; // magnifications from which finer topics, and typical sentences, are written
const TYPICAL = 72; // number of typical sentences that are written on a panel
const STEP = 10; // pixels by which an arrow key moves the star
const [LINE, BOLD] = [17, 1.1]; // height in pixels of a text on the map; width of bold text relative to normal text
const LARGER = 1.1; // width of a title relative to a text on the map

function shape(parent, name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.textContent = text;
  return parent.appendChild(element);
}

class OneMap {
  constructor(view) {
    this.view = view;
    this.box = document.createElement("div");
    this.box.className = "bgt-map";
    this.box.setAttribute("role", "figure");
    this.canvas = this.box.appendChild(document.createElement("canvas"));
    this.canvas.setAttribute("role", "application");
    this.over = shape(this.box, "svg", { class: "bgt-over" });
    this.layers = Object.fromEntries(["titles", "pairs", "rings", "paths", "texts", "stars"].map((name) => [name, shape(this.over, "g", { class: `bgt-${name}` })]));
    this.lasso = shape(this.over, "path", { class: "bgt-lasso" });
    this.card = new Card(view, this.box);
    this.sprites = new Map();
    this.box.addEventListener("pointerdown", (event) => this.press(event));
    this.box.addEventListener("pointermove", (event) => this.move(event));
    this.box.addEventListener("pointerup", (event) => this.release(event));
    this.box.addEventListener("pointercancel", () => this.stop());
    this.box.addEventListener("pointerleave", () => this.view.tip(null));
    this.box.addEventListener("dblclick", (event) => { if (!event.target.closest(".bgt-card")) this.reset(); });
    this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    ["touchstart", "touchmove", "touchend"].forEach((name) => this.box.addEventListener(name, (event) => this.pinch(event), { passive: false }));
    this.canvas.addEventListener("blur", () => this.view.tip(null));
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  // Sets the map's points: {name, title, panels: [{title, rows, x, y, z, path}]}. A map in two dimensions has no z.
  draw(spec) {
    [this.name, this.title] = [spec.name, spec.title];
    this.box.setAttribute("aria-label", `Map of the ${this.title[0].toLowerCase()}${this.title.slice(1)}: ${this.view.size} sentences, coloured by ${this.view.colour.title.toLowerCase()}. A table below lists the same sentences.`);
    this.canvas.setAttribute("aria-label", `${this.title}: arrow keys go to the nearest point in a direction, Page Up and Page Down through all points; Enter selects a point, plus and minus zoom${this.view.solid ? "; while Turn is pressed, arrow keys turn the map" : ""}`);
    if (spec !== this.spec) {
      const size = this.view.size;
      this.panelOf = new Int16Array(size).fill(-1);
      this.x = new Float64Array(size);
      this.y = new Float64Array(size);
      this.depth = new Float64Array(size);
      this.panels = spec.panels.map(({ title, rows, x, y, z, path, topics, finest }, number) => {
        const panel = { title, path, rows: Int32Array.from(numbers(rows)), x: numbers(x), y: numbers(y) };
        if (z) panel.solid = solidOf({ x: panel.x, y: panel.y, z: numbers(z) });
        panel.topics = withRows(this.name, topics, numbers(finest), panel.rows);
        panel.rows.forEach((row) => { this.panelOf[row] = number; });
        return panel;
      });
      this.spec = spec;
      this.place();
    }
    this.resize();
  }

  // Sets the place of each row on the screen. Points that have a third coordinate are turned as the view is turned.
  place() {
    this.turned = this.view.turn;
    this.panels.forEach((panel) => {
      if (panel.solid) turnPanel(panel, this.turned);
      for (let at = 0; at < panel.rows.length; at++) {
        const row = panel.rows[at];
        this.x[row] = panel.x[at];
        this.y[row] = panel.y[at];
        if (panel.depth) this.depth[row] = panel.depth[at];
      }
    });
  }

  get small() {
    return this.view.large !== this && !this.view.equal && !this.printed;
  }

  // Places the panels side by side or one above the other, whichever gives them more room.
  resize(width = this.box.clientWidth, height = this.box.clientHeight) {
    [this.wide, this.tall] = [width, height];
    if (!this.panels || !width || !height) return;
    const number = this.panels.length;
    const head = number > 1 ? TITLE : 0; // height of the map's title, above the titles of its panels
    const room = (columns) => Math.min(width / columns, (height - head) / Math.ceil(number / columns) - TITLE);
    const columns = [...Array(number).keys()].map((at) => at + 1).reduce((best, each) => (room(each) > room(best) ? each : best), 1);
    const lines = Math.ceil(number / columns);
    this.panels.forEach((panel, at) => {
      const [col, line] = [at % columns, Math.floor(at / columns)];
      const before = panel.box;
      panel.box = {
        left: (col * width) / columns, top: head + (line * (height - head)) / lines + TITLE,
        width: width / columns - (col + 1 < columns ? 6 : 0), height: (height - head) / lines - TITLE,
      };
      const home = this.home(panel);
      if (panel.view && panel.homeScale) panel.view.scale *= home.scale / panel.homeScale;
      else panel.view = home;
      panel.homeScale = home.scale;
      if (!before) panel.view = home;
    });
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.paint();
  }

  // Returns the view (middle and scale) that shows all points of a panel.
  home(panel) {
    const margin = this.small ? MARGIN / 2 : MARGIN;
    if (panel.solid) {
      const { middle, reach } = panel.solid;
      return { x: middle[0], y: middle[1], scale: Math.max((Math.min(panel.box.width, panel.box.height) / 2 - margin) / reach, 1e-9) };
    }
    const [x, y] = [panel.x, panel.y].map(range).map(([low, high]) => ({ middle: (low + high) / 2 || 0, extent: high - low || 1 }));
    const scale = Math.min((panel.box.width - 2 * margin) / x.extent, (panel.box.height - 2 * margin) / y.extent);
    return { x: x.middle, y: y.middle, scale: Math.max(scale, 1e-9) };
  }

  // Paints the map once before the next frame, however often it is called until then.
  refresh() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.paint();
    });
  }

  paint() {
    if (!this.panels?.[0]?.box) return;
    if (this.turned !== this.view.turn) this.place();
    const context = this.canvas.getContext("2d");
    const { ratio, view } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const look = view.look();
    const total = view.size;
    this.panels.forEach((panel) => {
      const { left, top, width, height } = panel.box;
      if (total > SPRITES) {
        paintPixels(context, panel, look, view.states, ratio, rgb(getComputedStyle(this.canvas).backgroundColor), total);
      }
      context.save();
      context.setTransform(ratio, 0, 0, ratio, left * ratio, top * ratio);
      context.beginPath();
      context.rect(0, 0, width, height);
      context.clip();
      const place = (x, y) => this.inPanel(panel, x, y);
      if (view.dense) this.paintDensity(context, panel, place);
      if (total <= SPRITES) {
        const size = this.small ? 0.7 : 1;
        paintMarks(context, panel, place, { ...look, size: (row) => look.size(row) * size }, view.states, this.sprites, ratio);
      }
      context.restore();
    });
    this.overlay();
  }

  paintDensity(context, panel, place) {
    panel.contours ??= contours(panel);
    context.strokeStyle = this.view.look().soft;
    context.lineWidth = 0.8;
    context.beginPath();
    panel.contours.forEach(([x, y, toX, toY]) => {
      context.moveTo(...place(x, y));
      context.lineTo(...place(toX, toY));
    });
    context.stroke();
  }

  // `inPanel` returns the pixel of the map coordinates (x, y) inside their panel, `pixels` on the whole map.
  inPanel({ box, view }, x, y) {
    return [box.width / 2 + (x - view.x) * view.scale, box.height / 2 - (y - view.y) * view.scale];
  }

  pixels(panel, x, y) {
    const [left, top] = this.inPanel(this.panels[panel], x, y);
    return [left + this.panels[panel].box.left, top + this.panels[panel].box.top];
  }

  // Returns the pixel of a row on the whole map; null if the row is not on this map, or outside the visible part.
  pixelsOf(row) {
    const panel = this.panelOf[row] ?? -1;
    if (panel < 0) return null;
    const [x, y] = this.pixels(panel, this.x[row], this.y[row]);
    const { left, top, width, height } = this.panels[panel].box;
    return x >= left - 1 && y >= top - 1 && x <= left + width + 1 && y <= top + height + 1 ? [x, y] : null;
  }

  // Returns the panel under the pointer, or else the nearest panel, and the pointer's pixel and map coordinates.
  spot(event) {
    if (!this.panels?.[0]?.box) return null;
    const frame = this.box.getBoundingClientRect();
    const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
    const away = ({ box }) => Math.max(box.left - left, left - box.left - box.width, 0) + Math.max(box.top - top, top - box.top - box.height, 0);
    const panel = this.panels.reduce((best, each, at) => (away(each) < away(this.panels[best]) ? at : best), 0);
    return { panel, left, top, ...this.at(panel, left, top) };
  }

  at(panel, left, top) {
    const { box, view } = this.panels[panel];
    return { x: view.x + (left - box.left - box.width / 2) / view.scale, y: view.y - (top - box.top - box.height / 2) / view.scale };
  }

  nearest(event, { panel, x, y }) {
    const within = (REACH[event.pointerType] ?? 12) / this.panels[panel].view.scale;
    return nearestRow(this.panels[panel], x, y, within, (row) => this.view.states[row] > FILTERED);
  }

  press(event) {
    const spot = event.target.closest?.(".bgt-card") ? null : this.spot(event);
    if (!spot || event.button !== 0) return;
    const star = event.target.closest?.('.bgt-star[data-movable="true"]');
    const select = this.view.mode === "select" && (event.pointerType !== "touch" || this.view.armed);
    this.held = { spot, star, from: [event.clientX, event.clientY], last: event, trail: select && !star ? [[spot.left, spot.top]] : null };
    if (!select && !star && event.pointerType === "touch" && this.view.mode === "select") return; // let the finger scroll the page
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    this.box.setPointerCapture(event.pointerId);
    this.view.tip(null);
  }

  move(event) {
    if (!this.held) {
      const spot = event.pointerType === "touch" || event.target.closest?.(".bgt-card") ? null : this.spot(event);
      this.view.tip(spot ? this.nearest(event, spot) : -1, event);
    } else if (this.held.star) {
      const spot = this.spot(event);
      if (spot && spot.panel === this.held.spot.panel) this.view.drag(this, this.spotAt(this.view.lit.focus, spot.panel, spot.x, spot.y), false);
    } else if (this.held.trail) {
      const frame = this.box.getBoundingClientRect();
      const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
      const [beforeLeft, beforeTop] = this.held.trail.at(-1);
      if (Math.hypot(left - beforeLeft, top - beforeTop) < 3) return;
      this.held.trail.push([left, top]);
      this.lasso.setAttribute("d", `M${this.held.trail.join("L")}Z`);
    } else if (this.view.mode === "pan") {
      this.shift(this.held.spot.panel, this.held.last, event);
      this.held.last = event;
    } else if (this.view.mode === "turn") {
      const scrolls = event.pointerType === "touch" && !this.view.armed; // up and down, a finger then scrolls the page
      this.view.turnBy(DEGREES * (event.clientX - this.held.last.clientX), scrolls ? 0 : DEGREES * (event.clientY - this.held.last.clientY));
      this.held.last = event;
    }
  }

  shift(panel, from, to) {
    const { view } = this.panels[panel];
    view.x -= (to.clientX - from.clientX) / view.scale;
    view.y += (to.clientY - from.clientY) / view.scale;
    this.refresh();
  }

  release(event) {
    const { held } = this;
    this.stop();
    if (!held) return;
    const moved = Math.hypot(event.clientX - held.from[0], event.clientY - held.from[1]);
    if (held.star && moved > CLICK) {
      const spot = this.spot(event);
      const inside = spot?.panel === held.spot.panel;
      this.view.drag(this, inside ? this.spotAt(this.view.lit.focus, spot.panel, spot.x, spot.y) : this.view.dragged, true);
    } else if (moved <= CLICK && !(held.trail?.length > 3)) {
      this.click(event, held.spot);
    } else if (held.trail) {
      const polygon = held.trail.map(([left, top]) => Object.values(this.at(held.spot.panel, left, top)));
      const open = (row) => this.view.states[row] > FILTERED;
      this.view.choose(rowsInside(this.panels[held.spot.panel], polygon, this.view.size, open), event.shiftKey);
    }
  }

  // A click on a small map makes it the large one; a click on the large map selects a point.
  click(event, spot) {
    if (this.small) return this.view.enlarge(this);
    const row = this.nearest(event, spot);
    if (row >= 0) this.view.click(row);
  }

  stop() {
    this.held = null;
    this.lasso.removeAttribute("d");
  }

  wheel(event) {
    const spot = event.ctrlKey || event.metaKey ? this.spot(event) : null;
    if (!spot) return; // let the wheel scroll the page
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 0.8 : 1.25, spot);
  }

  // Two fingers zoom and move the panel that is between them.
  pinch(event) {
    const [[one, other], before] = [event.touches, this.pinched];
    this.pinched = other && { clientX: (one.clientX + other.clientX) / 2, clientY: (one.clientY + other.clientY) / 2, apart: Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) };
    if (!other) return; // one finger scrolls the page
    event.preventDefault();
    this.stop();
    if (!before) return;
    const spot = this.spot(before);
    this.zoom(this.pinched.apart / before.apart, spot);
    this.shift(spot.panel, before, this.pinched);
  }

  // Magnifies `times`: one panel around a spot, or all panels around their middles.
  zoom(times, spot) {
    this.panels.forEach((panel, at) => {
      if (spot && spot.panel !== at) return;
      const { view } = panel;
      if (spot) {
        view.x = spot.x + (view.x - spot.x) / times;
        view.y = spot.y + (view.y - spot.y) / times;
      }
      view.scale *= times;
    });
    this.refresh();
  }

  reset() {
    this.panels.forEach((panel) => { panel.view = this.home(panel); });
    this.refresh();
  }

  // Arrow keys turn the map in the mode "turn". Otherwise they go to the nearest point in a direction, or, with Shift, move
  // the star. Page Up and Page Down go through all
  // points. Enter selects the point.
  key(event) {
    const step = ARROWS[event.key];
    const [zoom, { focus = -1, movable = [] }] = [{ "+": 1.4, "-": 1 / 1.4 }[event.key], this.view.lit ?? {}];
    if (step && event.shiftKey && focus >= 0 && movable.includes(this.name)) this.nudge(focus, step);
    else if (step && this.view.mode === "turn") this.view.turnBy(KEYED * step[0], KEYED * step[1]);
    else if (step || event.key.startsWith("Page")) this.walk(event.key);
    else if ([" ", "Enter"].includes(event.key) && this.small) this.view.enlarge(this);
    else if ([" ", "Enter"].includes(event.key) && this.cursor >= 0) this.view.click(this.cursor);
    else if (event.key === "Escape") this.view.dismiss();
    else if (zoom) this.zoom(zoom);
    else return;
    event.preventDefault();
  }

  nudge(focus, [dx, dy]) {
    const panel = this.panelOf[focus];
    if (panel < 0) return;
    const [[x, y], { scale }] = [this.starAt(focus), this.panels[panel].view];
    this.view.drag(this, this.spotAt(focus, panel, x + (STEP * dx) / scale, y - (STEP * dy) / scale), true);
  }

  // Returns where the star of the row `focus` is seen, dragged or at the row's own place: [x, y, depth].
  starAt(focus) {
    const moved = this.view.dragged;
    if (moved?.map === this && moved.focus === focus) return seenAt(this.panels[moved.panel], moved, this.turned);
    return [this.x[focus], this.y[focus], this.depth[focus]];
  }

  // Returns the place on the map where the star is seen at (x, y): the star keeps its depth while it is dragged.
  spotAt(focus, panel, x, y) {
    return { panel, ...placeOf(this.panels[panel], [x, y, this.starAt(focus)[2]], this.turned) };
  }

  // Goes to another point, as `reached` defines for the key, and announces its text to screen readers.
  walk(key) {
    const rows = this.panels.flatMap((panel) => Array.from(panel.rows)).filter((row) => this.view.states[row] > FILTERED);
    const start = this.pixelsOf(this.view.lit?.focus ?? -1) ?? [this.box.clientWidth / 2, this.box.clientHeight / 2];
    const row = rows[reached(key, rows.map((each) => this.pixelsOf(each)), rows.indexOf(this.cursor), start)];
    if (row === undefined) return; // there is no point in this direction
    this.cursor = row;
    if (!this.pixelsOf(row)) Object.assign(this.panels[this.panelOf[row]].view, { x: this.x[row], y: this.y[row] });
    this.paint();
    const [left, top] = this.pixelsOf(row);
    const frame = this.box.getBoundingClientRect();
    this.view.tip(row, { clientX: frame.left + left, clientY: frame.top + top });
    const { lang, text, translation } = this.view.rows;
    this.view.say([this.view.langNames[lang[row]], text[row], translation[row]].filter(Boolean).join(" · "));
  }

  // Draws the SVG layer above the points.
  overlay() {
    if (!this.panels?.[0]?.box) return;
    const { titles, pairs, rings, paths, texts, stars } = this.layers;
    Object.values(this.layers).forEach((layer) => layer.replaceChildren());
    const several = this.panels.length > 1;
    const write = (x, y, text, room) => {
      const most = Math.floor((text.length * (room - 12)) / (LARGER * this.view.width(text)));
      shape(titles, "text", { x: x + 6, y: y - 7 }, shortened(text, most));
    };
    if (several) write(0, TITLE, this.title, this.wide);
    this.panels.forEach(({ title, box }) => write(box.left, box.top, several ? title : `${this.title}  ${title}`, box.width));
    this.panels.filter(({ solid, box }) => solid && Math.min(box.width, box.height) > LEAST_ROOM).forEach((panel) => tripod(titles, panel, this.turned));
    if (this.view.joined && this.panels.length === 1) this.join(pairs);
    this.panels.forEach(({ path }, at) => { if (path.length) this.path(paths, at, path); });
    const { focus = -1, near = [], pinned = -1 } = this.view.lit ?? {};
    const ring = (row, r, name, colour) => {
      const [cx, cy] = (this.view.states[row] > FILTERED && this.pixelsOf(row)) || [];
      if (cx) shape(rings, "circle", { cx, cy, r, class: name, ...(colour && { stroke: colour }) });
    };
    near.forEach(({ rows, colour }, at) => rows.forEach((row) => ring(row, 8 + 3 * at, "bgt-ring", colour)));
    if (!this.printed) ring(this.cursor, 11, "bgt-cursor");
    ring(pinned, 12, "bgt-pinned");
    const star = focus >= 0 ? this.star(stars, focus) : null;
    this.card.place(this.small ? -1 : focus, star, this.view.dragged?.map === this);
    if (!this.small) this.texts(texts, star);
  }

  // Draws lines between translations: of the highlighted rows, or else of the first rows.
  join(layer) {
    const [{ rows, ofPair, states }, lit, seen] = [this.view, this.view.lit?.lit, new Set()];
    let path = "";
    const some = lit ? unpacked(lit) : null;
    for (let row = 0; row < rows.pair.length && seen.size < MOST_LINES; row++) {
      const pair = rows.pair[row];
      if (pair < 0 || seen.has(pair) || states[row] < FADED || (some && !has(some, row))) continue;
      seen.add(pair);
      const places = ofPair.get(pair).map((other) => this.pixelsOf(other)).filter(Boolean);
      if (places.length > 1) path += `M${places.join("L")}${places.length > 2 ? "Z" : ""}`;
    }
    shape(layer, "path", { d: path, class: "bgt-join" });
  }

  // Draws the steps of an interpolation between two sentences; only the first and the last have their number.
  path(layer, panel, steps) {
    const places = steps.map(([x, y, z]) => this.pixels(panel, ...seenAt(this.panels[panel], { x, y, z }, this.turned)));
    shape(layer, "path", { d: `M${places.join("L")}`, class: "bgt-path" });
    places.forEach(([cx, cy], at) => {
      shape(layer, "circle", { cx, cy, r: 3 });
      if (at === 0 || at === places.length - 1) shape(layer, "text", { x: cx + 6, y: cy - 6 }, at + 1);
    });
  }

  // Draws the star of the row `focus`, and returns its pixel.
  star(layer, focus) {
    const moved = this.view.dragged;
    const home = this.pixelsOf(focus);
    const away = moved?.map === this && moved.focus === focus ? this.pixels(moved.panel, ...this.starAt(focus)) : null;
    const at = away ?? home;
    if (!at) return null;
    if (away && home) shape(this.layers.paths, "line", { x1: home[0], y1: home[1], x2: at[0], y2: at[1], class: "bgt-drawn" });
    const movable = this.view.lit.movable.includes(this.name);
    const star = shape(layer, "g", { class: "bgt-star", transform: `translate(${at})`, "data-movable": movable });
    shape(star, "circle", { r: 15, class: "bgt-grip" });
    shape(star, "polygon", { points: STAR });
    return at;
  }

  // Draws texts beside points, the most important first. A text that would cover an earlier one is left out.
  texts(layer, star) {
    const { view } = this;
    const taken = [!this.printed && this.card.box(), star && [star[0] - 12, star[1] - 12, star[0] + 12, star[1] + 12]].filter(Boolean);
    const write = (row, text, kind, colour) => {
      const at = this.pixelsOf(row);
      const place = at && view.states[row] > FILTERED && this.free(this.panels[this.panelOf[row]].box, at, text, taken);
      if (!place) return;
      const [x, y] = place;
      shape(layer, "text", { x, y: y + 13, class: `bgt-text bgt-${kind}`, ...(colour && { fill: colour }) }, text);
    };
    const { focus = -1, near = [], pinned = -1, slices = [] } = view.lit ?? {};
    if (focus >= 0 && this.printed) write(focus, view.rows.text[focus], "slice"); // a printed map has no card
    if (pinned >= 0 && pinned !== focus) write(pinned, `Pinned: ${shortened(view.rows.text[pinned], LETTERS.near)}`, "near");
    near.filter(({ latent }) => latent === this.name).forEach(({ rows }) => rows.forEach((row) => write(row, shortened(view.rows.text[row], LETTERS.near), "near")));
    slices.forEach(({ name, row }) => write(row, name, "slice"));
    if (!view.named || focus >= 0) return;
    this.panels.forEach((panel) => {
      const zoom = panel.view.scale / panel.homeScale;
      view.topics.write(this, panel, zoom >= ZOOMS.finer, layer, taken);
      if (zoom >= ZOOMS.sentences) this.typical(panel).forEach((row) => write(row, shortened(view.rows.text[row], LETTERS.group), "group"));
    });
  }

  // Returns the rows whose sentences are typical of a panel's shown points. They are kept until the filter changes.
  typical(panel) {
    const { states, rows } = this.view;
    if (panel.grouped === states) return panel.typical;
    panel.grouped = states;
    panel.typical = typicalRows(panel, TYPICAL, (row) => states[row] > FILTERED && rows.pair[row] >= 0, (row) => rows.lang[row] === rows.lang[0]);
    return panel.typical;
  }

  // Returns a free place for a text to the right or left of a point, below it or above it, and adds it to `taken`.
  free(box, [x, y], text, taken) {
    const [width, height] = [this.view.width(text) + 4, LINE];
    const places = [[x + 8, y - height / 2], [x - width - 8, y - height / 2], [x - width / 2, y + 8], [x - width / 2, y - height - 8]];
    const fits = ([left, top]) => left >= box.left && top >= box.top && left + width <= box.left + box.width && top + height <= box.top + box.height
      && taken.every(([l, t, r, b]) => left >= r || left + width <= l || top >= b || top + height <= t);
    const place = places.find(fits);
    if (place) taken.push([place[0], place[1], place[0] + width, place[1] + height]);
    return place;
  }
}

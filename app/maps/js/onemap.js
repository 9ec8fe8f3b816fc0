// One map: a plotly figure with an overlay for the lasso, the rings and the star, which plotly would redraw slowly.
const SVG = "http://www.w3.org/2000/svg";
const STAR = "0,-11 2.9,-3.6 10.5,-3.4 4.6,1.4 6.5,8.9 0,4.6 -6.5,8.9 -4.6,1.4 -10.5,-3.4 -2.9,-3.6";
const CLICK = 4; // pixels that a click may move
const REACH = { mouse: 12, pen: 12, touch: 24 }; // pixels from the pointer to a point that it means
const MOST_WITHOUT_WEBGL = 5000; // points that SVG still draws in time
const MOST_LINES = 500;
const [CLUSTER, FINE_CLUSTER, ZOOMED] = ["cluster", "fine cluster", 0.5]; // as `app.core.latents.chart` names them

function shape(parent, name, attributes) {
  const element = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  return parent.appendChild(element);
}

const webgl = (() => {
  const context = document.createElement("canvas").getContext("webgl");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return Boolean(context);
})();

class OneMap {
  constructor(view, parent) {
    this.view = view;
    this.box = parent.appendChild(document.createElement("div"));
    this.box.className = "bgt-map";
    this.box.setAttribute("role", "figure");
    this.plot = this.box.appendChild(document.createElement("div"));
    this.over = shape(this.box, "svg", { class: "bgt-over" });
    [this.catchers, this.joined, this.rings, this.paths, this.stars] = Array.from({ length: 5 }, () => shape(this.over, "g", {}));
    this.lasso = shape(this.over, "path", { class: "bgt-lasso" });
    this.box.addEventListener("pointerdown", (event) => this.press(event));
    this.box.addEventListener("pointermove", (event) => this.move(event));
    this.box.addEventListener("pointerup", (event) => this.release(event));
    this.box.addEventListener("pointercancel", () => this.stop());
    this.box.addEventListener("pointerleave", () => this.view.tip(null));
    this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => {
      const width = this.box.clientWidth;
      if (this.json && width && width !== this.width) {
        this.width = width;
        Plotly.Plots.resize(this.plot);
      }
    }).observe(this.box);
  }

  // Draws a figure unless it is there already; `anew` draws it anyway.
  async draw(spec, anew = false) {
    this.name = spec.name;
    this.box.setAttribute("aria-label", spec.alt);
    if (!anew && spec.figure === this.json && this.drawnRows === this.view.rowOf) return;
    this.json = spec.figure;
    this.drawnRows = this.view.rowOf;
    this.points = null; // nothing can be done with it until it is drawn
    const figure = JSON.parse(spec.figure);
    this.joining = figure.data.find((trace) => trace.meta === "pairs");
    figure.data = figure.data.filter((trace) => trace !== this.joining);
    figure.data.forEach((trace) => { trace.visible = !this.view.legend.hidden.has(trace.legendgroup); });
    this.thinned = webgl ? 0 : withoutWebgl(figure.data);
    const points = readPoints(figure, this.view.rowOf);
    this.shown = this.view.lit?.lit ?? "";
    for (const [number, places] of placesOf(points, this.shown)) figure.data[number].selectedpoints = places;
    const { margin, height, coloraxis } = figure.layout;
    this.withLegend = { showlegend: true, margin, height, coloraxis };
    Object.assign(figure.layout, {
      showlegend: false, margin: { ...margin, b: 4 }, height: height - LEGEND, coloraxis: { ...coloraxis, showscale: false },
    });
    figure.layout.dragmode = "pan";
    figure.layout.clickmode = "event+select"; // so that WebGL is ready to paint a selection
    figure.layout.hovermode = false;
    figure.layout.font = { ...figure.layout.font, family: getComputedStyle(this.box).fontFamily };
    const config = { displayModeBar: false, doubleClick: "reset", scrollZoom: false };
    this.width = this.box.clientWidth;
    await Plotly.react(this.plot, figure.data, figure.layout, config);
    if (!this.listening) {
      this.listening = true;
      for (const event of ["plotly_relayouting", "plotly_relayout", "plotly_afterplot"]) {
        this.plot.on(event, () => this.overlay());
      }
      this.plot.on("plotly_relayout", () => this.nameClusters());
    }
    this.points = points;
    this.zoomed = false;
    this.extent = extent(points.x.filter((_, row) => points.panel[row] === 0));
    this.nameClusters();
    this.lines = this.joining ? this.view.pairLines(this.shown, points) : [[], []];
    this.light(this.view.lit?.lit ?? "");
  }

  // Names clusters; where little of the first panel is in sight, fine clusters.
  nameClusters() {
    if (!this.points) return;
    const [low, high] = this.axes(0)[0].range;
    const zoomed = Math.abs(high - low) < ZOOMED * this.extent;
    if (zoomed === this.zoomed) return;
    this.zoomed = zoomed;
    const changes = {};
    (this.plot.layout.annotations ?? []).forEach(({ name }, at) => {
      if (name === CLUSTER || name === FINE_CLUSTER) changes[`annotations[${at}].visible`] = (name === FINE_CLUSTER) === zoomed;
    });
    if (Object.keys(changes).length) Plotly.relayout(this.plot, changes);
  }

  light(lit) {
    if (!this.points) return;
    if (lit !== this.shown) {
      this.shown = lit;
      select(this.plot, placesOf(this.points, lit));
      if (this.joining) this.lines = this.view.pairLines(lit, this.points);
    }
    this.overlay();
  }

  axes(panel) {
    const layout = this.plot._fullLayout;
    const number = this.points.panels[panel].slice(1);
    return [layout[`xaxis${number}`], layout[`yaxis${number}`]];
  }

  // Pixels of a point of a panel on this map.
  pixels(panel, x, y) {
    const [xaxis, yaxis] = this.axes(panel);
    return [xaxis._offset + xaxis.l2p(x), yaxis._offset + yaxis.l2p(y)];
  }

  // The panel under the pointer, and where in it.
  spot(event) {
    if (!this.points || !this.plot._fullLayout) return null;
    const frame = this.plot.getBoundingClientRect();
    const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
    for (let panel = 0; panel < this.points.panels.length; panel++) {
      const [xaxis, yaxis] = this.axes(panel);
      const [x, y] = [left - xaxis._offset, top - yaxis._offset];
      if (x < 0 || y < 0 || x > xaxis._length || y > yaxis._length) continue;
      return { panel, left, top, x: xaxis.p2l(x), y: yaxis.p2l(y), unit: Math.abs(xaxis.p2l(1) - xaxis.p2l(0)) };
    }
    return null;
  }

  nearest(event, spot) {
    return nearestRow(this.points, spot.panel, spot.x, spot.y, (REACH[event.pointerType] ?? 12) * spot.unit);
  }

  press(event) {
    const spot = this.spot(event);
    if (!spot || event.button !== 0) return;
    const star = event.target.closest?.('.bgt-star[data-movable="true"]');
    const select = this.view.mode === "select" && (event.pointerType !== "touch" || this.view.armed);
    this.held = { spot, star, from: [event.clientX, event.clientY], trail: select && !star ? [[spot.left, spot.top]] : null };
    if (!select && !star) return;
    event.preventDefault();
    this.over.setPointerCapture(event.pointerId);
    this.view.tip(null);
  }

  move(event) {
    if (!this.held) {
      const spot = event.pointerType === "touch" ? null : this.spot(event);
      this.view.tip(spot ? this.nearest(event, spot) : -1, event);
    } else if (this.held.star) {
      const spot = this.spot(event);
      if (spot && spot.panel === this.held.spot.panel) this.view.drag(this, spot, false);
    } else if (this.held.trail) {
      const frame = this.plot.getBoundingClientRect();
      const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
      const [beforeLeft, beforeTop] = this.held.trail.at(-1);
      if (Math.hypot(left - beforeLeft, top - beforeTop) < 3) return;
      this.held.trail.push([left, top]);
      this.lasso.setAttribute("d", `M${this.held.trail.join("L")}Z`);
    }
  }

  release(event) {
    const { held } = this;
    this.stop();
    if (!held) return;
    const moved = Math.hypot(event.clientX - held.from[0], event.clientY - held.from[1]);
    if (held.star && moved > CLICK) {
      const spot = this.spot(event);
      this.view.drag(this, spot?.panel === held.spot.panel ? spot : this.view.dragged, true);
    } else if (moved <= CLICK && !(held.trail?.length > 3)) {
      const row = this.nearest(event, held.spot);
      if (row >= 0) this.view.click(row);
    } else if (held.trail) {
      const [xaxis, yaxis] = this.axes(held.spot.panel);
      const polygon = held.trail.map(([left, top]) => [xaxis.p2l(left - xaxis._offset), yaxis.p2l(top - yaxis._offset)]);
      this.view.choose(rowsInside(this.points, held.spot.panel, polygon), event.shiftKey);
    }
  }

  stop() {
    this.held = null;
    this.lasso.removeAttribute("d");
  }

  wheel(event) {
    const spot = event.ctrlKey || event.metaKey ? this.spot(event) : null;
    if (!spot) return; // the page scrolls
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, spot);
  }

  // Shows a part of that share of each side, around a spot of one panel or the middle of all.
  zoom(share, spot) {
    const ranges = {};
    this.points.panels.forEach((name, panel) => {
      if (spot && spot.panel !== panel) return;
      this.axes(panel).forEach((axis, side) => {
        const [low, high] = axis.range;
        const centre = spot ? [spot.x, spot.y][side] : (low + high) / 2;
        ranges[`${axis._name}.range`] = [centre + (low - centre) * share, centre + (high - centre) * share];
      });
    });
    Plotly.relayout(this.plot, ranges);
  }

  reset() {
    const ranges = {};
    this.points.panels.forEach((name, panel) => this.axes(panel).forEach((axis) => { ranges[`${axis._name}.autorange`] = true; }));
    Plotly.relayout(this.plot, ranges);
  }

  // Rings around the nearest, the star, and what catches the pointer in place of plotly: all that moves with the axes.
  overlay() {
    if (!this.points || !this.plot._fullLayout) return;
    [this.catchers, this.joined, this.rings, this.paths, this.stars].forEach((group) => group.replaceChildren());
    this.points.panels.forEach((name, panel) => {
      const [xaxis, yaxis] = this.axes(panel);
      const place = { x: xaxis._offset, y: yaxis._offset, width: xaxis._length, height: yaxis._length };
      shape(this.catchers, "rect", { class: "bgt-catch", ...place });
    });
    if (this.joining) this.join();
    const { focus = -1, near = [] } = this.view.lit ?? {};
    near.forEach(({ rows, colour }, at) => rows.forEach((row) => this.mark(this.rings, row, (cx, cy) => {
      shape(this.rings, "circle", { cx, cy, r: 8 + 3 * at, stroke: colour, class: "bgt-ring" });
    })));
    if (focus >= 0) this.mark(this.stars, focus, (cx, cy) => this.star(focus, cx, cy));
  }

  // Lines between translations; plotly would compute all points anew to change them.
  join() {
    const [xaxis, yaxis] = this.axes(0);
    const place = { x: xaxis._offset, y: yaxis._offset, width: xaxis._length, height: yaxis._length };
    const [xs, ys] = this.lines;
    let path = "";
    xs.forEach((x, at) => {
      if (x !== null) path += `${at && xs[at - 1] !== null ? "L" : "M"}${xaxis.l2p(x)} ${yaxis.l2p(ys[at])}`;
    });
    const { color, width } = this.joining.line;
    shape(shape(this.joined, "svg", place), "path", { d: path, stroke: color, "stroke-width": width, class: "bgt-pairs" });
  }

  star(focus, cx, cy) {
    const movable = this.view.lit.movable.includes(this.name);
    const moved = this.view.dragged;
    let [x, y] = [cx, cy];
    if (moved?.map === this && moved.focus === focus) {
      [x, y] = this.pixels(moved.panel, moved.x, moved.y);
      shape(this.paths, "line", { x1: cx, y1: cy, x2: x, y2: y, class: "bgt-drawn" });
    }
    const star = shape(this.stars, "g", { class: "bgt-star", transform: `translate(${x} ${y})`, "data-movable": movable });
    shape(star, "circle", { r: 15, class: "bgt-grip" });
    shape(star, "polygon", { points: STAR });
  }

  // Calls back with the pixels of a row, if it is on this map and in sight.
  mark(group, row, draw) {
    const panel = this.points.panel[row];
    if (panel === undefined || panel < 0) return;
    const [x, y] = this.pixels(panel, this.points.x[row], this.points.y[row]);
    const [xaxis, yaxis] = this.axes(panel);
    const [right, bottom] = [x - xaxis._offset, y - yaxis._offset];
    if (right >= -1 && bottom >= -1 && right <= xaxis._length + 1 && bottom <= yaxis._length + 1) draw(x, y);
  }
}

// The places in each trace, by its number, of the rows that stand out: "" for none, and then no trace has any.
function placesOf(points, lit) {
  const bits = lit && unpacked(lit);
  return new Map(points.traces.map(({ number, rows }) => {
    const places = [];
    if (bits) rows.forEach((row, place) => { if (row >= 0 && has(bits, row)) places.push(place); });
    return [number, bits ? places : undefined];
  }));
}

// What Plotly.restyle does with `selectedpoints`, without computing every trace anew: by the steps with which plotly
// shows a selection of its own, which no public function takes.
function select(plot, places) {
  for (const trace of plot.calcdata) {
    const { trace: settings } = trace[0];
    if (!places.has(settings.index) || settings.visible !== true) continue;
    const chosen = places.get(settings.index);
    settings.selectedpoints = settings._input.selectedpoints = chosen;
    const inside = new Set(chosen);
    const [xaxis, yaxis] = [settings.xaxis, settings.yaxis].map((id) => plot._fullLayout[`${id[0]}axis${id.slice(1)}`]);
    settings._module.selectPoints({ cd: trace, xaxis, yaxis }, chosen ? { contains: (spot, ignored, place) => inside.has(place) } : false);
    settings._module.styleOnSelect?.(plot, trace, trace[0].node3);
  }
  const scenes = Object.values(plot._fullLayout._plots).map(({ _scene }) => _scene).filter(Boolean);
  if (!scenes.length) return;
  plot._fullLayout._glcanvas.each(({ regl }) => regl?.clear({ color: [0, 0, 0, 0], depth: 1 }));
  scenes.forEach((scene) => scene.draw());
}

// SVG in place of WebGL, with every n-th point where there are too many; how many are left.
function withoutWebgl(traces) {
  const painted = traces.filter((trace) => trace.type === "scattergl");
  const total = painted.reduce((sum, trace) => sum + trace.customdata.length, 0);
  const every = Math.ceil(total / MOST_WITHOUT_WEBGL);
  for (const trace of painted) {
    trace.type = "scatter";
    const thin = (values) => Array.from(values).filter((_, at) => at % every === 0);
    for (const key of ["x", "y"]) trace[key] = thin(numbers(trace[key]));
    trace.customdata = thin(trace.customdata);
    if (typeof trace.marker.color === "object") trace.marker.color = thin(numbers(trace.marker.color));
  }
  return every > 1 ? painted.reduce((sum, trace) => sum + trace.customdata.length, 0) : 0;
}

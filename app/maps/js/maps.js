const LEGEND = 52; // pixels that it takes of a drawing

// All maps of a page: the same rows lit on each, one table of their texts, one row of tools.
class View {
  constructor(root) {
    this.root = root;
    this.mode = "select";
    this.maps = [];
    this.bar = root.appendChild(document.createElement("div"));
    this.bar.className = "bgt-tools";
    this.bar.setAttribute("role", "toolbar");
    this.bar.setAttribute("aria-label", "Tools of the maps");
    this.modes = {
      select: this.tool("Select", "Draw around points with the mouse; a click takes one", (event) => this.setMode("select", event)),
      pan: this.tool("Pan", "Move the maps", (event) => this.setMode("pan", event)),
    };
    this.tool("+", "Zoom in", () => this.maps.forEach((map) => map.zoom(0.7)));
    this.tool("−", "Zoom out", () => this.maps.forEach((map) => map.zoom(1 / 0.7)));
    this.tool("Reset", "Show all of each map", () => this.maps.forEach((map) => map.reset()));
    this.tool("SVG", "Save each map as a drawing", () => this.save());
    this.clear = this.tool("Clear", "Nothing is selected", () => this.choose(new Uint8Array(0)));
    this.status = this.bar.appendChild(document.createElement("span"));
    this.status.className = "bgt-count";
    this.status.setAttribute("role", "status");
    this.message = root.appendChild(document.createElement("p"));
    this.message.className = "bgt-message";
    this.grid = root.appendChild(document.createElement("div"));
    this.grid.className = "bgt-maps";
    this.legend = new Legend(this, root);
    this.tooltip = root.appendChild(document.createElement("div"));
    this.tooltip.className = "bgt-tip";
    this.tooltip.hidden = true;
    this.setMode("select");
  }

  tool(text, title, action) {
    const button = this.bar.appendChild(document.createElement("button"));
    [button.type, button.className, button.textContent, button.title] = ["button", "bgt-button", text, title];
    button.setAttribute("aria-label", title);
    button.addEventListener("click", action);
    return button;
  }

  // A finger scrolls the page until "Select" was pressed with it; then it draws once.
  setMode(mode, event) {
    this.mode = mode;
    this.armed = mode === "select" && event?.pointerType === "touch";
    this.root.dataset.mode = mode;
    this.root.dataset.armed = this.armed;
    Object.entries(this.modes).forEach(([name, button]) => button.setAttribute("aria-pressed", name === mode));
    if (this.armed) this.say("Draw around points with a finger.");
  }

  async draw(data) {
    this.file = data.file;
    if (this.key !== data.key) {
      this.key = data.key;
      this.rows = data.rows;
      this.langNames = data.languages;
      this.rowOf = new Map(data.rows.id.map((id, row) => [id, row]));
      this.ofPair = new Map();
      data.rows.pair.forEach((pair, row) => {
        if (pair < 0) return;
        if (!this.ofPair.has(pair)) this.ofPair.set(pair, []);
        this.ofPair.get(pair).push(row);
      });
      this.lit = window.bgtMaps.lit?.key === data.key ? window.bgtMaps.lit : null;
    }
    while (this.maps.length > data.maps.length) this.maps.pop().box.remove();
    while (this.maps.length < data.maps.length) this.maps.push(new OneMap(this, this.grid));
    this.specs = data.maps;
    for (const [at, spec] of data.maps.entries()) await this.maps[at].draw(spec);
    this.legend.draw(this.maps);
    const thinned = this.maps[0]?.thinned;
    this.message.textContent = thinned
      ? `This browser has no WebGL: each map shows ${thinned.toLocaleString("en")} of its points.` : "";
    this.root.dataset.drawn = data.key;
    if (this.lit) this.light(this.lit);
    else this.count();
  }

  // Hides and shows categories.
  async redraw() {
    for (const [at, spec] of this.specs.entries()) await this.maps[at].draw(spec, true);
  }

  // What Python says stands out, is ringed, and is the star.
  light(lit) {
    if (!this.rows || lit.key !== this.key) return;
    this.lit = lit;
    if (this.dragged && this.dragged.focus !== lit.focus) this.dragged = null;
    if (lit.answered === this.sent) this.waiting = false;
    this.maps.forEach((map) => map.light(lit.lit));
    this.count();
  }

  count() {
    const [all, chosen] = [this.rows.id.length, this.lit?.chosen ? count(unpacked(this.lit.chosen)) : 0];
    const [some, total] = [chosen, all].map((number) => number.toLocaleString("en"));
    this.say(chosen ? `${some} of ${total} selected` : `${total} sentences`);
    this.clear.disabled = !chosen;
  }

  say(text) {
    this.status.textContent = text;
  }

  click(row) {
    const bits = new Uint8Array((this.rows.id.length + 7) >> 3);
    bits[row >> 3] |= 1 << (row & 7);
    this.choose(bits, false, row);
  }

  choose(bits, add = false, focus = -1) {
    this.armed = false;
    this.root.dataset.armed = false;
    if (bits.length && !bits.some(Boolean)) {
      this.say("No sentence is inside: the selection stays as it was.");
      return;
    }
    if (add && this.lit?.chosen) bits = unpacked(this.lit.chosen).map((byte, at) => byte | bits[at]);
    const text = bits.length ? packed(bits) : "";
    const id = focus >= 0 ? this.rows.id[focus] : "";
    this.dragged = null;
    const lit = { key: this.key, chosen: text, lit: text, focus, near: [], movable: this.lit?.movable ?? [] };
    window.bgtMaps.send("picked", { key: this.key, rows: text, id });
    setTimeout(() => this.light(lit)); // many points take a while: Python is at work meanwhile
  }

  // The star is at a spot of a map: its sentence is written anew there, now and then on the way and when it is dropped.
  drag(map, spot, dropped) {
    if (!spot) return;
    const { focus } = this.lit;
    this.dragged = { map, focus, panel: spot.panel, x: spot.x, y: spot.y };
    map.overlay();
    const now = performance.now();
    if (!this.lit.movable.includes(map.name)) return;
    if (!dropped && (this.waiting || now - (this.sent ?? 0) < 400)) return;
    [this.waiting, this.sent] = [true, now];
    window.bgtMaps.send("moved", { key: this.key, id: this.rows.id[focus], map: map.name, x: spot.x, y: spot.y, at: now });
  }

  // Lines that join the lit rows, or all where none is, with their translations, as plotly wants them.
  pairLines(lit, points) {
    const bits = lit && unpacked(lit);
    const [xs, ys, seen] = [[], [], new Set()];
    this.rows.pair.forEach((pair, row) => {
      if (pair < 0 || (bits && !has(bits, row)) || seen.has(pair) || seen.size >= MOST_LINES) return;
      seen.add(pair);
      const rows = this.ofPair.get(pair).filter((other) => points.panel[other] >= 0);
      for (const other of rows.length > 2 ? [...rows, rows[0]] : rows) {
        xs.push(points.x[other]);
        ys.push(points.y[other]);
      }
      xs.push(null);
      ys.push(null);
    });
    return [xs, ys];
  }

  tip(row, event) {
    this.tooltip.hidden = row === null || row < 0;
    if (this.tooltip.hidden || !event) return;
    if (row !== this.tipRow || !this.tooltip.childElementCount) {
      this.tipRow = row;
      const part = (name, text) => {
        const element = document.createElement(name);
        element.textContent = text;
        return element;
      };
      const { lang, text, translation } = this.rows;
      this.tooltip.replaceChildren(part("b", this.langNames[lang[row]]), part("div", text[row].slice(0, 400)));
      if (translation[row]) this.tooltip.appendChild(part("i", translation[row].slice(0, 400)));
    }
    const frame = this.root.getBoundingClientRect();
    const [left, top] = [event.clientX - frame.left, event.clientY - frame.top];
    const width = this.tooltip.offsetWidth;
    this.tooltip.style.left = `${Math.max(0, left + 14 + width > frame.width ? left - width - 14 : left + 14)}px`;
    this.tooltip.style.top = `${top + 14}px`;
  }

  save() {
    this.maps.forEach((map) => {
      const { clientWidth: width, clientHeight } = map.plot;
      const [x, y] = map.lines;
      const lines = map.joining ? [{ ...map.joining, x, y }] : [];
      const figure = { data: [...lines, ...map.plot.data], layout: { ...map.plot.layout, ...map.withLegend } };
      const height = clientHeight + LEGEND;
      Plotly.downloadImage(figure, { format: "svg", width, height, filename: this.file.replace("{}", map.name) });
    });
  }
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector("div");
  root.classList.add("bgt-view");
  window.bgtMaps ??= {};
  withPlotly(() => {
    root.bgtView ??= new View(root);
    window.bgtMaps.view = root.bgtView;
    root.bgtQueue = (root.bgtQueue ?? Promise.resolve()).then(() => root.bgtView.draw(data));
  });
}

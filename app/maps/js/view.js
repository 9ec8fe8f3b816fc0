// All maps of a page: one large map, the others small, with bar charts, a legend and a row of tools. The class does not
// depend on a server, so that the app's page, a notebook and a saved file can all show it. These hosts call `draw` with the
// data, and `light` with the selected and highlighted rows. User actions call `host(name, value)`.
const [LETTER, PRINTED] = [13, 10]; // size in pixels of the texts on the maps: on the screen, in print
const TOUCH = window.matchMedia("(hover: none)"); // whether the main pointer is a finger
const FONTS = "Arial, Liberation Sans, Helvetica, sans-serif"; // fonts of a printed map
const PAUSE = 400; // milliseconds between two requests while the star is dragged

class View {
  constructor(root, host) {
    [this.root, this.host] = [root, host];
    root.classList.add("bgt-view");
    [this.mode, this.maps, this.named, this.joined, this.size] = ["select", [], true, true, 0];
    this.bar = root.appendChild(part("div", "", "bgt-tools"));
    this.bar.setAttribute("role", "toolbar");
    this.bar.setAttribute("aria-label", "Tools of the maps");
    this.search = this.bar.appendChild(part("input", "", "bgt-find"));
    Object.assign(this.search, { type: "search", placeholder: "Find words" });
    this.search.setAttribute("aria-label", "Find words: points light up as you type, Enter selects them");
    this.search.addEventListener("input", () => this.type());
    this.search.addEventListener("keydown", (event) => { if (event.key === "Enter") this.found(); });
    this.modes = {
      select: this.tool("Select", "Draw around points with the mouse; a click selects one point", (event) => this.setMode("select", event)),
      pan: this.tool("Pan", "Move the maps", (event) => this.setMode("pan", event)),
      turn: this.tool("Turn", "Turn the maps by dragging or by arrow keys; a click selects one point", (event) => this.setMode("turn", event)),
    };
    this.front = this.tool("Front", "Show x to the right and y upwards again", () => this.turnTo({ right: 0, down: 0 }));
    this.turn = OPENING;
    this.tool("+", "Zoom in", () => this.maps.forEach((map) => map.zoom(1.4)));
    this.tool("−", "Zoom out", () => this.maps.forEach((map) => map.zoom(1 / 1.4)));
    this.tool("Reset", "Show all points of each map", () => this.maps.forEach((map) => map.reset()));
    this.names = this.tool("Names", "Name groups by their topic", () => this.toggle("named"));
    this.swap = this.tool("Swap", "Make the next map the large one", () => this.enlarge(this.maps[(this.maps.indexOf(this.large) + 1) % this.maps.length]));
    this.even = this.tool("Side by side", "Draw all maps in the same size", () => this.toggle("equal"));
    this.tool("SVG", "Save the maps as a drawing", () => this.save());
    this.clear = this.tool("Clear", "Clear the selection", () => this.choose(new Uint8Array(0)));
    this.status = this.bar.appendChild(part("span", "", "bgt-count"));
    this.status.setAttribute("role", "status");
    this.screen = root.appendChild(part("div", "", "bgt-screen"));
    this.main = this.screen.appendChild(part("div", "", "bgt-large"));
    this.side = this.screen.appendChild(part("div", "", "bgt-side"));
    this.insets = this.side.appendChild(part("div", "", "bgt-insets"));
    this.topics = new Topics(this, this.side);
    this.bars = new Bars(this, this.side);
    this.legend = new Legend(this, root);
    this.tooltip = root.appendChild(part("div", "", "bgt-tip"));
    this.tooltip.hidden = true;
    this.setMode("select");
    this.layout = "";
  }

  // Adds a table of the rows, which a saved file has.
  withTable() {
    this.table = new RowsTable(this, this.root);
    return this;
  }

  tool(text, title, action) {
    return this.bar.appendChild(pressed(text, title, action));
  }

  toggle(what) {
    this[what] = !this[what];
    this.host("layout", { value: this.layout });
    this.layout = this.layout; // marks the buttons
    if (what === "equal") this.arrange();
    this.maps.forEach((map) => map.refresh());
  }

  // Whether the maps are side by side and without names, as text for the URL, in which words are joined by "~".
  get layout() {
    return [this.equal && "side-by-side", !this.named && "no-names"].filter(Boolean).join("~");
  }

  set layout(text) {
    [this.equal, this.named] = [text.includes("side-by-side"), !text.includes("no-names")];
    this.even.setAttribute("aria-pressed", this.equal);
    this.names.setAttribute("aria-pressed", this.named);
  }

  // On a touch screen, a finger scrolls the page. After a tap on "Select", it draws one lasso.
  setMode(mode, event) {
    this.mode = mode;
    this.root.dataset.mode = mode;
    this.arm(mode !== "pan" && event?.pointerType === "touch");
    if (this.armed && mode === "select") this.say("Draw around points with a finger.");
  }

  // While the map is armed, a finger draws or turns instead of scrolling. Without a mouse, only then is "Select" pressed.
  arm(armed) {
    this.armed = armed;
    this.root.dataset.armed = armed;
    const active = (name) => name === this.mode && (name !== "select" || armed || !TOUCH.matches);
    Object.entries(this.modes).forEach(([name, button]) => button.setAttribute("aria-pressed", active(name)));
  }

  // Draws {key, rows, languages, maps, columns, colour, shapes, lines, large, turn, names, layout, file}, from `view` in `app/maps/compute.py`.
  draw(data) {
    const other = this.key !== data.key;
    Object.assign(this, { file: data.file, columns: data.columns, dense: data.lines.includes("density"), joined: data.lines.includes("translations"), shapes: data.shapes });
    this.measure(data, other);
    if (!this.key) this.layout = data.layout ?? "";
    if (other) {
      [this.key, this.rows, this.size, this.langNames] = [data.key, data.rows, data.rows.id.length, data.languages];
      [this.lower, this.typed, this.dragged, this.closed, this.lit] = [null, null, null, null, null];
      this.ofPair = new Map();
      data.rows.pair.forEach((pair, row) => {
        if (pair < 0) return;
        if (!this.ofPair.has(pair)) this.ofPair.set(pair, []);
        this.ofPair.get(pair).push(row);
      });
    }
    if (other || !this.topics.tooLong) this.topics.read(data.names ?? "");
    this.colour = data.columns.find(({ name }) => name === data.colour);
    this.codes = this.colour.categories ? numbers(this.colour.codes) : shaded(this.colour);
    this.paint();
    this.letter(LETTER);
    while (this.maps.length > data.maps.length) this.maps.pop().box.remove();
    while (this.maps.length < data.maps.length) this.maps.push(new OneMap(this));
    const names = data.maps.map(({ name }) => name.toLowerCase());
    const before = names.indexOf(other ? "" : this.large.name.toLowerCase());
    this.large = this.maps[before >= 0 ? before : Math.max(0, names.indexOf(data.large))];
    this.swap.hidden = this.even.hidden = this.maps.length < 2;
    const bars = JSON.stringify([data.key, data.colour, data.columns.map(({ title, codes, categories }) => [title, codes, categories])]);
    this.legend.draw(this.colour);
    this.root.style.setProperty("--number", `${this.size.toLocaleString("en").length}ch`); // room for the numbers of the bars
    this.states = this.readStates();
    this.arrange();
    data.maps.forEach((spec, at) => this.maps[at].draw(spec));
    if (bars !== this.barsDrawn) this.bars.draw(data.columns, data.bars ?? "");
    this.barsDrawn = bars;
    this.topics.label();
    this.change();
    this.root.dataset.drawn = data.key;
  }

  // Notes whether the maps have three dimensions, and how they are turned at first.
  measure(data, other) {
    const solid = data.maps.some(({ panels }) => panels.some(({ z }) => z));
    if (other) this.turn = turnOf(data.turn ?? "");
    if (solid !== Boolean(this.solid)) this.setMode(solid ? "turn" : "select");
    this.solid = solid;
    this.modes.turn.hidden = this.front.hidden = !solid;
  }

  turnBy(right, down) {
    this.turnTo(further(this.turn, right, down));
  }

  // Turns all maps, and tells the host and screen readers when the maps have stopped.
  turnTo(turn) {
    this.turn = turn;
    this.maps.forEach((map) => map.refresh());
    clearTimeout(this.turning);
    this.turning = setTimeout(() => {
      this.say(`Turned: ${turnInWords(turn)}`);
      this.host("turn", { value: turnText(turn) });
    }, PAUSE);
  }

  // Moves each map to its place on the page.
  arrange() {
    this.root.dataset.equal = Boolean(this.equal && this.maps.length > 1);
    this.maps.forEach((map) => {
      const place = map === this.large || this.equal ? this.main : this.insets;
      const first = map === this.large;
      if (map.box.parentElement !== place || (first && place.firstChild !== map.box)) place[first ? "prepend" : "append"](map.box);
      map.box.dataset.small = map.small;
      map.canvas.tabIndex = 0;
      map.box.title = map.small ? "Click: make this map the large one" : "";
    });
    this.insets.hidden = !this.insets.childElementCount;
  }

  enlarge(map) {
    this.large = map;
    this.arrange();
    this.maps.forEach((each) => {
      each.resize();
      each.reset();
    });
    this.topics.show(map);
    this.host("maps", { value: map.name });
  }

  // Returns functions of a row that give the shape, size and colour of its mark.
  look() {
    if (this.looks) return this.looks;
    const { rows, palette, codes, shapes, size } = this;
    const style = getComputedStyle(this.root);
    const first = rows.lang[0];
    const several = new Set(rows.lang).size > 1;
    const own = (row) => rows.pair[row] < 0;
    const large = radius(size, several);
    const small = radius(size, false);
    this.looks = {
      own, palette, code: (row) => codes[row], colour: (row) => palette[codes[row]],
      shape: (row) => (own(row) ? "star" : shapes[rows.lang[row]]),
      size: (row) => (own(row) ? 6.5 : rows.lang[row] === first ? large : small),
      ink: style.color, edge: "rgba(128, 128, 128, 0.55)", soft: "rgba(128, 128, 128, 0.8)",
      page: style.getPropertyValue("--page"),
    };
    return this.looks;
  }

  // Sets the size and the font of the texts on the maps, which are measured to place them.
  letter(pixels, family = getComputedStyle(this.root).fontFamily) {
    this.pen ??= document.createElement("canvas").getContext("2d");
    this.pen.font = `${pixels}px ${family}`;
    this.root.style.setProperty("--letter", `${pixels}px`);
    this.widths = new Map();
  }

  width(text) {
    if (!this.widths.has(text)) this.widths.set(text, this.pen.measureText(text).width);
    return this.widths.get(text);
  }

  // Returns the state of each row: hidden by the legend, filtered out by the bars, faded because others are highlighted, or
  // shown.
  readStates() {
    const states = new Uint8Array(this.size).fill(SHOWN);
    const passing = this.bars.charts.length && this.barsDrawn ? this.bars.passing() : null;
    const lit = this.typed ?? (this.lit?.lit ? unpacked(this.lit.lit) : null);
    for (let row = 0; row < states.length; row++) {
      if (this.legend.hidden.has(this.codes[row])) states[row] = HIDDEN;
      else if (passing && !passing[row]) states[row] = FILTERED;
      else if (lit && !has(lit, row) && this.rows.pair[row] >= 0) states[row] = FADED;
    }
    return states;
  }

  // Updates the maps after a change of the legend, the bars, the search or the selection.
  change() {
    this.states = this.readStates();
    this.bars.update();
    this.topics.show(this.large);
    this.maps.forEach((map) => map.refresh());
    this.count();
    this.table?.draw();
  }

  // Shows the host's selected rows, the rows with rings, and the star.
  light(lit) {
    if (!this.rows || lit.key !== this.key) return;
    if (this.lit?.focus !== lit.focus) this.closed = null;
    this.lit = lit;
    if (this.dragged && this.dragged.focus !== lit.focus) this.dragged = null;
    const { map: name, ...place } = lit.moved ?? {};
    const map = this.maps.find((each) => each.name === name);
    if (map?.panelOf[lit.focus] >= 0) this.dragged ??= { map, focus: lit.focus, panel: map.panelOf[lit.focus], ...place }; // from a link
    if (lit.answered === this.sent) this.waiting = false;
    this.change();
  }

  count() {
    const chosen = this.lit?.chosen ? count(unpacked(this.lit.chosen)) : 0;
    const open = this.states.filter((state) => state > FILTERED).length;
    const [some, total, lit, shown] = [chosen, this.size, this.typed ? count(this.typed) : 0, open].map((number) => number.toLocaleString("en"));
    const all = this.legend.hidden.size ? `${shown} of ${total} shown` : `${total} sentences`; // the bars show another count
    this.say(this.typed ? `${lit} of ${total} match` : chosen ? `${some} of ${total} selected` : all);
    this.clear.disabled = !chosen;
  }

  say(text) {
    this.status.textContent = text;
  }

  click(row) {
    this.closed = null;
    this.tip(null);
    if (row === this.lit?.focus && count(unpacked(this.lit.chosen)) === 1) return this.change(); // the row is already the star
    this.choose(bitsOf([row], this.size), false, row);
  }

  // Selects rows. The host answers with their nearest rows; until then, only the selected rows are highlighted.
  choose(bits, further = false, focus = -1, find = "") {
    if (this.mode === "select") this.arm(false);
    if (bits.length && !bits.some(Boolean)) {
      this.say("No sentence is inside the line: the selection does not change.");
      return;
    }
    if (further && this.lit?.chosen) bits = unpacked(this.lit.chosen).map((byte, at) => byte | bits[at]);
    const text = bits.length ? packed(bits) : "";
    this.dragged = this.typed = null;
    if (!find) this.search.value = "";
    const { movable = [], pinned = -1, slices = [] } = this.lit ?? {};
    const lit = { key: this.key, chosen: text, lit: text, focus, near: [], movable, pinned, slices };
    this.host("picked", { key: this.key, rows: text, id: focus >= 0 ? this.rows.id[focus] : "", find });
    setTimeout(() => this.light(lit)); // painted later, so that the host computes meanwhile
  }

  // Handles Escape and the card's cross: closes the card, or clears the selection if no card is open.
  dismiss() {
    this.tip(null);
    const focus = this.lit?.focus ?? -1;
    if (focus >= 0 && this.closed !== focus) {
      this.closed = focus;
      this.maps.forEach((map) => map.refresh());
    } else this.choose(new Uint8Array(0));
  }

  pin(row) {
    this.host("pin", { value: row >= 0 ? this.rows.id[row] : "" });
    this.light({ ...this.lit, pinned: row });
  }

  // Highlights the points whose sentences contain the words in the search field.
  type() {
    this.lower ??= this.rows.text.map((text) => text.toLowerCase());
    const words = this.search.value.trim();
    this.typed = words ? rowsWith(this.lower, words, this.size) : null;
    this.change();
  }

  found() {
    if (!this.typed) this.type();
    if (this.typed?.some(Boolean)) this.choose(this.typed, false, -1, this.search.value.trim());
    else if (this.typed) this.say("No sentence has these words.");
  }

  // Moves the star to a spot of a map. Requests a sentence for this spot when the star is dropped, and at intervals before.
  drag(map, spot, dropped) {
    if (!spot) return;
    const [{ focus }, { panel, x, y, z }] = [this.lit, spot];
    this.dragged = { map, focus, panel, x, y, z };
    this.closed = null;
    map.overlay();
    const now = performance.now();
    if (!this.lit.movable.includes(map.name)) return;
    if (dropped && map.small) this.enlarge(map); // only the large map has room for the generated sentence
    if (!dropped && (this.waiting || now - (this.sent ?? 0) < PAUSE)) return;
    [this.waiting, this.sent] = [true, now];
    this.host("moved", { key: this.key, id: this.rows.id[focus], map: map.name, x, y, z, at: now });
  }

  // Shows a sentence and its translation beside the pointer.
  tip(row, event) {
    this.tooltip.hidden = row === null || row < 0 || (row === this.lit?.focus && this.closed !== row);
    if (this.tooltip.hidden || !event) return;
    if (row !== this.tipRow || !this.tooltip.childElementCount) {
      this.tipRow = row;
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

  // Sets the colours: those of the page, or for print those of the light theme, or greys.
  paint(paper = false, grey = false) {
    const { categories, palette, print } = this.colour;
    const colours = categories?.map((each) => (paper ? each.print : each.colour)) ?? (paper ? print : palette);
    const level = (at) => Math.round(40 + (150 * at) / Math.max(1, colours.length - 1));
    this.palette = grey ? colours.map((_, at) => `rgb(${[level(at), level(at), level(at)]})`) : colours;
    this.root.dataset.paper = paper;
    this.looks = null;
  }

  // Returns all maps as one SVG drawing of this width in millimetres: side by side, or below each other if it is narrow.
  print({ width, caption = "", named = true, grey = false }) {
    const total = Math.round((width / 25.4) * 96);
    const wide = width >= 120 && this.maps.length > 1;
    const before = this.named;
    this.paint(true, grey);
    this.letter(PRINTED, FONTS);
    this.named = named;
    const legend = this.legend.drawing(total);
    const height = wide ? total * 0.55 : total;
    const maps = [this.large, ...this.maps.filter((map) => map !== this.large)].map((map, at) => {
      const share = wide ? (at ? 0.36 : 0.62) * total : total;
      const tall = wide && at ? height / (this.maps.length - 1) : at ? 0.6 * height : height;
      const [x, y] = wide ? [at ? total - share : 0, Math.max(0, at - 1) * tall] : [0, at ? height + (at - 1) * tall : 0];
      return { bottom: y + tall, drawing: `<g transform="translate(${x} ${y})">${drawing(map, share, tall - 6)}</g>` };
    });
    const bottom = Math.max(...maps.map((map) => map.bottom));
    const text = (caption.match(/.+/g) ?? []).map((line, at) => `<text x="4" y="${bottom + legend.height + 12 * (at + 1)}" font-size="9" fill="#666">${escaped(line)}</text>`);
    const whole = Math.ceil(bottom + legend.height + 12 * text.length + 8);
    this.named = before;
    this.paint();
    this.letter(LETTER);
    this.maps.forEach((map) => map.resize());
    return `<svg xmlns="${SVG}" width="${total}" height="${whole}" viewBox="0 0 ${total} ${whole}" font-family="${FONTS}" font-size="${PRINTED}">`
      + `<rect width="100%" height="100%" fill="white"/>${maps.map(({ drawing }) => drawing).join("")}<g transform="translate(0 ${bottom})">${legend.drawing}</g>${text.join("")}</svg>`;
  }

  save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.print({ width: 180 })], { type: "image/svg+xml" }));
    link.download = `${this.file}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }
}

const escaped = (text) => part("p", text).innerHTML;

// Returns the index in the palette for each row of a column of numbers.
function shaded({ values, palette, low, high }) {
  const last = palette.length - 1;
  return Uint8Array.from(numbers(values), (value) => Math.max(0, Math.min(last, Math.round((last * (value - low)) / (high - low || 1))) || 0));
}

// The topics of the large map: a list beside the maps, in which the user selects, opens and renames them. The class also
// keeps the names that the user gave, and chooses where the maps write names.
const LONGEST_NAME = 40; // maximum number of letters of a name that the user gives
const LONGEST_LINK = 1500; // maximum number of letters of all these names in the page's address, as in `app/core/address.py`
const OUTLINE = 200; // maximum number of points from which the place of a name is computed
const TRIED = 18; // number of places on each side of a group's rectangle at which its name is tried
const AROUND = 26; // pixels around a group's rectangle in which its name may be
const CROWDED = 14; // a name may move by this many pixels to cover one point less
const CELL = 5; // side in pixels of the squares in which points are counted

class Topics {
  constructor(view, parent) {
    this.view = view;
    this.given = new Map(); // key of a topic -> name that the user gave
    this.box = parent.appendChild(part("details", "", "bgt-topics"));
    this.box.open = true;
    this.title = this.box.appendChild(part("summary", "Topics"));
    this.list = this.box.appendChild(part("ul", ""));
    this.entries = [];
  }

  // Reads the names that the user gave, from text such as semantic.en7.0:Travel~semantic.fr3.1:Food.
  read(names) {
    this.given = new Map([...names.matchAll(/([^~:]+):([^~]+)/g)].map(([, key, name]) => [key, name]));
  }

  get text() {
    return [...this.given].map(([key, name]) => `${key}:${name}`).join("~");
  }

  // Whether the names are too long for the page's address, so that only this class keeps them.
  get tooLong() {
    return this.text.length > LONGEST_LINK;
  }

  nameOf(topic) {
    return this.given.get(topic.key) ?? topic.name;
  }

  // Lists the topics of a map. The list stays as it is if it already has these topics.
  show(map) {
    const panels = map?.panels ?? [];
    if (panels === this.shown) return this.update();
    this.shown = panels;
    this.title.textContent = map ? `Topics of the ${map.title[0].toLowerCase()}${map.title.slice(1)}` : "Topics";
    this.entries = [];
    this.list.replaceChildren();
    for (const { title, topics } of panels) {
      if (panels.length > 1) this.list.append(part("li", title, "bgt-topics-of"));
      topics.filter(({ parent }) => !parent).forEach((topic) => this.list.append(this.entry(topic)));
    }
    this.update();
  }

  // Makes the entry of a topic: a button that selects its sentences, one that renames it, and the entries of its finer topics.
  entry(topic) {
    const item = part("li", "");
    const line = item.appendChild(part("div", "", "bgt-topic"));
    const button = pressed("", "", (event) => { if (event.detail < 2) this.press(entry); }, "");
    const pencil = pressed("✎", "", () => this.edit(entry), "bgt-pencil");
    button.append(part("span", ""), " ", part("em", ""));
    line.append(button, pencil);
    const entry = { topic, item, line, button, pencil, typical: item.appendChild(part("small", this.view.rows.text[topic.middle])) };
    button.addEventListener("dblclick", () => this.edit(entry));
    button.addEventListener("keydown", (event) => { if (event.key === "F2") this.edit(entry); });
    this.entries.push(entry);
    if (topic.finer.length > 1) {
      entry.finer = item.appendChild(part("ul", ""));
      entry.finer.append(...topic.finer.map((each) => this.entry(each)));
      this.open(entry, false);
    }
    return item;
  }

  open(entry, open) {
    entry.finer.hidden = !open;
    entry.button.setAttribute("aria-expanded", open);
  }

  // Selects the sentences of a topic and opens its finer topics; of the selected topic, clears the selection and closes them.
  press(entry) {
    const clear = entry.button.getAttribute("aria-pressed") === "true";
    if (entry.finer) this.open(entry, !clear);
    this.view.choose(clear ? new Uint8Array(0) : bitsOf(this.visible(entry.topic), this.view.size));
  }

  visible(topic) {
    return topic.rows.filter((row) => this.view.states[row] > FILTERED);
  }

  // Counts the shown sentences of each topic, and marks the selected topic.
  update() {
    const chosen = this.view.lit?.chosen ?? "";
    const size = chosen ? count(unpacked(chosen)) : 0;
    for (const { topic, button, pencil, typical } of this.entries) {
      const rows = this.visible(topic);
      const selected = size > 0 && rows.length === size && packed(bitsOf(rows, this.view.size)) === chosen;
      const [name, number] = [this.nameOf(topic), rows.length.toLocaleString("en")];
      [button.firstChild.textContent, button.lastChild.textContent] = [name, number];
      button.disabled = !rows.length;
      button.setAttribute("aria-pressed", selected);
      button.setAttribute("aria-label", `${name}, ${number} sentences`);
      button.title = this.about(topic);
      pencil.title = `Rename ${name} (F2 or a double click)`;
      pencil.setAttribute("aria-label", `Rename ${name}`);
      typical.hidden = !selected;
    }
  }

  // Describes a topic: the sentence in its middle, and how many sentences have a word of its name.
  about(topic) {
    const { text } = this.view.rows;
    const said = topic.saying && !this.given.has(topic.key) ? `\n${topic.saying} of ${topic.counted} sentences have a word of the name.` : "";
    return `In the middle: ${text[topic.middle]}${said}`;
  }

  // Lets the user type a name. Enter or leaving the field keeps it, Escape does not; an empty name restores the first one.
  edit({ topic, line, button }) {
    if (line.querySelector("input")) return;
    const field = part("input", "");
    Object.assign(field, { value: this.nameOf(topic), maxLength: LONGEST_NAME });
    field.setAttribute("aria-label", `New name of ${this.nameOf(topic)}`);
    let open = true;
    const close = (keep) => {
      if (!open) return; // removing the field also makes it lose the focus
      [open, button.hidden] = [false, false];
      const focused = document.activeElement === field;
      const name = field.value.replace(/~/g, "-").trim();
      field.remove();
      if (focused) button.focus();
      if (keep) this.rename(topic, name);
    };
    field.addEventListener("keydown", (event) => {
      if (!["Enter", "Escape"].includes(event.key)) return;
      event.preventDefault();
      close(event.key === "Enter");
    });
    field.addEventListener("blur", () => close(true));
    button.hidden = true;
    line.prepend(field);
    field.select();
  }

  rename(topic, name) {
    if (name === this.nameOf(topic)) return;
    if (name && name !== topic.name) this.given.set(topic.key, name);
    else this.given.delete(topic.key);
    this.view.host("names", { value: this.text });
    this.update();
    this.label();
    this.view.maps.forEach((map) => map.refresh());
    this.view.say(this.tooLong ? "Too many names for a link: it opens without them." : `Renamed: ${this.nameOf(topic)}`);
  }

  // Gives the legend and the bars of the column "Topic" the names that the user gave.
  label() {
    const coarse = this.view.maps.find(({ name }) => name === "semantic")?.panels[0].topics.filter(({ parent }) => !parent) ?? [];
    const chart = this.view.bars.charts.find(({ column }) => column.name === "topic");
    coarse.filter(({ code }) => chart?.bins[code]).forEach((topic) => {
      chart.bins[topic.code].label = this.nameOf(topic);
      chart.buttons[topic.code].firstChild.textContent = this.nameOf(topic);
    });
    if (!chart || !coarse.length) return;
    this.view.bars.update();
    if (this.view.colour.name === "topic") this.view.legend.draw(this.view.colour);
  }

  // Writes the names of a panel's topics beside or between their points, where they cover the fewest points.
  write(map, panel, finer, layer, taken) {
    const open = (rows, most) => rows.filter((row, at) => at % Math.ceil(rows.length / most) === 0 && this.view.states[row] > FILTERED);
    const places = (rows, most) => Array.from(open(rows, most), (row) => map.pixelsOf(row)).filter(Boolean);
    const { left, top, width, height } = panel.box;
    const crowd = new Crowd(left, top, width, height).fill(places(panel.rows, SAMPLED));
    for (const topic of panel.topics) {
      const { parent } = topic;
      if (parent && !(finer && parent.finer.length > 1 && this.nameOf(parent) !== this.nameOf(topic))) continue;
      const [text, shown] = [shortened(this.nameOf(topic), LETTERS.group), places(topic.rows, OUTLINE)];
      const size = [this.view.width(text) * BOLD + 4, LINE];
      const place = shown.length && emptiest(shown, size, panel.box, crowd, taken);
      if (!place) continue;
      taken.push([place[0], place[1], place[0] + size[0], place[1] + size[1]]);
      const level = parent ? "finer" : "coarse";
      shape(layer, "text", { x: place[0] + 2, y: place[1] + 13, class: `bgt-text bgt-group bgt-${level}` }, text);
    }
  }
}

// Returns the topics of a panel, the coarse ones first, the largest of a level first. Each has its key, its parent, its
// finer topics, and its rows. `finest` has the index of each row's finer topic.
function withRows(map, topics, finest, rows) {
  const full = topics.map((topic, code) => ({ ...topic, code, key: `${map.replace(/[~:]/g, " ")}.${topic.key}`, finer: [], rows: [] }));
  full.forEach((topic) => { topic.parent = full[topic.parent] ?? null; });
  finest.forEach((code, at) => {
    full[code].rows.push(rows[at]);
    full[code].parent.rows.push(rows[at]);
  });
  const level = ({ parent }) => (parent ? 1 : 0);
  full.sort((one, other) => level(one) - level(other) || other.rows.length - one.rows.length);
  full.forEach((topic) => topic.parent?.finer.push(topic));
  return full;
}

// Points counted in the cells of a grid, from which the points in any rectangle are counted at once (summed-area table).
class Crowd {
  constructor(left, top, width, height) {
    [this.left, this.top] = [left, top];
    [this.columns, this.lines] = [width, height].map((side) => Math.ceil(side / CELL) + 1);
    this.sums = new Float64Array((this.columns + 1) * (this.lines + 1));
  }

  fill(places) {
    const across = this.columns + 1;
    for (const [x, y] of places) {
      const [column, line] = [Math.floor((x - this.left) / CELL), Math.floor((y - this.top) / CELL)];
      if (column >= 0 && line >= 0 && column < this.columns && line < this.lines) this.sums[(line + 1) * across + column + 1]++;
    }
    for (let at = across + 1; at < this.sums.length; at++) {
      if (at % across) this.sums[at] += this.sums[at - 1] + this.sums[at - across] - this.sums[at - across - 1];
    }
    return this;
  }

  // Counts the points whose cells lie at least partly in a rectangle.
  inside(left, top, right, bottom) {
    const [from, to] = [[left, right], [top, bottom]].map((ends, side) => ends.map((end) => (end - [this.left, this.top][side]) / CELL))
      .reduce(([starts, ends], [low, high], side) => {
        const most = side ? this.lines : this.columns;
        return [[...starts, Math.max(0, Math.min(most, Math.floor(low)))], [...ends, Math.max(0, Math.min(most, Math.ceil(high)))]];
      }, [[], []]);
    const sum = (column, line) => this.sums[line * (this.columns + 1) + column];
    return sum(to[0], to[1]) - sum(from[0], to[1]) - sum(to[0], from[1]) + sum(from[0], from[1]);
  }
}

// Returns the best place [left, top] of a name of this width and height beside or between the points of its group, which has
// pixels `places`. The fewer points of the crowd it covers, the better, and the nearer to the middle. Returns undefined if
// every place leaves the panel's box or covers one of the rectangles `taken`.
function emptiest(places, [width, height], box, crowd, taken) {
  const sides = [0, 1].map((side) => {
    const sorted = places.map((place) => place[side]).sort((one, other) => one - other);
    const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
    return { low: at(0.1), middle: at(0.5), high: at(0.9), size: [width, height][side] };
  });
  const tried = sides.map(({ low, high, size }) => Array.from({ length: TRIED }, (_, at) => {
    const [from, to] = [low - AROUND - size, high + AROUND];
    return from + ((to - from) * at) / (TRIED - 1);
  }));
  let [best, least] = [undefined, Infinity];
  for (const left of tried[0]) {
    for (const top of tried[1]) {
      const [right, bottom] = [left + width, top + height];
      if (left < box.left || top < box.top || right > box.left + box.width || bottom > box.top + box.height) continue;
      if (taken.some(([l, t, r, b]) => left < r && right > l && top < b && bottom > t)) continue;
      const away = Math.hypot((left + right) / 2 - sides[0].middle, (top + bottom) / 2 - sides[1].middle);
      const cost = away + CROWDED * crowd.inside(left - CELL, top - CELL, right + CELL, bottom + CELL);
      if (cost < least) [best, least] = [[left, top], cost];
    }
  }
  return best;
}

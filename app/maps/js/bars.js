// Bar charts beside the maps: how many sentences have each length, closing mark, language and so on. If the user clicks
// bars or drags over them, the maps and the other charts show only these sentences.
const BINS = 12; // maximum number of bars of a column of numbers
const NOWHERE = 255; // code of a row without a value, which is in no bar

class Bars {
  constructor(view, parent) {
    this.view = view;
    this.box = parent.appendChild(part("div", "", "bgt-bars"));
    this.head = this.box.appendChild(part("div", "", "bgt-bars-head"));
    this.status = this.head.appendChild(part("span", ""));
    this.status.setAttribute("role", "status");
    this.take = this.head.appendChild(pressed("Select these", "Select the sentences of the chosen bars", () => this.select()));
    this.clear = this.head.appendChild(pressed("Clear", "Clear all bars", () => this.reset()));
    this.charts = [];
    document.addEventListener("pointerup", () => { this.from = null; });
  }

  draw(columns, chosen) {
    this.charts.forEach(({ element }) => element.remove());
    this.charts = columns.map((column) => this.chart(column));
    for (const [, name, codes] of chosen.matchAll(/([^~]+):([\d.]+)/g)) {
      this.charts.filter(({ column }) => column.name === name).forEach((chart) => codes.split(".").forEach((code) => chart.chosen.add(Number(code))));
    }
    this.told = this.text;
    this.update();
  }

  // The chosen bars as text for the URL, as in mark:2~words:3.4.
  get text() {
    return this.charts.filter(({ chosen }) => chosen.size).map(({ column, chosen }) => `${column.name}:${[...chosen].join(".")}`).join("~");
  }

  // Makes the bar chart of a column: `codes` is the bar of each row, `chosen` the chosen bars, and each bar is a button.
  chart(column) {
    const { bins, codes } = column.categories ? { bins: column.categories, codes: numbers(column.codes) } : binned(column);
    const chart = { column, title: column.title, bins, codes, chosen: new Set(), last: 0, buttons: [] };
    chart.element = this.box.appendChild(part("fieldset", "", column.categories ? "bgt-rows" : "bgt-columns"));
    chart.element.appendChild(part("legend", column.title));
    const list = chart.element.appendChild(part("div", ""));
    chart.buttons = bins.map((bin, code) => {
      const button = list.appendChild(part("button", ""));
      button.type = "button";
      const bar = part("i", "");
      if (column === this.view.colour) bar.style.setProperty("--bar", bin.colour);
      bar.append(part("b", ""));
      button.append(part("span", bin.short ?? bin.label), bar, " ", part("em", "")); // the space keeps a label and its number apart for speech control
      button.addEventListener("pointerdown", (event) => this.press(chart, code, event));
      button.addEventListener("pointerenter", (event) => { if (event.buttons & 1 && event.pointerType !== "touch") this.reach(chart, code); });
      button.addEventListener("click", (event) => { if (!event.detail || event.pointerType === "touch") this.toggle(chart, code, event.shiftKey); }); // by keyboard or touch; `press` handles the mouse
      return button;
    });
    return chart;
  }

  press(chart, code, event) {
    if (event.button !== 0 || event.pointerType === "touch") return; // a finger may be about to scroll the page
    event.target.releasePointerCapture?.(event.pointerId);
    this.from = { chart, code };
    this.toggle(chart, code, event.shiftKey);
  }

  // Chooses the bars from the one where the drag began to the one under the pointer.
  reach(chart, code) {
    if (this.from?.chart !== chart) return;
    this.choose(chart, this.from.code, code);
  }

  toggle(chart, code, further) {
    if (further) return this.choose(chart, chart.last, code);
    chart.last = code;
    if (!chart.chosen.delete(code)) chart.chosen.add(code);
    this.view.change();
  }

  choose(chart, from, to) {
    chart.chosen = new Set();
    for (let code = Math.min(from, to); code <= Math.max(from, to); code++) chart.chosen.add(code);
    this.view.change();
  }

  reset() {
    this.charts.forEach((chart) => chart.chosen.clear());
    this.view.change();
  }

  select() {
    const passing = this.passing();
    this.charts.forEach((chart) => chart.chosen.clear());
    if (passing) this.view.choose(bitsOf([...passing.keys()].filter((row) => passing[row]), this.view.size));
    this.view.change();
  }

  // Returns two arrays over rows: the number of charts whose chosen bars exclude the row, and the last such chart.
  left() {
    const [out, last] = [new Uint8Array(this.view.size), new Uint8Array(this.view.size)];
    this.charts.forEach(({ codes, chosen }, number) => {
      if (!chosen.size) return;
      const kept = new Uint8Array(256);
      chosen.forEach((code) => { kept[code] = 1; });
      for (let row = 0; row < out.length; row++) {
        if (kept[codes[row]]) continue;
        out[row]++;
        last[row] = number;
      }
    });
    return [out, last];
  }

  // Returns 1 for each row that no chart excludes, else 0; null if no bar is chosen.
  passing() {
    if (!this.charts.some(({ chosen }) => chosen.size)) return null;
    return this.left()[0].map((out) => (out ? 0 : 1));
  }

  // Counts the rows of all bars again. A chart's own chosen bars do not filter that chart, so that the user can still
  // see and add its other bars.
  update() {
    clearTimeout(this.telling);
    if (this.text !== this.told) this.telling = setTimeout(() => this.view.host("bars", { value: (this.told = this.text) }), PAUSE);
    const [out, last] = this.left();
    const selected = this.view.lit?.chosen ? unpacked(this.view.lit.chosen) : null;
    const chosen = selected && count(selected) > 1 ? selected : null;
    let passing = 0;
    out.forEach((each) => { passing += each === 0; });
    this.charts.forEach((chart, number) => {
      const { column } = chart;
      const [all, here] = [new Float64Array(256), new Float64Array(256)];
      for (let row = 0; row < out.length; row++) {
        const code = chart.codes[row];
        all[code]++;
        if ((out[row] === 0 || (out[row] === 1 && last[row] === number)) && (!chosen || has(chosen, row))) here[code]++;
      }
      const most = Math.max(...all.subarray(0, chart.bins.length), 1);
      chart.buttons.forEach((button, code) => {
        const label = `${chart.bins[code].label}: ${here[code].toLocaleString("en")} of ${all[code].toLocaleString("en")}`;
        button.hidden = Boolean(column.categories) && !all[code];
        button.title = label;
        button.setAttribute("aria-label", `${chart.title}, ${label}`);
        button.setAttribute("aria-pressed", chart.chosen.has(code));
        button.style.setProperty("--all", all[code] / most);
        button.style.setProperty("--here", here[code] / most);
        button.lastChild.textContent = here[code].toLocaleString("en");
      });
      chart.element.classList.toggle("bgt-some", chart.chosen.size > 0);
    });
    const filtered = this.charts.some((chart) => chart.chosen.size);
    const [some, total] = [passing, out.length].map((number) => number.toLocaleString("en"));
    this.status.textContent = filtered ? `${some} of ${total} shown` : "Click or drag over bars";
    [this.take.hidden, this.clear.hidden] = [!filtered || !passing, !filtered];
  }
}

// Divides a column of numbers into at most `BINS` bars of a round width; the last bar also has all larger numbers.
function binned({ values, palette, low, high }) {
  const all = Float64Array.from(numbers(values));
  const known = Float64Array.from(all.filter((value) => !Number.isNaN(value))).sort();
  const [least, most] = [known[0] ?? 0, known[Math.floor(0.98 * (known.length - 1))] ?? 0];
  const whole = known.every(Number.isInteger);
  const rough = Math.max((most - least) / BINS, whole ? 1 : 1e-9);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((times) => times * unit >= rough - 1e-12);
  const start = Math.floor(least / step) * step;
  const number = Math.max(1, Math.min(BINS + 1, Math.floor((most - start) / step) + 1));
  const codes = Uint8Array.from(all, (value) => (Number.isNaN(value) ? NOWHERE : Math.max(0, Math.min(number - 1, Math.floor((value - start) / step)))));
  const round = (value) => Number(value.toPrecision(6));
  const bins = Array.from({ length: number }, (_, at) => {
    const [from, to] = [round(start + at * step), round(start + (at + 1) * step)];
    const end = at === number - 1 && known.at(-1) >= to ? `${from} or more` : whole && step === 1 ? `${from}` : whole ? `${from} to ${to - 1}` : `${from} to ${to}`;
    const share = palette && high > low ? Math.max(0, Math.min(0.999, (start + (at + 0.5) * step - low) / (high - low))) : 0;
    return { label: end, short: `${from}`, colour: palette?.[Math.floor(share * palette.length)] };
  });
  return { bins, codes };
}

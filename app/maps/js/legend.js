// The one legend of all maps: a button for each category, which hides and shows it on all of them, or a scale of numbers.
class Legend {
  constructor(view, parent) {
    this.view = view;
    this.hidden = new Set();
    this.box = parent.appendChild(part("div", "", "bgt-legend"));
    this.box.setAttribute("role", "group");
    this.box.setAttribute("aria-label", "Legend");
  }

  // Draws the legend of a column: {title, categories: [{label, colour}]} or {title, low, high, palette}.
  draw(column) {
    if (column !== this.column) this.hidden.clear();
    this.column = column;
    const present = new Set(column.categories ? numbers(column.codes) : []);
    this.entries = column.categories?.map((category, code) => ({ ...category, code })).filter(({ code }) => present.has(code));
    this.box.replaceChildren(part("span", column.title));
    if (this.entries) this.entries.forEach((entry) => this.category(entry));
    else this.scale(column);
  }

  category({ label, colour, code }) {
    const button = pressed("", `Hide or show: ${label}`, () => {
      if (!this.hidden.delete(code)) this.hidden.add(code);
      button.setAttribute("aria-pressed", !this.hidden.has(code));
      this.view.change();
    }, "");
    button.setAttribute("aria-label", label);
    button.setAttribute("aria-pressed", !this.hidden.has(code));
    button.appendChild(part("i", "")).style.background = colour;
    button.append(label);
    this.box.append(button);
  }

  scale({ ends: [low, high], palette }) {
    const bar = part("b", "");
    bar.style.background = `linear-gradient(to right, ${palette})`;
    this.box.append(part("span", low), bar, part("span", high));
  }

  // The legend of a drawing, at a height in pixels.
  drawing(y) {
    const { title, ends, palette } = this.column;
    const safe = (text) => part("p", text).innerHTML;
    const ink = this.view.look().ink;
    const text = (x, words) => `<text x="${x}" y="${y}" fill="${ink}">${safe(words)}</text>`;
    let [x, parts] = [this.view.width(title) + 16, [text(4, title)]];
    const entries = this.entries ?? palette.map((colour, at) => ({ colour, label: at === 0 ? ends[0] : at === palette.length - 1 ? ends[1] : "" }));
    for (const { label, colour } of entries) {
      parts.push(`<circle cx="${x + 5}" cy="${y - 4}" r="5" fill="${colour}"/>`, text(x + 14, label));
      x += label ? this.view.width(label) + 28 : 12;
    }
    return parts.join("");
  }
}

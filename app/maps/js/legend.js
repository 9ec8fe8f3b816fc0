// The legend of all maps: a button for each category, which hides or shows it on all maps, or a colour scale of numbers.
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

  // Returns the legend as SVG for a drawing of this width, and its height; both in pixels.
  drawing(width) {
    const { title, ends } = this.column;
    const { palette } = this.view;
    const entries = this.entries?.filter(({ code }) => !this.hidden.has(code)) ?? palette.map((_, code) => ({ code, label: code === 0 ? ends[0] : code === palette.length - 1 ? ends[1] : "" }));
    let [x, y] = [this.view.width(title) + 18, 16];
    const parts = [`<text x="4" y="${y}" fill="#222">${escaped(title)}</text>`];
    for (const { label, code } of entries) {
      const wide = label ? this.view.width(label) + 28 : 12;
      if (x + wide > width) [x, y] = [4, y + 18];
      parts.push(`<circle cx="${x + 5}" cy="${y - 4}" r="5" fill="${palette[code]}"/>`, `<text x="${x + 14}" y="${y}" fill="#222">${escaped(label)}</text>`);
      x += wide;
    }
    return { drawing: parts.join(""), height: y + 8 };
  }
}

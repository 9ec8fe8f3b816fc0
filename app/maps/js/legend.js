// The one legend of all maps: a button for each category, which hides and shows it on all of them, or a scale of numbers.
class Legend {
  constructor(view, parent) {
    this.view = view;
    this.hidden = new Set();
    this.box = parent.appendChild(document.createElement("div"));
    this.box.className = "bgt-legend";
    this.box.setAttribute("role", "group");
    this.box.setAttribute("aria-label", "Legend");
  }

  // Draws what the drawn maps have in common.
  draw(maps) {
    const colours = new Map();
    for (const trace of maps.flatMap(({ plot }) => plot.data)) {
      if (trace.showlegend && trace.legendgroup) colours.set(trace.legendgroup, [trace.name, trace.marker.color]);
    }
    [...this.hidden].forEach((group) => { if (!colours.has(group)) this.hidden.delete(group); });
    this.box.replaceChildren();
    const axis = maps[0]?.withLegend.coloraxis;
    if (axis?.cmin != null) this.scale(axis);
    colours.forEach(([name, colour], group) => this.category(group, name, colour));
  }

  category(group, name, colour) {
    const button = this.part("button", "");
    button.type = "button";
    button.title = "Hide or show";
    button.setAttribute("aria-pressed", !this.hidden.has(group));
    button.addEventListener("click", () => {
      if (!this.hidden.delete(group)) this.hidden.add(group);
      button.setAttribute("aria-pressed", !this.hidden.has(group));
      this.view.redraw();
    });
    button.appendChild(this.part("i", "")).style.background = colour;
    button.appendChild(document.createTextNode(plainText(name)));
  }

  scale({ colorscale, colorbar }) {
    const [low, high] = colorbar.ticktext;
    this.part("span", plainText(colorbar.title.text));
    this.part("span", low);
    const stops = colorscale.map(([at, colour]) => `${colour} ${100 * at}%`);
    this.part("b", "").style.background = `linear-gradient(to right, ${stops})`;
    this.part("span", high);
  }

  part(name, text) {
    const element = this.box.appendChild(document.createElement(name));
    element.textContent = text;
    return element;
  }
}

// A text that was escaped for plotly.
function plainText(escaped) {
  return new DOMParser().parseFromString(escaped, "text/html").documentElement.textContent;
}

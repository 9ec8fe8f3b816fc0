// The card beside the star: the chosen sentence, its translation, and the sentence generated where the star was dragged.
class Card {
  constructor(view, parent) {
    this.view = view;
    this.element = parent.appendChild(document.createElement("div"));
    this.element.className = "bgt-card";
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "Chosen sentence");
    this.element.hidden = true;
    this.frame = parent;
  }

  // Shows the card of a row beside the pixel `at` of the map; hides the card if `row` is -1.
  place(row, at, moved) {
    const { element, view } = this;
    element.hidden = row < 0 || !at || view.closed === row;
    if (element.hidden) return;
    const { written = null, compared = "", pinned = -1 } = view.lit ?? {};
    const content = JSON.stringify([view.key, row, moved, written, compared, pinned, view.waiting]);
    if (content !== this.content) {
      this.content = content;
      this.fill(row, moved, moved ? written : null, compared, pinned);
    }
    const [{ offsetWidth: width, offsetHeight: height }, { clientWidth, clientHeight }] = [element, this.frame];
    const beside = [at[0] + 18, at[0] - width - 18].find((left) => left >= 0 && left + width <= clientWidth);
    const apart = at[1] + 18 + height <= clientHeight ? at[1] + 18 : at[1] - height - 18; // below or above the point, if there is no room beside it
    element.style.left = `${beside ?? Math.max(0, Math.min(at[0] - width / 2, clientWidth - width))}px`;
    element.style.top = `${Math.max(0, Math.min(beside === undefined ? apart : at[1] - 14, clientHeight - height))}px`;
  }

  fill(row, moved, written, compared, pinned) {
    const { rows, langNames } = this.view;
    const head = part("div", "", "bgt-head-of-card");
    head.append(
      part("b", langNames[rows.lang[row]]),
      pressed("Copy", "Copy the sentence and its translation", () => this.copy(row)),
      pressed(pinned === row ? "Unpin" : "Pin", "Keep this sentence marked, and compare others with it", () => this.view.pin(pinned === row ? -1 : row)),
      pressed("×", "Close", () => this.view.dismiss()),
    );
    const parts = [head, part("p", rows.text[row])];
    if (rows.translation[row]) parts.push(part("p", rows.translation[row], "bgt-translation"));
    if (moved) {
      parts.push(part("small", written ? "Generated at the star:" : "Generating …"));
      if (written) parts.push(part("p", written.after || "(nothing)", "bgt-written"), part("small", `Before: ${written.before || "(nothing)"}`));
    }
    if (compared && pinned !== row) parts.push(part("small", compared));
    this.element.replaceChildren(...parts);
  }

  async copy(row) {
    const { text, translation } = this.view.rows;
    const both = [text[row], translation[row]].filter(Boolean).join("\n");
    try {
      await navigator.clipboard.writeText(both);
      this.view.say("Copied.");
    } catch { // browsers allow the clipboard only over https and on localhost
      window.prompt("Copy this text:", both);
    }
  }

  // Returns the rectangle that the card covers on the map, [left, top, right, bottom]; null if it is hidden.
  box() {
    const { offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height, hidden } = this.element;
    return hidden ? null : [left, top, left + width, top + height];
  }
}

// Makes an element with a text; `pressed` makes a small button.
function part(name, text, className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  element.className = className;
  return element;
}

function pressed(text, title, action, className = "bgt-button") {
  const button = part("button", text, className);
  [button.type, button.title] = ["button", title];
  // Speech control finds a button by its visible word, so the name begins with it; a symbol has no word.
  button.setAttribute("aria-label", /\w/.test(text) && !title.startsWith(text) ? `${text}: ${title}` : title);
  button.addEventListener("click", action);
  return button;
}

// The table below the maps in a saved file. It lists the rows that the maps show, so it follows the legend, the bars, the
// search and the selection. A title sorts the table; a sentence makes its point the star.
const LISTED = 1000; // maximum number of rows in the table

class RowsTable {
  constructor(view, parent) {
    this.view = view;
    [this.by, this.down] = [-1, false]; // the column by which the table is sorted, and whether the largest value is first
    const box = parent.appendChild(part("details", "", "bgt-table"));
    box.open = true;
    this.summary = box.appendChild(part("summary", ""));
    const table = box.appendChild(part("div", "")).appendChild(part("table", ""));
    this.head = table.appendChild(part("thead", "")).appendChild(part("tr", ""));
    this.body = table.appendChild(part("tbody", ""));
  }

  // Returns the columns, {title, value(row)}: the sentence, its translation if there is one, and the columns of the bars.
  columns() {
    const { rows, columns } = this.view;
    const texts = [{ title: "Sentence", value: (row) => rows.text[row] }];
    if (rows.translation.some(Boolean)) texts.push({ title: "Translation", value: (row) => rows.translation[row] });
    return [...texts, ...columns.map(({ title, categories, codes, values }) => {
      const cells = numbers(codes ?? values);
      return { title, value: (row) => (categories ? categories[cells[row]]?.label ?? "" : cells[row]) };
    })];
  }

  draw() {
    this.shown ??= this.columns();
    const rows = this.sorted(this.listed());
    const more = rows.length > LISTED ? `, the first ${LISTED.toLocaleString("en")} of them` : "";
    this.summary.textContent = `${rows.length.toLocaleString("en")} sentences${more}`;
    this.head.replaceChildren(...this.shown.map(({ title }, at) => this.title(title, at)));
    this.body.replaceChildren(...rows.slice(0, LISTED).map((row) => this.line(row)));
  }

  // Returns the rows that are not hidden; if several are selected or found, only these.
  listed() {
    const { states, typed, lit } = this.view;
    const star = !typed && lit?.chosen && count(unpacked(lit.chosen)) === 1;
    return [...states.keys()].filter((row) => states[row] === SHOWN || (star && states[row] === FADED));
  }

  sorted(rows) {
    if (this.by < 0) return rows;
    const { value } = this.shown[this.by];
    const order = (left, right) => (typeof left === "number" ? left - right : String(left).localeCompare(String(right)));
    return rows.sort((left, right) => (this.down ? -1 : 1) * order(value(left), value(right)));
  }

  title(title, at) {
    const cell = part("th", "");
    cell.scope = "col";
    if (at === this.by) cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
    const arrow = at === this.by ? (this.down ? " ↓" : " ↑") : "";
    cell.append(pressed(`${title}${arrow}`, "Sort by this column", () => {
      [this.by, this.down] = [at, at === this.by && !this.down];
      this.draw();
    }));
    return cell;
  }

  line(row) {
    const line = part("tr", "");
    line.append(...this.shown.map(({ value }) => part("td", value(row))));
    const [cell] = line.children;
    cell.replaceChildren(pressed(cell.textContent, "Show this sentence on the maps", () => this.view.click(row), ""));
    return line;
  }
}

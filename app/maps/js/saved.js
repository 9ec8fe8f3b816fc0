// The maps as a saved file, which works without the app. The data have the colours of the dark theme and those for print.
const DARK = window.matchMedia("(prefers-color-scheme: dark)"); // whether the reader's browser asks for dark pages

// Shows the maps with a table of their rows, and selects the rows that were selected when the file was saved.
function show(root, data) {
  const view = new View(root, () => {}).withTable();
  const draw = () => view.draw(DARK.matches ? data : { ...data, columns: data.columns.map(onPaper) });
  draw();
  DARK.addEventListener("change", draw);
  const bits = unpacked(data.chosen);
  const chosen = data.rows.id.flatMap((_, row) => (has(bits, row) ? [row] : []));
  if (chosen.length) view.choose(bits, false, chosen.length === 1 ? chosen[0] : -1); // a single sentence is the star
}

// Returns a column with the colours for print, which are those of the light theme.
function onPaper({ categories, palette, print, ...column }) {
  return { ...column, print, palette: print ?? palette, categories: categories?.map((each) => ({ ...each, colour: each.print })) };
}

// Keyboard control of the plane of pairs: arrow keys go from point to point, Enter selects a point. It needs `points.js`.
const KEYS = "Arrow keys go to the nearest pair in a direction, Page Up and Page Down through all pairs; Enter selects, Escape clears.";

// Makes a plotly figure focusable and lets it handle keys; calling it again has no effect.
function giveKeys(plot) {
  if (plot.tabIndex === 0) return;
  Object.assign(plot, { tabIndex: 0, role: "application", ariaLabel: `Plane of pairs. ${KEYS}` });
  plot.dataset.lmSuppressShortcuts = "true"; // JupyterLab then leaves the keys to the plane
  plot.querySelector(".svg-container").insertAdjacentHTML("beforeend", `<div class="bgt-at"><i></i><div role="status">${KEYS}</div></div>`);
  plot.addEventListener("keydown", (event) => { if (event.target === plot && press(plot, event.key)) event.preventDefault(); });
}

// Handles a key. Returns whether the key has an effect.
function press(plot, key) {
  const { _fullData: traces, _fullLayout: { xaxis, yaxis } } = plot;
  const points = traces.flatMap((trace, curveNumber) => (trace.visible !== true ? [] : Array.from(trace.x, (_, pointNumber) => ({ trace, curveNumber, pointNumber }))));
  const places = points.map(({ trace, pointNumber: of }) => [xaxis._offset + xaxis.c2p(trace.x[of]), yaxis._offset + yaxis.c2p(trace.y[of])]);
  const last = points.findIndex(({ curveNumber, pointNumber }) => plot.bgtAt === `${curveNumber} ${pointNumber}`);
  if (ARROWS[key] || key.startsWith("Page")) {
    const next = reached(key, places, last, [xaxis._offset + xaxis._length / 2, yaxis._offset + yaxis._length / 2]);
    if (next < 0) return true; // no point lies in this direction
    const { trace, curveNumber, pointNumber } = points[next];
    plot.bgtAt = `${curveNumber} ${pointNumber}`;
    const text = (trace.hovertext || trace.text)?.[pointNumber] ?? `${trace.x[pointNumber]}, ${trace.y[pointNumber]}`;
    const [at, [left, top]] = [plot.querySelector(".bgt-at"), places[next]];
    at.style.translate = `${left}px ${top}px`;
    at.dataset.side = `${left > plot.clientWidth / 2 ? "left" : "right"} ${top > plot.clientHeight / 2 ? "above" : "below"}`;
    at.lastChild.innerHTML = `${trace.name}<br>${text}`; // Python has escaped the name and the text for plotly
  } else if (key === "Escape") take(plot);
  else if (key === "Enter" && points[last]?.trace.customdata) take(plot, points[last]);
  else return false;
  return true;
}

// Selects a point as a click does; without a point, clears the selection.
function take(plot, point) {
  const chosen = (curve) => (!point ? null : curve === point.curveNumber ? [point.pointNumber] : []);
  plot.data = plot.data.map((trace, curve) => ({ ...trace, selectedpoints: chosen(curve) }));
  plot.emit("plotly_restyle"); // makes Streamlit draw these data; in a notebook, Python draws the selection
  if (!point) return plot.emit("plotly_deselect");
  const { trace: { x, y, customdata }, curveNumber, pointNumber: at } = point;
  plot.emit("plotly_selected", { points: [{ curveNumber, pointNumber: at, pointIndex: at, x: x[at], y: y[at], customdata: customdata[at] }] });
}

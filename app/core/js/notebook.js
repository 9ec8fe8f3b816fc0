// Keyboard control of the plane of pairs in a notebook. Plotly's widget sends this event for each figure that it has
// drawn; `notebook.py` marks the plane of pairs by `meta`.
document.addEventListener("plotlywidget-after-render", ({ detail: { element } }) => {
  if (element.layout.meta === "plane of pairs") giveKeys(element);
});

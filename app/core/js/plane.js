// Touch and keyboard control of the plane of pairs in the app: a swipe scrolls the page; `keys.js` has the keys.
export default function prepare({ parentElement }) {
  const plot = parentElement.closest("[data-testid=stVerticalBlock]")?.querySelector(".js-plotly-plot");
  if (!plot?._fullLayout && parentElement.isConnected) requestAnimationFrame(() => prepare({ parentElement })); // plotly draws the plane later
  if (!plot?._fullLayout || plot.tabIndex === 0) return;
  giveKeys(plot);
  const scrolls = () => plot._fullLayout.dragmode === "pan";
  // In all drag modes but one, Plotly prevents a finger from scrolling the page; Streamlit replaces that one mode.
  plot.addEventListener("touchstart", (event) => { if (scrolls()) event.stopPropagation(); }, { capture: true, passive: true });
  // After a lasso or a zoom by finger, the next swipe scrolls the page again.
  plot.addEventListener("touchend", ({ target }) => {
    if (target.closest(".draglayer") && !scrolls()) setTimeout(() => plot.querySelector("[data-attr=dragmode][data-val=pan]").click());
  });
}

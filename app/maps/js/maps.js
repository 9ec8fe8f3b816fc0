// The maps as a component of the app, mounted by Streamlit. It exchanges data with Python through `selection.js`.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector("div");
  window.bgtMaps ??= {};
  root.bgtView ??= new View(root, (name, value) => window.bgtMaps.send(name, value));
  window.bgtMaps.view = root.bgtView;
  root.bgtView.draw(data);
  if (window.bgtMaps.lit) root.bgtView.light(window.bgtMaps.lit);
}

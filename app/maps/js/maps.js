// The maps as a component of the app, mounted by Streamlit. It exchanges data with Python through `selection.js`.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector("div");
  const maps = (window.bgtMaps ??= {});
  root.bgtView ??= new View(root, (name, value) => maps.send(name, value));
  maps.view = root.bgtView;
  const renamed = maps.open?.find(({ name }) => name === "names")?.value; // names that Python does not have yet
  maps.view.draw({ ...data, names: renamed?.value ?? data.names });
  if (maps.lit && !maps.view.lit) maps.view.light(maps.lit);
}

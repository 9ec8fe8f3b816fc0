// The wire between the maps and Python: it is part of the fragment that a selection reruns, the maps are not.
export default function ({ data, setTriggerValue }) {
  window.bgtMaps ??= {};
  window.bgtMaps.send = setTriggerValue;
  window.bgtMaps.lit = data;
  window.bgtMaps.view?.light(data);
}

// Exchanges the selection between the maps and Python. A new selection reruns only the Streamlit fragment that contains
// this component; the maps are outside the fragment, so they are not sent again.
export default function ({ data, setTriggerValue }) {
  window.bgtMaps ??= {};
  window.bgtMaps.send = setTriggerValue;
  window.bgtMaps.lit = data;
  window.bgtMaps.view?.light(data);
}

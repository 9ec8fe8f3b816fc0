// Exchanges the selection between the maps and Python. A new selection reruns only the Streamlit fragment that contains
// this component; the maps are outside the fragment, so they are not sent again.
// While Python is busy, Streamlit keeps only the last message. Events therefore have rising numbers, and are sent again
// with each new event until Python has handled them. A new event replaces an earlier one of the same name.
const PATIENCE = 10_000; // milliseconds after which an event without an answer no longer delays what Python selected

export default function ({ data, setTriggerValue }) {
  const maps = (window.bgtMaps ??= {});
  maps.open = (maps.open ?? []).filter(({ number }) => number > data.handled);
  maps.send = (name, value) => {
    [maps.number, maps.sent] = [(maps.number ?? 0) + 1, performance.now()];
    maps.open = [...maps.open.filter((event) => event.name !== name), { number: maps.number, name, value }];
    setTriggerValue("events", maps.open);
  };
  if (maps.open.length && performance.now() - maps.sent < PATIENCE) return; // the answer to the last event will follow
  maps.lit = data;
  maps.view?.light(data);
}

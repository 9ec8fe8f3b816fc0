// The maps as a notebook widget (anywidget): it sends the selection to Python. Generating sentences, pinning a sentence
// and remembering the large map are possible only in the app.
export default {
  render({ model, el }) {
    const tell = (name, value) => {
      if (name !== "picked") return;
      model.set("picked", value);
      model.save_changes();
    };
    new View(el.appendChild(document.createElement("div")), tell).draw(model.get("data"));
  },
};

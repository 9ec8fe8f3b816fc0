// The maps as a widget of a notebook (anywidget): what the user selects goes to Python. To write sentences, to pin one and
// to keep the large map are matters of the app's page.
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

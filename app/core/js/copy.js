// A button that copies the URL of this view to the clipboard.
export default function ({ data, parentElement }) {
  let button = parentElement.querySelector("button");
  if (!button) {
    button = document.createElement("button");
    button.className = "bgt-button";
    parentElement.querySelector("div").appendChild(button);
  }
  const idle = () => { button.textContent = "Copy link"; };
  idle();
  button.title = data.link;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.link);
    } catch {  // browsers allow the clipboard only over https and on localhost
      window.prompt("Link to this view:", data.link);
      return;
    }
    button.textContent = "Copied";
    setTimeout(idle, 2000);
  };
}

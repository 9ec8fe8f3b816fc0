// Streamlit adds an entry to the browser's history for each change that the server makes to a page's address, and empties
// the address of a page that is being left. Back then leads to these, without what was typed. Here a page has one entry:
// it holds the address that the page had when a link to another page was followed.
if (!window.bgtHistory) {
  window.bgtHistory = true;
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  const stays = url => new URL(url, location.href).pathname === location.pathname;
  let left = "";
  window.addEventListener("click", event => {
    const link = event.target.closest?.("a[href]");
    if (link && link.origin === location.origin && link.target !== "_blank" && !stays(link.href)) {
      left ||= location.href;
    }
  }, true);
  window.addEventListener("popstate", () => { left = ""; });
  history.replaceState = (state, title, url) => {  // a control of the page was changed
    left = "";
    replace(state, title, url);
  };
  history.pushState = (state, title, url) => {
    if (stays(url)) return replace(state, title, url);
    if (left) replace(state, title, left);
    left = "";
    push(state, title, url);
  };
}

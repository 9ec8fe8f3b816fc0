// Keeps one entry per page in the browser's history, so that Back opens the previous page with its settings and texts.
// Streamlit adds an entry for each change that the server makes to a page's URL, and removes the parameters from the URL
// of a page that the user leaves. This script replaces the page's entry instead, and when the user follows a link to
// another page, restores the URL that the page had at the click (`left`).
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
  history.replaceState = (state, title, url) => {  // called when the user changes a control of the page
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

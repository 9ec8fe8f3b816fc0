// Browsers start no worker for a page that is opened as a file. The search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script>
        postMessage = data => parent.dispatchEvent(new CustomEvent("${url}", { detail: data }));
      </script><script src="${url}"></script>`;
      window.addEventListener(String(url), event => this.dispatchEvent(new MessageEvent("message", { data: event.detail })));
      this.ready = new Promise(resolve => frame.addEventListener("load", () => resolve(frame.contentWindow)));
      document.documentElement.append(frame);
    }
    postMessage(data) {
      this.ready.then(frame => frame.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}

// Runs the callback when plotly.js is loaded. All components in a browser tab share one copy of plotly.js.
function withPlotly(callback) {
  if (window.Plotly) return callback();
  if (!window.bgtPlotly) {
    const script = document.createElement("script");
    // the path of a page is one level below the app's root, which may itself have a path
    script.src = new URL("component/app.core.address.plotly_js/plotly.min.js", new URL(".", location.href)).href;
    window.bgtPlotly = new Promise((resolve, reject) => {
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${script.src} can't be loaded`));
    });
    document.head.appendChild(script);
  }
  window.bgtPlotly.then(callback);
}
